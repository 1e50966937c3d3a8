package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/reports"
)

// failing is a suite with new findings: no built-in scenario is about the lock.
const failing = "runs:\n  - {locks: [basic, release-without-owner-check], scenarios: [calm, slow-work], seeds: 2}\n"

// gateCases are gates with each exit code, in a folder of its own.
var gateCases = []struct {
	name, suite string
	args        []string
	code        int
}{
	{"all as expected", "runs:\n  - {locks: basic, scenarios: [calm, kleppmann-gc-pause]}\n", nil, reports.ExitExpected},
	{"a new finding", failing, nil, reports.ExitViolation},
	{"a new finding although the time ran out", failing, []string{"--budget", "1ns"}, reports.ExitUnknown}, // nothing was begun
	{"an unknown", "runs:\n  - {locks: basic, scenarios: ./never-fires.yaml}\n", nil, reports.ExitUnknown},
	{"a new finding and an unknown", failing + "  - {locks: basic, scenarios: ./never-fires.yaml}\n", nil, reports.ExitViolation},
	{"no room for runs", failing, []string{"--out", "/proc/nowhere"}, reports.ExitError},
	{"a mistake in the suite", "rnus: []\n", nil, exitUsage},
	{"no such lock", failing, []string{"--lock", "none"}, exitUsage},
}

// inFolder writes a suite and goes there.
func inFolder(t *testing.T, suite string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"holdfast.yaml": suite, "never-fires.yaml": neverFires} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGateExitCodesAreTheSameInEveryFormat(t *testing.T) {
	for _, c := range gateCases {
		inFolder(t, c.suite)
		for _, format := range gateFormats() {
			r := invoke(t, append([]string{"gate", "--format", format, "-o", "gate.json"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("%s as %s: exit code %d, want %d\n%.2000s%s", c.name, format, r.code, c.code, r.out, r.errs)
			}
			if c.code == exitUsage || c.code == reports.ExitError {
				continue
			}
			if m := invoke(t, "merge", "gate.json", "--format", format); m.code != c.code || m.out != r.out {
				t.Errorf("%s as %s: joined alone it exits with %d, or says something else", c.name, format, m.code)
			}
		}
	}
}

// Times are all that may differ between two gates of one suite.
var times = regexp.MustCompile(`"wall_seconds": [0-9.e-]+|time="[0-9.]+"|[0-9.]+m?s wall`)

func withoutTimes(s string) string { return times.ReplaceAllString(s, "time") }

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTwoShardsJoinedEqualOneRun: byte for byte but for times, in every format
// and file.
func TestTwoShardsJoinedEqualOneRun(t *testing.T) {
	inFolder(t, failing+"  - {locks: [basic, redlock], scenarios: [./never-fires.yaml, partition-minority]}\n")
	outputs := func(name string) []string {
		return []string{"-o", name + ".json", "--junit", name + ".xml", "--summary", name + ".md"}
	}
	one := invoke(t, append([]string{"gate"}, outputs("one")...)...)
	one.want(t, reports.ExitViolation, "FAILED", "release-without-owner-check in slow-work")
	for _, i := range []string{"1", "2"} {
		r := invoke(t, "gate", "--shard", i+"/2", "-o", "shard-"+i+".json")
		if !strings.Contains(r.out, "shard "+i+" of 2") {
			t.Errorf("shard %s: %s", i, r.out)
		}
	}
	joined := invoke(t, append([]string{"merge", "shard-2.json", "shard-1.json"}, outputs("joined")...)...)
	if joined.code != one.code || joined.out != one.out {
		t.Errorf("joined: exit code %d\n%s\nwant %d\n%s", joined.code, joined.out, one.code, one.out)
	}
	for _, ext := range []string{".json", ".xml", ".md"} {
		if a, b := withoutTimes(read(t, "one"+ext)), withoutTimes(read(t, "joined"+ext)); a != b {
			t.Errorf("%s differs:\n%.3000s\n%.3000s", ext, a, b)
		}
	}
	if s := read(t, "joined.xml"); !strings.Contains(s, "two hold") || !strings.Contains(s, "repeat: holdfast run slow-work") {
		t.Error("the JUnit file lacks the picture or the command")
	}
	// Its own fault, and no command line that differs.
	invoke(t, "merge", "shard-1.json").want(t, reports.ExitViolation, "shard 2 of 2 missing")
	invoke(t, "merge", "shard-1.json", "holdfast.yaml").want(t, exitUsage, "holdfast.yaml", "not a gate's document")
	invoke(t, "merge", "nothing.json").want(t, exitUsage, "no such file")
	invoke(t, "gate", "--seeds", "1", "--shard", "2/2", "-o", "other.json")
	invoke(t, "merge", "shard-1.json", "other.json").want(t, exitUsage, "another suite")
}

func TestBaseline(t *testing.T) {
	inFolder(t, "baseline: known.json\n"+failing)
	invoke(t, "gate").want(t, exitUsage, "known.json", "--update-baseline")
	invoke(t, "gate", "--update-baseline").want(t, reports.ExitExpected, "findings added, 0 removed", "PASSED", "known ")
	first := read(t, "known.json")
	invoke(t, "gate").want(t, reports.ExitExpected, "PASSED", "known ", "release-without-owner-check in slow-work")
	invoke(t, "gate", "--seeds", "3").want(t, reports.ExitExpected, "of 3 runs")
	invoke(t, "gate", "--update-baseline").want(t, reports.ExitExpected, "0 findings added, 0 removed")
	if read(t, "known.json") != first {
		t.Error("nothing changed, and the file did")
	}

	// What is narrowed away is not vanished, and stays.
	invoke(t, "gate", "--lock", "basic", "--update-baseline").want(t, reports.ExitExpected, "0 removed", "untested")
	if read(t, "known.json") != first {
		t.Error("findings that were not tested are gone")
	}

	// One that is gone is reported, and then taken out; one that is new fails.
	var doc struct {
		Schema   string            `json:"schema"`
		Findings []reports.Finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(first), &doc); err != nil || len(doc.Findings) < 2 {
		t.Fatalf("%v\n%s", err, first)
	}
	doc.Findings[0].Lock, doc.Findings[0].Scenario = "basic", "calm"
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("known.json", b, 0o644); err != nil {
		t.Fatal(err)
	}
	invoke(t, "gate").want(t, reports.ExitViolation, "vanished  basic in calm", "NEW       release-without-owner-check")
	invoke(t, "gate", "--update-baseline").want(t, reports.ExitExpected, "1 finding added, 1 removed")
	if read(t, "known.json") != first {
		t.Error("the update does not lead back to the first baseline")
	}
}

// TestBudgetIsNoPass: what was not played is unknown, and what was played
// first are the first seeds of all.
func TestBudgetIsNoPass(t *testing.T) {
	inFolder(t, "seeds: 4000\nruns:\n  - {locks: [basic, watchdog], scenarios: calm}\n")
	r := invoke(t, "gate", "--budget", "1s", "--out", "", "--format", "json", "--junit", "gate.xml")
	r.want(t, reports.ExitUnknown)
	var g reports.Gate
	if err := json.Unmarshal([]byte(r.out), &g); err != nil {
		t.Fatal(err)
	}
	played, skipped := g.Counts[reports.CasePassed], g.Counts[reports.CaseSkipped]
	if played == 0 || skipped == 0 || played+skipped != 8000 {
		t.Fatalf("%d played and %d skipped of 8000", played, skipped)
	}
	last := map[string]uint64{}
	for _, c := range g.Cases {
		switch {
		case c.Run != nil:
			last[c.Lock] = c.Seed
		case c.Reason != "the budget of 1s was used up":
			t.Fatalf("case %d was not played for the reason %q", c.Index, c.Reason)
		}
	}
	if a, b := last["basic"], last["watchdog"]; max(a, b)-min(a, b) > 1 {
		t.Errorf("%d seeds of one lock and %d of the other", a, b)
	}
	if n := strings.Count(read(t, "gate.xml"), "<skipped"); n != skipped {
		t.Errorf("JUnit skips %d, want %d", n, skipped)
	}
}

// TestGateOnGitHub: annotations on stderr, the summary behind what the step
// has written before, and stdout left to the result.
func TestGateOnGitHub(t *testing.T) {
	inFolder(t, failing)
	summary := filepath.Join(t.TempDir(), "summary.md")
	if err := os.WriteFile(summary, []byte("# before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(onGitHub, "true")
	t.Setenv(githubSummary, summary)
	r := invoke(t, "gate", "--format", "json")
	r.want(t, reports.ExitViolation, "::error file=holdfast.yaml,title=holdfast%3A release-without-owner-check in slow-work%3A exclusion%2C broken::")
	if !json.Valid([]byte(r.out)) {
		t.Error("stdout is not the document alone")
	}
	if s := read(t, summary); !strings.HasPrefix(s, "# before\n") || !strings.Contains(s, "## holdfast gate: FAILED") || !strings.Contains(s, "two hold") {
		t.Errorf("the summary is %.500s", s)
	}
	r = invoke(t, "gate", "--annotations=false", "--summary", "")
	if strings.Contains(r.errs, "::error") {
		t.Error("annotations, although they are switched off")
	}
}

// TestTheStandardSuitePasses: a gate that nobody has configured is green, so
// that what it fails on is news.
func TestTheStandardSuitePasses(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs")
	}
	t.Chdir(t.TempDir())
	invoke(t, "gate").want(t, reports.ExitExpected, "PASSED  suite standard")
}

func TestGateUsage(t *testing.T) {
	inFolder(t, failing)
	for _, c := range []struct{ args, say string }{
		{"gate calm", `takes no argument, not "calm"`},
		{"gate --shard 5/4", "is not a shard"},
		{"gate --shard 1/9", "too few for 9 shards"},
		{"gate --shard=", "--shard is empty"},
		{"gate --suite quikc", `did you mean "quick"?`},
		{"gate --suite quick --config holdfast.yaml", "name one suite"},
		{"gate --config nothing.yaml", "no such file"},
		{"gate --format junti", `did you mean "junit"?`},
		{"gate --on simm", `did you mean "sim"?`},
		{"gate --seeds 0", "at least one seed"},
		{"gate --budget -1s", "a budget is positive"},
		{"gate --budget 5", "write 500ms, 10s or 2m"},
		{"gate --baseline nothing.json", "no such file"},
		{"gate --update-baseline", "which file?"},
		{"gate --update-baseline --baseline b.json --shard 1/2", "needs the whole suite"},
		{"gate --lock redlok", `did you mean "redlock"?`},
		{"gate --lock watchdog", "no run for this choice"},
		{"gate -o a --junit ./a", "write the same file"},
		{"merge", "which files?"},
		{"merge a --format x", "there is no format"},
	} {
		r := invoke(t, strings.Fields(c.args)...)
		r.want(t, exitUsage, c.say)
		if r.out != "" {
			t.Errorf("%s: a usage error belongs on stderr, and stdout has %q", c.args, r.out)
		}
	}
	invoke(t, "gate", "--config", write(t, "s.yaml", "runs:\n  - {locks: basic, scenarios: clam}\n")).
		want(t, exitUsage, `s.yaml:2:31: "clam" is not right here; did you mean "calm"?`)
	// A place that cannot be written does not hide what was found.
	invoke(t, "gate", "--junit", "/proc/nowhere/x.xml").want(t, reports.ExitViolation, "FAILED", "/proc/nowhere")
	invoke(t, "gate", "--lock", "basic", "--junit", "/proc/nowhere/x.xml").want(t, reports.ExitError, "PASSED", "/proc/nowhere")
}

// TestGateInterrupted is Ctrl-C: what was played is told, the rest is unknown,
// and it is no success.
func TestGateInterrupted(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(binary, "gate", "--suite", "thorough", "--lock", "reference", "--seeds", "2000", "--out", "", "-o", "gate.json")
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is looked at
	r := result{code: cmd.ProcessState.ExitCode(), out: out.String(), errs: errs.String()}
	r.want(t, reports.ExitError, "ERROR", "not played, the gate was interrupted", "holdfast: interrupted")
	var g reports.Gate
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, "gate.json"))), &g); err != nil {
		t.Fatal(err)
	}
	if !g.Interrupted || g.Counts[reports.CasePassed] == 0 || g.Counts[reports.CaseSkipped] == 0 {
		t.Errorf("interrupted: %v, %v", g.Interrupted, g.Counts)
	}
}

// TestTwoGatesKeepTheFindingsOfBoth: they may write one baseline at once.
func TestTwoGatesKeepTheFindingsOfBoth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "baseline.json")
	locks := []string{"no-ttl", "setnx-then-pexpire"}
	var gates sync.WaitGroup
	for _, lock := range locks {
		gates.Go(func() {
			cmd := exec.Command(binary, "gate", "--suite", "quick", "--lock", lock, "--baseline", file, "--update-baseline", "--out", t.TempDir())
			out, _ := cmd.CombinedOutput() // 11 where some of the runs prove nothing
			if code := cmd.ProcessState.ExitCode(); code != reports.ExitExpected && code != reports.ExitUnknown {
				t.Errorf("%s: exit code %d\n%s", lock, code, out)
			}
		})
	}
	gates.Wait()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, lock := range locks {
		if !strings.Contains(string(text), strconv.Quote(lock)) {
			t.Errorf("the findings of %s are lost\n%s", lock, text)
		}
	}
}
