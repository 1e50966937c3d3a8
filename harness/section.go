package harness

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/scenarios"
)

// section is what a round does under its locks. It ends early when a lease says
// that it is over. The resource belongs to the lock that the scenario names
// first, in whichever order they were taken: fences of two locks cannot be
// compared.
func (a *actor) section(ctx context.Context, held []*hold) {
	main := held[slices.IndexFunc(held, func(h *hold) bool { return h.lock == a.locks[0] })]
	switch {
	case a.Workload.Kind == scenarios.Permits:
		if a.deeper(ctx, held, main, a.Workload.Deep()) {
			main.note(history.Worked)
		}
	case main.mode == history.Reading:
		if _, ok := a.read(ctx, main); ok && a.deeper(ctx, held, main, a.Workload.Deep()) {
			main.note(history.Worked)
			if valid(held) {
				a.read(ctx, main)
			}
		}
	default:
		a.update(ctx, held, main)
	}
}

// update reads, works and writes.
func (a *actor) update(ctx context.Context, held []*hold, main *hold) {
	version, ok := a.read(ctx, main)
	if !ok || !a.deeper(ctx, held, main, a.Workload.Deep()) {
		return
	}
	main.note(history.Worked)
	if !valid(held) {
		return
	}
	a.write(ctx, main, version)
}

// deeper works at every level of a re-entered lock: before the inner section
// and after it, when a lock that does not count has let go of everything.
//
//	acquire, work
//	    acquire again, work, release
//	work, release
//
// It says whether every lease still held at the end. An inner acquire that is
// refused leaves out the inner section.
func (a *actor) deeper(ctx context.Context, held []*hold, main *hold, levels int) bool {
	if !a.work(ctx, held) {
		return false
	}
	if levels == 1 {
		return true
	}
	inner, err := a.acquire(ctx, main.lock, main.mode, a.patience())
	if err == nil {
		good := a.deeper(ctx, append(slices.Clone(held), inner), inner, levels-1)
		a.giveBack(ctx, []*hold{inner})
		if !good {
			return false
		}
	}
	return a.work(ctx, held)
}

// valid says whether every lease still holds.
func valid(held []*hold) bool {
	return !slices.ContainsFunc(held, func(h *hold) bool { return !h.valid() })
}

func (a *actor) read(ctx context.Context, h *hold) (version int64, ok bool) {
	op := h.op(history.Read, history.Invoke)
	timeout := a.span(a.Workload.CallTimeout)
	op.Fence, op.Deadline = h.fence, a.in(timeout)
	h.thread.note(op)
	op.Deadline = nil
	got, err := a.store.call(ctx, timeout, request{
		F: history.Read, Process: h.thread.process, Acq: h.acq, Fence: h.fence,
	})
	if err == nil {
		op.Version = &got.Version
	}
	h.thread.done(storeOutcome(op, err))
	return got.Version, err == nil
}

func (a *actor) write(ctx context.Context, h *hold, seen int64) {
	timeout := a.span(a.Workload.WriteTimeout)
	op := h.op(history.Write, history.Invoke)
	op.Fence, op.Version, op.Deadline = h.fence, &seen, a.in(timeout)
	h.thread.note(op)
	op.Deadline = nil
	got, err := a.store.call(ctx, timeout, request{
		F: history.Write, Process: h.thread.process, Acq: h.acq, Fence: h.fence, Seen: seen,
	})
	op.Version = nil
	if err == nil {
		op.Version = &got.Version
	}
	h.thread.done(storeOutcome(op, err))
}

// codeRefused stands on a request that the guarded resource refused.
const codeRefused = "REFUSED"

// storeOutcome completes a read or write: refused is definite, a reply is
// definite, anything else may have happened or may happen later.
func storeOutcome(op history.Op, err error) history.Op {
	switch {
	case err == nil:
		op.Type = history.OK
	case errors.Is(err, errRefused):
		op.Type, op.Code, op.Error = history.Fail, codeRefused, err.Error()
	default:
		op.Type, op.Code, op.Error = history.Info, string(impl.CodeUnknown), err.Error()
	}
	return op
}

// work holds the locks for a while, looking at the leases now and then if they
// tell anything. It says whether they all still held at the end.
func (a *actor) work(ctx context.Context, held []*hold) bool {
	left := a.span(a.Workload.Hold)
	slice := left
	var lost <-chan struct{}
	for _, h := range held {
		if _, tells := h.lease.(impl.Validity); tells || h.lost() != nil {
			slice = (a.TTL / checks).Truncate(time.Microsecond)
		}
		if lost == nil {
			lost = h.lost()
		}
	}
	every := a.span(a.Workload.Extend)
	extends := slices.DeleteFunc(slices.Clone(held), func(h *hold) bool { _, can := h.lease.(impl.Extender); return !can || every <= 0 })
	sinceExtend := time.Duration(0)
	if len(extends) > 0 {
		slice = min(slice, every)
	}
	for left > 0 {
		nap := min(slice, left)
		left -= nap
		sinceExtend += nap
		timer := time.NewTimer(nap)
		select {
		case <-timer.C:
		case <-lost:
		case <-ctx.Done():
			left = 0
		}
		timer.Stop()
		a.Step()
		if !valid(held) {
			return false
		}
		if len(extends) > 0 && sinceExtend >= every && left > 0 {
			sinceExtend = 0
			if slices.ContainsFunc(extends, func(h *hold) bool { return !a.extend(ctx, h) }) {
				return false
			}
		}
	}
	return true
}

// extend lengthens the lease by hand. A holder that does not get its yes
// leaves without writing, whatever the reason.
func (a *actor) extend(ctx context.Context, h *hold) bool {
	ectx, done := a.call(ctx, a.span(a.Workload.CallTimeout))
	defer done()
	if h.extend(ectx, a.Workload.ExtendTTL) {
		return true
	}
	h.note(history.Abandon)
	return false
}
