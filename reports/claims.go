package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
)

// Claim is what the author of a lock promises and the scenarios that test it.
type Claim struct {
	Lock string `json:"lock"`
	// Claim is the property: "tolerance of GC pauses".
	Claim string `json:"claim"`
	// Promise is the author's word for it: "high", "no", "with Lua".
	Promise string `json:"promise"`
	// Scenarios any one of which can refute the promise.
	Scenarios []string `json:"scenarios"`
}

// The measured truths about a claim.
const (
	Refuted   = "refuted"    // promised, and a scenario broke it
	Confirmed = "confirmed"  // a weakness was admitted, and a scenario showed it
	Held      = "held"       // every scenario that ran passed
	NotTested = "not tested" // no scenario ran to a verdict
)

// Measured is a claim beside the truth.
type Measured struct {
	Claim
	// Truth is refuted, confirmed, held or not tested.
	Truth string `json:"truth"`
	// Finding says it in words, with the scenarios: "refuted by kleppmann-gc-pause (overrun)".
	Finding string `json:"finding"`
}

// admitted are the first words of a promise that promises nothing: a violation
// then confirms the author instead of refuting him.
var admitted = []string{"no", "none", "not", "never", "low", "poor", "optional"}

// admits says whether a promise admits the weakness.
func (c Claim) admits() bool {
	words := strings.FieldsFunc(strings.ToLower(c.Promise), func(r rune) bool { return r < 'a' || r > 'z' })
	return len(words) > 0 && slices.Contains(admitted, words[0])
}

// measure holds a claim against the runs. Any violation in one of its
// scenarios counts, expected or not: that a scenario expects a lock to fail
// makes the promise no truer.
func measure(c Claim, runs []Run) Measured {
	var bad, good, open []string
	for _, name := range c.Scenarios {
		of := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Scenario != name || r.Lock != c.Lock })
		worst := worstOf(of)
		switch {
		case worst == nil || worst.Verdict == checker.Unknown || worst.Verdict == checker.Error:
			open = append(open, name)
		case worst.Verdict == checker.Violation:
			bad = append(bad, fmt.Sprintf("%s (%s)", name, outcomeOf(*worst)))
		default:
			good = append(good, name)
		}
	}
	m := Measured{Claim: c, Truth: NotTested}
	if m.Scenarios == nil {
		m.Scenarios = []string{}
	}
	switch {
	case len(bad) > 0 && c.admits():
		m.Truth, m.Finding = Confirmed, "admitted, and shown by "+strings.Join(bad, ", ")
	case len(bad) > 0:
		m.Truth, m.Finding = Refuted, "refuted by "+strings.Join(bad, ", ")
	case len(good) > 0:
		m.Truth, m.Finding = Held, "held in "+strings.Join(good, ", ")
		if len(open) > 0 {
			m.Finding += "; not tested in " + strings.Join(open, ", ")
		}
	case len(open) > 0:
		m.Finding = "not tested (no verdict from " + strings.Join(open, ", ") + ")"
	default:
		m.Finding = "not tested"
	}
	return m
}
