package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

func newCheck(io streams) *cobra.Command {
	var sel selection
	var how judging
	cmd := &cobra.Command{
		Use:   "check PATH",
		Short: "Judge a stored history again, or one of Jepsen's",
		Long: `Judges a history again with nothing running. PATH is a history.jsonl file or the
folder of a run. What was expected comes from the scenario that the history
names, if this program has it.

PATH may also be a history of a lock in Jepsen's EDN, or operations as porcupine
has them in JSON; it is held against a lock of --model.

A file that ends in the middle of a line is what a run that died has left: it is
judged up to there, and is never a pass. A bad line in the middle is refused.`,
		Example: `  holdfast check runs/kleppmann-gc-pause/basic/sim-1
  holdfast check history.jsonl --format json
  holdfast check history.edn --model fenced --viewer contradiction.html`,
		Args: oneArg("path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := how.rules(cmd); err != nil {
				return err
			}
			if !slices.Contains(formatNames(), sel.format) {
				return unknownWord("format", sel.format, formatNames(), "holdfast check --help")
			}
			format, err := how.format(args[0])
			if err != nil {
				return err
			}
			if format != "" {
				return checkForeign(io, cmd, sel, how, args[0], format)
			}
			for _, name := range foreignFlags {
				if cmd.Flags().Changed(name) {
					return usage(cmd.CommandPath()+" --help", "--%s is for foreign histories: %s is of this program", name, args[0])
				}
			}
			h, path, err := store.ReadHistory(args[0])
			cut := errors.Is(err, history.ErrTruncated) && h != nil
			if err != nil && !cut {
				return noRun("check", args[0], err)
			}
			r := rejudge(h, path)
			if cut {
				r.Error = err.Error() + "; what stands before it is judged, and proves nothing about the rest"
				r = campaign.Conclude(r)
			}
			if how.viewer != "" {
				if err := viewStored(how.viewer, h, r); err != nil {
					return err
				}
			}
			if sel.format == "text" {
				if err := reports.Text(io.out, r, h, textOptions(io.out)); err != nil {
					return err
				}
			} else if err := report(io.out, sel, []reports.Run{r}); err != nil {
				return err
			}
			return exitError(reports.ExitCode([]reports.Run{r}))
		},
	}
	cmd.Flags().StringVar(&sel.format, "format", "text", "text, json or markdown")
	complete(cmd, "format", formatNames)
	how.flags(cmd)
	return cmd
}

// noRun says of a path at which nothing is stored what to name instead: a run
// below it, if there is one.
func noRun(verb, path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	what := "is neither the folder of a run nor a history"
	if verb != "check" {
		what = "is not the folder of a run"
	}
	if below, _ := filepath.Glob(filepath.Join(path, "*", "*", "*", store.RunFile)); len(below) > 0 { // a path that is no pattern has none
		return fmt.Errorf("%s %s (%w), but runs are stored below it\nTry: holdfast %s %s", path, what, err, verb, shellWord(filepath.Dir(below[0])))
	}
	return fmt.Errorf("%s %s (%w)\nTry: holdfast run kleppmann-gc-pause, then holdfast %s runs/kleppmann-gc-pause/basic/sim-1", path, what, err, verb)
}

// shellWord protects a word from the shell where it needs it.
func shellWord(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// rejudge makes a run of a stored history.
func rejudge(h *history.History, path string) reports.Run {
	hd := h.Header
	r := reports.Run{
		Scenario: hd.Scenario, Lock: hd.Lock, World: hd.World, Topology: hd.Topology, Seed: hd.Seed,
		TTLNanos: int64(hd.TTL), Expected: map[string]string{}, History: path, HistorySHA256: h.SHA256(),
		Ops: campaign.CountOps(h), Checks: checker.Judge(h),
		Repeat: "holdfast check " + shellWord(path),
	}
	r.Errors = reports.Errors(h, r.Checks)
	job, err := store.ReadJob(path)
	if err != nil { // a history that lies alone: its header says what it was
		job = store.Job{Scenario: filepath.Base(hd.Scenario)} // never a path out of a history
	}
	if s, err := campaign.ScenarioOf(job); err == nil {
		r.About, r.Expected = s.About, s.ExpectedOf(hd.Lock)
	} else {
		r.Checks = append(r.Checks, checker.Result{Name: "expectation", Verdict: checker.Unknown, Applies: true,
			Reason: fmt.Sprintf("the scenario %s is not here, so nobody says what was expected", job.Scenario)})
	}
	if n := len(h.Events); n > 0 {
		r.VirtualSeconds = float64(h.Events[n-1].T) / 1e9
	}
	return campaign.Conclude(r)
}
