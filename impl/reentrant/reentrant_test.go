package reentrant_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/reentrant"
)

const (
	ttl = 1500 * time.Millisecond
	key = "reentrant_lock:job"
)

func client(t *testing.T, m reentrant.Mistakes, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := reentrant.NewWith(redistest.Env(ttl, n), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

// count is the holder's count in Redis, whose field has a random name.
func count(t *testing.T, n *redistest.Node) string {
	t.Helper()
	fields, err := n.HKeys(key)
	if err != nil || len(fields) != 1 {
		t.Fatalf("fields %v, %v", fields, err)
	}
	return n.HGet(key, fields[0])
}

func TestReenters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, reentrant.Mistakes{}, n), client(t, reentrant.Mistakes{}, n)
		outer := redistest.Acquire(t, a)
		if got := n.TTL(key); got != ttl {
			t.Errorf("TTL %v, want %v", got, ttl)
		}
		time.Sleep(ttl / 2)
		inner := redistest.Acquire(t, a)
		// The inner acquire did not ask: neither count nor TTL moved.
		if got := count(t, n); got != "1" {
			t.Errorf("count %s after the inner acquire, want 1", got)
		}
		if got := n.TTL(key); got != ttl/2 {
			t.Errorf("TTL %v after the inner acquire, want %v", got, ttl/2)
		}
		if err := inner.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if got := count(t, n); got != "0" {
			t.Errorf("count %s after the inner release: below the real one, want 0", got)
		}
		if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("other client: %v, want not obtained", err)
		}
		if err := outer.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n.Exists(key) {
			t.Error("the key is still there")
		}
	})
}

// The re-acquire after the TTL says yes although another holds the lock. A
// documented weakness; the other's key is never touched.
func TestReacquireAfterTheTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, reentrant.Mistakes{}, n), client(t, reentrant.Mistakes{}, n)
		outer := redistest.Acquire(t, a)
		time.Sleep(ttl)
		held := redistest.Acquire(t, b)
		inner := redistest.Acquire(t, a)
		for _, lease := range []impl.Lease{inner, outer} {
			if err := lease.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
				t.Errorf("release: %v, want not held", err)
			}
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the holder's release: %v", err)
		}
		if err := redistest.Acquire(t, a).Release(t.Context()); err != nil {
			t.Errorf("the count did not come back to zero: %v", err)
		}
	})
}

func TestDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a := client(t, reentrant.Mistakes{DoesNotCount: true}, n)
		redistest.Acquire(t, a)
		if err := redistest.Acquire(t, a).Release(t.Context()); err != nil {
			t.Error(err)
		}
		if n.Exists(key) {
			t.Error("the inner release left the key")
		}
	})
}

// With the mistake a lease that ran out is never forgotten: the client says yes
// beside every later holder.
func TestCountsInClientOnly(t *testing.T) {
	t.Parallel()
	for _, wrong := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			m := reentrant.Mistakes{CountsInClientOnly: wrong}
			a, b := client(t, m, n), client(t, m, n)
			outer, inner := redistest.Acquire(t, a), redistest.Acquire(t, a)
			if err := inner.Release(t.Context()); err != nil {
				t.Errorf("inner release: %v", err)
			}
			if got, want := count(t, n), map[bool]string{true: "1", false: "0"}[wrong]; got != want {
				t.Errorf("mistake %v: count %s in Redis after the inner release, want %s", wrong, got, want)
			}
			time.Sleep(ttl)
			redistest.Acquire(t, b)
			if err := outer.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
				t.Errorf("late release: %v, want not held", err)
			}
			if _, err := a.Acquire(t.Context()); wrong != (err == nil) {
				t.Errorf("mistake %v: beside the next holder: %v", wrong, err)
			}
		})
	}
}
