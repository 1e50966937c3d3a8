// Package renewer is the background renewal that the watchdog and the service
// lock share: renew at a fixed interval, and give up for good at the first
// error or refusal.
//
// Giving up is the weakness of both locks, kept on purpose. A lease of 9 s
// that is renewed every 3 s has time for a second and a third try after a
// failed one, and nobody tells the holder that there will be none:
//
//	t=0   A acquires, TTL 9 s
//	t=3   the renewal meets a cut link and fails; the renewer ends
//	t=4   the link is whole again
//	t=9   the key expires, A still works and knows nothing
//	t=9.1 B acquires
//
// impl/reference shows the renewer that these locks should have.
package renewer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

// Renew asks the server once to lengthen the lease. Any error ends the
// renewer.
type Renew func(ctx context.Context) error

// Owner owns the renewers of one lock object: it can stop those whose leases
// were never released. The zero value is ready.
type Owner struct {
	mu      sync.Mutex
	closed  bool
	running map[*Renewer]struct{}
	wg      sync.WaitGroup
}

// Renewer is one running renewal.
type Renewer struct {
	cancel context.CancelFunc
	done   chan struct{}
	failed error // what ended it; written before done is closed
}

// Start begins to renew every interval. An owner that is closed already starts
// nothing.
func (o *Owner) Start(interval time.Duration, renew Renew) *Renewer {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Renewer{cancel: cancel, done: make(chan struct{})}

	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		cancel()
		close(r.done)
		return r
	}
	if o.running == nil {
		o.running = make(map[*Renewer]struct{})
	}
	o.running[r] = struct{}{}
	o.wg.Go(func() {
		defer close(r.done)
		defer o.forget(r)
		r.failed = run(ctx, interval, renew)
	})
	return r
}

// run is the whole of the renewal: tick, ask, and end at the first failure,
// which it returns. Being stopped by Release or Close is none.
func run(ctx context.Context, interval time.Duration, renew Renew) error {
	for {
		if wait.For(ctx, interval) != nil {
			return nil
		}
		err := renew(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			slog.Debug("renewal failed, the lease will run out", "err", err)
			return err
		}
	}
}

// Failed is the error that ended the renewer, nil while it runs and after it
// was stopped.
func (r *Renewer) Failed() error {
	select {
	case <-r.done:
		return r.failed
	default:
		return nil
	}
}

func (o *Owner) forget(r *Renewer) {
	r.cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.running, r)
}

// Stop tells the renewer to end and waits for that, but no longer than limit:
// a renewal that hangs in a cut link must not hang the release. It says
// whether the renewer has ended.
func (r *Renewer) Stop(limit time.Duration) bool {
	r.cancel()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
		return true
	case <-timer.C:
		return false
	}
}

// Cancel tells every renewer to end, also those of leases that nobody
// released, and lets no new one start. [Owner.Wait] joins them; a lock closes
// its client between the two, so that a renewal that hangs in a read comes
// back.
func (o *Owner) Cancel() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for r := range o.running {
		r.cancel()
	}
}

// Wait returns when no renewer runs any more.
func (o *Owner) Wait() { o.wg.Wait() }
