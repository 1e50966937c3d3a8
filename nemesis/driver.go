package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// Driver plays a plan: it watches the history's events, injects each fault
// when its trigger fires, and heals it when its time is over. Everything it
// does goes into the history.
type Driver struct {
	plan    Plan
	cluster cluster.Cluster
	ttl     time.Duration
	record  func(history.Event)
	// heals run on this context: it outlives the run's own, so that Ctrl-C
	// heals what it interrupts.
	ctx context.Context

	mu      sync.Mutex
	counts  []int  // matches so far, a step each
	struck  []bool // whether it was injected, a step each
	holders []string
	active  map[int]*active
	nextID  int
	timers  []*time.Timer
	pending sync.WaitGroup
	closed  bool
	errs    []error
}

type active struct {
	id     int
	kind   string
	effect Effect
}

// healTimeout bounds one heal; a heal that takes longer has failed.
const healTimeout = 30 * time.Second

// NewDriver makes a driver for the part of a plan that fits the cluster.
func NewDriver(plan Plan, c cluster.Cluster, ttl time.Duration, record func(history.Event)) *Driver {
	plan = plan.For(c.Topology())
	return &Driver{
		plan: plan, cluster: c, ttl: ttl, record: record,
		ctx: context.Background(), counts: make([]int, len(plan)), struck: make([]bool, len(plan)), active: map[int]*active{},
	}
}

// Start arms the steps that begin at a time. Steps at time zero are injected
// before it returns.
func (d *Driver) Start() {
	for i := range d.plan {
		if step := d.plan[i]; step.When.timed() {
			d.after(step.When.At.Of(d.ttl), func() { d.inject(i, history.Event{}) })
		}
	}
}

// Observe is called with every event before its client goes on.
func (d *Driver) Observe(ev history.Event) {
	if ev.Nemesis != nil || ev.Resource != nil {
		return
	}
	d.follow(ev)
	for i := range d.plan {
		step := d.plan[i]
		if step.When.timed() || !step.When.matches(ev) {
			continue
		}
		d.mu.Lock()
		d.counts[i]++
		fire := d.counts[i] == max(step.When.Nth, 1) && !d.closed
		d.mu.Unlock()
		if fire {
			d.after(step.When.After.Of(d.ttl), func() { d.inject(i, ev) })
		}
	}
}

// follow keeps the stack of clients that believe they hold the lock.
func (d *Driver) follow(ev history.Event) {
	if ev.Op == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	op := ev.Op
	switch {
	case op.F == history.Acquire && op.Type == history.OK:
		d.holders = append(d.holders, op.Client)
	case op.F == history.Release && op.Type == history.Invoke,
		op.F == history.Abandon, op.F == history.Lost, op.F == history.Crash:
		if i := slices.Index(d.holders, op.Client); i >= 0 {
			d.holders = slices.Delete(d.holders, i, i+1)
		}
	}
}

// after runs f now or later; Close waits for it.
func (d *Driver) after(wait time.Duration, f func()) {
	if wait <= 0 {
		f()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.pending.Add(1)
	d.timers = append(d.timers, time.AfterFunc(wait, func() {
		defer d.pending.Done()
		f()
	}))
}

// scene describes the moment to a fault.
func (d *Driver) scene(ev history.Event) Scene {
	s := Scene{Cluster: d.cluster, TTL: d.ttl}
	if ev.Op != nil {
		s.Caller = ev.Op.Client
	}
	if ev.Server != nil {
		s.Caller, s.Node = ev.Server.Client, ev.Server.Node
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch n := len(d.holders); {
	case s.Caller != "" && slices.Contains(d.holders, s.Caller):
		s.Holder = s.Caller
	case n > 0:
		s.Holder = d.holders[n-1]
	}
	return s
}

func (d *Driver) inject(number int, ev history.Event) {
	step := d.plan[number]
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.pending.Add(1) // HealAll must not pass by a fault that is being injected
	defer d.pending.Done()
	d.nextID++
	id := d.nextID
	d.mu.Unlock()
	kind := step.Fault.Kind()
	effect, err := step.Fault.Inject(d.ctx, d.scene(ev))
	if err != nil {
		d.fail(fmt.Errorf("inject %s (%v): %w", kind, step.When, err))
		return
	}
	d.record(effect.start(id, kind, step.When.String()))
	for _, c := range effect.Died {
		d.record(history.Event{Op: &history.Op{Process: -1, Client: c, F: history.Crash, Type: history.Note}})
	}
	a := &active{id: id, kind: kind, effect: effect}
	d.mu.Lock()
	d.struck[number] = true
	d.active[id] = a
	d.mu.Unlock()
	switch {
	case effect.Over:
		d.heal(a)
	case !step.For.IsZero():
		d.after(step.For.Of(d.ttl), func() { d.heal(a) })
	}
}

// heal undoes one fault, once.
func (d *Driver) heal(a *active) {
	d.mu.Lock()
	_, there := d.active[a.id]
	delete(d.active, a.id)
	d.mu.Unlock()
	if !there {
		return
	}
	stop := &history.Nemesis{ID: a.id, Fault: a.kind, Phase: history.Stop, On: a.effect.On}
	if a.effect.Heal != nil {
		ctx, cancel := context.WithTimeout(d.ctx, healTimeout)
		defer cancel()
		if err := a.effect.Heal(ctx); err != nil {
			stop.Error = err.Error()
			d.fail(fmt.Errorf("heal %s on %v: %w", a.kind, a.effect.On, err))
		}
	}
	d.record(history.Event{Nemesis: stop})
}

// HealAll ends every fault, the newest first, and lets none start any more.
// It waits for injections and heals that are under way.
func (d *Driver) HealAll() error {
	d.mu.Lock()
	d.closed = true
	for _, t := range d.timers {
		if t.Stop() {
			d.pending.Done()
		}
	}
	d.timers = nil
	d.mu.Unlock()
	d.pending.Wait()

	d.mu.Lock()
	var left []*active
	for _, a := range d.active {
		left = append(left, a)
	}
	d.mu.Unlock()
	slices.SortFunc(left, func(a, b *active) int { return b.id - a.id })
	for _, a := range left {
		d.heal(a)
	}
	return d.Err()
}

func (d *Driver) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs = append(d.errs, err)
}

// Err is what went wrong with the faults themselves; any error fails the run.
func (d *Driver) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errs...)
}

// Unfired lists the steps that never struck: a plan whose fault never happened
// proves nothing.
func (d *Driver) Unfired() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for i, step := range d.plan {
		if !d.struck[i] {
			out = append(out, fmt.Sprintf("%s (%v)", step.Fault.Kind(), step.When))
		}
	}
	return out
}
