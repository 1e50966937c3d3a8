package reports

import (
	"slices"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
)

func violation(name, kind string) checker.Result {
	return checker.Result{Name: name, Verdict: checker.Violation, Applies: true, Kind: kind}
}

func verdict(name string, v checker.Verdict) checker.Result {
	return checker.Result{Name: name, Verdict: v, Applies: true}
}

func na(name string) checker.Result {
	return checker.Result{Name: name, Verdict: checker.Unknown}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name     string
		results  []checker.Result
		expected map[string]string
		want     []string
	}{
		{name: "nothing at all"},
		{name: "kind", results: []checker.Result{violation("exclusion", "overrun")}, expected: map[string]string{"exclusion": "overrun"}},
		{name: "any kind", results: []checker.Result{violation("exclusion", "broken")}, expected: map[string]string{"exclusion": "violation"}},
		{name: "other kind", results: []checker.Result{violation("exclusion", "broken")}, expected: map[string]string{"exclusion": "overrun"},
			want: []string{"exclusion: expected overrun, got broken"}},
		{name: "missing violation", results: []checker.Result{pass("exclusion")}, expected: map[string]string{"exclusion": "overrun"},
			want: []string{"exclusion: expected overrun, got pass"}},
		{name: "any answer: pass", results: []checker.Result{pass("fencing")}, expected: map[string]string{"fencing": "any"}},
		{name: "any answer: violation", results: []checker.Result{violation("fencing", "fence-repeated")}, expected: map[string]string{"fencing": "any"}},
		{name: "any answer: n/a", results: []checker.Result{na("fencing")}, expected: map[string]string{"fencing": "any"}},
		{name: "any answer: none", results: []checker.Result{verdict("fencing", checker.Unknown)}, expected: map[string]string{"fencing": "any"},
			want: []string{"fencing: expected any, got unknown"}},
		{name: "unnamed violation", results: []checker.Result{violation("liveness", "")}, want: []string{"liveness: expected no violation, got liveness"}},
		{name: "unnamed unknown", results: []checker.Result{verdict("coverage", checker.Unknown)}, want: []string{"coverage: unknown"}},
		{name: "unnamed and n/a", results: []checker.Result{na("fencing")}},
		{name: "named and n/a", results: []checker.Result{na("fencing")}, expected: map[string]string{"fencing": "pass"},
			want: []string{"fencing: expected pass, got does not apply"}},
		{name: "unknown is expected", results: []checker.Result{na("fencing")}, expected: map[string]string{"fencing": "unknown"}},
		{name: "not judged", expected: map[string]string{"updates": "violation"},
			want: []string{"updates: expected violation, but the check was not run"}},
	} {
		matched, got := Match(c.results, c.expected)
		if !slices.Equal(got, c.want) || matched != (len(c.want) == 0) {
			t.Errorf("%s: %v %q, want %q", c.name, matched, got, c.want)
		}
	}
}

func TestOutcomeIsTheGravestKind(t *testing.T) {
	for _, c := range []struct {
		want    string
		results []checker.Result
	}{
		{want: "pass"},
		{want: "overrun", results: []checker.Result{violation("updates", "lost-update"), violation("exclusion", "overrun")}},
		{want: "lost-update", results: []checker.Result{violation("fencing", "stale"), violation("updates", "lost-update")}},
		{want: "liveness", results: []checker.Result{violation("liveness", ""), verdict("coverage", checker.Unknown)}},
		{want: "something-new", results: []checker.Result{violation("new-check", "something-new")}},
		{want: "error", results: []checker.Result{verdict("assumptions", checker.Error)}},
		{want: "unknown", results: []checker.Result{pass("exclusion"), verdict("coverage", checker.Unknown)}},
	} {
		if got := Outcome(c.results, checker.Overall(c.results)); got != c.want {
			t.Errorf("%v: %q, want %q", c.results, got, c.want)
		}
	}
}

func TestExitCode(t *testing.T) {
	run := func(errText string, expected map[string]string, results ...checker.Result) Run {
		return judged(Run{Error: errText, Expected: expected}, results...)
	}
	overrun := map[string]string{"exclusion": "overrun"}
	good := run("", nil, pass("exclusion"))
	unsafe := run("", overrun, violation("exclusion", "overrun"))
	surprise := run("", nil, violation("exclusion", "broken"))
	missed := run("", overrun, pass("exclusion"), pass("coverage"))
	unproven := run("", overrun, pass("exclusion"), verdict("coverage", checker.Unknown))
	unknown := run("", nil, verdict("linearizability", checker.Unknown))
	failed := run("boom", nil, pass("exclusion"))
	failedEarly := run("boom", overrun, pass("exclusion"))
	failedLate := run("boom", nil, violation("exclusion", "broken"))
	malformed := run("", overrun, verdict("assumptions", checker.Error))
	disowned := good
	disowned.Matched, disowned.Mismatches = false, []string{"two runs of one seed differ"}
	for _, c := range []struct {
		name string
		runs []Run
		want int
	}{
		{"no runs prove nothing", nil, 11},
		{"as expected", []Run{good, unsafe}, 0},
		{"unexpected violation", []Run{good, surprise}, 10},
		{"an unsafe lock that passes", []Run{missed}, 10},
		{"a pass without coverage is no answer", []Run{unproven}, 11},
		{"unknown", []Run{good, unknown}, 11},
		{"harness error", []Run{good, unknown, failed}, 12},
		{"a failed run acquits nobody", []Run{failedEarly}, 12},
		{"a violation before the failure stands", []Run{failedLate}, 10},
		{"malformed history", []Run{malformed}, 12},
		{"a surprise beats an error", []Run{failed, surprise, unknown}, 10},
		{"the harness says no", []Run{disowned}, 10},
	} {
		if got := ExitCode(c.runs); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
