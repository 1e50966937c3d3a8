package reports

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-io/holdfast/checker"
)

// verdictOf makes a run out of answers; the verdict and the match follow from
// them as campaign has it.
func verdictOf(scenario, lock string, seed uint64, expected map[string]string, checks ...checker.Result) Run {
	r := Run{
		Scenario: scenario, Lock: lock, World: "sim", Topology: "single", Seed: seed, Expected: expected, Checks: checks,
		Verdict: checker.Overall(checks), WallSeconds: 0.25, Repeat: fmt.Sprintf("holdfast run %s --lock %s --seed %d", scenario, lock, seed),
	}
	r.Outcome = Outcome(r.Checks, r.Verdict)
	r.Matched, r.Mismatches = Match(r.Checks, r.Expected)
	return r
}

func passes(name string) checker.Result {
	return checker.Result{Name: name, Verdict: checker.Pass, Applies: true}
}

func isUnknown(name, why string) checker.Result {
	return checker.Result{Name: name, Verdict: checker.Unknown, Applies: true, Reason: why}
}

func violates(name string, kinds ...string) checker.Result {
	c := checker.Result{Name: name, Verdict: checker.Violation, Applies: true, Kind: kinds[0]}
	for i, k := range kinds {
		c.Violations = append(c.Violations, checker.Found{Kind: k, Ops: []int{i}, Summary: fmt.Sprintf("c2 saw %s.", k)})
	}
	return c
}

// gateOf makes the gate of a suite of these runs; a nil run was not played.
func gateOf(known []Finding, shard, of int, runs ...*Run) *Gate {
	g := &Gate{Suite: GateSuite{Name: "s", Fingerprint: "f", Runs: len(runs)}, Shards: GateShards{Of: of, Have: []int{shard}}}
	if known != nil {
		g.Baseline = &GateBaseline{File: "known.json", Findings: known}
	}
	for i, r := range runs {
		if i%of != shard-1 {
			continue
		}
		c := Case{Index: i, Scenario: "calm", Lock: "basic", World: "sim", Seed: uint64(i), Reason: "the budget was used up", Repeat: fmt.Sprint("run ", i)}
		if r != nil {
			copied := *r
			c.Scenario, c.Lock, c.Seed, c.Repeat, c.Run, c.Reason = r.Scenario, r.Lock, r.Seed, r.Repeat, &copied, ""
		}
		g.Cases = append(g.Cases, c)
	}
	g.Settle()
	for i := range g.Cases {
		if g.Cases[i].Status == CaseFailed {
			g.Cases[i].Picture = []string{"c1  r==*", "c2  .r=W"}
		}
	}
	return g
}

// TestAGateWithoutABaselineJudgesAsRunDoes: for any answers, expectations,
// failures and leaks.
func TestAGateWithoutABaselineJudgesAsRunDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	codes := map[int]int{}
	for range 20000 {
		names := []string{"exclusion", "updates", "liveness", "coverage"}
		var checks []checker.Result
		expected := map[string]string{}
		for _, n := range names {
			c := []checker.Result{passes(n), passes(n), violates(n, "overrun"), violates(n, "broken", "overrun"), isUnknown(n, "why"),
				{Name: n, Verdict: checker.Error, Applies: true}, {Name: n, Verdict: checker.Unknown}}[rng.IntN(7)]
			checks = append(checks, c)
			if rng.IntN(2) == 0 {
				expected[n] = []string{"pass", "violation", "unknown", "any", "overrun", "broken"}[rng.IntN(6)]
			}
		}
		r := verdictOf("calm", "basic", 1, expected, checks...)
		if rng.IntN(4) == 0 {
			r.Error, r.Verdict, r.Matched = "it broke", checker.Worst(r.Verdict, checker.Error), false
		}
		if rng.IntN(4) == 0 {
			r.Leaks, r.Matched = []string{"a goroutine"}, false
		}
		g := gateOf(nil, 1, 1, &r)
		if want := ExitCode([]Run{r}); g.ExitCode != want {
			t.Fatalf("the gate exits with %d, run with %d: %+v", g.ExitCode, want, r)
		}
		if (g.ExitCode == ExitViolation) != (len(g.Findings) > 0) {
			t.Fatalf("exit code %d with %d findings: %+v", g.ExitCode, len(g.Findings), r)
		}
		codes[g.ExitCode]++
		// All findings known: never a violation any more, and never better
		// than what the run shows beside them.
		var known []Finding
		for _, f := range g.Findings {
			known = append(known, f.Finding)
		}
		k := gateOf(known, 1, 1, &r)
		undecided := slices.ContainsFunc(compare(r.Checks, r.Expected), func(m mismatch) bool { return !m.definite })
		switch {
		case k.ExitCode == ExitViolation:
			t.Fatalf("known findings fail: %+v", r)
		case r.Error != "" && k.ExitCode == ExitExpected, undecided && k.ExitCode == ExitExpected:
			t.Fatalf("known findings hide that the run failed or is undecided: %+v", r)
		}
	}
	if len(codes) != 4 {
		t.Errorf("only the exit codes %v came up", codes)
	}
}

func TestFindingsAreKnownByKindAndNotBySeed(t *testing.T) {
	overrun := Finding{Lock: "basic", Scenario: "calm", Check: "exclusion", Kind: "overrun", Note: "since 2024"}
	for _, c := range []struct {
		name   string
		run    Run
		status Status
	}{
		{"another seed", verdictOf("calm", "basic", 99, nil, violates("exclusion", "overrun")), CaseKnown},
		{"another kind", verdictOf("calm", "basic", 1, nil, violates("exclusion", "broken")), CaseFailed},
		{"one more kind", verdictOf("calm", "basic", 1, nil, violates("exclusion", "broken", "overrun")), CaseFailed},
		{"another check", verdictOf("calm", "basic", 1, nil, violates("exclusion", "overrun"), violates("updates", "lost-update")), CaseFailed},
		{"another lock", verdictOf("calm", "other", 1, nil, violates("exclusion", "overrun")), CaseFailed},
		{"another scenario", verdictOf("slow-work", "basic", 1, nil, violates("exclusion", "overrun")), CaseFailed},
		{"an unknown beside it", verdictOf("calm", "basic", 1, nil, violates("exclusion", "overrun"), isUnknown("lease", "no trace")), CaseUnknown},
		{"expected anyway", verdictOf("calm", "basic", 1, map[string]string{"exclusion": "overrun"}, violates("exclusion", "overrun")), CasePassed},
		{"expected and not seen", verdictOf("calm", "basic", 1, map[string]string{"exclusion": "overrun"}, passes("exclusion")), CaseFailed},
	} {
		if g := gateOf([]Finding{overrun}, 1, 1, &c.run); g.Cases[0].Status != c.status {
			t.Errorf("%s: %s, want %s", c.name, g.Cases[0].Status, c.status)
		}
	}
	// A run that failed has acquitted nobody: what it did not show is no finding.
	died := verdictOf("calm", "basic", 1, map[string]string{"updates": "violation"}, violates("exclusion", "broken"), passes("updates"))
	died.Error = "it broke"
	if got := Findings(died); len(got) != 1 || got[0].Check != "exclusion" {
		t.Errorf("a run that failed has the findings %v", got)
	}
}

func TestVanishedOnlyAfterEveryRun(t *testing.T) {
	known := []Finding{{Lock: "basic", Scenario: "calm", Check: "exclusion", Kind: "overrun"}}
	ok, bad := verdictOf("calm", "basic", 1, nil, passes("exclusion")), verdictOf("calm", "basic", 2, nil, violates("exclusion", "overrun"))
	open, elsewhere := verdictOf("calm", "basic", 3, nil, isUnknown("exclusion", "?")), verdictOf("slow-work", "basic", 1, nil, passes("exclusion"))
	for _, c := range []struct {
		name               string
		gate               *Gate
		vanished, untested int
	}{
		{"all played", gateOf(known, 1, 1, &ok, &ok), 1, 0},
		{"one shows it", gateOf(known, 1, 1, &ok, &bad), 0, 0},
		{"one not played", gateOf(known, 1, 1, &ok, nil), 0, 1},
		{"one unknown", gateOf(known, 1, 1, &ok, &open), 0, 1},
		{"another shard has the rest", gateOf(known, 1, 2, &ok, &bad), 0, 1},
		{"not in the suite", gateOf(known, 1, 1, &elsewhere), 0, 1},
	} {
		if len(c.gate.Vanished) != c.vanished || len(c.gate.Untested) != c.untested {
			t.Errorf("%s: %d vanished and %d untested, want %d and %d", c.name, len(c.gate.Vanished), len(c.gate.Untested), c.vanished, c.untested)
		}
	}
}

// forms renders a gate in all formats.
func forms(t *testing.T, g *Gate) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":        func(b *bytes.Buffer) error { return g.Text(b, TextOptions{}) },
		"json":        func(b *bytes.Buffer) error { return g.JSON(b) },
		"markdown":    func(b *bytes.Buffer) error { return g.Markdown(b, SummaryLimit) },
		"junit":       func(b *bytes.Buffer) error { return g.JUnit(b) },
		"annotations": func(b *bytes.Buffer) error { return g.Annotations(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		out[name] = b.String()
	}
	return out
}

func again(t *testing.T, g *Gate) *Gate {
	t.Helper()
	var b bytes.Buffer
	if err := g.JSON(&b); err != nil {
		t.Fatal(err)
	}
	read, err := ReadGate(&b)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// mixed is a suite with every status.
func mixed() []*Run {
	failedRun := verdictOf("calm", "redlock", 1, nil, passes("exclusion"))
	failedRun.Error, failedRun.Verdict, failedRun.Matched = "no server", checker.Error, false
	runs := []Run{
		verdictOf("calm", "basic", 1, nil, passes("exclusion")),
		verdictOf("calm", "basic", 2, nil, violates("exclusion", "overrun")),
		verdictOf("calm", "basic", 3, nil, violates("exclusion", "broken", "overrun"), violates("updates", "lost-update")),
		verdictOf("slow-work", "basic", 1, nil, isUnknown("coverage", "too few grants")),
		failedRun,
		verdictOf("slow-work", "redlock", 1, map[string]string{"exclusion": "overrun"}, passes("exclusion")),
	}
	var out []*Run
	for i := range runs {
		out = append(out, &runs[i])
	}
	return append(out, nil)
}

var mixedKnown = []Finding{
	{Lock: "basic", Scenario: "calm", Check: "exclusion", Kind: "overrun"},
	{Lock: "gone", Scenario: "calm", Check: "exclusion", Kind: "overrun"},
}

// TestShardsJoinedEqualOneRun: in every format, whatever the number of shards
// and the order of their files.
func TestShardsJoinedEqualOneRun(t *testing.T) {
	want := forms(t, again(t, gateOf(mixedKnown, 1, 1, mixed()...)))
	for of := 1; of <= 7; of++ {
		var shards []*Gate
		for i := of; i >= 1; i-- {
			shards = append(shards, again(t, gateOf(mixedKnown, i, of, mixed()...)))
		}
		joined, err := MergeGates(shards)
		if err != nil {
			t.Fatal(err)
		}
		for format, text := range forms(t, joined) {
			if text != want[format] {
				t.Errorf("%d shards joined, as %s:\n%s\nwant\n%s", of, format, text, want[format])
			}
		}
	}
}

func TestShardsThatCannotBeJoined(t *testing.T) {
	ok := verdictOf("calm", "basic", 1, nil, passes("exclusion"))
	one := gateOf(nil, 1, 2, &ok, &ok)
	other := gateOf(nil, 2, 2, &ok, &ok)
	other.Suite.Fingerprint = "another"
	three := gateOf(nil, 2, 3, &ok, &ok, &ok)
	three.Suite.Runs = 2
	for _, c := range []struct {
		say string
		gs  []*Gate
	}{
		{"nothing to join", nil},
		{"another suite", []*Gate{one, other}},
		{"a shard of 3", []*Gate{one, three}},
		{"another baseline", []*Gate{one, gateOf(mixedKnown, 2, 2, &ok, &ok)}},
	} {
		if _, err := MergeGates(c.gs); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("got %v, want %q", err, c.say)
		}
	}
	for say, text := range map[string]string{
		"the schema is": `{"schema": "holdfast/verdict/v1"}`, "not a gate's document": `[`,
		"shards [3] of 2":      `{"schema": "holdfast/gate/v1", "shards": {"of": 2, "have": [3]}}`,
		"the index 5 of 1 run": `{"schema": "holdfast/gate/v1", "suite": {"runs": 1}, "shards": {"of": 1, "have": [1]}, "cases": [{"index": 5}]}`,
		// Somebody joined the files by hand: the second shard may be the one that failed.
		"something follows": `{"schema": "holdfast/gate/v1", "shards": {"of": 2, "have": [1]}} {"schema": "holdfast/gate/v1"}`,
		"follows the":       `{"schema": "holdfast/gate/v1", "shards": {"of": 2, "have": [1]}} x`,
	} {
		if _, err := ReadGate(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: got %v, want %q", text, err, say)
		}
	}
}

// TestAMissingShardIsNoPass, although all that is there passed.
func TestAMissingShardIsNoPass(t *testing.T) {
	ok := verdictOf("calm", "basic", 1, nil, passes("exclusion"))
	alone := gateOf(nil, 1, 2, &ok, &ok)
	if alone.ExitCode != ExitExpected {
		t.Errorf("a shard answers for the others: exit code %d", alone.ExitCode)
	}
	joined, err := MergeGates([]*Gate{alone})
	if err != nil || joined.ExitCode != ExitUnknown {
		t.Fatalf("exit code %d, %v, want %d", joined.ExitCode, err, ExitUnknown)
	}
	if text := forms(t, joined)["text"]; !strings.Contains(text, "shard 2 of 2 missing") || !strings.Contains(text, "UNKNOWN") {
		t.Errorf("the text does not say so:\n%s", text)
	}
}

// TestAFailureIsNotTriedAway: a shard that ran twice counts with its gravest
// answer, but an answer replaces a failed try.
func TestAFailureIsNotTriedAway(t *testing.T) {
	ok, bad := verdictOf("calm", "basic", 1, nil, passes("exclusion")), verdictOf("calm", "basic", 1, nil, violates("exclusion", "broken"))
	died := verdictOf("calm", "basic", 1, nil)
	died.Error, died.Verdict, died.Matched = "killed", checker.Error, false
	for _, c := range []struct {
		name        string
		first, then *Run
		want        int
	}{
		{"it failed first", &bad, &ok, ExitViolation},
		{"it failed then", &ok, &bad, ExitViolation},
		{"it failed, and then the harness", &bad, &died, ExitViolation},
		{"the harness failed first", &died, &ok, ExitExpected},
		{"not played first", nil, &ok, ExitExpected},
		{"not played then", &ok, nil, ExitExpected},
		{"never played", nil, nil, ExitUnknown},
	} {
		g, err := MergeGates([]*Gate{gateOf(nil, 1, 1, c.first), gateOf(nil, 1, 1, c.then)})
		if err != nil || g.ExitCode != c.want {
			t.Errorf("%s: exit code %v, %v, want %d", c.name, g.ExitCode, err, c.want)
		}
	}
}

func gateJSONSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	for url, b := range map[string][]byte{"verdict.schema.json": JSONSchema(), "gate.schema.json": GateJSONSchema()} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("https://github.com/holdfast-io/holdfast/reports/"+url, doc); err != nil {
			t.Fatal(err)
		}
	}
	return c.MustCompile("https://github.com/holdfast-io/holdfast/reports/gate.schema.json")
}

func TestGateJSONFollowsItsSchema(t *testing.T) {
	schema := gateJSONSchema(t)
	for _, g := range []*Gate{gateOf(mixedKnown, 1, 1, mixed()...), gateOf(nil, 2, 3, mixed()...), hostileGate()} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(forms(t, g)["json"]))
		if err == nil {
			err = schema.Validate(doc)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
