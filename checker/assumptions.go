package checker

import (
	"fmt"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

const assumptionsName = "assumptions"

// mostProblems is how many problems of a malformed history the reason names.
const mostProblems = 3

// assumptions says whether the history is one from which anything can be
// concluded. It is no violation of a lock if it is not: the recording is at
// fault.
func assumptions(f *Facts) Result {
	problems := history.Validate(f.History)
	for i, e := range f.History.Events {
		// Nobody knows what was broken for how long.
		if e.Nemesis != nil && e.Nemesis.Error != "" {
			problems = append(problems, history.Problem{Index: i, Text: "a fault did not heal: " + e.Nemesis.Error})
		}
	}
	if len(problems) == 0 {
		return Result{Verdict: Pass, Applies: true}
	}
	var words []string
	for _, p := range problems[:min(len(problems), mostProblems)] {
		words = append(words, p.String())
	}
	reason := "the history is malformed: " + strings.Join(words, "; ")
	if more := len(problems) - mostProblems; more > 0 {
		reason += fmt.Sprintf("; and %d more", more)
	}
	return Result{Verdict: Error, Applies: true, Reason: reason, Figures: map[string]float64{"problems": float64(len(problems))}}
}
