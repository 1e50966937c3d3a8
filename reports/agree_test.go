package reports

import (
	"testing"

	"github.com/holdfast-io/holdfast/checker"
)

// The stories carry verdicts written by hand, so that a report can be tested
// without the checks. They must still be what the checks say.
func TestStoriesAgreeWithTheChecks(t *testing.T) {
	for _, name := range []string{"kleppmann", "clock-jump", "calm"} {
		run, h := stories[name]()
		byHand := map[string]checker.Result{}
		for _, r := range run.Checks {
			byHand[r.Name] = r
		}
		for _, r := range checker.Judge(h) {
			want, told := byHand[r.Name]
			if r.Name != "exclusion" && r.Name != "updates" || !told || !r.Applies {
				continue
			}
			if r.Verdict == checker.Unknown {
				continue // this story has no writes
			}
			if r.Verdict != want.Verdict || r.Kind != want.Kind || found(r) != found(want) {
				t.Errorf("%s: %s is %s %s (%d), the story says %s %s (%d)", name, r.Name,
					r.Verdict, r.Kind, found(r), want.Verdict, want.Kind, found(want))
			}
		}
	}
}
