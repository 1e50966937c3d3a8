package semaphore_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/semaphore"
)

const (
	ttl = 1500 * time.Millisecond
	key = "semaphore:job"
)

func client(t *testing.T, o semaphore.Options, n *redistest.Node) impl.Lock {
	t.Helper()
	lock, err := semaphore.NewWith(redistest.Env(ttl, n), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

func refused(t *testing.T, lock impl.Lock) {
	t.Helper()
	if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
		t.Errorf("got %v, want not obtained", err)
	}
}

// both runs a test with the server's time and with the clients'.
func both(t *testing.T, f func(t *testing.T, o semaphore.Options)) {
	for _, clientTime := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { f(t, semaphore.Options{Permits: 3, ClientTime: clientTime}) })
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, o semaphore.Options) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, o, n), client(t, o, n)
		if got := a.(impl.Semaphore).Permits(); got != 3 {
			t.Errorf("%d permits, want 3", got)
		}
		first, _, third := redistest.Acquire(t, a), redistest.Acquire(t, b), redistest.Acquire(t, a)
		if got := n.TTL(key); got != ttl {
			t.Errorf("TTL %v, want %v", got, ttl)
		}
		refused(t, b)
		if err := first.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		if err := first.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("second release: %v, want not held", err)
		}
		redistest.Acquire(t, b)
		refused(t, a)
		if err := third.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		if got := client(t, semaphore.Options{}, n).(impl.Semaphore).Permits(); got != semaphore.DefaultPermits {
			t.Errorf("%d permits by default", got)
		}
		if _, err := semaphore.NewWith(redistest.Env(ttl, n), semaphore.Options{Permits: -1}); err == nil {
			t.Error("-1 permits: no error")
		}
	})
}

// Each permit ends on its own, and what has ended is swept by the next one.
func TestExpiry(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, o semaphore.Options) {
		n := redistest.Start(t, 1)[0]
		a := client(t, o, n)
		late := redistest.Acquire(t, a)
		time.Sleep(ttl / 2)
		live := redistest.Acquire(t, a)
		redistest.Acquire(t, a)
		time.Sleep(ttl / 2)
		redistest.Acquire(t, a)
		refused(t, a)
		if err := late.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("late release: %v, want not held", err)
		}
		if err := live.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		time.Sleep(ttl)
		if n.Exists(key) {
			t.Error("the key outlives its permits")
		}
	})
}

// A permit that nobody has swept is released with a yes. A documented weakness.
func TestReleaseAfterTheEnd(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, o semaphore.Options) {
		n := redistest.Start(t, 1)[0]
		a := client(t, o, n)
		late := redistest.Acquire(t, a)
		time.Sleep(ttl / 2)
		redistest.Acquire(t, a)
		time.Sleep(ttl / 2)
		if err := late.Release(t.Context()); err != nil {
			t.Errorf("release: %v, want a yes", err)
		}
	})
}

// A client whose clock is ahead sweeps permits that are alive. The lock reads
// the machine's clock, which cannot be skewed for one client of a bubble, so
// the script is sent what such a client would send.
func TestAClientWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, o semaphore.Options) {
		n := redistest.Start(t, 1)[0]
		a := client(t, o, n)
		for range 3 {
			redistest.Acquire(t, a)
		}
		ahead := ""
		if o.ClientTime {
			ahead = strconv.FormatInt(time.Now().Add(2*ttl).UnixMilli(), 10)
		}
		source, err := os.ReadFile("acquire.lua")
		if err != nil {
			t.Fatal(err)
		}
		c := redis.NewClient(redistest.Env(ttl, n).Nodes[0].Options())
		defer c.Close()
		granted, err := c.Eval(t.Context(), string(source), []string{key}, "ahead", 3, ttl.Milliseconds(), ahead).Int64()
		if err != nil || o.ClientTime != (granted == 1) {
			t.Errorf("client time %v: granted %d, %v", o.ClientTime, granted, err)
		}
	})
}

// With server time, a server whose clock jumps does the same to all.
func TestServerTimeFollowsTheServer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, o semaphore.Options) {
		n := redistest.Start(t, 1)[0]
		a := client(t, o, n)
		for range 3 {
			redistest.Acquire(t, a)
		}
		// The scores alone: the key's own TTL must not decide.
		n.SetTTL(key, time.Hour)
		n.SetTime(time.Now().Add(2 * ttl))
		if _, err := a.Acquire(t.Context()); o.ClientTime == (err == nil) {
			t.Errorf("client time %v: a fourth permit gives %v", o.ClientTime, err)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, semaphore.Options{}, n)
		lease := redistest.Acquire(t, lock)
		n.SetError("OOM command not allowed")
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrOOM) {
			t.Errorf("acquire: %v, want OOM", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, impl.ErrOOM) {
			t.Errorf("release: %v, want OOM", err)
		}
	})
}
