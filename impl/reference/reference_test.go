package reference

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
)

const (
	ttl    = 10 * time.Second
	usable = ttl - ttl/100
	key    = "reference:job"
)

func client(t *testing.T, m Mistakes, n *redistest.Node) *Lock {
	t.Helper()
	lock, err := NewWith(redistest.Env(ttl, n), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lock.(io.Closer).Close()
		// go-redis dials in the background, and a dial that hangs outlives
		// Close by its own time-out. Nothing else does.
		time.Sleep(ttl)
	})
	return lock.(*Lock)
}

func acquire(t *testing.T, lock impl.Lock) *lease {
	t.Helper()
	got, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return got.(*lease)
}

// warm makes the client's connection, so that a fault meets the request and
// not the handshake.
func warm(t *testing.T, lock impl.Lock) {
	t.Helper()
	if err := acquire(t, lock).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func isLost(s *lease) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return false
	}
}

func TestHoldsAndRenews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, Mistakes{}, n), client(t, Mistakes{}, n)
		start := time.Now()
		s := acquire(t, a)
		if got := s.Until().Sub(start); got != usable {
			t.Errorf("valid for %v, want %v", got, usable)
		}
		for range 100 {
			time.Sleep(ttl / 7)
			if left := time.Until(s.Until()); left <= ttl/2 {
				t.Fatalf("only %v left", left)
			}
			if left := n.TTL(key); left < time.Until(s.Until()) {
				t.Fatalf("the server keeps it for %v, the holder believes for %v", left, time.Until(s.Until()))
			}
		}
		if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("second client: %v, want not obtained", err)
		}
		if err := s.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		if isLost(s) {
			t.Error("a clean release is no loss")
		}
		if s.Until().After(time.Now()) {
			t.Error("valid after the release")
		}
		if err := s.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("second release: %v, want not held", err)
		}
		commands := n.CommandCount()
		time.Sleep(3 * ttl)
		if got := n.CommandCount() - commands; got != 0 {
			t.Errorf("%d commands after the release", got)
		}
		if got := acquire(t, b).Fence(); got != s.Fence()+1 {
			t.Errorf("fence %d after %d", got, s.Fence())
		}
	})
}

// A lost reply is asked for again and the same grant is answered.
func TestGrantIsIdempotent(t *testing.T) {
	t.Parallel()
	for lost := int64(1); lost <= 3; lost++ {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			lock := client(t, Mistakes{}, n)
			warm(t, lock)
			start := time.Now()
			// Later replies that are lost belong to handshakes, so the grant
			// itself is applied once or more, as it happens.
			n.LoseReplies(lost)
			s := acquire(t, lock)
			if s.Fence() != 2 {
				t.Errorf("fence %d, want 2: the repeated grant must not count again", s.Fence())
			}
			if got, _ := n.Get(key); got != s.id {
				t.Errorf("the key carries %q", got)
			}
			if took := time.Since(start); took < lock.patience {
				t.Errorf("no reply was lost: it took %v", took)
			}
			if want := start.Add(usable); !s.Until().Equal(want) {
				t.Errorf("until %v, want %v: from before the first request", s.Until(), want)
			}
			if err := s.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A refusal after a try of unknown fate proves nothing, and what the first try
// may still do is cleaned up.
func TestDoubtIsNotDefinite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, Mistakes{}, n), client(t, Mistakes{}, n)
		warm(t, a)
		held := acquire(t, b)
		n.LoseReplies(1)
		_, err := a.Acquire(t.Context())
		if !errors.Is(err, impl.ErrUnknownOutcome) || impl.Classify(err).Definite {
			t.Errorf("got %v, want unknown", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the clean-up touched the holder's key: %v", err)
		}
	})
}

// An acquire whose context ends while its reply is lost leaves nothing.
func TestCleansUpWithoutTheContext(t *testing.T) {
	t.Parallel()
	left := func(m Mistakes) (left bool) {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			lock := client(t, m, n)
			warm(t, lock)
			n.LoseReplies(1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := lock.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
				t.Errorf("got %v, want unknown", err)
			}
			left = n.Exists(key)
		})
		return left
	}
	if left(Mistakes{}) {
		t.Error("the key is left")
	}
	if !left(Mistakes{CleanUpOnCallersContext: true}) {
		t.Error("with the mistake the key is gone")
	}
}

// A grant whose reply comes after the lease is given back.
func TestLateGrantIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, Mistakes{}, n)
		warm(t, lock)
		// The reader sleeps over its deadline with the reply in hand: that is
		// what a paused client looks like to the lock.
		n.Delay(ttl)
		time.AfterFunc(ttl/2, func() { n.Delay(0) })
		_, err := lock.Acquire(t.Context())
		if !errors.Is(err, impl.ErrValidityUsedUp) || !impl.Classify(err).Definite {
			t.Errorf("got %v, want validity used up", err)
		}
		if n.Exists(key) {
			t.Error("the key is left")
		}
	})
}

// The same, and the grant cannot be given back: nothing definite is said.
func TestLateGrantThatCannotBeUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, Mistakes{}, n)
		warm(t, lock)
		n.Delay(ttl)
		time.AfterFunc(ttl/2, func() { n.Delay(0); n.SetError("ERR no") })
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrUnknownOutcome) || impl.Classify(err).Definite {
			t.Errorf("got %v, want unknown", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		n.Refuse(true)
		lock := client(t, Mistakes{}, n)
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrUnreachable) {
			t.Errorf("refused: %v, want unreachable", err)
		}
		n.Refuse(false)
		n.BlackHole(true)
		start := time.Now()
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, impl.ErrUnknownOutcome) {
			t.Errorf("black hole: %v, want unknown", err)
		}
		if took := time.Since(start); took > 3*ttl/2 {
			t.Errorf("took %v", took)
		}
		n.BlackHole(false)
		if err := acquire(t, lock).Release(t.Context()); err != nil {
			t.Errorf("after it healed: %v", err)
		}
	})
}

// A release works on an ended context, tries again, and does not call its own
// repeated success "not held".
func TestRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, Mistakes{}, n)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := acquire(t, lock).Release(ended); err != nil || n.Exists(key) {
			t.Errorf("ended context: %v, key left %v", err, n.Exists(key))
		}
		s := acquire(t, lock)
		n.LoseReplies(1)
		if err := s.Release(t.Context()); !errors.Is(err, impl.ErrUnknownOutcome) || n.Exists(key) {
			t.Errorf("lost reply: %v, key left %v", err, n.Exists(key))
		}
		s = acquire(t, lock)
		n.SetError("ERR blip")
		time.AfterFunc(ttl/30, func() { n.SetError("") })
		if err := s.Release(t.Context()); err != nil || n.Exists(key) {
			t.Errorf("blip: %v, key left %v", err, n.Exists(key))
		}
	})
}

// A key that a delayed granting request made again is deleted by the release,
// and was not held: others have had the lock in between.
func TestReleaseOfAStrayGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, Mistakes{}, n), client(t, Mistakes{}, n)
		s := acquire(t, a)
		n.Del(key)
		warm(t, b)
		stray := grantScript.Run(t.Context(), b.client, []string{key, a.fence}, s.id, ttl.Milliseconds())
		if fence, err := stray.Uint64(); err != nil || fence != 3 {
			t.Fatalf("stray grant: %d, %v", fence, err)
		}
		if err := s.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) || n.Exists(key) {
			t.Errorf("release: %v, key left %v", err, n.Exists(key))
		}
	})
}

// Close ends what was not released: the holder is told, nothing runs on.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		lock := client(t, Mistakes{}, n)
		s := acquire(t, lock)
		time.Sleep(ttl/3 - time.Millisecond)
		n.LoseReplies(1)
		time.Sleep(2 * time.Millisecond) // a renewal hangs in its read
		start := time.Now()
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("close took %v", took)
		}
		if !isLost(s) {
			t.Error("the holder was not told")
		}
	})
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	// stolen: the key is gone and another's, then a renewal comes.
	stolen := func(m Mistakes) (lost bool, owner string, b *lease) {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			a := acquire(t, client(t, m, n))
			n.Del(key)
			b = acquire(t, client(t, Mistakes{}, n))
			_ = a.Extend(t.Context())
			owner, _ = n.Get(key)
			lost = isLost(a)
		})
		return lost, owner, b
	}
	if lost, owner, b := stolen(Mistakes{}); !lost || owner != b.id {
		t.Errorf("twin: lost %v, owner right %v", lost, owner == b.id)
	}
	if lost, owner, b := stolen(Mistakes{ExtendBySet: true}); lost || owner == b.id {
		t.Errorf("set: lost %v, owner right %v", lost, owner == b.id)
	}
	if lost, owner, b := stolen(Mistakes{ExtendByBarePExpire: true}); lost || owner != b.id {
		t.Errorf("pexpire: lost %v, owner right %v", lost, owner == b.id)
	}
	if lost, owner, b := stolen(Mistakes{ExtendBySetNX: true}); !lost || owner != b.id {
		t.Errorf("set nx beside another: lost %v, owner right %v", lost, owner == b.id)
	}
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		s := acquire(t, client(t, Mistakes{ExtendBySetNX: true}, n))
		n.Del(key)
		if err := s.Extend(t.Context()); err != nil || !n.Exists(key) {
			t.Errorf("set nx: %v, key %v", err, n.Exists(key))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		s := acquire(t, client(t, Mistakes{RenewerNotJoined: true}, n))
		if err := s.Release(t.Context()); err != nil {
			t.Error(err)
		}
		commands := n.CommandCount()
		time.Sleep(ttl)
		if n.CommandCount() == commands {
			t.Error("no command after the release")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		s := acquire(t, client(t, Mistakes{ServersClock: true}, n))
		time.Sleep(3 * ttl)
		if err := s.Release(t.Context()); err != nil {
			t.Errorf("with a clock that nobody sets: %v", err)
		}
	})
}
