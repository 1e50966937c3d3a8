package campaign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// Runner plays many jobs.
type Runner struct {
	// Keep says where runs are stored, and with what.
	Keep
	// Child makes the command of a child process that serves jobs: see
	// [Serve]. Nil plays everything in this process.
	Child func() *exec.Cmd
	// Isolate uses child processes for few jobs too: a lock that is expected
	// to panic must not take this process with it.
	Isolate bool
	// Skip leaves a job out when its turn has come; it may be nil, and is
	// called by many at once.
	Skip func(store.Job) bool
	// Until is when no further run begins; zero is never. A run that has begun
	// is played to its end: half of one proves nothing.
	Until time.Time
	// Done is called after each run, one at a time; it may be nil.
	Done func(reports.Run)

	_ struct{} // named fields only
}

// How many jobs make child processes worth their start, and how many runs on
// real servers go side by side: they mostly wait.
const (
	worthChildren   = 1 // a lock that panics or exits must cost its run, never the verdict
	processParallel = 4
	// containerParallel is smaller: to start a container takes a good part of a
	// core for half a second, which the runs beside it must not feel.
	containerParallel = 2
)

// lastMoment is how long a child may take to end its run after Ctrl-C. Most
// simulated runs take a small part of it.
const lastMoment = time.Second

// Play plays the jobs and returns the runs in the order of the jobs. When the
// context or the time ends, what has not begun is left out.
//
// Simulated runs go one at a time in a process, since they own its random
// sources, and a panic in a lock's own goroutine ends the process; so there is
// one child process a core, and a child that dies costs its one job.
func (r Runner) Play(ctx context.Context, jobs []store.Job) []reports.Run {
	results := make([]*reports.Run, len(jobs))
	var mu sync.Mutex
	next := 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= len(jobs) || ctx.Err() != nil || !r.Until.IsZero() && !time.Now().Before(r.Until) {
			return 0, false
		}
		next++
		return next - 1, true
	}
	put := func(i int, run reports.Run) {
		mu.Lock()
		defer mu.Unlock()
		results[i] = &run
		if r.Done != nil {
			r.Done(run)
		}
	}
	var workers sync.WaitGroup
	for range r.width(jobs) {
		workers.Go(func() { r.work(ctx, jobs, take, put) })
	}
	workers.Wait()
	var out []reports.Run
	for _, run := range results {
		if run != nil {
			out = append(out, *run)
		}
	}
	return out
}

// width is how many jobs are played side by side.
func (r Runner) width(jobs []store.Job) int {
	switch {
	case len(jobs) > 0 && cluster.World(jobs[0].World) == cluster.Container:
		return min(containerParallel, len(jobs))
	case len(jobs) > 0 && cluster.World(jobs[0].World).Real():
		if slices.ContainsFunc(jobs, elects) {
			return min(electionsParallel, len(jobs))
		}
		return min(processParallel, len(jobs))
	case r.useChildren(jobs):
		return min(runtime.GOMAXPROCS(0), len(jobs))
	}
	return 1
}

// electionsParallel is how many runs with elections are played side by side. A
// server that a busy machine does not let run for a second counts as dead, and
// another is elected.
const electionsParallel = 2

// elects says whether a job is played where servers watch one another.
func elects(j store.Job) bool {
	if j.Topology != "" {
		return electing(cluster.Topology(j.Topology))
	}
	s, err := scenarios.Load(j.Scenario)
	if err != nil {
		return false // a file of the user's, or a mistake that Play tells
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(s.Topology)), electing)
}

func electing(t cluster.Topology) bool { return t == cluster.Sentinel || t == cluster.RedisCluster }

func (r Runner) useChildren(jobs []store.Job) bool {
	return r.Child != nil && len(jobs) > 0 && (r.Isolate || len(jobs) >= worthChildren) && !cluster.World(jobs[0].World).Real()
}

// work takes jobs until there are none.
func (r Runner) work(ctx context.Context, jobs []store.Job, take func() (int, bool), put func(int, reports.Run)) {
	var c *child
	defer func() {
		if c != nil {
			c.end()
		}
	}()
	for {
		i, ok := take()
		if !ok {
			return
		}
		if !r.useChildren(jobs) {
			run, _ := r.Keep.Play(ctx, jobs[i])
			put(i, run)
			continue
		}
		if r.Skip != nil && r.Skip(jobs[i]) {
			continue
		}
		run, err := r.playIn(ctx, &c, orderOf(jobs[i], r.Keep))
		if err != nil && strings.Contains(err.Error(), foreignBubble) {
			run, err = r.playIn(ctx, &c, orderOf(jobs[i], r.Keep)) // in a fresh child, for the last one is dead
		}
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			run = r.died(jobs[i], err)
		}
		put(i, run)
		_, bad := misconduct(run)
		if c != nil && (len(run.Leaks) > 0 || run.Error != "" || bad) { // what was left behind must not slow the next run
			c.end()
			c = nil
		}
	}
}

// foreignBubble ends what the runtime says when something of an earlier run is
// used in this one. Libraries keep timers in pools for the whole process. The
// harness empties the pools where it knows that somebody may have waited; what
// it does not know, such as a pool of a library that it has never seen, is
// played again in a fresh process. That is the simulator's affair and no lock's.
const foreignBubble = "outside bubble"

// playIn plays one job in the child, which it starts where there is none. It
// leaves none where the child has died.
func (r Runner) playIn(ctx context.Context, c **child, o order) (reports.Run, error) {
	if *c == nil {
		var err error
		if *c, err = r.start(); err != nil {
			*c = nil
			return reports.Run{}, err
		}
	}
	run, err := (*c).playUntil(ctx, o)
	if err != nil {
		(*c).end()
		*c = nil
	}
	return run, err
}

// died is a job whose child is no more. What it could not say or write any more
// is said and written here.
func (r Runner) died(j store.Job, err error) reports.Run {
	run := reports.Run{
		Scenario: j.Scenario, Lock: j.Lock, World: j.World, Topology: j.Topology, Seed: j.Seed,
		TTLNanos: int64(j.TTL), Expected: map[string]string{}, Error: err.Error(), Repeat: Repeat(j),
	}
	s, failure := ScenarioOf(j)
	lock, unknown := FindLock(j.Lock)
	if failure == nil && unknown == nil {
		cfg := harness.Config{Scenario: s, Lock: lock, World: cluster.World(j.World), TTL: j.TTL, Topology: cluster.Topology(j.Topology)}.WithDefaults()
		run.Scenario, run.About, run.Expected = s.Name, s.About, s.ExpectedOf(lock.Name)
		run.Topology, run.TTLNanos = string(cfg.Topology), int64(cfg.TTL)
	}
	run = Conclude(run)
	if r.Root != "" {
		if err := store.SaveVerdict(j.Dir(r.Root), run); err != nil {
			run.Error = errors.Join(errors.New(run.Error), err).Error()
		}
	}
	return run
}

// childDied begins what is said of a child that is no more: a panic of a lock,
// or a kill from outside.
const childDied = "the child process died"

// order is one line to a child.
type order struct {
	Job store.Job `json:"job"`
	// Password of the job's resource, which the job does not tell.
	Password string `json:"password,omitempty"`
	Keep
}

// orderOf hands on all that a child needs.
func orderOf(j store.Job, k Keep) order {
	return order{Job: j, Password: j.Resource.Password(), Keep: k}
}

// child is a process that plays jobs.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *harness.LastWords
}

func (r Runner) start() (*child, error) {
	cmd := r.Child()
	c := &child{cmd: cmd, stderr: &harness.LastWords{}}
	cmd.Stderr, cmd.WaitDelay = c.stderr, lastMoment
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a child process: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a child process: %w", err)
	}
	c.in, c.out = in, bufio.NewReaderSize(out, 1<<16)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a child process: %w", err)
	}
	return c, nil
}

// play hands a job to the child and waits for the run.
func (c *child) play(o order) (reports.Run, error) {
	var run reports.Run
	line, err := json.Marshal(o)
	if err != nil {
		return run, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return run, c.dead("", err)
	}
	reply, err := c.out.ReadBytes('\n')
	if err != nil {
		err = c.dead(" during the run", err)
		if lock := harness.Blame(c.cmd.ProcessState, c.stderr.String()); lock != nil {
			err = fmt.Errorf("%s: %w", childDied, lock)
		}
		return run, err
	}
	if err := json.Unmarshal(reply, &run); err != nil {
		return run, fmt.Errorf("the child process said %q: %w", bytes.TrimSpace(reply), err)
	}
	return run, nil
}

// dead says why a child is no more. Its last words come through another pipe
// than its answers, so they are waited for.
func (c *child) dead(when string, err error) error {
	_ = c.in.Close() // it may be dead already
	timer := time.AfterFunc(lastMoment, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	ended := c.cmd.Wait()
	if ended != nil && timer.Stop() { // or it was this kill that ended it
		err = fmt.Errorf("%w (%w)", err, ended)
	}
	return fmt.Errorf("%s%s: %w\n%s", childDied, when, err, c.stderr)
}

// playUntil is play, but a child that has not answered a moment after the
// context has ended is killed: a lock that spins would otherwise hold up
// Ctrl-C for as long as it likes.
func (c *child) playUntil(ctx context.Context, o order) (reports.Run, error) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		timer := time.NewTimer(lastMoment)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			_ = c.cmd.Process.Kill() // it may have ended by itself
		}
	})
	defer watch.Wait()
	defer close(done)
	return c.play(o)
}

// end lets the child go: it ends when its input does, or is killed when it is
// stuck in a lock that never drains.
func (c *child) end() {
	_ = c.in.Close() // it may be dead already
	if c.cmd.Process != nil {
		_ = c.cmd.Process.Kill() // it has answered its last job, or never will
	}
	_ = c.cmd.Wait() // killed, so this is always an error
}

// Serve is the child's side: it plays the jobs that come in and answers with
// one line each, until the input ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	rd := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := rd.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			return fmt.Errorf("job %q: %w", bytes.TrimSpace(line), err)
		}
		o.Job.Resource = o.Job.Resource.WithPassword(o.Password)
		run, _ := o.Keep.Play(ctx, o.Job)
		reply, err := json.Marshal(run)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(reply, '\n')); err != nil {
			return err
		}
	}
}
