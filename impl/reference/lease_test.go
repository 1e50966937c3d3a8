package reference

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
)

// A renewal that fails is tried again while the lease lasts.
func TestRenewalOutlivesABlip(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*redistest.Node, bool){
		"black hole": (*redistest.Node).BlackHole,
		"refused":    (*redistest.Node).Refuse,
		"error": func(n *redistest.Node, on bool) {
			n.SetError(map[bool]string{true: "ERR blip"}[on])
		},
	}
	for name, fault := range faults {
		for _, wrong := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				n := redistest.Start(t, 1)[0]
				s := acquire(t, client(t, Mistakes{RenewalStopsAtFirstError: wrong}, n))
				time.Sleep(ttl/3 - time.Millisecond)
				fault(n, true)
				time.Sleep(ttl / 3)
				fault(n, false)
				time.Sleep(ttl)
				if isLost(s) != wrong {
					t.Errorf("%s: lost %v, with the mistake %v", name, isLost(s), wrong)
				}
			})
		}
	}
}

// When the node stays away the loss is told in time, and never after the
// server has let go.
func TestLossIsToldInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		s := acquire(t, client(t, Mistakes{}, n))
		start := time.Now()
		n.BlackHole(true)
		until := s.Until()
		<-s.Lost()
		if now := time.Now(); now.After(until) || until.Sub(now) > ttl/100 {
			t.Errorf("told at %v, valid until %v", now.Sub(start), until.Sub(start))
		}
		if !n.Exists(key) {
			t.Error("the server let go before the loss was told")
		}
		if s.Until().After(time.Now()) {
			t.Error("valid after the loss")
		}
		if err := s.Extend(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("extend after the loss: %v, want not held", err)
		}
		n.BlackHole(false)
		time.Sleep(ttl)
		if err := s.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("release after the loss: %v, want not held", err)
		}
	})
}

// When the server says that the key is another's, the loss is told at once.
func TestRefusedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, Mistakes{}, n), client(t, Mistakes{}, n)
		s := acquire(t, a)
		start := time.Now()
		n.Del(key)
		held := acquire(t, b)
		<-s.Lost()
		if took := time.Since(start); took > ttl/3 {
			t.Errorf("told after %v, want the next renewal", took)
		}
		if err := s.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("release: %v, want not held", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the holder's release: %v", err)
		}
	})
}

// A confirmation that comes in after the end of the lease is none.
func TestLateConfirmation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		s := acquire(t, client(t, Mistakes{}, n))
		time.Sleep(ttl/3 - time.Millisecond)
		n.Delay(ttl) // the client is "paused" with the renewal's reply unread
		time.Sleep(ttl / 2)
		n.Delay(0)
		<-s.Lost()
		time.Sleep(ttl)
		if s.Until().After(time.Now()) {
			t.Error("the late confirmation moved the end on")
		}
	})
}

// The same when the renewer is faster than the watch to go on after a pause.
func TestLateConfirmationBeforeTheWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := client(t, Mistakes{}, redistest.Start(t, 1)[0])
		start := time.Now()
		s := &lease{lock: lock, start: start, until: start.Add(usable), lost: make(chan struct{}), stop: func() {}}
		time.Sleep(usable - time.Nanosecond)
		if !s.confirm(start.Add(1)) || s.Until() != start.Add(1+usable) {
			t.Error("a confirmation in time was not taken")
		}
		time.Sleep(2 * time.Nanosecond)
		if s.confirm(start.Add(2)) || !isLost(s) {
			t.Error("a confirmation at the end was taken")
		}
	})
}

func TestExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		s := acquire(t, client(t, Mistakes{}, n))
		time.Sleep(ttl / 4)
		start := time.Now()
		if err := s.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Until().Sub(start); got != usable {
			t.Errorf("valid for %v, want %v", got, usable)
		}
		n.Del(key)
		if err := s.Extend(t.Context()); !errors.Is(err, impl.ErrNotHeld) || !isLost(s) {
			t.Errorf("extend without the key: %v, lost %v", err, isLost(s))
		}
		if n.Exists(key) {
			t.Error("extend made the key again")
		}
	})
}
