package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// every keeps one plan of n, so that a sweep fits the day.
func every(n int) func(plan) bool {
	i := 0
	return func(plan) bool { i++; return i%n == 0 }
}

// causes keeps the plans with a cause.
func causes(words ...string) func(plan) bool {
	return func(p plan) bool { return slices.Contains(words, p.cause()) }
}

func explored(t *testing.T, e Exploration) *Findings {
	t.Helper()
	e.Seed = cmp.Or(e.Seed, 1)
	if e.Child == nil {
		e.Child = childOf(childServes)
	}
	f, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range f.Failures {
		t.Errorf("a run failed: %s", what)
	}
	for _, g := range f.Groups { // no lock of the catalogue does either
		if g.Kind == kindHang && !strings.HasPrefix(e.Lock, "unruly") || g.Check == checkLeak {
			t.Errorf("%s after %s: %s", g.Check, g.Plan, g.Stack)
		}
	}
	return f
}

// has finds a group.
func (f *Findings) has(check, kind, cause string) (Group, bool) {
	i := slices.IndexFunc(f.Groups, func(g Group) bool { return g.Check == check && g.Kind == kind && g.Cause == cause })
	if i < 0 {
		return Group{}, false
	}
	return f.Groups[i], true
}

func titles(f *Findings) string {
	var out []string
	for _, g := range f.Groups {
		out = append(out, g.Check+" "+g.Kind+": "+g.Plan)
	}
	return strings.Join(out, "\n")
}

// TestExploreFindsTheMistake: a lock and its mistake, told by nothing but its
// name, and a twin in which the same fault finds nothing, or less.
func TestExploreFindsTheMistake(t *testing.T) {
	sweeping(t)
	for _, c := range []struct{ lock, check, kind, cause, plan, without string }{
		{lock: "basic", check: "liveness", kind: "no-grant", cause: "connection cut after SET in acquire",
			plan: "connection cut after SET 1 from c1 to n1", without: "reference"},
		{lock: "basic", check: "exclusion", kind: "overrun", cause: "client pause at write invoke",
			plan: "client pause of 1.2 TTL at write invoke 1 of c1", without: "reference"},
		{lock: "basic", check: "exclusion", kind: "broken", cause: "slow request at EVAL in release",
			plan: "slow request of 1.2 TTL at EVALSHA 1 from c1 to n1", without: "service"},
		{lock: "release-without-owner-check", check: "exclusion", kind: "broken", cause: "client pause at worked",
			plan: "client pause of 1.2 TTL at worked 1 of c1", without: "basic"},
		{lock: "cleanup-on-cancelled-context", check: "liveness", kind: "no-grant", cause: "slow reply at EVAL in acquire",
			plan: "slow reply of 0.3 TTL at EVAL 1 from c1 to n1", without: "reference"},
		{lock: "extend-as-set-nx", check: "continuity", kind: "gap", cause: "deleted keys at EVAL in acquire",
			plan: "deleted keys at EVALSHA 1 from c2 to n1", without: "reference"},
		{lock: "renewal-not-joined", check: "load", kind: "after-release", cause: "nothing broken",
			plan: "nothing broken"},
		{lock: "setnx-then-pexpire", check: "liveness", kind: "no-ttl-key", cause: "client crash at SET in acquire",
			plan: "client crash at SET 1 from c1 to n1", without: "basic"},
		{lock: "redlock-quorum-of-reachable", check: "exclusion", kind: "broken", cause: "cancelled context at SET in acquire",
			plan: "cancelled context at SET 1 from c1 to n1", without: "redlock"},
		// One slow reply costs a node's small time-out only; a pause in the
		// middle of the votes costs the validity.
		{lock: "redlock-without-elapsed-check", check: "exclusion", kind: "overrun", cause: "client pause at SET in acquire",
			plan: "client pause of 1.2 TTL at SET 1 from c1 to n2"},
	} {
		t.Run(c.lock+" "+c.cause, func(t *testing.T) {
			if (raced || testing.Short()) && strings.HasPrefix(c.lock, "redlock") {
				t.Skip("hundreds of runs on three nodes")
			}
			f := explored(t, Exploration{Lock: c.lock, keep: causes(c.cause)})
			g, ok := f.has(c.check, c.kind, c.cause)
			if !ok || g.Plan != c.plan {
				t.Errorf("not found: %s %s after %s; found\n%s", c.check, c.kind, c.plan, titles(f))
			}
			if f.ExitCode() != reports.ExitViolation || g.Summary == "" {
				t.Errorf("exit code %d, %q", f.ExitCode(), g.Summary)
			}
			if c.without == "" {
				return
			}
			script := strings.Replace(c.cause, "SET in", "EVAL in", 1) // what the reference asks with
			f = explored(t, Exploration{Lock: c.without, keep: causes(c.cause, script)})
			for _, cause := range []string{c.cause, script} {
				if _, ok := f.has(c.check, c.kind, cause); ok {
					t.Errorf("%s breaks as well:\n%s", c.without, titles(f))
				}
			}
			if f.Played < 4 {
				t.Errorf("%s was hardly tried: %d runs", c.without, f.Played)
			}
		})
	}
}

// TestReferenceSurvivesEveryFault: no single fault breaks the lock that is
// meant to be right, other than the loss of its key.
func TestReferenceSurvivesEveryFault(t *testing.T) {
	sweeping(t)
	e := Exploration{Lock: "reference", Params: true}
	if raced || testing.Short() {
		e.keep = every(6)
	}
	f := explored(t, e)
	remarks := map[string]string{"deleted keys": remarkData, "node restart without data": remarkData,
		"clock jump forward": remarkClock, "clock jump back": remarkClock}
	for _, g := range f.Groups {
		remark, excusable := remarks[g.Cause]
		if !g.Excused || !excusable {
			t.Errorf("%s %s: %s: %s", g.Check, g.Kind, g.Plan, g.Summary)
		}
		if g.Remark != remark {
			t.Errorf("%s: remark %q", g.Plan, g.Remark)
		}
	}
	if e.keep == nil && len(f.Groups) < len(remarks) {
		t.Errorf("not all of these show: %s", titles(f))
	}
	if f.ExitCode() != reports.ExitExpected || len(f.Groups) == 0 || f.Unstruck != 0 || f.Refused != 2*len(badTTLs) {
		t.Errorf("exit code %d, %d groups, %d unstruck, %d refused", f.ExitCode(), len(f.Groups), f.Unstruck, f.Refused)
	}
	t.Logf("%d points, %d runs in %.1f s", f.Points, f.Played, f.Seconds)
}

// text of findings without what differs between machines.
func text(t *testing.T, f *Findings) string {
	t.Helper()
	same := *f
	same.Seconds = 0
	b, err := json.MarshalIndent(same, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExplorationsAreRepeatable: the same findings with children and without,
// pairs included.
func TestExplorationsAreRepeatable(t *testing.T) {
	sweeping(t)
	once := func(children bool) string {
		e := Exploration{Lock: "watchdog", Seed: 5, Depth: 2, MostPairs: 60, keep: every(6)}
		if children {
			e.Child = childOf(childServes)
		}
		f, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Played != f.Plans || len(f.Groups) == 0 || f.Plans < 100 {
			t.Errorf("%d of %d played, %d groups", f.Played, f.Plans, len(f.Groups))
		}
		return text(t, f)
	}
	if a, b := once(true), once(false); a != b {
		t.Errorf("two explorations differ:\n%s\n%s", a, b)
	}
}

// TestSavedPlansReproduce plays each saved plan as its command does.
func TestSavedPlansReproduce(t *testing.T) {
	out := t.TempDir()
	stale := filepath.Join(out, "explore", "ttl-in-whole-seconds", "99-stale.yaml")
	if err := os.MkdirAll(filepath.Dir(stale), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := explored(t, Exploration{Lock: "ttl-in-whole-seconds", Seed: 7, TTL: 4 * time5, Out: out, Params: true, keep: every(4)})
	if len(f.Groups) < 5 {
		t.Errorf("only %d groups", len(f.Groups))
	}
	for _, g := range f.Groups {
		job := store.Job{Scenario: g.File, Lock: f.Lock, World: string(cluster.Sim), Seed: 7, TTL: 4 * time5}
		for _, ttl := range oddTTLs {
			if g.Cause == "a TTL of "+ttl.String() {
				job.TTL = ttl
			}
		}
		if g.Repeat != Repeat(job) {
			t.Errorf("repeat %q, want %q", g.Repeat, Repeat(job))
		}
		run, _ := Play(t.Context(), job, "")
		bad := reports.Violated(run.Checks)
		if len(bad) == 0 || bad[0].Name != g.Check || bad[0].Kind != g.Kind {
			t.Errorf("%s: %s %s does not come back: %s", g.File, g.Check, g.Kind, run.Outcome)
			continue
		}
		if !slices.ContainsFunc(bad[0].Violations, func(v reportsFound) bool { return v.Summary == g.Summary }) {
			t.Errorf("%s: another story than %q", g.File, g.Summary)
		}
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("the plan of a former exploration is left")
	}
}

// TestPlansReadBackEqual: what is saved is what was played.
func TestPlansReadBackEqual(t *testing.T) {
	sweeping(t)
	for _, lock := range []string{"watchdog", "redlock"} {
		e := Exploration{Lock: lock, Seed: 1}.withDefaults()
		base := e.baseRun(hurried)
		entry, _ := FindLock(lock)
		_, h := PlayScenario(t.Context(), base, entry, store.Job{World: string(cluster.Sim), Seed: 1})
		_, nodes := e.topology()
		var plans []plan
		for _, m := range moods {
			plans = append(plans, singles(e.baseRun(m), pointsOf(h), nodes, e.TTL, m)...)
		}
		if n := len(slices.DeleteFunc(slices.Clone(plans), func(p plan) bool { return p.blows[0].kind != "client crash" })); n < 5 {
			t.Errorf("%s: only %d crashes are planned", lock, n)
		}
		if raced || testing.Short() {
			one := every(8)
			plans = slices.DeleteFunc(plans, func(p plan) bool { return !one(p) })
		}
		seen := map[string]bool{}
		for _, p := range append(plans, e.params()...) {
			text, err := scenarios.Encode(p.scenario)
			if err != nil {
				t.Fatal(err)
			}
			back, err := scenarios.Parse("plan.yaml", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !reflect.DeepEqual(back, p.scenario) {
				t.Fatalf("\n got %+v\nwant %+v\n%s", back, p.scenario, text)
			}
			key := string(text) + p.ttl.String()
			if seen[key] {
				t.Errorf("%s is planned twice", p.words())
			}
			seen[key] = true
		}
		t.Logf("%s: %d plans", lock, len(seen))
	}
}

// TestInterruptedExplorationKeepsWhatItFound is Ctrl-C.
func TestInterruptedExplorationKeepsWhatItFound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := t.TempDir()
	var news []Group
	f, err := Exploration{
		Lock: "basic", Seed: 1, Child: childOf(childServes), Out: out,
		Found: func(g Group) {
			if news = append(news, g); len(news) == 2 {
				cancel()
			}
		},
	}.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Interrupted || f.ExitCode() != reports.ExitError || f.Played >= f.Plans {
		t.Errorf("interrupted %v, exit code %d, %d of %d played", f.Interrupted, f.ExitCode(), f.Played, f.Plans)
	}
	for _, g := range news {
		got, ok := f.has(g.Check, g.Kind, g.Cause)
		if !ok {
			t.Errorf("lost: %s", g.Plan)
		}
		if _, err := os.Stat(got.File); err != nil {
			t.Errorf("not saved: %v", err)
		}
	}
	if len(f.Failures) > 0 {
		t.Errorf("what was cut off counts as failed: %v", f.Failures)
	}
}

// TestMisconductIsAFinding: a lock that panics, spins, deadlocks or never comes
// back, with the place in its code; and the exploration goes on.
func TestMisconductIsAFinding(t *testing.T) {
	sweeping(t)
	for _, c := range []struct{ lock, kind, where, words string }{
		{"unruly-panics", kindPanic, "unruly.panics", "assignment to entry in nil map"},
		{"unruly-panics-in-background", kindPanic, "unruly.panics", "assignment to entry in nil map"},
		{"unruly-exits", kindExit, "cannot get the lock", "the lock ended the process with exit status 1"},
		{"unruly-spins", kindHang, "unruly.(*lock).spin", "let no virtual time go on"},
		{"unruly-spins-in-background", kindHang, "unruly.(*lock).spin", "let no virtual time go on"},
		{"unruly-deadlocks", kindHang, "unruly.(*lock).Acquire", "let no virtual time go on"},
		{"unruly-waits-for-ever", kindHang, "unruly.(*lock).Acquire", "had not returned"},
	} {
		t.Run(c.lock, func(t *testing.T) {
			if testing.Short() && strings.Contains(c.lock, "-in-") {
				t.Skip("seconds for each hang")
			}
			const bad, other = "error replies at SET in acquire", "client pause at write invoke"
			f := explored(t, Exploration{Lock: c.lock, keep: causes(bad, other)})
			g, ok := f.has(conductName, c.kind, bad)
			if !ok || !strings.Contains(g.Summary, c.words) || !strings.Contains(g.Stack, c.where) {
				t.Errorf("not found: %+v\n%s", g, titles(f))
			}
			if f.Groups[0].Check != conductName {
				t.Errorf("first comes %s", f.Groups[0].Check)
			}
			if _, ok := f.has("exclusion", "overrun", other); !ok {
				t.Errorf("the exploration did not go on:\n%s", titles(f))
			}
			if f.ExitCode() != reports.ExitViolation {
				t.Errorf("exit code %d", f.ExitCode())
			}
		})
	}
}

func TestExploreRefusesWhatIsNoLock(t *testing.T) {
	if _, err := (Exploration{Lock: "basik"}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), `did you mean "basic"`) {
		t.Errorf("%v", err)
	}
}

// TestOddParameters: which parameters break which lock.
func TestOddParameters(t *testing.T) {
	sweeping(t)
	none := func(plan) bool { return false }
	f := explored(t, Exploration{Lock: "redlock-quorum-half", Params: true, keep: none})
	for _, cause := range []string{"2 nodes, in two halves", "4 nodes, in two halves", "one node, nothing broken"} {
		if _, ok := f.has("exclusion", "broken", cause); !ok {
			t.Errorf("not found: %s in\n%s", cause, titles(f))
		}
	}
	f = explored(t, Exploration{Lock: "redlock", Params: true, keep: none})
	if len(f.Groups) > 0 || f.Refused != 2*len(badTTLs)+2 { // and -1 retries, twice
		t.Errorf("redlock: %d refused, %s", f.Refused, titles(f))
	}
	f = explored(t, Exploration{Lock: "redislock+retry", Params: true, keep: none})
	if _, ok := f.has("exclusion", "broken", "tokens of which one is the beginning of the next"); !ok {
		t.Errorf("not found: tokens that are prefixes in\n%s", titles(f))
	}
	f = explored(t, Exploration{Lock: "redsync-single", Params: true, keep: none})
	if len(f.Groups) > 0 || f.Refused != 2*2+4 { // less than nothing and 0; -1 and 0 tries
		t.Errorf("redsync-single: %d refused, %s", f.Refused, titles(f))
	}
	f = explored(t, Exploration{Lock: "ttl-in-whole-seconds", Params: true, keep: none})
	if _, ok := f.has("exclusion", "broken", "a TTL of 1.5s"); !ok {
		t.Errorf("not found: a TTL of 1.5s in\n%s", titles(f))
	}
}

// TestWallLimit gives a run up that takes too long, as one whose lock spins. It
// goes on behind the test's back, so it gets a process of its own.
func TestWallLimit(t *testing.T) {
	f := &family{of: childOf(childServes)}
	job := store.Job{Scenario: "calm", Lock: "basic", World: string(cluster.Sim), Seed: 1, WallLimit: 1}
	runs := Runner{Child: f.child, Isolate: true}.Play(t.Context(), []store.Job{job, job})
	f.gone(t)
	for _, run := range runs {
		if !strings.Contains(run.Error, harness.ErrHangs.Error()) {
			t.Errorf("%q", run.Error)
		}
	}
	if len(runs) != 2 || len(f.all) != 2 {
		t.Errorf("%d runs in %d children: what hangs must not get another job", len(runs), len(f.all))
	}
}

// TestPairs: the seed's stream, each pair once, never two faults at one point
// or of two base runs.
func TestPairs(t *testing.T) {
	var clean []plan
	for i := range 40 {
		p := planWith(blow{kind: "lost reply", at: point{at: i / 2, struck: "SET", client: "c1", node: "n1", cmd: "SET", nth: i}})
		if i%4 == 0 {
			p.scenario.Name += "-hurried"
		}
		p.scenario.Name += "-7"
		clean = append(clean, p)
	}
	drawn := func(seed uint64) []string {
		var out []string
		u := newUrn(clean, seed)
		for range 3 {
			for _, p := range u.draw(20) {
				out = append(out, p.family()+": "+p.words())
				if p.blows[0].at.at >= p.blows[1].at.at {
					t.Errorf("out of order: %s", p.words())
				}
			}
		}
		return out
	}
	one := drawn(1)
	if !slices.Equal(one, drawn(1)) || slices.Equal(one, drawn(2)) {
		t.Error("the pairs are not the seed's")
	}
	sorted := slices.Sorted(slices.Values(one))
	if len(one) != 60 || len(slices.Compact(sorted)) != 60 {
		t.Errorf("%d pairs", len(one))
	}
}

// TestIsolatedJobDiesAlone: a single job that panics has a child of its own.
func TestIsolatedJobDiesAlone(t *testing.T) {
	f := &family{of: childOf(childPanics)}
	job := store.Job{Scenario: "calm", Lock: "basic", World: string(cluster.Sim), Seed: seedOfDoom}
	runs := Runner{Child: f.child, Isolate: true}.Play(t.Context(), []store.Job{job})
	f.gone(t)
	if len(runs) != 1 || !strings.Contains(runs[0].Error, "renewerThatPanics") {
		t.Errorf("%+v", runs)
	}
	if runs := (Runner{Child: f.child, Isolate: true}).Play(t.Context(), nil); len(runs) != 0 {
		t.Errorf("no job, but %d runs", len(runs))
	}
}

// TestInterruptedRunsSayNothing: what Ctrl-C cut off is neither survived nor
// failed.
func TestInterruptedRunsSayNothing(t *testing.T) {
	x := &expedition{findings: &Findings{}, sorter: newSorter(Exploration{Lock: "basic"}, cluster.Single, 1)}
	r := violating("exclusion broken")
	r.Error = harness.ErrInterrupted.Error()
	if x.take(planWith(lostKey), r) || x.findings.Played != 0 || len(x.findings.Failures) != 0 || len(x.sorter.groups) != 0 {
		t.Errorf("%+v", x.findings)
	}
}
