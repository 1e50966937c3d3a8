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

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// Case is a scenario that one lock plays, in the simulator unless World says
// otherwise.
type Case struct {
	Scenario, Lock string
	World          cluster.World
}

// Job is the run of a case with a seed.
func (c Case) Job(seed uint64) store.Job {
	world := c.World
	if world == "" {
		world = cluster.Sim
	}
	return store.Job{Scenario: c.Scenario, Lock: c.Lock, World: string(world), Seed: seed}
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
	// Planned is told the number of runs before the first, Done each run after
	// it. They may be nil.
	Planned func(runs int)
	Done    func(reports.Run)

	_ struct{} // named fields only
}

// Gather plays every case, one run after the other. A run that failed ends it
// with an error: a page with a hole in its evidence is worse than none.
func Gather(ctx context.Context, cases []Case, o Options) (Book, error) {
	play := o.Play
	if play == nil {
		play = InProcess
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
	for _, e := range order {
		for seed := range o.Seeds {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("the study was interrupted: %w", err)
			}
			run, h := play(ctx, e.Job(uint64(seed)+1)) //nolint:gosec // a count is not negative
			if run.Error != "" || h == nil {
				return nil, fmt.Errorf("%s: the run failed: %s", run.Repeat, run.Error)
			}
			e.Runs = append(e.Runs, run)
			e.Costs = append(e.Costs, CostsOf(h))
			if e.Shown == nil {
				e.Shown = h
			}
			if o.Done != nil {
				o.Done(run)
			}
		}
	}
	return book, nil
}
