package watchdog_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/watchdog"
)

const (
	ttl = 9 * time.Second
	key = "watchdog_lock:job"
)

func client(t *testing.T, m watchdog.Mistakes, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := watchdog.NewWith(redistest.Env(ttl, n), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

func TestRenews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, watchdog.Mistakes{}, n))
		time.Sleep(10*ttl + time.Second)
		if got := n.TTL(key); got <= ttl/2 {
			t.Errorf("TTL %v after ten leases", got)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		commands := n.CommandCount()
		time.Sleep(10 * ttl)
		if got := n.CommandCount(); got != commands {
			t.Errorf("%d commands after the release", got-commands)
		}
	})
}

// One failed renewal is the end of them, although the second and third would
// have come in time. A documented weakness.
func TestGivesUpAtTheFirstError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, watchdog.Mistakes{}, n), client(t, watchdog.Mistakes{}, n)
		lease := redistest.Acquire(t, a)
		time.Sleep(ttl/3 - time.Millisecond)
		n.SetError("ERR blip")
		time.Sleep(2 * time.Millisecond)
		n.SetError("")
		next := redistest.Acquire(t, b) // waits for the TTL
		if err := lease.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("release: %v, want not held", err)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, watchdog.Mistakes{}, n), client(t, watchdog.Mistakes{}, n)
		lease := redistest.Acquire(t, a)
		time.AfterFunc(5*time.Second, func() { _ = lease.Release(context.Background()) })
		start := time.Now()
		held := redistest.Acquire(t, b)
		if waited := time.Since(start); waited < 5*time.Second || waited > 5200*time.Millisecond {
			t.Errorf("got it after %v, want one poll after 5s", waited)
		}
		start = time.Now()
		if _, err := a.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("got %v, want not obtained", err)
		}
		if waited := time.Since(start); waited < 29*time.Second || waited > 30*time.Second {
			t.Errorf("waited %v, want the limit of 30s", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
			t.Errorf("ended context: %v, want unknown", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Release waits 2 s for a renewal that hangs, and no longer.
func TestReleaseDoesNotHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, watchdog.Mistakes{}, n))
		time.Sleep(ttl/3 - time.Millisecond)
		n.LoseReplies(1)
		time.Sleep(2 * time.Millisecond) // the renewal is under way now
		start := time.Now()
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
	})
}

// A lease that nobody releases does not outlive its lock object.
func TestCloseJoinsTheRenewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, watchdog.Mistakes{}, n)
		redistest.Acquire(t, lock)
		time.Sleep(ttl)
		if err := lock.(io.Closer).Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(ttl)
		if n.Exists(key) {
			t.Error("the lock is still renewed")
		}
	})
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, watchdog.Mistakes{IntervalIsTTL: true}, n))
		time.Sleep(ttl + time.Second)
		if err := lease.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("renewed too late: %v, want not held", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, watchdog.Mistakes{NeverStops: true}, n))
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		commands := n.CommandCount()
		time.Sleep(ttl)
		if n.CommandCount() == commands {
			t.Error("no command after the release")
		}
	})
}
