package reference

import (
	"flag"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
)

var plans = flag.Uint64("plans", 10, "how many random fault plans to run the lock under")

// witness sees every acquisition begin, and knows who else believes then. Two
// beliefs overlap if and only if one begins during the other.
type witness struct {
	t    *testing.T
	seed uint64

	mu       sync.Mutex
	holding  map[*lease]struct{} // acquired and not yet being released
	fence    uint64              // the largest that was returned
	obtained int
	lost     int
}

func (w *witness) before() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fence
}

func (w *witness) began(s *lease, older uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.obtained++
	for other := range w.holding {
		if !isLost(other) && time.Now().Before(other.Until()) && time.Now().Before(s.Until()) {
			w.t.Errorf("plan %d: fence %d begins while fence %d believes until %v from now",
				w.seed, s.Fence(), other.Fence(), time.Until(other.Until()))
		}
	}
	if s.Fence() <= older {
		w.t.Errorf("plan %d: fence %d was returned before an acquire that got %d began", w.seed, older, s.Fence())
	}
	w.fence = max(w.fence, s.Fence())
	w.holding[s] = struct{}{}
}

func (w *witness) ends(s *lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isLost(s) {
		w.lost++
	}
	delete(w.holding, s)
}

// work acquires, holds for a while that may be longer than the TTL, and
// releases, again and again.
func (w *witness) work(lock impl.Lock, random *rand.Rand, ttl time.Duration, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(some(random, ttl/10)):
		}
		older := w.before()
		got, err := lock.Acquire(w.t.Context())
		if err != nil {
			continue
		}
		s := got.(*lease)
		w.began(s, older)
		time.Sleep(some(random, ttl*2))
		w.ends(s)
		_ = s.Release(w.t.Context())
	}
}

// disturb breaks one link and heals it, again and again.
func disturb(link *redistest.Node, random *rand.Rand, ttl time.Duration, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(some(random, ttl*2)):
		}
		for range 1 + random.IntN(2) {
			switch random.IntN(4) {
			case 0:
				link.BlackHole(true)
			case 1:
				link.Refuse(true)
			case 2:
				link.LoseReplies(1 + random.Int64N(4))
			case 3:
				link.Delay(some(random, ttl*3/2))
			}
		}
		time.Sleep(some(random, ttl*3/2))
		link.BlackHole(false)
		link.Refuse(false)
		link.Delay(0)
	}
}

// Under random faults on every link no two holders believe at the same time,
// fences grow, and what stops the lock is over when the faults are.
func TestRandomPlans(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	results := make([]*witness, *plans)
	t.Run("plans", func(t *testing.T) {
		for seed := range *plans {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { results[seed] = runPlan(t, seed, ttl) })
			})
		}
	})
	// A plan in which nothing happens proves nothing.
	var obtained, lost int
	for _, w := range results {
		obtained, lost = obtained+w.obtained, lost+w.lost
	}
	if obtained < int(*plans)*10 || lost < int(*plans) {
		t.Errorf("%d acquisitions and %d losses in %d plans are too few", obtained, lost, *plans)
	}
	t.Logf("%d acquisitions, %d losses", obtained, lost)
}

func runPlan(t *testing.T, seed uint64, ttl time.Duration) *witness {
	n := redistest.Start(t, 1)[0]
	w := &witness{t: t, seed: seed, holding: map[*lease]struct{}{}}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range uint64(3) {
		link := n.Link()
		lock, err := NewWith(redistest.Env(ttl, link), Mistakes{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.(io.Closer).Close() })
		wg.Go(func() { w.work(lock, rand.New(rand.NewPCG(seed, i)), ttl, stop) })
		wg.Go(func() { disturb(link, rand.New(rand.NewPCG(seed, 100+i)), ttl, stop) })
	}
	time.Sleep(40 * ttl)
	close(stop)
	wg.Wait()
	time.Sleep(3 * ttl)
	if n.Exists(key) {
		t.Errorf("plan %d: the key is left", seed)
	}
	return w
}

// some is a random part of d.
func some(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}
