package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/plots"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

// sweepFlags are those of holdfast matrix --sweep.
type sweepFlags struct {
	ranges   []string
	steps    int
	pictures string // folder for the plots; empty draws none
}

// fits refuses flags that say nothing about what is asked for.
func (f sweepFlags) fits(pageFile string) error {
	switch sweep := len(f.ranges) > 0; {
	case sweep && pageFile != "":
		return usage("holdfast matrix --help", "--html is for a matrix without --sweep; a sweep has --png")
	case !sweep && f.pictures != "":
		return usage("holdfast matrix --help", "--png draws a sweep: --sweep is missing")
	}
	return nil
}

// axes reads the ranges: those of the flag, and those that follow it on the
// command line.
func (f sweepFlags) axes(try string) ([]campaign.Axis, error) {
	var axes []campaign.Axis
	for _, text := range f.ranges {
		a, err := campaign.ParseAxis(text)
		if err != nil {
			return nil, usage(try, "%v", err)
		}
		if slices.ContainsFunc(axes, func(b campaign.Axis) bool { return a.Name == b.Name }) {
			return nil, usage(try, "%s is varied twice", a.Name)
		}
		switch {
		case a.Name == campaign.AxisTTL && (a.From.Fixed < suite.LeastTTL || a.To.Fixed > maxTTL):
			return nil, usage(try, "%s: a TTL is from %v to %v", text, suite.LeastTTL, maxTTL)
		case a.To.Fixed > maxTTL || a.To.TTLs > mostTTLs:
			return nil, usage(try, "%s: at most %v, or %d TTLs", text, maxTTL, mostTTLs)
		}
		axes = append(axes, a)
	}
	if len(axes) == 0 {
		return nil, usage(try, "--sweep wants a range, such as pause=0..2ttl")
	}
	if f.steps < 2 || f.steps > 100 {
		return nil, usage(try, "--steps %d: 2 to 100 values of each range are wanted", f.steps)
	}
	return axes, nil
}

// mostTTLs bounds what a sweep makes longer: a run as long as a hundred leases
// tells no more than one of ten.
const mostTTLs = 100

// playSweep plays one scenario with several values of something.
func playSweep(ctx context.Context, io streams, sel selection, f sweepFlags, names []string) error {
	const try = "holdfast matrix --sweep pause=0..2ttl --scenario kleppmann-gc-pause --lock basic --seeds 10"
	axes, err := f.axes(try)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return usage(try, "a sweep varies one scenario: name it with --scenario")
	}
	if err := sel.validate(try); err != nil {
		return err
	}
	s, err := scenarios.Load(names[0])
	if err != nil {
		return usage("holdfast list scenarios", "%v", err)
	}
	locks, err := sel.chosen(s, try)
	if err != nil {
		return err
	}
	base := store.Job{World: sel.world, Image: sel.image, Topology: sel.topology, Seed: sel.seed, TTL: sel.ttl, Resource: sel.resource.place}
	points := len(locks)
	for range axes {
		points *= f.steps
	}
	if points*sel.seeds > maxRuns {
		return usage(try, "that is %d runs: at most %d at a time", points*sel.seeds, maxRuns)
	}
	cells, err := campaign.Grid(s, locks, axes, f.steps, base, sel.seeds)
	if err != nil {
		return usage(try, "%v", err)
	}
	if err := sel.resource.reach(ctx); err != nil {
		return err
	}
	var jobs []store.Job
	for _, c := range cells {
		jobs = append(jobs, c.Jobs...)
	}
	if sel.world == string(cluster.Container) {
		if err := sel.prepare(ctx, io, jobs); err != nil {
			return err
		}
	}
	runs := play(ctx, io, sel, jobs)
	result := campaign.SweepOf(s, axes, cells, runs)
	switch sel.format {
	case "json":
		err = result.JSON(io.out)
	case "markdown":
		err = result.Markdown(io.out)
	default:
		err = result.Text(io.out, textOptions(io.out))
	}
	if err != nil {
		return err
	}
	if f.pictures != "" {
		if err := drawAll(io.err, plots.OfSweep(result), f.pictures); err != nil {
			return err
		}
	}
	return conclude(ctx, io, sel, len(runs), len(jobs), sweepCode(runs))
}

// sweepCode is the exit code of a sweep: it measures and expects nothing, so
// violations are results. Runs that failed, or all that proved nothing, are
// not.
func sweepCode(runs []reports.Run) int {
	unproven := 0
	for _, r := range runs {
		switch {
		case r.Error != "":
			return reports.ExitError
		case r.Verdict == "unknown":
			unproven++
		}
	}
	if unproven == len(runs) {
		return reports.ExitUnknown
	}
	return reports.ExitExpected
}

// sweepHelp is the part of the matrix's help on sweeps.
var sweepHelp = fmt.Sprintf(`--sweep varies one scenario instead: ttl=1s..30s pause=0..2ttl plays every lock
with every combination, and says how often two held the lock at once and how
many acknowledged updates were lost. What can be varied: %s.
--png draws it against the first of them, with a line for each lock and each
value of the others. Nothing is expected of a sweep, so its violations are
results and its exit code is 0.`, strings.Join(campaign.Axes(), ", "))
