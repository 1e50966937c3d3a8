package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

// gateFlags are the flags of holdfast gate.
type gateFlags struct {
	config   string
	suite    string
	locks    []string
	seeds    int
	on       string
	baseline string
	update   bool
	shard    string
	budget   time.Duration
	out      string
	quiet    bool
	told     gateOutputs
	resource resourceFlag
}

func newGate(io streams) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate",
		Short: "Play a suite in CI and fail on what is new",
		Long: `Plays a suite of locks, scenarios and seeds, and compares what came out with what
the scenarios expect and with a baseline of known findings. A finding is known by
its lock, scenario, check and kind, not by its seed. A new one fails the gate, one
that has vanished is reported. Nothing is tried twice.

The suite is read from holdfast.yaml if it is there, or from --config. Without a
file the built-in suite standard is played: every scenario against the locks that
it is about, or against those that --lock names.

--shard 2/5 plays the second of five parts; holdfast merge joins their results.
What --budget left no time for is unknown, and never a pass.

Exit codes, in every format: 0 nothing new, 10 a new finding, 11 something is
unknown, 12 the harness failed, 64 usage. 10 comes before 12, and 12 before 11.`,
		Example: `  holdfast gate
  holdfast gate --lock redislock --suite quick --baseline holdfast.baseline.json --update-baseline
  holdfast gate --config holdfast.yaml --shard 1/4 -o shard-1.json --junit shard-1.xml
  holdfast gate --suite thorough --budget 2m --format markdown`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := f.gate(cmd)
			if err != nil {
				return err
			}
			return playGate(cmd.Context(), io, f, g)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "suite file (default: "+suite.FileName+" if it is there)")
	fl.StringVar(&f.suite, "suite", suite.Standard, "built-in suite where there is no file: "+strings.Join(suite.Names(), ", "))
	fl.StringSliceVar(&f.locks, "lock", nil, "only these locks, separated by commas; all, libraries, baselines or mutants")
	fl.IntVar(&f.seeds, "seeds", 0, "how many seeds instead of the suite's own number")
	fl.StringVar(&f.on, "on", "", "world instead of the suite's own: sim or process")
	f.resource.add(fl)
	fl.StringVar(&f.baseline, "baseline", "", "file of known findings (default: the suite's own)")
	fl.BoolVar(&f.update, "update-baseline", false, "write what is found into the baseline; new findings do not fail then")
	fl.StringVar(&f.shard, "shard", "", "play one part: 1/4 is the first of four")
	fl.DurationVar(&f.budget, "budget", 0, "begin no run after this time (default: no limit)")
	fl.StringVar(&f.out, "out", "runs", `folder for the runs; "" stores nothing, and there are no pictures`)
	fl.BoolVar(&f.quiet, "quiet", false, "no progress")
	f.told.flags(cmd)
	complete(cmd, "suite", suite.Names)
	complete(cmd, "lock", func() []string { return append(suite.LockNames(), suite.Groups()...) })
	complete(cmd, "on", gateWorlds)
	return cmd
}

const tryGate = "holdfast gate --help"

// gate checks the flags and reads the suite and the baseline.
func (f *gateFlags) gate(cmd *cobra.Command) (campaign.Gate, error) {
	var none campaign.Gate
	for _, flag := range []string{"config", "suite", "lock", "on", "resource", "baseline", "shard", "format"} {
		if fl := cmd.Flags().Lookup(flag); fl.Changed && strings.Trim(fl.Value.String(), "[],\" ") == "" {
			return none, usage(tryGate, "--%s is empty", flag)
		}
	}
	if err := f.told.validate(tryGate); err != nil {
		return none, err
	}
	s, err := f.readSuite(cmd)
	if err != nil {
		return none, err
	}
	if s.Only, err = lockWords(f.locks, tryGate); err != nil {
		return none, err
	}
	if f.on != "" && !slices.Contains(gateWorlds(), f.on) {
		return none, unknownWord("world", f.on, gateWorlds(), tryGate)
	}
	if f.on != "" {
		s.World = f.on
	}
	if err := f.resource.parse(tryGate); err != nil {
		return none, err
	}
	s.Resource = f.resource.place
	for i := range s.Entries {
		if f.seeds > 0 {
			s.Entries[i].Seeds = f.seeds
		}
	}
	g := campaign.Gate{Suite: s, Budget: f.budget}
	if g.Shard, err = suite.ParseShard(f.shard); err != nil {
		return none, usage(tryGate, "--shard %v", err)
	}
	switch {
	case cmd.Flags().Changed("seeds") && f.seeds < 1:
		return none, usage(tryGate, "--seeds %d: at least one seed is needed", f.seeds)
	case f.seeds > maxRuns:
		return none, usage(tryGate, "--seeds %d: at most %d at a time", f.seeds, maxRuns)
	case cmd.Flags().Changed("budget") && f.budget <= 0:
		return none, usage(tryGate, "--budget %v: a budget is positive", f.budget)
	case f.update && g.Shard.Of > 1:
		return none, usage("holdfast merge --help", "--update-baseline needs the whole suite, and a shard has seen only a part")
	}
	return g, f.readBaseline(&g)
}

// readSuite takes the file that is named, the one that lies here, or a
// built-in suite.
func (f *gateFlags) readSuite(cmd *cobra.Command) (*suite.Suite, error) {
	path := f.config
	named := cmd.Flags().Changed("suite")
	if path == "" && !named && isFile(suite.FileName) {
		path = suite.FileName
	}
	switch {
	case f.config != "" && named:
		return nil, usage(tryGate, "--config and --suite: name one suite")
	case path == "":
		s, err := suite.Named(f.suite)
		if err != nil {
			return nil, unknownWord("suite", f.suite, suite.Names(), tryGate)
		}
		return s, nil
	}
	s, err := suite.ReadFile(path)
	if err != nil && !isFile(path) {
		return nil, usage(tryGate, "%v", err)
	}
	if err != nil {
		return nil, &usageError{msg: err.Error()}
	}
	return s, nil
}

func (f *gateFlags) readBaseline(g *campaign.Gate) error {
	if f.baseline == "" {
		f.baseline = g.Suite.Baseline
	}
	g.BaselineFile = f.baseline
	switch {
	case f.baseline == "" && f.update:
		return usage(tryGate, "--update-baseline: which file? name it with --baseline, or in the suite")
	case f.baseline == "":
		return nil
	}
	b, err := suite.ReadBaseline(f.baseline)
	switch {
	case errors.Is(err, os.ErrNotExist) && f.update: // the first one
		b = &suite.Baseline{}
	case errors.Is(err, os.ErrNotExist):
		return usage("holdfast gate --baseline "+shellWord(f.baseline)+" --update-baseline", "%v", err)
	case err != nil:
		return &usageError{msg: err.Error()}
	}
	g.Baseline = b
	return nil
}

func playGate(ctx context.Context, io streams, f gateFlags, g campaign.Gate) error {
	jobs, id, err := g.Plan()
	if err != nil {
		return usage(tryGate, "%v", err)
	}
	if g.Suite.World == string(cluster.Process) {
		if err := process.Available(); err != nil {
			return fmt.Errorf("--on process: %w", err)
		}
	}
	if err := f.resource.reach(ctx); err != nil {
		return err
	}
	if f.out != "" {
		if err := store.CheckRoot(f.out); err != nil {
			return fmt.Errorf("--out %s: %w", f.out, err)
		}
	}
	if err := f.told.clear(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { fmt.Fprintln(io.err, interruptedRuns) })()
	var list []store.Job
	for _, j := range jobs {
		list = append(list, j.Job)
	}
	bar := newProgress(io.err, list, f.quiet)
	g.Runner = campaign.Runner{Keep: campaign.Keep{Root: f.out, Pages: campaign.PagesFailed}, Child: childCommand, Done: bar.step}
	result := g.Play(ctx, jobs, id)
	bar.end()
	if f.update && !result.Interrupted {
		if err := updateBaseline(io, f.baseline, result); err != nil {
			return err
		}
	}
	return f.told.tell(io, result)
}

// baselinePatience is how long a gate waits for another one that writes its
// findings, which takes milliseconds.
const baselinePatience = 10 * time.Second

// updateBaseline writes the baseline and judges the result again by it: what
// has just been accepted does not fail.
//
// The file is read again for it, while nobody else writes to its folder: another
// gate may have written its own findings since this one began.
func updateBaseline(io streams, path string, g *reports.Gate) error {
	release, err := store.AwaitClaim(filepath.Dir(path), baselinePatience)
	if err != nil {
		return err
	}
	defer release()
	old, err := suite.ReadBaseline(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	updated := old.Updated(g)
	if err := updated.Write(path); err != nil {
		return err
	}
	fresh := len(updated.Findings) + len(g.Vanished)
	if old != nil {
		fresh -= len(old.Findings)
	}
	fmt.Fprintf(io.err, "holdfast: %s: %s added, %d removed, %d in all\n", path, count(fresh, "finding"), len(g.Vanished), len(updated.Findings))
	g.Baseline = &reports.GateBaseline{File: path, Findings: append([]reports.Finding{}, updated.Findings...)}
	g.Settle()
	return nil
}
