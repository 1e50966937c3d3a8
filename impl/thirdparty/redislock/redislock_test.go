package redislock_test

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
	"github.com/holdfast-io/holdfast/impl/thirdparty/redislock"
)

const (
	ttl = 1500 * time.Millisecond
	key = "redislock:job"
)

func client(t *testing.T, build impl.New, n *redistest.Node) impl.Lock {
	t.Helper()
	return clientFor(t, ttl, build, n)
}

func clientFor(t *testing.T, ttl time.Duration, build impl.New, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := build(redistest.Env(ttl, n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

func TestObtainRefreshRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, redislock.New, n), client(t, redislock.New, n)
		lease := redistest.Acquire(t, a)
		if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("second client: %v, want not obtained", err)
		}
		time.Sleep(ttl / 2)
		if left, err := lease.(redislock.Remaining).Remaining(t.Context()); err != nil || left != ttl/2 {
			t.Errorf("%v left, %v; want %v", left, err, ttl/2)
		}
		if err := lease.(impl.Extender).Extend(t.Context()); err != nil || n.TTL(key) != ttl {
			t.Errorf("extend: %v, TTL %v, want %v", err, n.TTL(key), ttl)
		}
		time.Sleep(ttl)
		held := redistest.Acquire(t, b)
		if err := lease.(impl.Extender).Extend(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("late extend: %v, want not held", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("late release: %v, want not held", err)
		}
		if left, err := lease.(redislock.Remaining).Remaining(t.Context()); err != nil || left != 0 {
			t.Errorf("%v left of a lease that is over, %v", left, err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the next holder's release: %v", err)
		}
	})
}

func TestRetryStrategyIsNewEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, redislock.New, n), client(t, redislock.NewRetrying, n)
		for range 2 {
			lease := redistest.Acquire(t, a)
			start := time.Now()
			if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
				t.Errorf("got %v, want not obtained", err)
			}
			if took := time.Since(start); took != 300*time.Millisecond {
				t.Errorf("waited %v, want three times 100ms", took)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A token of the caller's own belongs to the object and not to the
// acquisition: the second Obtain says yes, and the first release is the end of
// both. A weakness of the library's option.
func TestToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, redislock.NewWithToken, n), client(t, redislock.NewWithToken, n)
		first, second := redistest.Acquire(t, a), redistest.Acquire(t, a)
		if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("another object's token: %v, want not obtained", err)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := second.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("second release: %v, want not held", err)
		}
	})
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lease := redistest.Acquire(t, client(t, redislock.NewWithMetadata, n))
		if value, err := n.Get(key); err != nil || !strings.HasSuffix(value, "c1") || len(value) != 24 {
			t.Errorf("value %q, %v; want a token and c1", value, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lost reply: go-redis runs the script again, which finds its own token and
// says yes. It does so after 3 s, so only if the TTL is longer: without a
// deadline of the caller's, Obtain gives up after one TTL.
func TestLostReplyIsMadeUpFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := clientFor(t, 10*time.Second, redislock.New, n)
		if err := redistest.Acquire(t, lock).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.LoseReplies(1)
		lease := redistest.Acquire(t, lock)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// A reply that comes after the TTL still means yes, and a ctx that ends during
// Obtain leaves a key. Weaknesses of the library.
func TestObtainDoesNotMeasureItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		link := n.Link()
		slow, b := client(t, redislock.New, link), client(t, redislock.New, n)
		if err := redistest.Acquire(t, slow).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		link.Delay(ttl + time.Second/2)
		late := make(chan error)
		go func() {
			_, err := slow.Acquire(t.Context())
			late <- err
		}()
		time.Sleep(ttl + time.Millisecond)
		redistest.Acquire(t, b)
		if err := <-late; err != nil {
			t.Errorf("got %v, want a yes that is too late", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := clientFor(t, 10*time.Second, redislock.New, n) // go-redis reads for 3 s, whatever ctx says
		if err := redistest.Acquire(t, lock).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.LoseReplies(1)
		ctx, cancel := context.WithTimeout(t.Context(), ttl/5)
		defer cancel()
		if _, err := lock.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
			t.Errorf("ended ctx: %v, want unknown", err)
		}
		if !n.Exists(key) {
			t.Error("it was cleaned up")
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, redislock.New, n)
		lease := redistest.Acquire(t, lock)
		n.SetError("OOM command not allowed")
		_, err := lock.Acquire(t.Context())
		for op, err := range map[string]error{
			"acquire": err,
			"release": lease.Release(t.Context()),
			"extend":  lease.(impl.Extender).Extend(t.Context()),
		} {
			if !errors.Is(err, impl.ErrOOM) {
				t.Errorf("%s: %v, want OOM", op, err)
			}
		}
	})
}
