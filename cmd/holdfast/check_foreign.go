package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/checker/foreign"
	"github.com/holdfast-io/holdfast/checker/sweep"
	"github.com/holdfast-io/holdfast/reports"
)

// The models that a history can be held against, by their names in flags.
var models = []struct {
	name  string
	model sweep.Model
}{
	{"mutex", sweep.Mutex}, {"fenced", sweep.Fenced}, {"reentrant", sweep.Reentrant},
	{"reentrant-fenced", sweep.ReentrantFenced}, {"rw", sweep.ReadWrite}, {"semaphore", sweep.Semaphore},
}

func modelNames() []string {
	var names []string
	for _, m := range models {
		names = append(names, m.name)
	}
	return names
}

// The formats of --from, and what a file of this program's own is.
const own = "holdfast"

var formats = []string{own, string(foreign.Jepsen), string(foreign.Porcupine)}

// judging is what the flags of check say about a foreign history.
type judging struct {
	from    string
	model   string
	permits int
	strict  bool
	lenient bool
	lease   time.Duration
	viewer  string
}

func (j *judging) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&j.from, "from", "", "what wrote the history: "+strings.Join(formats, ", ")+"; guessed if not given")
	f.StringVar(&j.model, "model", "mutex", "the lock that a foreign history is held against: "+strings.Join(modelNames(), ", "))
	f.IntVar(&j.permits, "permits", 1, "permits of --model semaphore")
	f.BoolVar(&j.strict, "strict-busy", false, "a refused acquire must have had somebody in its way (foreign histories)")
	f.BoolVar(&j.lenient, "lenient-release", false, "a release may say yes although nothing was held (foreign histories)")
	f.DurationVar(&j.lease, "lease", 0, "a hold may end by itself so long after its acquire was called (foreign histories)")
	f.StringVar(&j.viewer, "viewer", "", "write a page of porcupine's viewer with the contradiction to this file")
	complete(cmd, "from", func() []string { return formats })
	complete(cmd, "model", modelNames)
}

// foreignFlags are those that only a foreign history has.
var foreignFlags = []string{"model", "permits", "strict-busy", "lenient-release", "lease"}

func (j *judging) rules(cmd *cobra.Command) (sweep.Rules, error) {
	try := cmd.CommandPath() + " --help"
	rules := sweep.Rules{StrictBusy: j.strict, LenientRelease: j.lenient, Permits: j.permits}
	i := slices.Index(modelNames(), j.model)
	switch {
	case j.from != "" && !slices.Contains(formats, j.from):
		return rules, unknownWord("format", j.from, formats, try)
	case i < 0:
		return rules, unknownWord("model", j.model, modelNames(), try)
	case models[i].model != sweep.Semaphore && cmd.Flags().Changed("permits"):
		return rules, usage(try, "--permits belongs to --model semaphore")
	case j.permits < 1:
		return rules, usage(try, "--permits %d: a semaphore has at least one", j.permits)
	case j.lease < 0:
		return rules, usage(try, "--lease %s: a lease is not negative", j.lease)
	}
	rules.Model = models[i].model
	return rules, nil
}

// format says what wrote a file, by the flag or by its beginning.
func (j *judging) format(path string) (foreign.Format, error) {
	if j.from != "" {
		if j.from == own {
			return "", nil
		}
		return foreign.Format(j.from), nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil // the reader of stored runs says what is wrong
	}
	f, err := os.Open(path)
	if err != nil {
		return "", nil
	}
	defer f.Close()
	head, err := bufio.NewReaderSize(f, 1<<12).Peek(1 << 12)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	if format := foreign.Detect(head); format != "" || filepath.Ext(path) != ".edn" {
		return format, nil
	}
	return foreign.Jepsen, nil
}

// foreignGC is how much the heap may grow between collections, in percent, while
// a history is read and judged.
const foreignGC = 25

// checkForeign judges a history that another tool wrote.
func checkForeign(out streams, cmd *cobra.Command, sel selection, j judging, path string, format foreign.Format) error {
	rules, err := j.rules(cmd)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the history: %w", err)
	}
	defer f.Close()
	// A history of millions of calls is all that lives, and it has no pointers: to
	// collect often costs little, and keeps what is needed near what there is.
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(foreignGC))
	}
	sum := sha256.New()
	h, err := foreign.Read(io.TeeReader(f, sum), format)
	if err == nil {
		err = h.Suits(rules.Model)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if j.lease > 0 {
		h.Leased(int64(j.lease))
	}
	began := time.Now()
	found, undecided := h.Judge(rules)
	run := j.run(cmd, h, path, found, undecided)
	run.HistorySHA256 = hex.EncodeToString(sum.Sum(nil))
	run.WallSeconds = time.Since(began).Seconds()
	if j.viewer != "" {
		if err := j.view(h, rules, found); err != nil {
			return err
		}
	}
	if sel.format == "text" {
		calls, faults := drawn(h, found)
		if err := reports.Foreign(out.out, run, calls, faults, rests(h), textOptions(out.out)); err != nil {
			return err
		}
	} else if err := report(out.out, sel, []reports.Run{run}); err != nil {
		return err
	}
	return exitError(reports.ExitCode([]reports.Run{run}))
}

// rests says what a verdict rests on.
func rests(h *foreign.History) string {
	return fmt.Sprintf("%s, calls: %d, processes: %d, locks: %d, acquires granted: %d, faults: %d",
		h.Format, len(h.Calls), h.Processes, len(h.Locks), h.Granted(), len(h.Faults))
}

// run puts the verdict as that of a run.
func (j *judging) run(cmd *cobra.Command, h *foreign.History, path string, found []foreign.Contradiction, undecided []string) reports.Run {
	r := checker.Result{Name: "linearizability", Verdict: checker.Pass, Applies: true,
		Figures: map[string]float64{"lock_ops": float64(len(h.Calls))}}
	switch {
	case len(undecided) > 0:
		r.Verdict, r.Reason = checker.Unknown, strings.Join(undecided, "; ")
	case h.Granted() == 0:
		r.Verdict, r.Reason = checker.Unknown, "no acquire succeeded"
	}
	for _, c := range found {
		r.Verdict, r.Kind = checker.Violation, checker.NotLinearizable
		v := checker.Found{Kind: checker.NotLinearizable, Summary: c.Text + "."}
		from, to := sweep.Infinity, -sweep.Infinity
		for _, i := range c.Calls {
			call := &h.Calls[i]
			v.Ops = append(v.Ops, int(call.Entry))
			from, to = min(from, call.Call), max(to, call.Call)
			if ret := call.Return(); ret != sweep.Infinity {
				to = max(to, ret)
			}
		}
		var active []string
		for _, f := range h.Faults {
			if f.From <= to && f.To >= from {
				active = append(active, f.Name)
			}
		}
		v.Fault = strings.Join(slices.Compact(active), "; ")
		r.Violations = append(r.Violations, v)
	}
	repeat := "holdfast check " + shellWord(path)
	for _, name := range append([]string{"from"}, foreignFlags...) {
		if f := cmd.Flags().Lookup(name); f.Changed {
			repeat += fmt.Sprintf(" --%s=%s", name, shellWord(f.Value.String()))
		}
	}
	return campaign.Conclude(reports.Run{
		Scenario: filepath.Base(path), Lock: j.model, World: string(h.Format), Expected: map[string]string{},
		History: path, Ops: len(h.Calls), Checks: []checker.Result{r}, Repeat: repeat, VirtualSeconds: float64(h.End) / 1e9,
	})
}

// drawn are the calls of the first contradiction, some around them, and the
// faults of their time.
func drawn(h *foreign.History, found []foreign.Contradiction) (calls, faults []reports.Call) {
	if len(found) == 0 {
		return nil, nil
	}
	from, to := sweep.Infinity, -sweep.Infinity
	add := func(i int, context bool) {
		c := &h.Calls[i]
		calls = append(calls, reports.Call{Who: fmt.Sprintf("process %d", c.Process), What: c.Says(), From: c.Call, To: c.Return(), Context: context})
		from, to = min(from, c.Call), max(to, c.Call)
	}
	for _, i := range found[0].Calls {
		add(i, false)
	}
	for _, i := range found[0].Around {
		add(i, true)
	}
	for _, f := range h.Faults {
		if f.From <= to && f.To >= from {
			faults = append(faults, reports.Call{Who: "nemesis", What: f.Name, From: f.From, To: f.To})
		}
	}
	return calls, faults
}

// firstShown is how many calls the viewer shows where nothing contradicts.
const firstShown = 40

// view writes the page of the first contradiction, or of the first calls.
func (j *judging) view(h *foreign.History, rules sweep.Rules, found []foreign.Contradiction) error {
	lock, calls := h.Locks[0], []int{}
	if len(found) > 0 {
		lock, calls = found[0].Lock, slices.Concat(found[0].Calls, found[0].Around)
	} else {
		for i := 0; i < len(lock.Ops) && len(calls) < firstShown; i++ {
			calls = append(calls, lock.Ops[i].ID)
		}
	}
	acquired := map[int]bool{}
	clients := map[int64]int{}
	var shown []sweep.Shown
	slices.Sort(calls)
	for _, i := range calls {
		op, ok := lock.Op(i)
		if !ok || op.Kind != sweep.Acquire && op.Kind != sweep.RAcquire && !acquired[op.Hold] {
			continue
		}
		acquired[op.Hold] = true
		c := &h.Calls[i]
		if _, ok := clients[c.Process]; !ok {
			clients[c.Process] = len(clients)
		}
		shown = append(shown, sweep.Shown{Op: op, Client: clients[c.Process], Who: fmt.Sprintf("process %d", c.Process),
			What: fmt.Sprintf("%s (line %d)", c.Says(), c.Line)})
	}
	var notes []porcupine.Annotation
	for _, f := range h.Faults {
		notes = append(notes, porcupine.Annotation{Tag: "faults", Description: f.Name, Start: f.From, End: f.To})
	}
	return writeViewer(j.viewer, rules, shown, notes)
}

func writeViewer(path string, rules sweep.Rules, shown []sweep.Shown, notes []porcupine.Annotation) error {
	var page bytes.Buffer
	if err := sweep.View(&page, rules, shown, notes); err != nil {
		return err
	}
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--viewer: %w", err)
	}
	return nil
}
