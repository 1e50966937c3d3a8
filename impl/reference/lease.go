package reference

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

// lease is one acquisition. Two goroutines belong to it until Release or
// Close joins them: one renews, the other watches the time. They are two
// because a renewal may hang in a read, and the notice of loss must not hang
// with it.
type lease struct {
	lock  *Lock
	id    string
	fence uint64

	stop    context.CancelFunc
	running sync.WaitGroup
	lost    chan struct{}

	mu    sync.Mutex
	start time.Time // invoke of the last confirmed acquire or extend
	until time.Time // moves on with each confirmation, and back to the end
	ended bool      // released or lost
}

// hold starts a lease that was granted to a request which left at start.
func (l *Lock) hold(id string, fence uint64, start time.Time) (impl.Lease, error) {
	until := l.until(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closing.Err(); err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	ctx, stop := context.WithCancel(l.closing)
	s := &lease{
		lock:  l,
		id:    id,
		fence: fence,
		stop:  stop,
		lost:  make(chan struct{}),
		start: start,
		until: until,
	}
	for _, part := range []func(context.Context){s.watch, s.renew} {
		l.leases.Add(1)
		s.running.Add(1)
		go func() {
			defer l.leases.Done()
			defer s.running.Done()
			part(ctx)
		}()
	}
	return s, nil
}

// Fence is the number that the granting script counted up for this lease. It
// grows with every grant of this lock.
func (s *lease) Fence() uint64 { return s.fence }

// Until is the end of the lease on this client's monotonic clock, as far as it
// is confirmed. After a loss or a release it is the moment of that.
func (s *lease) Until() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock.wrong.FlagOnly && !s.ended {
		return time.Now().Add(s.lock.ttl)
	}
	return s.until
}

// Lost is closed when the lease has ended without a release: at once when the
// server says so, and otherwise no later than Until.
func (s *lease) Lost() <-chan struct{} { return s.lost }

// notice is how much earlier than Until the loss is told, so that a timer
// which fires a little late does not tell it after the end.
func (l *Lock) notice() time.Duration { return l.ttl / 200 }

// watch closes Lost when the time is up.
func (s *lease) watch(ctx context.Context) {
	for {
		left := time.Until(s.Until().Add(-s.lock.notice()))
		if left <= 0 {
			s.lose()
			return
		}
		if wait.For(ctx, left) != nil {
			if s.lock.closing.Err() != nil {
				s.lose() // closed under its holder: nobody renews any more
			}
			return
		}
	}
}

// renew asks for more every third of the TTL, and after a failure again after
// a short pause, as long as the lease runs.
func (s *lease) renew(ctx context.Context) {
	l := s.lock
	next := s.nextRenewal()
	for wait.For(ctx, next) == nil && s.active() && !l.dead.Load() {
		if s.lengthen(ctx, "renew") == nil {
			next = s.nextRenewal()
			continue
		}
		// The error is not told: the holder learns from Lost whether a later
		// try made up for it.
		if l.wrong.renewsOtherwise() {
			s.renewWrongly(ctx)
			return
		}
		next = l.pause
	}
}

func (s *lease) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

func (s *lease) nextRenewal() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.start.Add(s.lock.ttl / 3))
}

// lengthen sends one request for the whole TTL from now on. It is over when
// patience is, and no later than the lease: a request that hangs in a cut link
// must leave time for the next. [impl.ErrNotHeld] says that the lease has
// ended.
func (s *lease) lengthen(ctx context.Context, op string) error {
	l := s.lock
	invoke := time.Now()
	deadline := invoke.Add(l.patience)
	if until := s.Until(); until.Before(deadline) {
		deadline = until
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()

	extended, err := l.extend(ctx, s.id)
	if err != nil {
		return l.typed(op, err)
	}
	if !extended {
		s.lose()
		return impl.ErrNotHeld.With(op, l.node, l.key, nil)
	}
	if !s.confirm(invoke) {
		// The server did lengthen something, so "not held" would be too much.
		return impl.ErrUnknownOutcome.With(op, l.node, l.key, nil)
	}
	return nil
}

func (l *Lock) extend(ctx context.Context, id string) (bool, error) {
	if l.wrong.extendsAnotherWay() {
		return l.extendWrongly(ctx, id)
	}
	n, err := extendScript.Run(ctx, l.client, []string{l.key}, id, l.ttl.Milliseconds()).Int64()
	return n == 1, err
}

// confirm moves the end of the lease on, if the lease still runs. The request
// was applied some time after invoke, so the server keeps the key for longer
// than is counted here.
//
// A confirmation that comes in after the end is not one. The key the server
// has lengthened then need not be the key of this lease:
//
//	t=0     the granting request is sent twice, since the first seems lost;
//	        the second is granted
//	t=0.9   a renewal leaves; then the client is paused
//	t=1.0   the key expires; B acquires and releases
//	t=1.1   the first granting request arrives and is granted, by the name of
//	        this acquisition; the renewal arrives after it and says yes
//	t=1.2   the client goes on: 1.2 is past Until, so the lease is lost
func (s *lease) confirm(invoke time.Time) bool {
	until := s.lock.until(invoke)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if !time.Now().Before(s.until) {
		s.loseLocked()
		return false
	}
	if until.After(s.until) {
		s.start, s.until = invoke, until
	}
	return true
}

func (s *lease) lose() {
	if s.lock.wrong.LossWaitsForReader && s.active() {
		_ = wait.For(s.lock.closing, forAges*s.lock.ttl)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseLocked()
}

func (s *lease) loseLocked() {
	if s.ended {
		return
	}
	close(s.lost)
	s.endLocked()
}

func (s *lease) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.endLocked()
	}
}

// endLocked marks the end of the lease and lets its goroutines go.
func (s *lease) endLocked() {
	s.ended = true
	if now := time.Now(); now.Before(s.until) {
		s.until = now
	}
	s.stop()
}

// Extend lengthens the lease to the TTL from now on. Errors:
// [impl.ErrNotHeld] when it has ended, otherwise as for Acquire. After an
// error the lease runs as before, and so does its renewal.
func (s *lease) Extend(ctx context.Context) error {
	l := s.lock
	if !s.active() || !time.Now().Before(s.Until()) {
		return impl.ErrNotHeld.With("extend", l.node, l.key, nil)
	}
	return s.lengthen(ctx, "extend")
}

// Release ends the lease on this side, joins its renewer, and deletes the key
// if it is this acquisition's. It does so even if ctx has ended, within the
// TTL. It may be called again after an error. Errors: [impl.ErrNotHeld] when
// the lease was over on the server, otherwise as for Acquire.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	if l.wrong.RenewsAfterLoss && !s.active() {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	if !l.wrong.RenewerNotJoined {
		s.end()
		// Bounded: a renewal that is under way ends within patience.
		s.running.Wait()
	}
	held, err := l.deleteMine(context.WithoutCancel(ctx), "release", request{id: s.id, fence: s.fence, tries: l.releaseTries()})
	if err != nil {
		return err
	}
	if !held {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}
