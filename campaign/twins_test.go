package campaign

import (
	"maps"
	"slices"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// twinsUnderPlans are the locks that are no control: each has weaknesses, and
// they show.
var twinsUnderPlans = []string{"basic", "watchdog", "redlock", "service", "reentrant", "fair", "rwlock", "semaphore"}

// onlyByFault are findings that no lock on these lists can bring about by
// itself: a node has to lose data, or its clock has to move.
var onlyByFault = []string{"lease data-lost", "lease expired-early"}

// TestTwinsUnderRandomPlans plays the other locks under plans that break
// anything. What is found is told by class, and is no failure; what holds for
// every lock is. No history is malformed, no check falls over, nobody speaks who
// stands still, and no node lets a key go without a fault.
func TestTwinsUnderRandomPlans(t *testing.T) {
	sweeping(t)
	for _, lock := range twinsUnderPlans {
		t.Run(lock, func(t *testing.T) {
			topology := cluster.Single
			if lock == "redlock" {
				topology = cluster.Independent
			}
			tally := map[string]int{}
			for seed := range uint64(max(5, plans()/20)) {
				s, run, h := playPlan(t, lock, topology, seed)
				if said := spoke(h); said != "" {
					t.Errorf("%s  a client that stood still spoke %s", planOf(s), said)
				}
				if run.Verdict == checker.Error || run.Error != "" || len(run.Leaks) > 0 {
					t.Errorf("%s%s", planOf(s), sentences(run))
				}
				for _, f := range findings(run, h) {
					tally[f.check+" "+f.Kind]++
					if len(f.causes) == 0 && slices.Contains(onlyByFault, f.check+" "+f.Kind) {
						t.Errorf("%s  nothing in the plan explains: %s", planOf(s), f.Summary)
					}
				}
			}
			for _, class := range slices.Sorted(maps.Keys(tally)) {
				t.Logf("%6d  %s", tally[class], class)
			}
		})
	}
}

// TestQuorumLocksAnswerTruly: of the locks that ask several nodes none tells these
// lies, whatever breaks. That is what makes the checks fit to find them.
func TestQuorumLocksAnswerTruly(t *testing.T) {
	sweeping(t)
	lies := []string{checker.NoButQuorum, checker.YesButKept, checker.NoButDeleted, checker.Stopped}
	for _, lock := range []string{"redlock", "redsync", "redsync+failfast"} {
		t.Run(lock, func(t *testing.T) {
			refused := 0
			for seed := range uint64(max(5, plans()/40)) {
				s, run, h := playPlan(t, lock, cluster.Independent, seed)
				for _, f := range findings(run, h) {
					if slices.Contains(lies, f.Kind) {
						t.Errorf("%s  %s %s: %s", planOf(s), f.check, f.Kind, f.Summary)
					}
				}
				for _, e := range h.Events {
					if e.Op != nil && e.Op.F == history.Acquire && e.Op.Type == history.Fail {
						refused++
					}
				}
			}
			if refused == 0 {
				t.Error("no acquire was refused: nothing was judged")
			}
		})
	}
}
