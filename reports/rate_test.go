package reports

import (
	"math"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
)

// TestWilson compares with values of the published formula, computed elsewhere.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		hits, of  int
		low, high float64
	}{
		{0, 3, 0, 0.561497}, {3, 3, 0.438503, 1}, {0, 100, 0, 0.036995}, {5, 10, 0.236593, 0.763407}, {18, 20, 0.698959, 0.972139}, {0, 0, 0, 1},
	} {
		r := RateOf(c.hits, c.of)
		if math.Abs(r.Low-c.low) > 1e-5 || math.Abs(r.High-c.high) > 1e-5 {
			t.Errorf("%d of %d: %.6f to %.6f, want %.6f to %.6f", c.hits, c.of, r.Low, r.High, c.low, c.high)
		}
	}
}

// TestUnprovenRunsAreNoPasses: a run without an answer widens nothing.
func TestUnprovenRunsAreNoPasses(t *testing.T) {
	runs := []Run{{Verdict: checker.Violation}, {Verdict: checker.Unknown}, {Verdict: checker.Error}, {Verdict: checker.Pass}}
	if r := Violations(runs); r.Hits != 1 || r.Of != 2 {
		t.Errorf("%+v, want 1 of 2", r)
	}
	if s := Violations(runs[1:3]).Interval(); s != "" {
		t.Errorf("an interval without an answer: %s", s)
	}
	if s := RateOf(18, 20).Interval(); s != "(70-97 %)" {
		t.Errorf("interval %s", s)
	}
	if s := RateOf(0, 1000).Interval(); s != "(0-0.4 %)" {
		t.Errorf("interval %s", s)
	}
}

// TestASmallShareIsNotNone: two updates of thousands are a damage, and a share
// of 0 % beside them would deny it.
func TestASmallShareIsNotNone(t *testing.T) {
	for _, c := range []struct {
		lost, writes float64
		want         string
	}{
		{2, 6901, "2 of 6901 acknowledged writes lost, 0.029 %."}, {2, 7, "2 of 7 acknowledged writes lost, 28.6 %."},
		{5, 1000, "5 of 1000 acknowledged writes lost, 0.5 %."}, {3, 100, "3 of 100 acknowledged writes lost, 3 %."},
	} {
		updates := violation("updates", "lost-update")
		updates.Figures = map[string]float64{"lost": c.lost, "writes": c.writes}
		if got := damage(Run{Checks: []checker.Result{updates}}); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.lost, c.writes, got, c.want)
		}
	}
	if got := percent(2.0 / 6901); got != "0.029" {
		t.Errorf("the share of a sweep is %s %%", got)
	}
}

// TestShownRuns: of each cell the worst run, in the order of the runs.
func TestShownRuns(t *testing.T) {
	run := func(lock string, v checker.Verdict) Run {
		return Run{Lock: lock, Scenario: "s", Verdict: v, Matched: true}
	}
	got := ShownRuns([]Run{run("b", checker.Pass), run("a", checker.Violation), run("b", checker.Violation), run("a", checker.Pass)})
	if len(got) != 2 || got[0] != 2 || got[1] != 1 {
		t.Errorf("shown are the runs %v, want 2 and 1", got)
	}
}
