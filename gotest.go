package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// seedVariable plays one seed, the one of a failure that is to be seen again.
const seedVariable = "HOLDFAST_SEED"

// defaultSeeds is how many runs each scenario gets.
const defaultSeeds = 3

// Test plays a built-in suite against a lock, a subtest for each scenario. New
// is called once for each client of each run, and gets connections that lead
// into the run's own nodes.
func Test(t *testing.T, suite string, newLock func(Env) (Lock, error)) {
	t.Helper()
	TestWith(t, Config{Suite: suite, New: newLock})
}

// TestWith is [Test] with a configuration.
func TestWith(t *testing.T, c Config) {
	t.Helper()
	if c.New == nil {
		t.Fatal("holdfast: Config.New is missing: the function that builds the lock")
	}
	all, err := c.load()
	if err != nil {
		t.Fatalf("holdfast: %v", err)
	}
	seeds, err := c.seeds()
	if err != nil {
		t.Fatalf("holdfast: %v", err)
	}
	repeatable()
	entry, err := c.entry(t)
	if err != nil {
		t.Fatalf("holdfast: %v", err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			for _, seed := range seeds {
				c.play(t, s, entry, seed)
				if t.Failed() || t.Skipped() {
					return
				}
			}
		})
	}
}

// seeds are those to play.
func (c Config) seeds() ([]uint64, error) {
	if word := os.Getenv(seedVariable); word != "" {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s=%q is no seed: a number from 0 on is wanted", seedVariable, word)
		}
		return []uint64{seed}, nil
	}
	n := cmp.Or(c.Seeds, defaultSeeds)
	if testing.Short() {
		n = 1
	}
	if n < 0 {
		return nil, fmt.Errorf("%d seeds", n)
	}
	var all []uint64
	for i := range n {
		all = append(all, uint64(i+1))
	}
	return all, nil
}

var repeatOnce sync.Once

// repeatable lets a run seed math/rand, from which go-redis and many locks draw
// their back-off: without it the same seed would not give the same run. Go asks
// for a setting, which a program's go.mod can give and a library's cannot.
func repeatable() {
	const setting = "randseednop="
	repeatOnce.Do(func() {
		if now := os.Getenv("GODEBUG"); !strings.Contains(now, setting) {
			_ = os.Setenv("GODEBUG", strings.TrimPrefix(now+","+setting+"0", ",")) // the name and value are fine
		}
	})
}

// play is one run.
func (c Config) play(t *testing.T, s *scenarios.Scenario, entry catalogue.Entry, seed uint64) {
	t.Helper()
	run, h := campaign.PlayScenario(t.Context(), s, entry, store.Job{World: string(cluster.Sim), Seed: seed, TTL: c.TTL})
	run.Repeat = repeatLine(t.Name(), seed)
	switch reports.Stand(run) {
	case reports.AsExpected:
		return
	case reports.Undecided:
		t.Skipf("seed %d proves nothing: %s", seed, reason(run))
	}
	where := keep(t, &run, h)
	var text strings.Builder
	if err := reports.Text(&text, run, h, reports.TextOptions{}); err != nil {
		t.Fatalf("holdfast: %v", err)
	}
	t.Errorf("seed %d\n%s\n%s", seed, text.String(), where)
}

// repeatLine is what to type to see a run again.
func repeatLine(test string, seed uint64) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return fmt.Sprintf("%s=%d go test -run '%s' -artifacts .", seedVariable, seed, strings.Join(parts, "/"))
}

// reason is why a run proves nothing.
func reason(r reports.Run) string {
	for _, c := range r.Checks {
		if c.Applies && c.Verdict == checker.Unknown {
			return c.Name + ": " + c.Reason
		}
	}
	return string(r.Verdict)
}

// keep leaves a run in the test's artifact folder.
func keep(t *testing.T, run *reports.Run, h *history.History) string {
	t.Helper()
	dir := filepath.Join(t.ArtifactDir(), fmt.Sprintf("seed-%d", run.Seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Sprintf("the run could not be kept: %v", err)
	}
	if h != nil {
		if err := store.SaveHistory(dir, h); err != nil {
			return fmt.Sprintf("the history could not be kept: %v", err)
		}
		run.History = filepath.Join(dir, store.HistoryFile)
	}
	path, err := store.SaveReport(dir, store.ReportFile, *run, h)
	if err != nil {
		return fmt.Sprintf("the report could not be written: %v", err)
	}
	run.Report = path
	if err := store.SaveVerdict(dir, *run); err != nil {
		return fmt.Sprintf("the verdict could not be kept: %v", err)
	}
	return "The report is " + path + "; without -artifacts it goes when the test ends."
}

// entry describes the lock to the harness. What its leases can do is found out
// in a short calm run: the checks have to know it before they judge.
func (c Config) entry(t *testing.T) (e catalogue.Entry, err error) {
	e = catalogue.Entry{
		Name: "lock-under-test", About: "the lock that " + t.Name() + " builds", New: c.New,
		Quorum: c.Quorum || c.Suite == SuiteQuorum, Fair: c.Fair, Drift: c.Drift,
	}
	if c.Reentrant {
		e.Promises.Reentrant = "yes"
	}
	s, err := scenarios.Load("calm")
	if err != nil {
		return e, err
	}
	s.Expect, s.Locks = nil, nil
	p := &probe{}
	trial := e
	trial.New = p.wrap(c.New)
	run, h := campaign.PlayScenario(context.WithoutCancel(t.Context()), s, trial, store.Job{World: string(cluster.Sim), Seed: 1, TTL: c.TTL})
	if p.err != nil {
		return e, fmt.Errorf("the lock could not be built: %w", p.err)
	}
	e.Abilities, e.Kind, e.Permits = p.abilities, p.kind, p.permits
	if !p.granted {
		return e, fmt.Errorf("the lock was never granted with nothing broken: %s", cmp.Or(p.refused, run.Error, "no acquire returned"))
	}
	if n := nodesAsked(h); e.Quorum && len(n) == 1 {
		return e, fmt.Errorf("this lock uses one node, %s, and a quorum of several is asked for: use SuiteLease or SuiteFenced, and leave Quorum out", n[0])
	}
	return e, nil
}

// nodesAsked are the nodes that got a command of a client. A lock on one node
// that is taken for one on five fails where the other four matter, with a
// violation that says nothing of the mistake.
func nodesAsked(h *history.History) []string {
	var names []string
	if h == nil {
		return nil
	}
	for _, e := range h.Events {
		if s := e.Server; s != nil && s.Client != "" && !slices.Contains(names, s.Node) {
			names = append(names, s.Node)
		}
	}
	return names
}
