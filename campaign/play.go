// Package campaign plays runs from the job to the verdict: one, or many over
// all cores. It puts harness, checker, reports and store together, for the
// command line and for whoever drives holdfast from Go.
package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// LoadScenario takes a built-in name or the path of a YAML file.
func LoadScenario(name string) (*scenarios.Scenario, error) {
	if isPath(name) {
		text, err := scenarios.ReadText("scenario", name)
		if err != nil {
			return nil, err
		}
		return scenarios.ParseFor(name, text, lockNames())
	}
	return scenarios.Load(name)
}

// isPath tells the path of a scenario from a built-in name.
func isPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// FindLock finds a lock of the catalogue, or says which name is nearest.
func FindLock(name string) (catalogue.Entry, error) {
	if e, ok := catalogue.Find(name); ok {
		return e, nil
	}
	hint := ""
	if near := scenarios.Nearest(name, lockNames()); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return catalogue.Entry{}, fmt.Errorf("there is no lock %q%s", name, hint)
}

// lockNames are all names that a scenario may use.
func lockNames() []string {
	var names []string
	for _, e := range catalogue.Everything() {
		names = append(names, e.Name)
	}
	return names
}

// ScenarioOf gives the scenario of a job.
func ScenarioOf(j store.Job) (*scenarios.Scenario, error) {
	if j.Inline != "" {
		return scenarios.Parse(j.Scenario, []byte(j.Inline))
	}
	return LoadScenario(j.Scenario)
}

// Play plays one job and judges it. With a root it stores the run there.
func Play(ctx context.Context, j store.Job, root string) (reports.Run, *history.History) {
	return Keep{Root: root}.Play(ctx, j)
}

// Play plays one job, judges it, and keeps of it what is wanted.
func (k Keep) Play(ctx context.Context, j store.Job) (reports.Run, *history.History) {
	if j.Inline == "" && isPath(j.Scenario) {
		// The run keeps the text: it can be judged and played again where the
		// file is not, or is another by then.
		text, err := scenarios.ReadText("scenario", j.Scenario)
		if err != nil {
			return Failed(j, err), nil
		}
		j.Inline = string(text)
	}
	s, err := ScenarioOf(j)
	if err != nil {
		return Failed(j, err), nil
	}
	lock, err := FindLock(j.Lock)
	if err != nil {
		return Failed(j, err), nil
	}
	return play(ctx, s, lock, j, k)
}

// PlayScenario plays a scenario and a lock that are values and need not be in
// any file or table. The job gives the world, the topology, the seed and the
// TTL; its names are filled in from the values, so its command to repeat works
// only where they are known by name. It stores nothing.
func PlayScenario(ctx context.Context, s *scenarios.Scenario, lock catalogue.Entry, j store.Job) (reports.Run, *history.History) {
	j.Scenario, j.Lock = s.Name, lock.Name
	return play(ctx, s, lock, j, Keep{})
}

// play is one run from the configuration to the verdict.
func play(ctx context.Context, s *scenarios.Scenario, lock catalogue.Entry, j store.Job, keep Keep) (run reports.Run, _ *history.History) {
	cfg := harness.Config{
		Scenario: s, Lock: lock, World: cluster.World(j.World), Seed: j.Seed, TTL: j.TTL,
		Topology: cluster.Topology(j.Topology), Image: j.Image, Resource: j.Resource, WallLimit: j.WallLimit,
	}.WithDefaults()
	if cfg.World == cluster.External {
		var err error
		if cfg.Existing, err = process.ParseServers(cmp.Or(j.Address, j.Servers)); err != nil {
			return Failed(j, err), nil
		}
	}
	dir := ""
	if keep.Root != "" {
		dir = j.Dir(keep.Root)
		release, err := store.Begin(dir, j)
		if err != nil {
			return Failed(j, err), nil
		}
		defer release()
	}
	if cfg.World.Real() { // the simulator writes nothing
		dir, remove, err := scratch()
		if err != nil {
			return Failed(j, err), nil
		}
		defer func() {
			if err := remove(); err != nil && run.Error == "" {
				run.Error = fmt.Sprintf("remove the scratch folder: %v", err)
			}
		}()
		cfg.Dir = dir
	}
	res := harness.Run(ctx, cfg)
	saved := false
	if dir != "" && res.History != nil {
		err := store.SaveHistory(dir, res.History)
		saved = err == nil
		res.Err = errors.Join(res.Err, err)
	}
	run = judge(j, cfg, res)
	if dir != "" {
		if saved { // a verdict names no file that is not there
			run.History = filepath.Join(dir, store.HistoryFile)
		}
		if err := store.SaveVerdict(dir, run); err != nil {
			run.Error = strings.TrimSpace(run.Error + "\n" + err.Error())
			run = Conclude(run)
		}
		run = keep.page(dir, run, res.History)
	}
	return run, res.History
}

// Failed is a job that never became a run.
func Failed(j store.Job, err error) reports.Run {
	return Conclude(reports.Run{
		Scenario: j.Scenario, Lock: j.Lock, World: j.World, Topology: j.Topology, Seed: j.Seed,
		TTLNanos: int64(j.TTL), Expected: map[string]string{}, Error: err.Error(), Repeat: Repeat(j),
	})
}

// judge puts what happened beside what was expected.
func judge(j store.Job, cfg harness.Config, res *harness.Result) reports.Run {
	run := reports.Run{
		Scenario: cfg.Scenario.Name, About: cfg.Scenario.About, Lock: cfg.Lock.Name,
		World: string(cfg.World), Topology: string(cfg.Topology), Seed: cfg.Seed, TTLNanos: int64(cfg.TTL),
		Expected: cfg.Scenario.ExpectedOf(cfg.Lock.Name), Leaks: res.Leaks,
		VirtualSeconds: res.Virtual.Seconds(), WallSeconds: res.Wall.Seconds(), Repeat: Repeat(j),
	}
	if res.Err != nil {
		run.Error = res.Err.Error()
	}
	switch {
	case res.Skipped != "":
		run.Checks = []checker.Result{{Name: "world", Verdict: checker.Unknown, Applies: true, Reason: res.Skipped}}
	case res.History != nil && errors.Is(res.Err, resource.ErrStore):
		// The resource is no part of what is tested, and nobody knows what the
		// clients would have done had it answered: no verdict.
		run.HistorySHA256, run.Ops = res.History.SHA256(), CountOps(res.History)
	case res.History != nil:
		run.Checks = checker.Judge(res.History)
		run.HistorySHA256 = res.History.SHA256()
		run.Ops = CountOps(res.History)
		run.Errors = reports.Errors(res.History, run.Checks)
	}
	return Conclude(run)
}

// Conclude fills in what follows from the checks and the expectation.
func Conclude(run reports.Run) reports.Run {
	run = conduct(run)
	if _, bad := misconduct(run); bad {
		run.Leaks = nil // it left all there was
	}
	run.Verdict = checker.Overall(run.Checks)
	if run.Error != "" {
		run.Verdict = checker.Worst(run.Verdict, checker.Error)
	}
	run.Outcome = reports.Outcome(run.Checks, run.Verdict)
	run.Matched, run.Mismatches = reports.Match(run.Checks, run.Expected)
	if run.Error != "" {
		run.Matched = false
	}
	for _, l := range run.Leaks {
		run.Matched = false
		run.Mismatches = append(run.Mismatches, "leak: "+l)
	}
	return run
}

// CountOps counts the calls that clients made.
func CountOps(h *history.History) int {
	n := 0
	for _, ev := range h.Events {
		if ev.Op != nil && ev.Op.Type == history.Invoke {
			n++
		}
	}
	return n
}

// Repeat is the command that plays a job again.
func Repeat(j store.Job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "holdfast run %s --lock %s", quote(j.Scenario), quote(j.Lock))
	switch {
	case j.Servers != "":
		fmt.Fprintf(&b, " --on %s", quote(j.Servers))
	case j.World != "" && j.World != string(cluster.Sim):
		fmt.Fprintf(&b, " --on %s", j.World)
	}
	if j.Image != "" {
		fmt.Fprintf(&b, " --image %s", quote(j.Image))
	}
	if j.Topology != "" {
		fmt.Fprintf(&b, " --topology %s", j.Topology)
	}
	if j.Resource.Kind() != resource.KindBuiltin {
		fmt.Fprintf(&b, " --resource %s", quote(j.Resource.String()))
	}
	fmt.Fprintf(&b, " --seed %d", j.Seed)
	if j.TTL != 0 {
		fmt.Fprintf(&b, " --ttl %s", j.TTL.Round(time.Microsecond))
	}
	return b.String()
}

// quote protects a word from the shell where it needs it.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+./:@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
