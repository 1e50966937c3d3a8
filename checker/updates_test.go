package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestUpdates(t *testing.T) {
	holders := join(grant(1, "c1", 1), grant(12, "c2", 2)) // events 0 to 3
	try(t, updatesName, []trial{
		{name: "each writer had read what it replaced", want: Pass, history: story(join(holders,
			arrive(13, "c2", 2, 0, 0, true), arrive(14, "c1", 1, 1, 1, true))...)},
		{name: "a write over an update", want: Violation, kind: LostUpdate, ops: []int{4, 5},
			summary: []string{"c1 wrote version 2 at 16.00s over version 1, but it had read version 0: the update by c2 at 13.00s was lost"},
			history: story(join(holders, arrive(13, "c2", 2, 0, 0, true), arrive(16, "c1", 1, 0, 1, true))...)},
		{name: "the update is not in the history", want: Violation, kind: LostUpdate, ops: []int{4}, summary: []string{"the update was lost"},
			history: story(join(holders, arrive(13, "c2", 2, 3, 4, true))...)},
		{name: "a refused stale write loses nothing", want: Pass, history: story(join(holders,
			arrive(13, "c2", 2, 0, 0, true), arrive(16, "c1", 1, 0, 1, false))...)},
		{name: "no write applied", want: Unknown, reason: "no write was applied", history: story(join(holders,
			arrive(16, "c1", 1, 0, 1, false))...)},
		{name: "no resource at all", want: Unknown, skipped: true, reason: "no write",
			history: with(story(holders...), func(h *history.Header) { h.Resource = "" })},
	})
	// c1 is let in twice under a node that forgets it; the flush is over before
	// c2, whose write is the late one, is granted the lock.
	held := join(grant(1, "c1", 1), hit(2, 1, history.Start, "flush", "n1"), hit(2, 1, history.Stop, "flush", "n1"), grant(3, "c2", 2))
	try(t, updatesName, []trial{
		{name: "the fault is named that let the second writer in", want: Violation, kind: LostUpdate, ops: []int{6, 7}, fault: "flush",
			history: story(join(held, arrive(4, "c1", 1, 0, 0, true), arrive(5, "c2", 2, 0, 1, true))...)},
	})
	r := updates(Gather(story(join(holders, arrive(13, "c2", 2, 0, 0, true), arrive(16, "c1", 1, 0, 1, true),
		arrive(17, "c1", 1, 2, 2, true), arrive(18, "c1", 1, 3, 3, true))...)))
	if r.Figures["writes"] != 4 || r.Figures["lost"] != 1 || r.Figures["lost_percent"] != 25 {
		t.Errorf("figures %v, want 1 of 4 lost", r.Figures)
	}
}
