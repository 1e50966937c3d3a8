package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

func newRun(io streams) *cobra.Command {
	var sel selection
	cmd := &cobra.Command{
		Use:   "run SCENARIO...",
		Short: "Play scenarios against locks and say what came out",
		Long: `Plays each scenario against each lock, judges the recorded history, and says
what broke, whose fault it was and what it damaged. A scenario is a built-in
name (see holdfast list) or the path of a YAML file.

Each run is stored under runs/<scenario>/<lock>/<world>-<seed>/ with a report.html
to look at, and can be judged again (holdfast check) or played again (holdfast
replay). Of more than 100 runs, those that are not as expected get a report.html;
holdfast report writes it for any other.`,
		Example: `  holdfast run kleppmann-gc-pause
  holdfast run kleppmann-gc-pause --lock redlock,reference --format json
  holdfast run calm --lock all --seeds 20
  holdfast run kleppmann-clock-jump --on process
  holdfast run node-disconnected --on container --image redis:7.4
  holdfast run kleppmann-gc-pause --on redis://localhost:6379
  holdfast run ./my-scenario.yaml --lock basic --seed 7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("holdfast list scenarios", "which scenario? For example: holdfast run kleppmann-gc-pause")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return scenarios.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sel.given(cmd); err != nil {
				return err
			}
			return run(cmd.Context(), io, sel, unique(args))
		},
	}
	sel.flags(cmd)
	return cmd
}

func run(ctx context.Context, io streams, sel selection, names []string) error {
	jobs, err := sel.plan(names, "holdfast run --help")
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
	if err := report(io.out, sel, runs); err != nil {
		return err
	}
	return conclude(ctx, io, sel, len(runs), len(jobs), reports.ExitCode(runs))
}

// conclude turns the end of a campaign into an exit code. One that was
// interrupted is never a success: what it did not play, it has not shown.
func conclude(ctx context.Context, io streams, sel selection, played, planned, code int) error {
	if ctx.Err() == nil {
		return exitError(code)
	}
	kept := ""
	if played > 0 && sel.out != "" {
		kept = "; what was recorded is stored under " + sel.out
	}
	fmt.Fprintf(io.err, "holdfast: interrupted: %d of %d runs were played, the last ones not to their end%s\n", played, planned, kept)
	return exitError(reports.ExitError)
}

// plan checks the flags and lists the jobs of several scenarios. Help is what
// to type where a flag is wrong.
func (s *selection) plan(names []string, help string) ([]store.Job, error) {
	const try = "holdfast list"
	if err := s.validate(help); err != nil {
		return nil, err
	}
	var jobs []store.Job
	from := map[string]string{} // folder to scenario
	for _, name := range names {
		sc, err := load(name, try)
		if err != nil {
			return nil, err
		}
		locks, err := s.chosen(sc, try)
		if err != nil {
			return nil, err
		}
		// Counted before the list is made: a long one fills the memory.
		if n := len(jobs) + len(locks)*s.seeds; n > maxRuns {
			return nil, usage(help, "that is %d runs or more: at most %d at a time", n, maxRuns)
		}
		jobs = append(jobs, s.jobs(name, locks)...)
		// Runs of one folder would overwrite each other.
		dir := store.Job{Scenario: name}.Dir("")
		if other, taken := from[dir]; taken {
			return nil, usage(help, "%s and %s are stored under the same name: run them one after the other, with an --out each", other, name)
		}
		from[dir] = name
	}
	if s.out != "" {
		if err := store.CheckRoot(s.out); err != nil {
			return nil, fmt.Errorf("--out %s: %w", s.out, err)
		}
	}
	return jobs, nil
}

// prepare says what real servers are about to see, and that they are not there
// before the first run rather than after it. Jobs get the image that there is.
func (s *selection) prepare(ctx context.Context, io streams, jobs []store.Job) error {
	at := s.servers()
	if at == "" {
		if s.world == string(cluster.Process) {
			if err := s.installed(); err != nil {
				return fmt.Errorf("--on process: %w", err)
			}
		}
		if s.world == string(cluster.Container) {
			return s.prepareContainers(ctx, io, jobs)
		}
		return nil
	}
	servers, err := process.ParseServers(at)
	if err != nil {
		return err // validate has parsed it before
	}
	if err := process.CheckServers(ctx, servers); err != nil {
		return fmt.Errorf("--on %s: %w", process.Redacted(at), err)
	}
	fmt.Fprintf(io.err, existingWarning, process.Redacted(at), harness.NewMark())
	return nil
}

// prepareContainers takes away what killed runs have left, and finds the image.
func (s *selection) prepareContainers(ctx context.Context, io streams, jobs []store.Job) error {
	say := func(what string) { fmt.Fprintln(io.err, "holdfast: "+what) }
	image, err := container.Choose(ctx, s.image, say)
	if err != nil {
		return fmt.Errorf("--on container: %w", err)
	}
	if _, err := container.Sweep(ctx); err != nil {
		return fmt.Errorf("--on container: %w", err)
	}
	for i := range jobs {
		jobs[i].Image = image
	}
	return nil
}

// installed says whether this machine has the servers that the locks need.
func (s *selection) installed() error {
	names, _ := suite.Locks(s.locks) // validate has found wrong words
	if len(names) == 0 {
		return process.Available()
	}
	for _, name := range names {
		needs := cluster.Single // of Redis, which all its topologies share
		if e, _ := catalogue.Find(name); e.Store != "" {
			needs = cluster.Topology(e.Store)
		}
		if err := process.AvailableFor(needs); err != nil {
			return err
		}
	}
	return nil
}

// existingWarning is said before anything is written to servers that are not
// ours.
const existingWarning = `holdfast: locks will be taken on %s.
  written  keys with "holdfast:" and a number in their names, such as basic:%sorders; every run removes its own
  done     clients are paused, cut off and delayed in proxies on this machine; nothing else is done to the servers
  not seen what the servers do: checks that need it are not judged
`

// interruptedRuns is said at Ctrl-C.
const interruptedRuns = "\nholdfast: interrupted: healing the faults and keeping what was recorded; once more to end at once"

// play plays the jobs with progress on a terminal.
func play(ctx context.Context, io streams, sel selection, jobs []store.Job) []reports.Run {
	defer context.AfterFunc(ctx, func() { fmt.Fprintln(io.err, interruptedRuns) })()
	bar := newProgress(io.err, jobs, sel.quiet)
	defer bar.end()
	return campaign.Runner{Keep: campaign.Keep{Root: sel.out, Pages: sel.pagesFor(len(jobs))}, Child: childCommand, Done: bar.step}.Play(ctx, jobs)
}

// report prints the runs in the chosen format.
func report(w io.Writer, sel selection, runs []reports.Run) error {
	switch sel.format {
	case "json":
		return reports.JSON(w, reports.Document{Schema: reports.Schema, Runs: runs})
	case "markdown":
		return reports.Markdown(w, runs, stored)
	}
	opt := textOptions(w)
	if sel.seeds > 1 || len(runs) > shownInFull {
		return reports.Summary(w, runs, opt)
	}
	for i, r := range runs {
		if i > 0 {
			fmt.Fprintf(w, "\n%s\n\n", strings.Repeat("_", opt.Width))
		}
		if err := reports.Text(w, r, stored(r), opt); err != nil {
			return err
		}
	}
	if len(runs) > 1 {
		fmt.Fprintf(w, "\n%s\n\n", strings.Repeat("_", opt.Width))
		return reports.Summary(w, runs, opt)
	}
	return nil
}

// shownInFull is how many runs are printed with their diagrams; more get a
// line each.
const shownInFull = 12

// stored reads a run's history back for its diagram; without a stored history
// there is no diagram.
func stored(r reports.Run) *history.History {
	if r.History == "" {
		return nil
	}
	h, _, err := store.ReadHistory(r.History)
	if err != nil {
		return nil // the verdict stands without its picture
	}
	return h
}

// textOptions fit the output to where it goes.
func textOptions(w io.Writer) reports.TextOptions {
	opt := reports.TextOptions{Width: 100}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return opt
	}
	opt.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		opt.Width = min(max(width, 60), 160)
	}
	return opt
}
