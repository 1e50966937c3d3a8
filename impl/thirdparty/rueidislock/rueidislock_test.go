package rueidislock_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/thirdparty/rueidislock"
)

const (
	ttl = 2 * time.Second
	key = "rueidislock:0:job"

	// rueidis leaves a goroutine asleep after Close, for up to a second.
	tidyUp = time.Second
)

func client(t *testing.T, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := rueidislock.NewWithoutCache(redistest.Env(ttl, n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lock.(io.Closer).Close()
		time.Sleep(tidyUp)
	})
	return lock
}

func isLost(lease impl.Lease) bool {
	select {
	case <-lease.(impl.LossNotifier).Lost():
		return true
	default:
		return false
	}
}

// A server without CLIENT TRACKING is refused, and does not hang the client.
func TestNeedsClientTracking(t *testing.T) {
	t.Parallel()
	for _, build := range []impl.New{rueidislock.New, rueidislock.NewWithLoop} {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			start := time.Now()
			_, err := build(redistest.Env(ttl, n))
			if err == nil || !strings.Contains(err.Error(), "n1") {
				t.Errorf("got %v, want an error that names the node", err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %v", took)
			}
			time.Sleep(tidyUp)
		})
	}
}

func TestAcquireRenewRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, n), client(t, n)
		// The caller's ctx ends after Acquire, and the lock lives on.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		lease, err := a.Acquire(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if got := n.TTL(key); got <= ttl/2 || got > ttl {
			t.Errorf("TTL %v, want about %v", got, ttl)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Acquire(short); !errors.Is(err, impl.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting until ctx ended: %v, want unknown", err)
		}
		time.Sleep(5 * ttl)
		if isLost(lease) || !n.Exists(key) {
			t.Error("it does not renew itself")
		}
		got := make(chan impl.Lease)
		go func() { got <- redistest.Acquire(t, b) }()
		time.Sleep(time.Second)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		next := <-got
		if isLost(lease) {
			t.Error("a released lease says that it is lost")
		}
		if err := next.Release(t.Context()); err != nil || n.Exists(key) {
			t.Errorf("release: %v, key there: %v", err, n.Exists(key))
		}
	})
}

func TestLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, n))
		n.Del(key)
		time.Sleep(ttl)
		if !isLost(lease) {
			t.Error("no notice within a TTL")
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v; the library has no other answer", err)
		}
	})
}

// A renewal that hangs is waited for until the end that it asks for: the key
// ends at the TTL, another client holds the lock, and the notice of loss comes
// half a TTL later. A documented weakness.
func TestLossIsToldLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		link := n.Link()
		lease := redistest.Acquire(t, client(t, link))
		start := time.Now()
		link.BlackHole(true)
		next := redistest.Acquire(t, client(t, n))
		if waited := time.Since(start); waited > ttl+100*time.Millisecond {
			t.Errorf("the next holder waited %v, want the TTL", waited)
		}
		time.Sleep(ttl*3/2 - time.Since(start) - 100*time.Millisecond)
		if isLost(lease) {
			t.Error("it was told before 1.4 TTL")
		}
		time.Sleep(200 * time.Millisecond)
		if !isLost(lease) {
			t.Error("it was not told at 1.5 TTL")
		}
		_ = next.Release(t.Context())
		link.BlackHole(false)
		time.Sleep(30 * time.Second) // what still hangs ends
	})
}
