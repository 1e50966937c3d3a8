package fair_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/fair"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
)

const (
	ttl   = 9 * time.Second
	key   = "fair:job"
	queue = "fair_queue:job"
)

func client(t *testing.T, o fair.Options, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := fair.NewWith(redistest.Env(ttl, n), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

func waiters(n *redistest.Node) int {
	members, _ := n.ZMembers(queue) // no queue is an empty one
	return len(members)
}

func TestGrantsInOrderOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		first := redistest.Acquire(t, client(t, fair.Options{}, n))
		if got := n.TTL(key); got != ttl {
			t.Errorf("TTL %v, want %v", got, ttl)
		}
		order := make(chan int, 4)
		for i := range 4 {
			// Offsets against the polls, so that whoever polls first after the
			// release is not whoever came first.
			time.Sleep(time.Second - 10*time.Millisecond)
			lock := client(t, fair.Options{}, n)
			go func() {
				lease, err := lock.Acquire(t.Context())
				if err != nil {
					t.Errorf("waiter %d: %v", i, err)
				}
				order <- i
				time.Sleep(time.Second)
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("waiter %d: release: %v", i, err)
				}
			}()
		}
		time.Sleep(time.Second)
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		var got []int
		for range 4 {
			got = append(got, <-order)
		}
		if !slices.IsSorted(got) {
			t.Errorf("granted in the order %v", got)
		}
		time.Sleep(2 * time.Second)
		if n.Exists(key) || n.Exists(queue) {
			t.Errorf("keys %v are left", n.Keys())
		}
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, fair.Options{}, n), client(t, fair.Options{}, n)
		late := redistest.Acquire(t, a)
		start := time.Now()
		held := redistest.Acquire(t, b) // waits for the TTL
		if waited := time.Since(start); waited < ttl || waited > ttl+100*time.Millisecond {
			t.Errorf("waited %v, want one poll after %v", waited, ttl)
		}
		if err := late.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("late release: %v, want not held", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A waiter leaves the queue when the limit passes and when its ctx ends; with
// the mistake it does not, and those behind it wait for nobody.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	for _, stays := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			o := fair.Options{WaitLimit: limit, StaysQueued: stays}
			a, b := client(t, o, n), client(t, o, n)
			lease := redistest.Acquire(t, a)
			start := time.Now()
			if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
				t.Errorf("got %v, want not obtained", err)
			}
			if waited := time.Since(start); waited < limit-100*time.Millisecond || waited > limit {
				t.Errorf("waited %v, want %v", waited, limit)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := b.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
				t.Errorf("ended ctx: %v, want unknown", err)
			}
			if got := waiters(n); stays != (got > 0) {
				t.Errorf("stays queued: %v, and %d are in the queue", stays, got)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := b.Acquire(t.Context()); stays != errors.Is(err, impl.ErrNotObtained) || !stays && err != nil {
				t.Errorf("stays queued: %v, and the next one gets %v from a free lock", stays, err)
			}
		})
	}
}

// A crashed waiter at the head blocks a free lock until the queue's key
// expires, and every new waiter pushes that out. A documented weakness.
func TestCrashedWaiterAtTheHead(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		o := fair.Options{WaitLimit: limit}
		holder, crashed, b := client(t, o, n), client(t, o, n), client(t, o, n)
		lease := redistest.Acquire(t, holder)
		done := make(chan error)
		go func() {
			_, err := crashed.Acquire(t.Context())
			done <- err
		}()
		time.Sleep(time.Second)
		_ = crashed.(io.Closer).Close() // as a crash does: nothing of it reaches the node any more
		if err := <-done; !errors.Is(err, impl.ErrUnknownOutcome) || waiters(n) != 1 {
			t.Fatalf("the crashed waiter: %v, %d in the queue", err, waiters(n))
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		for range 6 { // for three times as long as the queue would have lived
			if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
				t.Errorf("a free lock behind a crashed waiter: %v, want not obtained", err)
			}
		}
		time.Sleep(2 * limit) // nobody comes
		redistest.Acquire(t, b)
	})
}

// The order is that of the waiters' clocks. A client's clock cannot be skewed
// here, so its place in the queue is written as it would have written it.
func TestOrderFollowsTheWaitersClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, fair.Options{}, n))
		b := client(t, fair.Options{WaitLimit: 2 * time.Second}, n)
		done := make(chan error)
		go func() {
			_, err := b.Acquire(t.Context())
			done <- err
		}()
		time.Sleep(time.Second)
		behind := time.Now().Add(-2 * time.Second) // came last, by a clock that is 2 s behind
		if _, err := n.ZAdd(queue, float64(behind.UnixMicro()), "behind"); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("whoever came first: %v, want not obtained", err)
		}
	})
}

// A grant whose reply was lost makes its waiter queue for its own key. A
// documented weakness.
func TestLostReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, fair.Options{}, n)
		if err := redistest.Acquire(t, lock).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.LoseReplies(1)
		start := time.Now()
		lease := redistest.Acquire(t, lock)
		if waited := time.Since(start); waited < ttl {
			t.Errorf("waited %v, want its own TTL of %v", waited, ttl)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
