package study

import (
	"fmt"
	"slices"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
)

// Question is asked of each run and answered with yes or no.
type Question struct {
	// Words finish the sentence "In how many runs ...".
	Words string
	// checks any of which is violated in a run for which the answer is yes.
	checks []string
	// stretch, in TTLs: the answer is yes for a run in which nobody was granted
	// the lock for that long.
	stretch float64
}

// The questions of the studies.
var (
	TwoHolders = Question{Words: "two clients held the lock at once", checks: []string{"exclusion"}}
	LostUpdate = Question{Words: "a write was lost", checks: []string{"updates"}}
	Harm       = Question{Words: "two clients held the lock at once, or a write was lost", checks: []string{"exclusion", "updates"}}
	FenceBack  = Question{Words: "a later holder had the smaller fencing token", checks: []string{"fencing"}}
	KeyLeft    = Question{Words: "a vote stayed on a node and belonged to nobody", checks: []string{"orphans"}}
	ExtendLate = Question{Words: "a lease was extended that had been another's in between", checks: []string{"continuity"}}
	NoGrant    = Question{Words: "nobody was granted the lock for 0.9 TTL or longer", stretch: 0.9}
)

// Answer counts the runs.
type Answer struct {
	reports.Rate
	// Silent runs did not exercise their scenario, so that they prove nothing
	// and are not counted in the rate: nobody was granted the lock while its
	// fault lasted, for example.
	Silent int
}

// Ask puts a question to every run of a case.
func (e *Evidence) Ask(q Question) Answer {
	hits, of, silent := 0, 0, 0
	for i, r := range e.Runs {
		yes, known := q.of(r, e.Costs[i])
		switch {
		case yes:
			hits++
			of++
		case known:
			of++
		default:
			silent++
		}
	}
	return Answer{Rate: reports.RateOf(hits, of), Silent: silent}
}

// of answers for one run. A violation counts also where the run has not
// exercised all of its scenario; its absence does not.
func (q Question) of(r reports.Run, c Costs) (yes, known bool) {
	if q.stretch > 0 {
		return c.LongestGap >= q.stretch, true
	}
	known = answered(r, "coverage", true)
	for _, name := range q.checks {
		if slices.ContainsFunc(r.Checks, func(c checker.Result) bool {
			return c.Name == name && c.Applies && c.Verdict == checker.Violation
		}) {
			return true, true
		}
	}
	// The first check is what the question is about; of the others an answer
	// may be missing, as that of the updates where nothing was written.
	return false, known && answered(r, q.checks[0], false)
}

// answered says whether a check gave an answer; where passed, the right one.
// One that does not apply, as coverage where a scenario asks for none, is no
// hindrance.
func answered(r reports.Run, check string, passed bool) bool {
	for _, c := range r.Checks {
		if c.Name == check {
			return !c.Applies || c.Verdict == checker.Pass || !passed && c.Verdict == checker.Violation
		}
	}
	return false
}

// Share is what a text says of an answer.
type Share int

// The shares. Seldom and sometimes are not told apart.
const (
	Never Share = iota
	Sometimes
	Always
)

// String is the word of the page.
func (s Share) String() string { return [...]string{"never", "sometimes", "always"}[s] }

// Share of an answer.
func (a Answer) Share() Share {
	switch a.Hits {
	case 0:
		return Never
	case a.Of:
		return Always
	}
	return Sometimes
}

// All is the answer over all runs, in which those that prove nothing count as
// no: in how many runs it came to harm, whatever the reason of the others.
func (a Answer) All() reports.Rate { return reports.RateOf(a.Hits, a.Of+a.Silent) }

// String is "20 of 20 (84-100 %)".
func (a Answer) String() string {
	if a.Of == 0 {
		return "no answer"
	}
	return fmt.Sprintf("%d of %d %s", a.Hits, a.Of, a.Interval())
}

// Test is a case, a question, and what the text around it relies on.
type Test struct {
	Case
	Asks Question
	Want Share
}

// Check is an error where the runs do not say what the text says, and where any
// of them proves nothing.
func (b Book) Check(t Test) error {
	a := b[t.Case].Ask(t.Asks)
	switch {
	case a.Silent > 0:
		return fmt.Errorf("%s with %s: %d of %d runs prove nothing", t.Scenario, t.Lock, a.Silent, a.Silent+a.Of)
	case a.Share() != t.Want:
		return fmt.Errorf("%s with %s: the text says that %s %s, and it was so in %s runs",
			t.Scenario, t.Lock, t.Want, t.Asks.Words, a)
	}
	return nil
}
