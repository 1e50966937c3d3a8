package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-io/holdfast/history"
)

// trace is the server trace of all nodes.
type trace struct {
	w       *World
	owners  *owners
	tracers map[string]*tracer // by node

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error // of the end
}

// startTrace connects to every node and returns when all of them report.
func (w *World) startTrace(ctx context.Context) error {
	if w.cfg.OnServer == nil || !w.layout.traced {
		return nil
	}
	t := &trace{w: w, owners: newOwners(), tracers: make(map[string]*tracer)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for _, name := range w.nodeNames {
		t.tracers[name] = newTracer(t, w.nodes[name])
	}
	w.trace = t
	for _, tr := range t.tracers {
		t.wg.Go(tr.run)
	}
	for _, name := range w.nodeNames {
		if err := w.awaitTrace(ctx, name, 0); err != nil {
			return err
		}
	}
	if w.clustered() {
		return t.watchRoles(ctx)
	}
	return nil
}

// traceConnections is how often a node's trace has been connected so far.
func (w *World) traceConnections(name string) int {
	if w.trace == nil || w.trace.tracers[name] == nil {
		return 0
	}
	tr := w.trace.tracers[name]
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.connections
}

// awaitTrace waits until a node's trace has been connected more often than
// seen.
func (w *World) awaitTrace(ctx context.Context, name string, seen int) error {
	if w.trace == nil || w.trace.tracers[name] == nil || w.trace.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for w.traceConnections(name) <= seen {
		if err := sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("node %s: its trace does not start: %w", name, err)
		}
	}
	return nil
}

// SyncTrace returns when everything that the running nodes executed before the
// call has been handed to [Config.OnServer]. Nodes that are down, stalled
// or out of reach are left out.
func (w *World) SyncTrace(ctx context.Context) error {
	if w.trace == nil {
		return nil
	}
	return each(w.nodeNames, func(name string) error {
		return w.onNode(ctx, "sync the trace of", name, func(n *node) error {
			if n.server == nil || n.stalled || n.outOfReach() || over(n.server) {
				return nil
			}
			return w.trace.tracers[name].sync(ctx)
		})
	})
}

// EndTrace syncs the trace, reports the keys that are left on each running
// node ([history.Left]), and stops tracing. Further calls do nothing.
func (w *World) EndTrace(ctx context.Context) error {
	t := w.trace
	if t == nil {
		return nil
	}
	t.once.Do(func() {
		t.err = w.SyncTrace(ctx)
		for _, name := range w.nodeNames {
			n := w.nodes[name]
			n.mu.Lock()
			alive := n.server != nil && !over(n.server)
			n.mu.Unlock()
			if alive {
				t.tracers[name].reportAll(history.Left)
			}
		}
		t.cancel()
		t.wg.Wait()
	})
	if t.err != nil {
		return fmt.Errorf("end the trace: %w", t.err)
	}
	return nil
}

// tracePromoted reports the keys that a new primary has.
func (w *World) tracePromoted(ctx context.Context, name string) {
	if w.trace == nil || w.trace.ctx.Err() != nil {
		return
	}
	tr := w.trace.tracers[name]
	// Without this the last replicated commands could come after the report.
	if err := tr.sync(ctx); err != nil {
		w.cfg.Log.Warn("the trace lags behind a promotion", "node", name, "err", err)
	}
	tr.reportAll(history.Promoted)
}

// Monotonic is the machine's CLOCK_MONOTONIC in nanoseconds: the scale of the
// server trace. It is the same for all processes of the machine.
func Monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		// The clock exists on every Linux, and no argument can be wrong.
		panic(fmt.Sprintf("CLOCK_MONOTONIC: %v", err))
	}
	return ts.Nano()
}

// event is one that is ready to be handed over.
type event struct {
	server history.Server
	at     int64
	// promoted is no event of the trace: the node became the primary.
	promoted bool
}

// stamp gives an event its times.
func (t *trace) stamp(tr *tracer, ev history.Server, shown time.Time) event {
	arrival, mono := time.Now(), Monotonic()
	real := tr.node.clock.real(shown, arrival)
	at := mono - arrival.Round(0).Sub(real.Round(0)).Nanoseconds()
	// A node executes one command after the other: its events never go back.
	at = min(max(at, tr.last+1), max(mono, tr.last+1))
	tr.last = at
	ev.Node = tr.node.name
	ev.Clock = mono + shown.Sub(arrival.Round(0)).Nanoseconds()
	return event{server: ev, at: at}
}

// errTraceLost says that the connection ended while somebody waited for it.
var errTraceLost = errors.New("the trace has lost its connection")
