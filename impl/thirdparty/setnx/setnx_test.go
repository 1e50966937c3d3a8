package setnx_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/thirdparty/setnx"
)

const key = "setnx:job"

func client(t *testing.T, ttl time.Duration, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := setnx.New(redistest.Env(ttl, n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

func TestRecipe(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{10 * time.Second, 1500 * time.Millisecond} { // EX and PX
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			a, b := client(t, ttl, n), client(t, ttl, n)
			lease := redistest.Acquire(t, a)
			if got := n.TTL(key); got != ttl {
				t.Errorf("TTL %v, want %v", got, ttl)
			}
			if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
				t.Errorf("second client: %v, want not obtained", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			// The value is the acquisition's: an old lease of a leaves a newer alone.
			late := redistest.Acquire(t, a)
			time.Sleep(ttl)
			held := redistest.Acquire(t, a)
			if err := late.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
				t.Errorf("late release: %v, want not held", err)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Errorf("the next release: %v", err)
			}
		})
	}
}

// go-redis's own retry meets the first try's key. A weakness of the recipe.
func TestLostReplyLeavesAnOrphan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, 30*time.Second, n)
		if err := redistest.Acquire(t, lock).Release(t.Context()); err != nil { // the connection is made now
			t.Fatal(err)
		}
		n.LoseReplies(1)
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("got %v, want not obtained", err)
		}
		if !n.Exists(key) {
			t.Error("no key was left")
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, time.Second, n)
		lease := redistest.Acquire(t, lock)
		n.SetError("OOM command not allowed")
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrOOM) {
			t.Errorf("acquire: %v, want OOM", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, impl.ErrOOM) {
			t.Errorf("release: %v, want OOM", err)
		}
		n.SetError("")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := lock.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
			t.Errorf("cancelled: %v, want unknown", err)
		}
	})
}
