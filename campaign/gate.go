package campaign

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

// Gate plays a suite, or a shard of it, and compares what came out with what
// the scenarios expect and with a baseline. Nothing is tried twice: a failure
// of safety that shows once is a failure.
type Gate struct {
	Suite *suite.Suite
	Shard suite.Shard
	// Baseline may be nil; BaselineFile is how reports name it.
	Baseline     *suite.Baseline
	BaselineFile string
	// Budget is after what time no run begins any more; zero is no limit.
	Budget time.Duration
	Runner Runner

	_ struct{} // named fields only
}

// pictureWidth keeps a diagram within a job's log and summary.
const pictureWidth = 100

// Plan lists the shard's jobs, and says which suite they are of.
func (g Gate) Plan() ([]suite.Job, reports.GateSuite, error) {
	id := reports.GateSuite{Name: g.Suite.Name, File: g.Suite.File}
	jobs, err := g.Suite.Jobs(LoadScenario)
	if err != nil {
		return nil, id, err
	}
	id.Runs = len(jobs)
	if len(jobs) == 0 {
		return nil, id, fmt.Errorf("the suite %s has no run for this choice of locks", g.Suite.Name)
	}
	if g.Shard.Of > len(jobs) {
		return nil, id, fmt.Errorf("the suite %s has %d runs, too few for %d shards", g.Suite.Name, len(jobs), g.Shard.Of)
	}
	id.Fingerprint, err = suite.Fingerprint(jobs, LoadScenario)
	return g.Shard.Cut(jobs), id, err
}

// Play plays the jobs that [Gate.Plan] gave.
func (g Gate) Play(ctx context.Context, jobs []suite.Job, id reports.GateSuite) *reports.Gate {
	r := g.Runner
	if g.Budget > 0 {
		r.Until = time.Now().Add(g.Budget)
	}
	var order []store.Job
	for _, j := range suite.ByRounds(jobs) {
		order = append(order, j.Job)
	}
	played := map[string]reports.Run{}
	for _, run := range r.Play(ctx, order) {
		played[run.Repeat] = run
	}
	out := &reports.Gate{
		Suite: id, Shards: reports.GateShards{Of: max(g.Shard.Of, 1), Have: []int{max(g.Shard.I, 1)}},
		Interrupted: ctx.Err() != nil,
	}
	if g.Baseline != nil {
		out.Baseline = &reports.GateBaseline{File: g.BaselineFile, Findings: append([]reports.Finding{}, g.Baseline.Findings...)}
	}
	for _, j := range jobs {
		c := caseOf(j)
		if run, ok := played[c.Repeat]; ok {
			run.Scenario = j.Name // a run that failed early knows its path only
			c.Run = &run
		} else if c.Reason = "the gate was interrupted"; ctx.Err() == nil {
			c.Reason = fmt.Sprintf("the budget of %v was used up", g.Budget)
		}
		out.Cases = append(out.Cases, c)
	}
	out.Settle()
	for i := range out.Cases {
		if c := &out.Cases[i]; c.Status == reports.CaseFailed {
			c.Picture = picture(*c.Run)
		}
	}
	return out
}

func caseOf(j suite.Job) reports.Case {
	c := reports.Case{
		Index: j.Index, Scenario: j.Name, Lock: j.Lock, World: j.World, Topology: j.Topology, Seed: j.Seed,
		TTLNanos: int64(j.TTL), Repeat: Repeat(j.Job),
	}
	if isPath(j.Scenario) {
		c.File = j.Scenario
	}
	return c
}

// picture draws a stored run. Without a stored history there is none: the
// verdict stands without it.
func picture(r reports.Run) []string {
	if r.History == "" {
		return nil
	}
	h, _, err := store.ReadHistory(r.History)
	if err != nil {
		return nil
	}
	return reports.Diagram(h, r.Checks, pictureWidth, false)
}
