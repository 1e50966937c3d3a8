package reports

import (
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
)

func TestAvailabilityOfAMatrix(t *testing.T) {
	run := func(lock string, held, free float64) Run {
		return Run{Scenario: "cut", Lock: lock, Verdict: checker.Pass, Checks: []checker.Result{{Name: "coverage", Verdict: checker.Pass, Applies: true,
			Figures: map[string]float64{checker.HeldDuring: held, checker.LongestFree: free}}}}
	}
	quiet := Run{Scenario: "calm", Lock: "a", Verdict: checker.Pass}
	m := MatrixOf([]Run{run("a", 80, 1), run("a", 60, 3), run("b", 10, 9), quiet}, nil, nil, nil)
	var b strings.Builder
	if err := m.TextAvailability(&b); err != nil {
		t.Fatal(err)
	}
	const want = `while something was broken  lock  outcome             held  nobody's for
cut                         a     pass! 2/2 (0-66 %)  70 %  3.0 s
cut                         b     pass!               10 %  9.0 s
`
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
