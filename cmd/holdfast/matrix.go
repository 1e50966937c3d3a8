package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

func newMatrix(io streams) *cobra.Command {
	var sel selection
	var names []string
	var over sweepFlags
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "All locks against all scenarios, with each author's promise beside the truth",
		Long: `Plays locks against scenarios and prints one word per cell: the gravest thing
that was found, or pass. A ! marks a cell that did not come out as its scenario
expects. Below stands what each lock's author promises, and what was measured.

Without --lock every scenario is played against all the locks that it is about;
a cell is empty where it is not about the lock. Locks that are named with --lock
are played against every scenario.

With --seeds each cell says in how many runs it was so, and within which bounds
the rate of violations lies. ` + sweepHelp,
		Example: `  holdfast matrix
  holdfast matrix --lock redlock,reference --seeds 10
  holdfast matrix --scenario calm,kleppmann-gc-pause --format markdown
  holdfast matrix --scenario kleppmann-gc-pause --lock basic --seeds 20 --sweep ttl=1s..30s pause=0..2ttl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && len(over.ranges) == 0 {
				return noArgs(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sel.given(cmd); err != nil {
				return err
			}
			if len(over.ranges) > 0 {
				over.ranges = append(over.ranges, args...)
				return playSweep(cmd.Context(), io, sel, over, unique(names))
			}
			return matrix(cmd.Context(), io, sel, unique(names))
		},
	}
	sel.flags(cmd)
	cmd.Flags().StringSliceVar(&names, "scenario", nil, "scenarios, separated by commas (default: all built-in ones)")
	cmd.Flags().StringSliceVar(&over.ranges, "sweep", nil, "vary a scenario: ttl=1s..30s, pause=0..2ttl, fault=..., hold=...; more ranges may follow")
	cmd.Flags().IntVar(&over.steps, "steps", 5, "values of each range of a sweep")
	complete(cmd, "scenario", scenarios.Names)
	return cmd
}

func matrix(ctx context.Context, io streams, sel selection, names []string) error {
	if len(names) == 0 {
		names = scenarios.Names()
	}
	sel.known = true
	jobs, err := sel.plan(names, "holdfast list")
	if err != nil {
		return err
	}
	runs := play(ctx, io, sel, jobs)
	locks, columns := order(jobs, runs)
	m := reports.MatrixOf(runs, locks, columns, claims(locks))
	switch sel.format {
	case "json":
		err = m.JSON(io.out)
	case "markdown":
		err = m.Markdown(io.out)
	default:
		err = m.Text(io.out, textOptions(io.out))
	}
	if err != nil {
		return err
	}
	return conclude(ctx, io, sel, len(runs), len(jobs), reports.ExitCode(runs))
}

// order gives the rows and columns: locks as in the catalogue, scenarios as
// they were asked for.
func order(jobs []store.Job, runs []reports.Run) (locks, columns []string) {
	for _, name := range suite.LockNames() {
		if slices.ContainsFunc(jobs, func(j store.Job) bool { return j.Lock == name }) {
			locks = append(locks, name)
		}
	}
	for _, r := range runs {
		if !slices.Contains(columns, r.Scenario) {
			columns = append(columns, r.Scenario)
		}
	}
	return locks, columns
}

// claims are what the authors promise and which scenarios test it. Not every
// promise has a scenario: those stand there as not tested.
func claims(locks []string) []reports.Claim {
	var out []reports.Claim
	for _, name := range locks {
		e, ok := catalogue.Find(name)
		if !ok || e.Mutant {
			continue
		}
		p := e.Promises
		loss := []string{"failover-before-replication", "crash-restart-amnesia"}
		if e.Quorum {
			loss = []string{"partition-minority", "crash-restart-amnesia"}
		}
		pause := []string{"kleppmann-gc-pause"}
		if strings.Contains(p.GCPauseTolerance, "guarded") {
			pause = []string{"kleppmann-fencing"} // the plain resource is outside the promise
		}
		for _, c := range []reports.Claim{
			{Claim: "tolerance of GC pauses", Promise: p.GCPauseTolerance, Scenarios: pause},
			{Claim: "survives the loss of a node", Promise: p.SurvivesNodeLoss, Scenarios: loss},
			{Claim: "renews itself", Promise: p.RenewsItself, Scenarios: []string{"slow-work", "renewal-blip"}},
		} {
			c.Lock = name
			out = append(out, c)
		}
	}
	return out
}
