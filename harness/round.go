package harness

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/scenarios"
)

// actor is one thread of a client: it plays one round after the other.
type actor struct {
	*Client
	// all threads of the run, and which of them this one is.
	all, first int
	thread     *thread
	locks      []*recorded
	store      storage
	rng        *rand.Rand
	acqs       int
}

// checks is how many times in a TTL a holder looks at its lease while it
// works.
const checks = 20

func (a *actor) run(ctx context.Context) {
	defer a.store.close()
	for !a.Stop() && ctx.Err() == nil {
		a.round(ctx)
	}
}

// next numbers acquisitions, apart from those of every other thread.
func (a *actor) next() int {
	a.acqs++
	return (a.acqs-1)*a.all + a.first + 1
}

// round takes the lock, or several, and if that succeeds plays one critical
// section.
func (a *actor) round(ctx context.Context) {
	w := a.Workload
	held := a.take(ctx, a.mode())
	if held == nil {
		a.pause(ctx, a.jitter(a.span(w.Retry)))
		return
	}
	a.section(ctx, held)
	clean := a.giveBack(ctx, held)
	a.pause(ctx, a.jitter(a.span(w.Think)))
	for _, h := range clean {
		h.lookBack()
	}
}

// mode of the next round: empty unless the workload has readers.
func (a *actor) mode() string {
	w := a.Workload
	switch {
	case !w.Reads():
		return ""
	case slices.Contains(w.Readers, a.Name), w.ReadShare > 0 && a.rng.Float64() < w.ReadShare:
		return history.Reading
	}
	return history.Writing
}

// patience is how long the client waits for a lock. Where it is meant to end in
// the middle of things it ends between two of the instants, a microsecond apart,
// at which replies arrive in the simulator: what comes first would be decided by
// the scheduler otherwise.
func (a *actor) patience() time.Duration {
	const between = time.Microsecond / 2
	switch {
	case slices.Contains(a.Workload.Impatient, a.Name):
		return a.span(a.Workload.Patience) + between
	case len(a.locks) > 1:
		return a.span(a.Workload.AcquireTimeout) + between
	}
	return a.span(a.Workload.AcquireTimeout)
}

// order is that in which the client takes the locks.
func (a *actor) order() []*recorded {
	order := slices.Clone(a.locks)
	if a.Workload.Order == scenarios.Opposite && a.Index%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// take acquires all locks of a round, each inside the ones before it. The first
// is asked for once: who is refused comes back with the next round. From then on
// the client works for a while under what it has, and asks for the next one
// again and again until its patience ends, as code does that must have both;
// that is what deadlocks are made of.
func (a *actor) take(ctx context.Context, mode string) []*hold {
	var held []*hold
	for i, lock := range a.order() {
		if i > 0 && !a.work(ctx, held) {
			a.giveBack(ctx, held)
			return nil
		}
		deadline := time.Now().Add(a.patience())
		h, err := a.acquire(ctx, lock, mode, a.patience())
		for i > 0 && err != nil && impl.Classify(err).Definite {
			a.pause(ctx, a.jitter(a.span(a.Workload.Retry)))
			left := time.Until(deadline)
			if left <= 0 || ctx.Err() != nil || a.Stop() || !valid(held) {
				break
			}
			h, err = a.acquire(ctx, lock, mode, left)
		}
		if err != nil {
			a.giveBack(ctx, held)
			return nil
		}
		held = append(held, h)
	}
	return held
}

func (a *actor) acquire(ctx context.Context, lock *recorded, mode string, timeout time.Duration) (*hold, error) {
	ctx, done := a.call(ctx, timeout)
	defer done()
	return lock.acquire(ctx, a.next(), mode)
}

// giveBack releases what is held, the innermost first, and returns the holds
// that ended cleanly.
func (a *actor) giveBack(ctx context.Context, held []*hold) (clean []*hold) {
	for _, h := range slices.Backward(held) {
		rctx, done := a.call(context.WithoutCancel(ctx), a.span(a.Workload.CallTimeout))
		if h.release(rctx) {
			clean = append(clean, h)
		}
		done()
	}
	return clean
}

// pause waits outside the lock.
func (a *actor) pause(ctx context.Context, d time.Duration) {
	if d < a.Least {
		d = a.Least
	}
	if d <= 0 {
		a.Step()
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	a.Step()
}

// jitter spreads a wait by a quarter to both sides, so that clients do not
// march in step.
func (a *actor) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return (d - d/4 + time.Duration(a.rng.Int64N(int64(d/2)+1))).Truncate(time.Microsecond)
}
