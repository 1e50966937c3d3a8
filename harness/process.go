package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

// runProcess plays a run on real servers, with a process for each client.
func runProcess(ctx context.Context, cfg Config) *Result {
	why, err := cfg.missingOnServers(ctx)
	switch {
	case err != nil:
		return &Result{Err: err}
	case why != "":
		return &Result{Skipped: why}
	}
	return newProcRun(cfg).play(ctx)
}

// missingOnServers says what real servers cannot do for the run. An error says
// that there are none.
func (c Config) missingOnServers(ctx context.Context) (string, error) {
	switch c.World {
	case cluster.External:
		return c.missing(process.ExistingTopologies(), process.ExistingAbilities()), nil
	case cluster.Container:
		image, err := container.Inspect(ctx, c.Image)
		if err != nil {
			return "", err
		}
		return c.missingInContainers(image), nil
	}
	if why := c.missing(process.Topologies(), process.Abilities(c.Topology)); why != "" {
		return why, nil
	}
	return "", process.AvailableFor(c.Topology)
}

// NewMark makes what is in the names of all keys of one run on servers that are
// not ours, so that they meet nobody else's and can be found again.
func NewMark() string { return fmt.Sprintf("holdfast:%08x:", rand.Uint32()) }

// procRun is one run on real servers.
type procRun struct {
	cfg        Config
	header     history.Header
	mark       string       // in every key on servers that are not ours
	start      atomic.Int64 // on the machine's monotonic clock
	rec        *history.Recorder
	store      Store
	world      *process.World
	driver     *nemesis.Driver
	live       *liveness
	promotions atomic.Int64
	workers    map[string]*worker

	mu       sync.Mutex
	left     int // workers that have not ended
	crashed  map[string]bool
	stopping bool // from then on workers may end
	errs     []error
	failed   chan struct{} // closed at the first error of a worker
	done     chan struct{} // closed when no worker runs any more
}

func newProcRun(cfg Config) *procRun {
	r := &procRun{
		cfg: cfg, workers: map[string]*worker{}, left: cfg.Scenario.Clients, crashed: map[string]bool{},
		failed: make(chan struct{}), done: make(chan struct{}),
	}
	r.start.Store(monotonic())
	r.rec = history.NewRecorder(func() int64 { return monotonic() - r.start.Load() })
	return r
}

func (r *procRun) play(ctx context.Context) *Result {
	res := &Result{}
	if err := r.setUp(ctx); err != nil {
		if ctx.Err() != nil {
			err = ErrInterrupted // the context's own words say no more
		}
		res.Err = errors.Join(err, r.close())
		return res
	}
	err := r.begin()
	interrupted := err == nil && r.sleep(ctx, r.cfg.Scenario.Length.Of(r.cfg.TTL))
	if r.cfg.Scenario.Final.Heal {
		// What goes wrong here is told once, by the last call below.
		if healed := r.driver.HealAll(); healed == nil && err == nil && !interrupted && r.failure() == nil {
			// Healed is what we broke; what the nodes make of it takes a while.
			if err = r.world.AwaitWhole(ctx); err == nil {
				interrupted = r.final(ctx)
			} else if ctx.Err() != nil {
				err, interrupted = nil, true
			}
		}
	}
	res.Leaks = r.finish(ctx, interrupted || err != nil)
	err = errors.Join(err, r.driver.HealAll(), r.failure())
	unfired(r.driver.Unfired(), r.rec)
	err = errors.Join(err, r.redirects(context.WithoutCancel(ctx)), r.world.EndTrace(context.WithoutCancel(ctx)))
	res.Virtual = time.Duration(monotonic() - r.start.Load())
	res.Err = errors.Join(err, r.close())
	res.History = r.rec.Finish()
	if interrupted {
		res.Err = errors.Join(res.Err, ErrInterrupted)
	}
	return res
}

// redirects asks how often clients were sent elsewhere.
func (r *procRun) redirects(ctx context.Context) error {
	if r.cfg.Topology != cluster.RedisCluster {
		return nil
	}
	var err error
	if r.header.Moved, r.header.Asked, err = r.world.Redirects(ctx); err != nil {
		return fmt.Errorf("count the redirects: %w", err)
	}
	r.rec.SetHeader(r.header)
	return nil
}

// close ends the world first: nobody calls the store any more then.
func (r *procRun) close() error {
	var err error
	if r.world != nil {
		err = r.world.Close()
	}
	if r.store != nil {
		err = errors.Join(err, closeStore(r.store))
	}
	return err
}

func (r *procRun) setUp(ctx context.Context) error {
	cfg := r.cfg
	nodes := cfg.nodes()
	store, err := cfg.openStore(ctx)
	if err != nil {
		return err
	}
	r.store = store
	r.header = cfg.header(nodes, store)
	r.rec.SetHeader(r.header)
	door := NewResource(store, func(ev history.Event) { r.rec.Record(ev) }, r.fail)
	existing := cfg.Existing
	if cfg.World == cluster.External {
		existing = existing[:nodes]
		r.mark = NewMark()
	}
	place, err := cfg.place(ctx)
	if err != nil {
		return err
	}
	world, err := process.Start(ctx, process.Config{
		Place:    place,
		Topology: cfg.Topology, Nodes: nodes, Witnesses: cfg.Topology.Witnesses(), Clients: cfg.Scenario.Clients, Dir: cfg.Dir,
		Existing: existing, KeyMark: r.mark, OnPromoted: r.promoted,
		MinReplicas: cfg.servers().MinReplicasToWrite, MaxLag: cfg.servers().MinReplicasMaxLag,
		LockNames: cfg.Scenario.Workload.Names(), LockKeys: cfg.lockKeys(),
		OnServer: func(ev history.Server, at int64) {
			start := r.start.Load()
			ev.Clock -= start
			r.rec.Append(history.Event{T: max(at-start, 0), Server: &ev})
		},
		ResourceHandler: door.Session,
		OnClientExit:    r.exited,
	})
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	r.world = world
	if err := addVersions(ctx, r.header.Versions, world, place); err != nil {
		return err
	}
	if cfg.Lock.Quorum && len(world.Dialed()) > 1 {
		if r.header.Given, err = world.Standing(ctx); err != nil {
			return fmt.Errorf("ask the nodes how they stand to each other: %w", err)
		}
	}
	r.rec.SetHeader(r.header)
	r.driver = nemesis.NewDriver(cfg.plan(), crashing{servers: world, run: r}, cfg.TTL, func(ev history.Event) { r.rec.Record(ev) })
	r.live = newLiveness(world.Clients())
	r.rec.Observe(r.live.observe)
	r.rec.Observe(r.driver.Observe)
	return r.startWorkers(ctx)
}

// firstPromotion is the first id of promotions among the faults: no plan has as
// many.
const firstPromotion = 100_000

// promoted records that the nodes have made another one their primary. It is
// told after the fact, and stands in the history where it happened.
func (r *procRun) promoted(old, name string, at, told int64) {
	start := r.start.Load()
	n := history.Nemesis{
		ID: firstPromotion + int(r.promotions.Add(1)), Fault: history.Promotion, Phase: history.Start, On: []string{old, name},
		What: fmt.Sprintf("%s was promoted by the sentinels in place of %s, and clients were told %v later",
			name, old, time.Duration(told-at).Round(10*time.Millisecond)),
		Why: "elected",
	}
	stop := history.Nemesis{ID: n.ID, Fault: n.Fault, Phase: history.Stop, On: n.On}
	at = max(at-start, 0)
	r.rec.Append(history.Event{T: at, Nemesis: &n})
	r.rec.Append(history.Event{T: at, Nemesis: &stop})
}

// begin starts the run's clock. Servers and workers took a while to come up;
// none of that is part of the run. Faults of time zero strike before a client
// takes its first step.
func (r *procRun) begin() error {
	b := beginning{Start: monotonic()}
	r.start.Store(b.Start)
	r.driver.Start()
	b.Clients = monotonic()
	line, err := json.Marshal(b)
	if err != nil {
		return err
	}
	for _, name := range r.world.Clients() {
		if _, err := r.workers[name].in.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("begin: client %s: %w", name, err)
		}
	}
	return nil
}

// crashing is the world as the nemesis sees it. It remembers whom the nemesis
// ends before it does: the world may tell of the end of the process before the
// nemesis has recorded its fault.
type crashing struct {
	*servers
	run *procRun
}

// servers is the world under another name: embedded as World, it would hide its
// own method World.
type servers = process.World

// CrashClient implements [cluster.Pauser].
func (c crashing) CrashClient(ctx context.Context, client string) error {
	c.run.mu.Lock()
	c.run.crashed[client] = true
	c.run.mu.Unlock()
	return c.servers.CrashClient(ctx, client)
}

// sleep waits, or ends early when the run is interrupted or has failed.
func (r *procRun) sleep(ctx context.Context, d time.Duration) (interrupted bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.failed:
	case <-ctx.Done():
		return true
	}
	return false
}

// final is the liveness phase.
func (r *procRun) final(ctx context.Context) (interrupted bool) {
	r.rec.Record(finalEvent())
	step := r.cfg.look()
	for left := r.cfg.finalLength(); left > 0 && !r.live.shown() && r.failure() == nil; left -= step {
		if r.sleep(ctx, step) {
			return true
		}
	}
	return false
}

// finish lets the workers end their rounds, for as long as that may take, or
// not at all when the run has been given up. It says who did not end.
func (r *procRun) finish(ctx context.Context, givenUp bool) (leaks []string) {
	r.mu.Lock()
	r.stopping = true
	for _, w := range r.workers {
		_, _ = io.WriteString(w.in, wordStop+"\n") // one that died needs no word
	}
	r.mu.Unlock()
	if givenUp || r.failure() != nil {
		return nil
	}
	timer := time.NewTimer(r.cfg.grace())
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		return r.stuck()
	case <-r.failed:
	case <-ctx.Done():
	}
	return nil
}

// stuck names the clients that should have ended and have not.
func (r *procRun) stuck() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, name := range r.world.Clients() {
		if !r.workers[name].ended {
			out = append(out, fmt.Sprintf("client %s still runs %v after it was told to finish its round", name, r.cfg.grace()))
		}
	}
	return out
}
