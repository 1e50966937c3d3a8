// Package study answers one question about locks with many runs, and writes the
// answer as a page of markdown that says of each sentence how it was found and
// how to find it again.
//
// study.go plays the runs, questions.go asks them, costs.go measures, and
// page.go lays out; they know no study. A study is data that says what is
// played and what must come out, and the text around it: redlock*.go. The page
// is never written if a run comes out otherwise than its text says.
//
// It judges nothing: package checker does.
package study

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// Case is a scenario that one lock plays, in the simulator unless World says
// otherwise, on the scenario's own topology and with the world's TTL unless
// these are given.
type Case struct {
	Scenario, Lock string
	World          cluster.World
	Topology       cluster.Topology
	TTL            time.Duration
}

// Job is the run of a case with a seed.
func (c Case) Job(seed uint64) store.Job {
	world := c.World
	if world == "" {
		world = cluster.Sim
	}
	return store.Job{
		Scenario: c.Scenario, Lock: c.Lock, World: string(world), Topology: string(c.Topology), TTL: c.TTL, Seed: seed,
	}
}

// Evidence is what the runs of a case left.
type Evidence struct {
	Case
	// Runs in the order of their seeds, from 1.
	Runs []reports.Run
	// Costs of each run.
	Costs []Costs
	// Shown is the history of the first run, for its picture.
	Shown *history.History
	// Absent says why the case could not be played at all.
	Absent string
}

// Book has the evidence of each case.
type Book map[Case]*Evidence

// Player plays one run: [campaign.Play] without a folder, or a test's.
type Player func(context.Context, store.Job) (reports.Run, *history.History)

// InProcess plays a run in this process and keeps nothing on disk. The locks of
// a study are known to come back, so they need no process of their own.
func InProcess(ctx context.Context, j store.Job) (reports.Run, *history.History) {
	return campaign.Play(ctx, j, "")
}

// Options of a study.
type Options struct {
	// Seeds is how many runs each case is played, from seed 1 up.
	Seeds int
	// Play is [InProcess] unless it says otherwise.
	Play Player
	// Parallel is how many runs go side by side; 0 is one. It is for runs on real
	// servers, which mostly wait.
	Parallel int
	// Gaps lets cases be absent that the world cannot play, for a page that says
	// so. Without it they end the study.
	Gaps bool
	// Planned is told the number of runs before the first, Done each run after
	// it. They may be nil.
	Planned func(runs int)
	Done    func(reports.Run)

	_ struct{} // named fields only
}

// Gather plays every case. A run that failed ends it with an error: a page with
// a hole in its evidence is worse than none.
func Gather(ctx context.Context, cases []Case, o Options) (Book, error) {
	if o.Play == nil {
		o.Play = InProcess
	}
	book := Book{}
	var order []*Evidence
	for _, c := range cases {
		if book[c] == nil {
			book[c] = &Evidence{Case: c}
			order = append(order, book[c])
		}
	}
	if o.Planned != nil {
		o.Planned(len(order) * o.Seeds)
	}
	var told sync.Mutex
	done := o.Done
	o.Done = func(r reports.Run) {
		told.Lock()
		defer told.Unlock()
		if done != nil {
			done(r)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(o.Parallel, 1))
	for _, e := range order {
		group.Go(func() error { return e.gather(ctx, o) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return book, nil
}

// gather plays the runs of one case, one after the other.
func (e *Evidence) gather(ctx context.Context, o Options) error {
	for seed := range o.Seeds {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("the study was interrupted: %w", err)
		}
		run, h := o.Play(ctx, e.Job(uint64(seed)+1)) //nolint:gosec // a count is not negative
		if reason := skipped(run); reason != "" && h == nil && o.Gaps {
			e.Absent = reason
			for range o.Seeds - seed {
				o.Done(run)
			}
			return nil
		}
		if run.Error != "" || h == nil {
			return fmt.Errorf("%s: the run failed: %s%s", run.Repeat, run.Error, skipped(run))
		}
		e.Runs = append(e.Runs, run)
		e.Costs = append(e.Costs, CostsOf(h))
		if e.Shown == nil {
			e.Shown = h
		}
		o.Done(run)
	}
	return nil
}

// skipped is why a world did not play a run; empty where it did.
func skipped(r reports.Run) string {
	for _, c := range r.Checks {
		if c.Name == "world" && c.Verdict == checker.Unknown {
			return c.Reason
		}
	}
	return ""
}
