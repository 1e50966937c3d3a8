package mutants

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/reference"
)

// firstTry is the reference with a wait in front: it asks until it gets the
// lock, and tells a validity that counts from the first time it asked.
//
//	t=0    A asks and is refused, and asks again and again
//	t=15   A is granted the lock for 10 and is told that it ended at 10
type firstTry struct {
	impl.Lock
	pause time.Duration
}

func newFirstTry(env impl.Env) (impl.Lock, error) {
	l, err := reference.New(env)
	if err != nil {
		return nil, err
	}
	return &firstTry{Lock: l, pause: env.TTL / 20}, nil
}

// Acquire waits until the lock is granted or ctx ends. Errors: those of the
// reference.
func (l *firstTry) Acquire(ctx context.Context) (impl.Lease, error) {
	first := time.Now()
	for {
		start := time.Now()
		got, err := l.Lock.Acquire(ctx)
		if err == nil {
			return &earlyLease{Lease: got, early: start.Sub(first)}, nil
		}
		if !errors.Is(err, impl.ErrNotObtained) {
			return nil, err
		}
		timer := time.NewTimer(l.pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// Close closes the lock beneath.
func (l *firstTry) Close() error { return l.Lock.(io.Closer).Close() }

// earlyLease tells a validity that ends too early.
type earlyLease struct {
	impl.Lease
	early time.Duration
}

func (s *earlyLease) Fence() uint64                    { return s.Lease.(impl.Fencer).Fence() }
func (s *earlyLease) Extend(ctx context.Context) error { return s.Lease.(impl.Extender).Extend(ctx) }
func (s *earlyLease) Until() time.Time                 { return s.Lease.(impl.Validity).Until().Add(-s.early) }
func (s *earlyLease) Lost() <-chan struct{}            { return s.Lease.(impl.LossNotifier).Lost() }
