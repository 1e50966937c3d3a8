package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

// runProcess plays a run on real servers, with a process for each client.
func runProcess(ctx context.Context, cfg Config) *Result {
	if err := process.Available(); err != nil {
		return &Result{Err: err}
	}
	if why := cfg.missing(process.Abilities(cfg.Topology)); why != "" {
		return &Result{Skipped: why}
	}
	r := &procRun{cfg: cfg, start: monotonic(), workers: map[string]*worker{}, done: make(chan struct{})}
	r.rec = history.NewRecorder(func() int64 { return monotonic() - r.start })
	return r.play(ctx)
}

// procRun is one run on real servers.
type procRun struct {
	cfg     Config
	start   int64 // on the machine's monotonic clock
	rec     *history.Recorder
	world   *process.World
	driver  *nemesis.Driver
	live    *liveness
	workers map[string]*worker

	mu      sync.Mutex
	left    int // workers that still run
	crashed map[string]bool
	errs    []error
	failed  chan struct{} // closed at the first error of a worker
	done    chan struct{} // closed when no worker runs any more
}

func (r *procRun) play(ctx context.Context) *Result {
	res := &Result{}
	r.crashed, r.failed = map[string]bool{}, make(chan struct{})
	if err := r.setUp(ctx); err != nil {
		res.Err = errors.Join(err, r.close())
		return res
	}
	r.driver.Start()
	err := r.startWorkers()
	interrupted := err == nil && r.sleep(ctx, r.cfg.Scenario.Length.Of(r.cfg.TTL))
	if r.cfg.Scenario.Final.Heal {
		err = errors.Join(err, r.driver.HealAll())
		if err == nil && !interrupted && r.failure() == nil {
			interrupted = r.final(ctx)
		}
	}
	r.finish(ctx, interrupted)
	err = errors.Join(err, r.driver.HealAll(), r.failure())
	unfired(r.driver, r.rec)
	err = errors.Join(err, r.world.EndTrace(context.WithoutCancel(ctx)))
	res.Virtual = time.Duration(monotonic() - r.start)
	res.Err = errors.Join(err, r.close())
	res.History = r.rec.Finish()
	if interrupted {
		res.Err = errors.Join(res.Err, ErrInterrupted)
	}
	return res
}

func (r *procRun) close() error {
	if r.world == nil {
		return nil
	}
	return r.world.Close()
}

func (r *procRun) setUp(ctx context.Context) error {
	cfg := r.cfg
	nodes := cfg.Scenario.NodesOf(cfg.Topology)
	r.rec.SetHeader(cfg.header(nodes))
	resource := NewResource(cfg.Scenario.Workload.Resource == "guarded", func(ev history.Event) { r.rec.Record(ev) })
	world, err := process.Start(ctx, process.Config{
		Topology: cfg.Topology, Nodes: nodes, Clients: cfg.Scenario.Clients, Dir: cfg.Dir, LockName: LockName,
		OnServer: func(ev history.Server, at int64) {
			ev.Clock -= r.start
			r.rec.Append(history.Event{T: max(at-r.start, 0), Server: &ev})
		},
		ResourceHandler: resource.Session,
		OnClientExit:    r.exited,
	})
	if err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	r.world = world
	r.start = monotonic() // servers take a while; the run begins now
	r.driver = nemesis.NewDriver(cfg.plan(), world, cfg.TTL, r.record)
	r.live = newLiveness(world.Clients())
	r.rec.Observe(r.live.observe)
	r.rec.Observe(r.driver.Observe)
	return nil
}

// record keeps what the nemesis does, and remembers clients that it ends.
func (r *procRun) record(ev history.Event) {
	if n := ev.Nemesis; n != nil && n.Fault == (nemesis.Crash{}).Kind() && n.Phase == history.Start {
		r.mu.Lock()
		for _, c := range n.On {
			r.crashed[c] = true
		}
		r.mu.Unlock()
	}
	r.rec.Record(ev)
}

// worker is one client process seen from here.
type worker struct {
	name string
	in   io.WriteCloser
	out  *io.PipeWriter
}

// startWorkers starts one process a client.
func (r *procRun) startWorkers() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	r.left = len(r.world.Clients())
	for i, name := range r.world.Clients() {
		if err := r.startWorker(self, i, name); err != nil {
			return fmt.Errorf("start client %s: %w", name, err)
		}
	}
	return nil
}

func (r *procRun) startWorker(self string, index int, name string) error {
	cmd := exec.Command(self, WorkerVerb)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	rd, wr := io.Pipe()
	cmd.Stdout = wr
	cmd.Stderr = os.Stderr
	w := &worker{name: name, in: in, out: wr}
	line, err := json.Marshal(r.assign(index, name))
	if err != nil {
		return err
	}
	if err := r.world.StartClient(name, cmd); err != nil {
		return err
	}
	r.mu.Lock()
	r.workers[name] = w
	r.mu.Unlock()
	go r.serve(w, bufio.NewReader(rd)) // ends when the worker's output does
	_, err = in.Write(append(line, '\n'))
	return err
}

// assign tells a worker who it is.
func (r *procRun) assign(index int, name string) assignment {
	cfg := r.cfg
	a := assignment{
		Client: name, Index: index, Clients: cfg.Scenario.Clients, Lock: cfg.Lock.Name, LockName: LockName,
		TTL: cfg.TTL, Seed: cfg.Seed, Workload: cfg.Scenario.Workload, Start: r.start,
		Wait: time.Duration(index) * cfg.Scenario.Workload.Stagger.Of(cfg.TTL),
	}
	at := r.world.Endpoints(name)
	names := r.world.Nodes()
	if cfg.Topology == cluster.Replicated {
		names = []string{cluster.Primary}
	}
	for _, n := range names {
		a.Nodes = append(a.Nodes, endpoint{Name: n, Addr: at[n]})
	}
	a.Resource = at[cluster.Resource]
	return a
}

// serve takes a worker's events. Faults strike while an event is kept, before
// its ack goes out.
func (r *procRun) serve(w *worker, rd *bufio.Reader) {
	for {
		line, err := rd.ReadBytes('\n')
		if err != nil {
			return // the process has ended; exited says how
		}
		var ev history.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			r.fail(fmt.Errorf("client %s said %q: %w", w.name, line, err))
			return
		}
		r.rec.Append(ev)
		if _, err := w.in.Write([]byte(wordAck + "\n")); err != nil {
			return // it died meanwhile; exited says how
		}
	}
}

// exited is told by the world that a client's process has ended.
func (r *procRun) exited(name string, err error) {
	r.mu.Lock()
	w := r.workers[name]
	expected := r.crashed[name]
	r.left--
	if r.left == 0 {
		close(r.done)
	}
	r.mu.Unlock()
	if w != nil {
		_ = w.out.Close() // lets serve see the end of what was sent
	}
	if err != nil && !expected {
		r.fail(fmt.Errorf("client %s ended by itself: %w", name, err))
	}
}

func (r *procRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errs) == 0 {
		close(r.failed)
	}
	r.errs = append(r.errs, err)
}

func (r *procRun) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
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

// finish lets the workers end their rounds, for as long as that may take.
func (r *procRun) finish(ctx context.Context, interrupted bool) {
	r.mu.Lock()
	for _, w := range r.workers {
		_, _ = io.WriteString(w.in, wordStop+"\n") // one that died needs no word
	}
	r.mu.Unlock()
	grace := r.cfg.grace()
	if interrupted || r.failure() != nil {
		grace = 0
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	case <-r.failed:
	case <-ctx.Done():
	}
}
