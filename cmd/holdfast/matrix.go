package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

func newMatrix(io streams) *cobra.Command {
	var sel selection
	var names []string
	var over sweepFlags
	var pageFile string
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
the rate of violations lies.

--html writes the same as a page too. Its cells lead to the reports of their
runs, which are written where they are missing.

` + sweepHelp,
		Example: `  holdfast matrix
  holdfast matrix --lock redlock,reference --seeds 10
  holdfast matrix --scenario calm,kleppmann-gc-pause --format markdown
  holdfast matrix --seeds 20 --html matrix.html
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
			if err := over.fits(pageFile); err != nil {
				return err
			}
			if cmd.Flags().Changed("sweep") {
				over.ranges = append(over.ranges, args...)
				return playSweep(cmd.Context(), io, sel, over, unique(names))
			}
			return matrix(cmd.Context(), io, sel, unique(names), pageFile)
		},
	}
	sel.flags(cmd)
	cmd.Flags().StringSliceVar(&names, "scenario", nil, "scenarios, separated by commas (default: all built-in ones)")
	cmd.Flags().BoolVar(&sel.availability, "availability", false, "after the matrix, how much of each lock was to be had while something was broken")
	cmd.Flags().StringVar(&pageFile, "html", "", "file for the matrix as a page, beside what is printed")
	cmd.Flags().StringSliceVar(&over.ranges, "sweep", nil, "vary a scenario: ttl=1s..30s, pause=0..2ttl, fault=..., hold=...; more ranges may follow")
	cmd.Flags().IntVar(&over.steps, "steps", 5, "values of each range of a sweep")
	cmd.Flags().StringVar(&over.pictures, "png", "", "folder for the plots of a sweep as PNG and SVG")
	complete(cmd, "scenario", scenarios.Names)
	return cmd
}

func matrix(ctx context.Context, io streams, sel selection, names []string, pageFile string) error {
	if len(names) == 0 {
		names = scenarios.NamesIn(cluster.World(sel.world))
	}
	sel.known = true
	jobs, err := sel.plan(names, "holdfast matrix --help")
	if err != nil {
		return err
	}
	if err := sel.prepare(ctx, io, jobs); err != nil {
		return err
	}
	if err := sel.resource.reach(ctx); err != nil {
		return err
	}
	runs := play(ctx, io, sel, jobs)
	if pageFile != "" && sel.pages != string(campaign.PagesNever) {
		if err := reportShown(runs); err != nil {
			return err
		}
	}
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
	if sel.availability && sel.format == "text" {
		fmt.Fprintln(io.out)
		if err := m.TextAvailability(io.out); err != nil {
			return err
		}
	}
	if pageFile != "" {
		if err := writePage(m, pageFile); err != nil {
			return err
		}
		fmt.Fprintf(io.err, "holdfast: the matrix as a page: %s\n", pageFile)
	}
	return conclude(ctx, io, sel, len(runs), len(jobs), reports.ExitCode(runs))
}

// reportShown writes the reports of stored runs that a page leads to and that
// have none yet: of many runs only a few get one.
func reportShown(runs []reports.Run) error {
	for _, i := range reports.ShownRuns(runs) {
		r := &runs[i]
		if r.Report != "" || r.History == "" {
			continue
		}
		h, _, err := store.ReadHistory(r.History)
		if err != nil {
			return err
		}
		if r.Report, err = store.SaveReport(filepath.Dir(r.History), store.ReportFile, *r, h); err != nil {
			return err
		}
	}
	return nil
}

// writePage writes the matrix into a file, whose folder is made.
func writePage(m reports.Matrix, file string) error {
	var b bytes.Buffer
	if err := page.WriteMatrix(&b, m, filepath.Dir(file)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make the folder for the matrix: %w", err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
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
