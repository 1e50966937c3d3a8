package harness

import (
	"context"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/scenarios"
)

// thread is one sequential thread of a client in the history. It gives every
// event its process number and hands it on; the call returns when the client
// may take its next step.
type thread struct {
	client  string
	number  int // among the client's threads
	process int
	// retire is what is added to the process number after an unknown outcome.
	retire int
	clock  func() int64
	record func(history.Event)
}

// note records an event of the thread.
func (t *thread) note(op history.Op) {
	op.Process, op.Client, op.Thread = t.process, t.client, t.number
	t.record(history.Event{T: t.clock(), Op: &op})
}

// done records a completion, and retires the process after an unknown one:
// from then on nobody knows what it is doing.
func (t *thread) done(op history.Op) {
	t.note(op)
	if op.Type == history.Info {
		t.process += t.retire
	}
}

// outcome turns an error into the type, code and text of a completion.
func outcome(op history.Op, err error) history.Op {
	if err == nil {
		op.Type = history.OK
		return op
	}
	class := impl.Classify(err)
	op.Type, op.Code, op.Error = history.Info, string(class.Code), err.Error()
	if class.Definite {
		op.Type = history.Fail
	}
	return op
}

// recorded is the only door to a lock: workloads never see the raw one. The
// call is stamped before it is made and the return after, so a pause in
// between can only shorten a believed interval, never invent an overlap.
type recorded struct {
	lock   impl.Lock
	name   string
	thread *thread
	start  time.Time // of the run, on this client's clock
}

// deadlineOf gives a context's deadline as nanoseconds of the run, or nil where
// it has none.
func deadlineOf(ctx context.Context, start time.Time) *int64 {
	at, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	ns := at.Sub(start).Nanoseconds()
	return &ns
}

// hold is a recorded acquisition.
type hold struct {
	lease  impl.Lease
	lock   *recorded
	thread *thread
	start  time.Time
	acq    int
	mode   string
	fence  *uint64
	told   time.Time // latest validity end that was told
	// renewal says that a failed renewal has been noted.
	renewal bool
}

// acquire makes one attempt under an acquisition number, and in a mode if the
// workload has readers.
func (r *recorded) acquire(ctx context.Context, acq int, mode string) (*hold, error) {
	r.thread.note(history.Op{F: history.Acquire, Type: history.Invoke, Lock: r.name, Acq: acq, Mode: mode, Deadline: deadlineOf(ctx, r.start)})
	lease, err := r.ask(ctx, mode)
	op := outcome(history.Op{F: history.Acquire, Lock: r.name, Acq: acq, Mode: mode}, err)
	if err != nil {
		r.thread.done(op)
		return nil, err
	}
	h := &hold{lease: lease, lock: r, thread: r.thread, start: r.start, acq: acq, mode: mode}
	if f, ok := lease.(impl.Fencer); ok {
		fence := f.Fence()
		h.fence = &fence
	}
	op.Fence = h.fence
	op.Until = h.ask()
	r.thread.done(op)
	return h, nil
}

// ask asks the lock itself.
func (r *recorded) ask(ctx context.Context, mode string) (impl.Lease, error) {
	both, _ := r.lock.(impl.RWLock) // a run with readers has such a lock
	switch mode {
	case history.Reading:
		return both.AcquireRead(ctx)
	case history.Writing:
		return both.AcquireWrite(ctx)
	}
	return r.lock.Acquire(ctx)
}

// op is an event of the acquisition.
func (h *hold) op(f string, t history.Type) history.Op {
	return history.Op{F: f, Type: t, Lock: h.lock.name, Acq: h.acq}
}

// note records what the holder noticed or did.
func (h *hold) note(f string) { h.thread.note(h.op(f, history.Note)) }

// ask gets the validity end from the lease, as nanoseconds of the run.
func (h *hold) ask() *int64 {
	v, ok := h.lease.(impl.Validity)
	if !ok {
		return nil
	}
	h.told = v.Until()
	until := h.told.Sub(h.start).Nanoseconds()
	return &until
}

// valid asks whether the lease still holds and notes the answer when it says
// something new. A lease that tells nothing is believed in.
func (h *hold) valid() bool {
	h.askRenewal()
	if h.isLost() {
		h.note(history.Lost)
		return false
	}
	before := h.told
	until := h.ask()
	if until == nil {
		return true
	}
	if !h.told.Equal(before) {
		op := h.op(history.Check, history.Note)
		op.Until = until
		h.thread.note(op)
	}
	if !time.Now().Before(h.told) {
		h.note(history.Abandon)
		return false
	}
	return true
}

// askRenewal notes, once, that the renewal has ended with an error. The
// workload does not act on it: an error in a log stops no holder.
func (h *hold) askRenewal() {
	s, ok := h.lease.(impl.SelfRenewing)
	if !ok || h.renewal {
		return
	}
	if err := s.RenewalErr(); err != nil {
		h.renewal = true
		op := h.op(history.Renewal, history.Note)
		op.Code, op.Error = string(impl.Classify(err).Code), err.Error()
		h.thread.note(op)
	}
}

// lost is the loss notice, or nil for ever where there is none.
func (h *hold) lost() <-chan struct{} {
	if l, ok := h.lease.(impl.LossNotifier); ok {
		return l.Lost()
	}
	return nil
}

// extend asks for another TTL and says whether the lock said yes.
func (h *hold) extend(ctx context.Context, by scenarios.LockTTL) bool {
	op := h.op(history.Extend, history.Invoke)
	op.Deadline = deadlineOf(ctx, h.start)
	h.thread.note(op)
	var err error
	if any, ok := h.lease.(impl.ExtenderFor); ok && by.Given { // the lock lets its user choose
		err = any.ExtendFor(ctx, by.TTL)
	} else {
		err = h.lease.(impl.Extender).Extend(ctx) // callers have asked for the ability
	}
	op = outcome(h.op(history.Extend, ""), err)
	if err == nil {
		op.Until = h.ask()
	}
	h.thread.done(op)
	return err == nil
}

// release gives the lock back, and says whether it was a clean end: given back
// without an error, and no loss told up to then.
func (h *hold) release(ctx context.Context) (clean bool) {
	h.askRenewal()
	op := h.op(history.Release, history.Invoke)
	op.Deadline = deadlineOf(ctx, h.start)
	h.thread.note(op)
	err := h.lease.Release(ctx)
	clean = err == nil && !h.isLost()
	h.thread.done(outcome(h.op(history.Release, ""), err))
	return clean
}

func (h *hold) isLost() bool {
	select {
	case <-h.lost():
		return true
	default:
		return false
	}
}

// lookBack looks at the loss notice some time after a clean release, where
// there must be none.
func (h *hold) lookBack() {
	if h.isLost() {
		h.note(history.Lost)
	}
}
