package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// Exploration looks for failures of a lock with no scenario made for them: it
// plays one short run without faults, lists the moments of that run, breaks
// each of them in each way, and sorts what came out by its cause. Nearly all
// failures that users of real locks report need one fault at one command of
// one node, so that one fault at every command finds them.
type Exploration struct {
	Lock string
	Seed uint64
	// TTL of the leases; zero takes the simulator's default.
	TTL time.Duration
	// Nodes of a lock that needs a quorum; zero takes three. Other locks have
	// one.
	Nodes int
	// Clients that contend; zero takes two, or three of a lock that promises an
	// order, since who is next shows with two waiters only, of one that lets two
	// in, and of one whose readers share it.
	Clients int
	// Depth 2 goes on with pairs of faults, each of which the lock survives
	// alone, until Budget is spent or, where it is not zero, MostPairs were
	// played.
	Depth     int
	Budget    time.Duration
	MostPairs int
	// Params tries odd parameters too.
	Params bool
	// Child makes child processes, see [Runner].
	Child func() *exec.Cmd
	// Out is the folder under which the plan of each group is saved; empty
	// saves none.
	Out string
	// Planned is called when more runs have been planned, with their sum, Done
	// after each, Found when a group is new, and Lasts when pairs begin that go on
	// until the budget is spent; all one at a time, and any may be nil. What is
	// found comes here in no certain order.
	Planned func(total int)
	Lasts   func(budget time.Duration)
	Done    func()
	Found   func(Group)

	// keep narrows the plans with one fault down, for tests.
	keep func(plan) bool

	_ struct{} // named fields only
}

// ExploreSchema names the format of [Findings] as JSON.
const ExploreSchema = "holdfast/explore/v1"

// Findings are what an exploration leaves.
type Findings struct {
	Schema   string           `json:"schema"`
	Lock     string           `json:"lock"`
	Topology cluster.Topology `json:"topology"`
	Nodes    int              `json:"nodes"`
	Clients  int              `json:"clients"`
	Seed     uint64           `json:"seed"`
	TTLNanos int64            `json:"ttl_ns"`
	Depth    int              `json:"depth"`
	// Points are the moments that were broken, Plans the runs that were
	// planned, Played those that were played; Unstruck are those whose fault
	// found nothing to strike, which a pair's second one may do.
	Points int `json:"points"`
	// Left counts plans that were left out because they break the same step in the
	// same way as others, of a lock whose runs are long.
	Left     int     `json:"left_out,omitempty"`
	Plans    int     `json:"plans"`
	Played   int     `json:"played"`
	Unstruck int     `json:"unstruck"`
	Refused  int     `json:"refused"` // parameters that the lock refused, as it should
	Seconds  float64 `json:"wall_seconds"`
	Groups   []Group `json:"groups"`
	// Failures are runs that went wrong for a reason that is not the lock's.
	Failures    []string `json:"failures,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"`
}

// ExitCode is 10 where the lock breaks in a way that is its own, 12 where the
// exploration was not finished or runs failed, and else 0.
func (f *Findings) ExitCode() int {
	switch {
	case f.Interrupted:
		return reports.ExitError
	case slices.ContainsFunc(f.Groups, func(g Group) bool { return !g.Excused }):
		return reports.ExitViolation
	case len(f.Failures) > 0:
		return reports.ExitError
	}
	return reports.ExitExpected
}

// wallLimit gives a run up that hangs. Runs take milliseconds.
const wallLimit = 20 * time.Second

func (e Exploration) topology() (cluster.Topology, int) {
	entry, _ := FindLock(e.Lock) // Run has looked
	if entry.Quorum {
		return cluster.Independent, e.Nodes
	}
	return cluster.Single, 1
}

// withDefaults fills in what was left open.
func (e Exploration) withDefaults() Exploration {
	if e.Nodes == 0 {
		e.Nodes = 3
	}
	if e.Clients == 0 {
		e.Clients = 2
		if lock, ok := catalogue.Find(e.Lock); ok && (lock.Fair || lock.Kind != catalogue.Mutex) {
			e.Clients = 3
		}
	}
	if e.TTL == 0 {
		e.TTL = harness.DefaultSimTTL
	}
	if e.Depth == 0 {
		e.Depth = 1
	}
	return e
}

// Run explores. When the context ends, it gives back what it has found so far.
// An error says that nothing could be explored at all.
func (e Exploration) Run(ctx context.Context) (*Findings, error) {
	e = e.withDefaults()
	if _, err := FindLock(e.Lock); err != nil {
		return nil, err
	}
	began := time.Now()
	topology, nodes := e.topology()
	x := &expedition{Exploration: e, sorter: newSorter(e, topology, nodes), findings: &Findings{
		Schema: ExploreSchema, Lock: e.Lock, Topology: topology, Nodes: nodes, Clients: e.Clients,
		Seed: e.Seed, TTLNanos: int64(e.TTL), Depth: e.Depth, Groups: []Group{},
	}}
	plans, err := x.survey(ctx)
	if err != nil {
		return nil, err
	}
	clean := x.playAll(ctx, plans)
	if e.Params {
		x.playAll(ctx, e.params())
	}
	if e.Depth > 1 {
		x.pairs(ctx, clean)
	}
	f := x.findings
	f.Groups = x.sorter.sorted()
	f.Interrupted = ctx.Err() != nil
	f.Seconds = time.Since(began).Seconds()
	if e.Out != "" {
		return f, save(e, f.Groups)
	}
	return f, nil
}

// expedition is one exploration under way.
type expedition struct {
	Exploration
	findings *Findings
	sorter   *sorter
	hangs    hangs
}

// hangs counts the runs in which the lock hung, by cause. Each takes seconds, so
// a cause that is known by enough of them is not tried again.
type hangs struct {
	mu sync.Mutex
	by map[string]int
}

const enoughHangs = 2

func (h *hangs) add(cause string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = map[string]int{}
	}
	h.by[cause]++
}

func (h *hangs) enough(cause string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[cause] >= enoughHangs
}

// survey plays the base runs and lists the plans with one fault. A lock that
// breaks with nothing broken is a finding of its own.
func (x *expedition) survey(ctx context.Context) (_ []plan, err error) {
	root, remove, err := scratch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var all []plan
	var habits []reading
	defer func() {
		for _, got := range habits {
			x.sorter.habit(got)
		}
	}()
	voters := 0
	if topology, nodes := x.topology(); topology == cluster.Independent {
		voters = nodes
	}
	for _, m := range moods {
		if !m.apt(x.TTL) {
			continue
		}
		base := x.baseRun(m)
		p := with(base, blow{kind: "nothing broken"})
		p.ttl = m.ttl(x.TTL)
		p.scenario.Nemesis, p.scenario.About = nil, base.About
		job, err := x.job(p)
		if err != nil {
			return nil, err
		}
		x.plan(1)
		runs := Runner{Keep: Keep{Root: root}, Child: x.Child, Isolate: true}.Play(ctx, []store.Job{job})
		if len(runs) == 0 {
			continue // interrupted
		}
		x.take(p, runs[0])
		habits = append(habits, x.sorter.read(p, runs[0]))
		h, _, err := store.ReadHistory(job.Dir(root))
		if err != nil {
			continue // it died, which is a finding or a failure by now
		}
		points := pointsOf(h)
		x.findings.Points += len(points)
		plans := singles(base, points, voters, x.TTL, m)
		if voters == 0 {
			var left int
			plans, left = thin(plans, len(h.Events))
			x.findings.Left += left
		}
		all = append(all, plans...)
	}
	if x.keep != nil {
		all = slices.DeleteFunc(all, func(p plan) bool { return !x.keep(p) })
	}
	return all, nil
}

// job makes the job of a plan.
func (x *expedition) job(p plan) (store.Job, error) {
	text, err := scenarios.Encode(p.scenario)
	if err != nil {
		return store.Job{}, err
	}
	j := store.Job{
		Scenario: p.scenario.Name, Lock: x.Lock, World: string(cluster.Sim), Seed: x.Seed, TTL: x.TTL,
		Inline: string(text), WallLimit: wallLimit,
	}
	if p.ttl != 0 {
		j.TTL = p.ttl
	}
	return j, nil
}

func (x *expedition) plan(n int) {
	x.findings.Plans += n
	if x.Planned != nil {
		x.Planned(x.findings.Plans)
	}
}

// playAll plays plans and gives back those that the lock survived.
func (x *expedition) playAll(ctx context.Context, plans []plan) []plan {
	jobs := make([]store.Job, 0, len(plans))
	byName := map[string]int{}
	for i, p := range plans {
		p.scenario.Name += "-" + strconv.Itoa(i+1)
		byName[p.scenario.Name] = i
		j, err := x.job(p)
		if err != nil {
			x.findings.Failures = append(x.findings.Failures, err.Error())
			continue
		}
		jobs = append(jobs, j)
	}
	x.plan(len(plans))
	runs := Runner{Child: x.Child, Isolate: true, Skip: func(j store.Job) bool {
		return x.hangs.enough(plans[byName[j.Scenario]].cause())
	}, Done: func(r reports.Run) {
		if c, bad := misconduct(r); bad && c.Kind == kindHang {
			x.hangs.add(plans[byName[r.Scenario]].cause())
		}
		if x.Done != nil {
			x.Done()
		}
		if x.Found != nil && !interrupted(r) {
			x.sorter.stream(plans[byName[r.Scenario]], r, x.Found)
		}
	}}.Play(ctx, jobs)
	var clean []plan
	for _, r := range runs {
		p := plans[byName[r.Scenario]]
		if x.take(p, r) {
			clean = append(clean, p)
		}
	}
	return clean
}

// interrupted runs ended too early to say anything.
func interrupted(r reports.Run) bool {
	return strings.Contains(r.Error, harness.ErrInterrupted.Error())
}

// take sorts a run in. It says whether the lock survived it.
func (x *expedition) take(p plan, r reports.Run) (clean bool) {
	if interrupted(r) {
		return false
	}
	f := x.findings
	f.Played++
	for _, c := range r.Checks {
		if c.Verdict == checker.Unknown && strings.Contains(c.Reason, "a fault never struck") {
			f.Unstruck++
		}
	}
	verdict := x.sorter.read(p, r)
	switch {
	case verdict.refused:
		f.Refused++
	case verdict.failure != "" && len(p.blows) > 1 && strings.Contains(verdict.failure, "inject "):
		// Two faults that cannot be had together, such as two restarts of one
		// node at once, say nothing.
		f.Unstruck++
	case verdict.failure != "":
		f.Failures = append(f.Failures, p.words()+": "+verdict.failure)
	}
	x.sorter.add(p, verdict)
	return len(verdict.found) == 0 && verdict.failure == ""
}

// save writes the plan of each group, in their order.
func save(e Exploration, groups []Group) error {
	dir := exploreDir(e)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for plans: %w", err)
	}
	if err := forget(dir); err != nil {
		return err
	}
	var errs []error
	for i := range groups {
		errs = append(errs, groups[i].save(dir, i+1, e))
	}
	return errors.Join(errs...)
}
