package redlock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/redlock"
)

const (
	ttl = 10 * time.Second
	key = "redlock:job"
)

func with(m redlock.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return redlock.NewWith(env, m) }
}

func client(t *testing.T, build impl.New, nodes ...*redistest.Node) impl.Lock {
	t.Helper()
	lock, err := build(redistest.Env(ttl, nodes...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lock.(io.Closer).Close()
		// go-redis dials in the background, and a dial that hangs outlives
		// Close by its own time-out. Nothing else does.
		time.Sleep(time.Second)
	})
	return lock
}

func votes(nodes []*redistest.Node) int {
	sum := 0
	for _, n := range nodes {
		if n.Exists(key) {
			sum++
		}
	}
	return sum
}

func TestRedlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 5)
		a, b := client(t, redlock.New, nodes...), client(t, redlock.New, nodes...)
		lease := redistest.Acquire(t, a)
		if got := votes(nodes); got != 5 {
			t.Errorf("%d votes", got)
		}
		if got := nodes[4].TTL(key); got != ttl {
			t.Errorf("TTL %v, want %v", got, ttl)
		}
		start := time.Now()
		if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("second client: %v, want not obtained", err)
		}
		if took := time.Since(start); took != 430*time.Millisecond {
			t.Errorf("refused after %v, want the pauses of 210 and 220 ms", took)
		}
		if votes(nodes) != 5 {
			t.Error("the second client gave back the first one's votes")
		}
		for range 2 {
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("release: %v, it always says yes", err)
			}
		}
		if votes(nodes) != 0 {
			t.Error("votes are left")
		}
	})
}

// A node that is cut, or refuses, costs its time-out and one vote; without a
// majority the votes are given back.
func TestNodesFail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fail  func(*redistest.Node)
		fresh bool // connections are made after the failure
		each  time.Duration
	}{
		{"black hole, fresh connection", func(n *redistest.Node) { n.BlackHole(true) }, true, 50 * time.Millisecond},
		{"black hole, open connection", func(n *redistest.Node) { n.BlackHole(true) }, false, 50 * time.Millisecond},
		{"refused", func(n *redistest.Node) { n.Refuse(true) }, true, 0},
		{"error reply", func(n *redistest.Node) { n.SetError("LOADING") }, false, 0},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			nodes := redistest.Start(t, 5)
			lock := client(t, redlock.New, nodes...)
			if !tt.fresh {
				_ = redistest.Acquire(t, lock).Release(t.Context())
			}
			tt.fail(nodes[0])
			tt.fail(nodes[1])
			start := time.Now()
			lease := redistest.Acquire(t, lock)
			if took := time.Since(start); took != 2*tt.each {
				t.Errorf("%s: a minority cost %v, want %v", tt.name, took, 2*tt.each)
			}
			_ = lease.Release(t.Context())

			tt.fail(nodes[2])
			start = time.Now()
			if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrQuorum) || !impl.Classify(err).Definite {
				t.Errorf("%s: %v, want no quorum", tt.name, err)
			}
			// Three attempts, each asks and gives back.
			if took := time.Since(start); took != 430*time.Millisecond+3*2*3*tt.each {
				t.Errorf("%s: a majority cost %v", tt.name, took)
			}
			if got := votes(nodes[3:]); got != 0 {
				t.Errorf("%s: %d votes were not given back", tt.name, got)
			}
		})
	}
}

// A fresh connection has a handshake of several requests, and a slow node may
// answer each of them within its time-out. All of it together is bounded too.
func TestSlowHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 5)
		lock := client(t, redlock.New, nodes...)
		nodes[0].Delay(20 * time.Millisecond)
		start := time.Now()
		redistest.Acquire(t, lock)
		// The third reply is read at 60 ms; data in hand wins over a deadline
		// that has passed.
		if took := time.Since(start); took != 60*time.Millisecond || nodes[0].Exists(key) {
			t.Errorf("took %v, voted %v", took, nodes[0].Exists(key))
		}
	})
}

// Votes that take longer than the TTL are no votes.
func TestValidityUsedUp(t *testing.T) {
	t.Parallel()
	slow := func(m redlock.Mistakes) error {
		var err error
		synctest.Test(t, func(t *testing.T) {
			nodes := redistest.Start(t, 5)
			env := redistest.Env(20*time.Millisecond, nodes...) // time-out 10 ms
			lock, e := redlock.NewWith(env, m)
			if e != nil {
				t.Fatal(e)
			}
			defer lock.(io.Closer).Close()
			for _, n := range nodes { // connections first, they cost more
				n.Delay(0)
			}
			if lease, e := lock.Acquire(t.Context()); e != nil {
				t.Fatal(e)
			} else {
				_ = lease.Release(t.Context())
			}
			for _, n := range nodes {
				n.Delay(5 * time.Millisecond)
			}
			_, err = lock.Acquire(t.Context())
		})
		return err
	}
	if err := slow(redlock.Mistakes{}); !errors.Is(err, impl.ErrValidityUsedUp) {
		t.Errorf("got %v, want validity used up", err)
	}
	if err := slow(redlock.Mistakes{NoElapsedCheck: true}); err != nil {
		t.Errorf("without the check: %v", err)
	}
}

// A telling lease ends a tenth of the TTL before that of the nodes, counted
// from before the first vote.
func TestTelling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 5)
		telling := func(env impl.Env) (impl.Lock, error) { return redlock.NewTelling(env, redlock.Mistakes{}) }
		lock := client(t, telling, nodes...)
		_ = redistest.Acquire(t, lock).Release(t.Context()) // connections first
		nodes[0].Delay(30 * time.Millisecond)
		start := time.Now()
		until := redistest.Acquire(t, lock).(impl.Validity).Until()
		if got := until.Sub(start); got != 9*time.Second || time.Since(start) != 30*time.Millisecond {
			t.Errorf("told %v after the start, %v of it spent", got, time.Since(start))
		}
	})
}

// Without a time-out of its own a dead node costs a whole TTL.
func TestNoNodeTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 5)
		lock := client(t, with(redlock.Mistakes{NoNodeTimeout: true, NoElapsedCheck: true}), nodes...)
		_ = redistest.Acquire(t, lock).Release(t.Context())
		nodes[0].BlackHole(true)
		start := time.Now()
		redistest.Acquire(t, lock)
		if took := time.Since(start); took != ttl {
			t.Errorf("took %v", took)
		}
	})
}

// The largest counter of a quorum goes backwards: the documented weakness.
func TestFenceIsNotMonotonic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 5)
		for i, v := range []string{"4", "4", "99", "2", "2"} {
			if err := nodes[i].Set("fence:job", v); err != nil {
				t.Fatal(err)
			}
		}
		a, b := client(t, redlock.NewFenced, nodes...), client(t, redlock.NewFenced, nodes...)
		nodes[3].Refuse(true)
		nodes[4].Refuse(true)
		lease := redistest.Acquire(t, a)
		if got := lease.(impl.Fencer).Fence(); got != 100 {
			t.Errorf("A has fence %d, want 100", got)
		}
		_ = lease.Release(t.Context())
		nodes[2].Refuse(true)
		nodes[3].Refuse(false)
		lease = redistest.Acquire(t, b)
		if got := lease.(impl.Fencer).Fence(); got != 6 {
			t.Errorf("B has fence %d, want 6", got)
		}
	})
}

// An acquire whose context ends gives back what it took, without the context.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	left := func(m redlock.Mistakes) (sum int) {
		synctest.Test(t, func(t *testing.T) {
			nodes := redistest.Start(t, 5)
			lock := client(t, with(m), nodes...)
			_ = redistest.Acquire(t, lock).Release(t.Context())
			nodes[2].BlackHole(true)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := lock.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
				t.Errorf("got %v, want unknown", err)
			}
			sum = votes(nodes)
		})
		return sum
	}
	if got := left(redlock.Mistakes{}); got != 0 {
		t.Errorf("%d votes are left", got)
	}
	if got := left(redlock.Mistakes{CleanUpOnCallersContext: true}); got != 2 {
		t.Errorf("with the mistake %d votes are left, want 2", got)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		wrong   redlock.Mistakes
		down    int // nodes that refuse dials
		held    int // of the others, held by somebody else
		obtains bool
	}{
		{"twin, minority down", redlock.Mistakes{}, 2, 0, true},
		{"twin, majority down", redlock.Mistakes{}, 3, 0, false},
		{"half", redlock.Mistakes{HalfIsEnough: true}, 3, 0, true},
		{"of reachable", redlock.Mistakes{QuorumOfReachable: true}, 4, 0, true},
		{"all", redlock.Mistakes{QuorumIsAll: true}, 1, 0, false},
		{"error is yes", redlock.Mistakes{ErrorIsYes: true}, 5, 0, true},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			nodes := redistest.Start(t, 5)
			for _, n := range nodes[:tt.down] {
				n.Refuse(true)
			}
			_, err := client(t, with(tt.wrong), nodes...).Acquire(t.Context())
			if (err == nil) != tt.obtains {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
}

// A vote whose reply was lost stays for the TTL if only the nodes that said
// yes are asked to give back.
func TestReleaseOnlyYes(t *testing.T) {
	t.Parallel()
	left := func(m redlock.Mistakes) (sum int) {
		synctest.Test(t, func(t *testing.T) {
			nodes := redistest.Start(t, 5)
			lock := client(t, with(m), nodes...)
			_ = redistest.Acquire(t, lock).Release(t.Context())
			for _, n := range nodes[1:] {
				n.LoseReplies(1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			defer cancel()
			if _, err := lock.Acquire(ctx); err == nil {
				t.Error("obtained")
			}
			sum = votes(nodes)
		})
		return sum
	}
	if got := left(redlock.Mistakes{}); got != 0 {
		t.Errorf("%d votes are left", got)
	}
	if got := left(redlock.Mistakes{ReleaseOnlyYes: true}); got != 4 {
		t.Errorf("with the mistake %d votes are left, want 4", got)
	}
}
