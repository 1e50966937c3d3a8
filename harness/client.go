package harness

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/scenarios"
)

// Client is one client process with its workload. The same code runs as a
// group of goroutines in the simulator and as a process of its own on real
// servers; what differs is handed in.
type Client struct {
	Name     string
	Index    int // from 0
	Clients  int
	LockName string
	TTL      time.Duration
	Seed     uint64
	Workload scenarios.Workload
	Lock     impl.Lock
	// Start of the run on this process's clock, and the time since then.
	Start time.Time
	Clock func() int64
	// Record hands an event on; it returns when the client may go on.
	Record func(history.Event)
	// Step stands still while the client is paused (simulator only; a real
	// process is stopped by the kernel).
	Step func()
	// Dial connects to the protected resource.
	Dial func(ctx context.Context) (net.Conn, error)
	// Stop says that no new round shall begin.
	Stop func() bool

	rng    *rand.Rand
	rounds int
	lock   recorded
	store  storage

	mu     sync.Mutex
	cancel context.CancelFunc // of the call that is under way; nil between calls
}

// checks is how many times in a TTL a holder looks at its lease while it
// works.
const checks = 20

// Run plays rounds until Stop says so or the context ends.
func (c *Client) Run(ctx context.Context) {
	c.rng = rand.New(rand.NewPCG(c.Seed, uint64(c.Index)+1))
	c.lock = recorded{
		lock: c.Lock, start: c.Start,
		thread: &thread{
			client: c.Name, lock: c.LockName, process: c.Index, retire: c.Clients,
			clock: c.Clock, record: c.Record,
		},
	}
	c.store = storage{dial: c.Dial}
	defer c.store.close()
	for !c.Stop() && ctx.Err() == nil {
		c.round(ctx)
	}
}

// span is a duration of the workload for this run's TTL.
func (c *Client) span(s interface {
	Of(time.Duration) time.Duration
}) time.Duration {
	return s.Of(c.TTL)
}

// in is the moment a timeout from now, as nanoseconds of the run. The call
// itself begins a little later, or much later if the client is paused first;
// whoever judges by it allows for both.
func (c *Client) in(timeout time.Duration) *int64 {
	at := c.Clock() + timeout.Nanoseconds()
	return &at
}

// round is one acquire and, if it succeeds, one critical section.
func (c *Client) round(ctx context.Context) {
	w := c.Workload
	acq := c.rounds*c.Clients + c.Index + 1
	c.rounds++
	actx, done := c.call(ctx, c.span(w.AcquireTimeout))
	h, err := c.lock.acquire(actx, acq)
	done()
	if err != nil {
		c.pause(ctx, c.jitter(c.span(w.Retry)))
		return
	}
	c.section(ctx, h)
	rctx, done := c.call(context.WithoutCancel(ctx), c.span(w.CallTimeout))
	clean := h.release(rctx)
	done()
	c.pause(ctx, c.jitter(c.span(w.Think)))
	if clean {
		h.lookBack()
	}
}

// call makes the context of one call to the lock, with a deadline and within
// reach of [Client.Cancel].
func (c *Client) call(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	return ctx, func() {
		cancel()
		c.mu.Lock()
		c.cancel = nil
		c.mu.Unlock()
	}
}

// Cancel cancels the context of the call to the lock that is under way, as a
// user does who gives up: a request that ends, a shutdown.
func (c *Client) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// section reads, works and writes under the lock. It ends early when the
// lease says that it is over.
func (c *Client) section(ctx context.Context, h *hold) {
	version, ok := c.read(ctx, h)
	if !ok || !c.work(ctx, h) {
		return
	}
	h.thread.note(history.Op{F: history.Worked, Type: history.Note, Acq: h.acq})
	if !h.valid() {
		return
	}
	c.write(ctx, h, version)
}

func (c *Client) read(ctx context.Context, h *hold) (version int64, ok bool) {
	op := history.Op{F: history.Read, Acq: h.acq, Fence: h.fence}
	timeout := c.span(c.Workload.CallTimeout)
	op.Type, op.Deadline = history.Invoke, c.in(timeout)
	h.thread.note(op)
	op.Deadline = nil
	a, err := c.store.call(ctx, timeout, request{
		F: history.Read, Process: h.thread.process, Acq: h.acq, Fence: h.fence,
	})
	if err == nil {
		op.Version = &a.Version
	}
	h.thread.done(storeOutcome(op, err))
	return a.Version, err == nil
}

func (c *Client) write(ctx context.Context, h *hold, seen int64) {
	timeout := c.span(c.Workload.WriteTimeout)
	op := history.Op{F: history.Write, Type: history.Invoke, Acq: h.acq, Fence: h.fence, Version: &seen, Deadline: c.in(timeout)}
	h.thread.note(op)
	op.Deadline = nil
	a, err := c.store.call(ctx, timeout, request{
		F: history.Write, Process: h.thread.process, Acq: h.acq, Fence: h.fence, Seen: seen,
	})
	op.Version = nil
	if err == nil {
		op.Version = &a.Version
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

// work holds the lock for a while, looking at the lease now and then if it
// tells anything. It says whether the lease still held at the end.
func (c *Client) work(ctx context.Context, h *hold) bool {
	left := c.span(c.Workload.Hold)
	_, tells := h.lease.(impl.Validity)
	slice := left
	if tells || h.lost() != nil {
		slice = (c.TTL / checks).Truncate(time.Microsecond)
	}
	every := c.span(c.Workload.Extend)
	_, extends := h.lease.(impl.Extender)
	sinceExtend := time.Duration(0)
	if extends && every > 0 {
		slice = min(slice, every)
	}
	for left > 0 {
		nap := min(slice, left)
		left -= nap
		sinceExtend += nap
		timer := time.NewTimer(nap)
		select {
		case <-timer.C:
		case <-h.lost():
		case <-ctx.Done():
			left = 0
		}
		timer.Stop()
		c.Step()
		if !h.valid() {
			return false
		}
		if extends && every > 0 && sinceExtend >= every && left > 0 {
			sinceExtend = 0
			if !c.extend(ctx, h) {
				return false
			}
		}
	}
	return true
}

// extend lengthens the lease by hand. A holder that does not get its yes
// leaves without writing, whatever the reason.
func (c *Client) extend(ctx context.Context, h *hold) bool {
	ectx, done := c.call(ctx, c.span(c.Workload.CallTimeout))
	defer done()
	if h.extend(ectx) {
		return true
	}
	h.thread.note(history.Op{F: history.Abandon, Type: history.Note, Acq: h.acq})
	return false
}

// pause waits outside the lock.
func (c *Client) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	c.Step()
}

// jitter spreads a wait by a quarter to both sides, so that clients do not
// march in step.
func (c *Client) jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Microsecond
	}
	return (d - d/4 + time.Duration(c.rng.Int64N(int64(d/2)+1))).Truncate(time.Microsecond)
}
