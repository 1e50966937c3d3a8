package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// watched is a history of a primary n1 with replicas that sentinels promote.
func watched(events ...any) *history.History {
	return with(story(join(events...)...), func(h *history.Header) { h.Topology, h.Nodes, h.World = "sentinel", 3, "process" })
}

// promoted is a promotion by the sentinels, over as soon as it has happened.
func promoted(t float64, id int, old, node string) []history.Event {
	return []history.Event{hit(t, id, history.Start, history.Promotion, old, node), hit(t, id, history.Stop, history.Promotion, old, node)}
}

// Two nodes take themselves for the primary for a while. What counts is the one
// that the sentinels made it.
func TestLeaseUnderSentinels(t *testing.T) {
	const release = history.Release
	worked := note(9, "c1", history.Worked, 1)
	has := server(2.000001, "n2", "", history.Promoted, "c1#1", 8.95)
	try(t, leaseName, []trial{
		{name: "promoted without it", want: Violation, kind: DataLost, ops: []int{2, 3}, fault: "promotion", summary: []string{"lost c1's token at 2.00s"},
			history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"), worked)},
		{name: "promoted with it", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"), has, worked)},
		{name: "promoted when the lease was over", want: Pass,
			history: watched(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), promoted(11.5, 1, "n1", "n2"), note(12, "c1", history.Worked, 1))},
		{name: "promoted when it had been given back", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"), given(3, "c1", 1), promoted(4, 1, "n1", "n2"), taken(5, "c2", 2, "c2#1"))},
		{name: "an election that comes to nothing", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"),
			server(2, "n2", "", history.Promoted, "c3#1", 8.95), gone(3, "n2", "", history.Lostkeys), worked)},
		{name: "another client reads on a replica", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"), gone(2, "n2", "c2", "GET"), worked)},
		{name: "a script that the replica refuses", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"), gone(2, "n2", "c2", "EVALSHA"), worked)},
		{name: "a node takes a write, and its promotion is not on record", want: Violation, kind: DataLost, ops: []int{2, 3},
			history: watched(taken(1, "c1", 1, "c1#1"), server(2, "n2", "c2", "SET", "c2#1", 10), worked)},
		{name: "granted by the primary that was replaced", want: Violation, kind: DataLost, ops: []int{6}, fault: "partition",
			summary: []string{"c1 was granted the lock at 4.00s by n1, in whose place another node was the primary by then"},
			history: watched(hit(0, 7, history.Start, "partition", "n1->n2", "n2->n1"), server(0.5, "n1", "c3", "SET", "", -0.002), promoted(2, 1, "n1", "n2"),
				taken(4, "c1", 1, "c1#1"), worked)},
		{name: "what becomes of the old primary's copy is nothing", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"), has,
			gone(3, "n1", "", history.Lostkeys), server(4, "n1", "c2", "SET", "c2#1", 10), worked)},
		{name: "lost by the new primary", want: Violation, kind: DataLost, ops: []int{2, 6}, fault: "promotion",
			history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"), has, gone(4, "n2", "", history.Lostkeys), worked)},
		{name: "the old primary is promoted again, with it", want: Pass, history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"), has,
			promoted(4, 2, "n2", "n1"), server(4.000001, "n1", "", history.Promoted, "c1#1", 6.95), worked)},
		{name: "given back where it was granted", want: Pass, history: watched(promoted(0, 1, "n1", "n2"), invoke(0.9, "c1", history.Acquire, 1),
			server(0.95, "n2", "c1", "SET", "c1#1", 10), ok(1, "c1", history.Acquire, 1), invoke(3, "c1", release, 1), gone(3.1, "n2", "c1", "EVALSHA"), ok(3.2, "c1", release, 1))},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: watched(grant(1, "c1", 1), promoted(2, 1, "n1", "n2"))},
	})
}

// Nobody can clean up on a node that clients are not led to any more.
func TestOrphansUnderSentinels(t *testing.T) {
	const acquire = history.Acquire
	left := func(node string) []history.Event {
		return join(invoke(3, "c1", acquire, 1), server(3.1, node, "c1", "SET", "c1#1", 10), fail(4, "c1", acquire, 1),
			gone(13.2, node, "", history.Expired), final(20))
	}
	try(t, orphansName, []trial{
		{name: "on the primary that was replaced before", want: Pass, history: watched(promoted(2, 1, "n1", "n2"), left("n1"))},
		{name: "on the primary that was replaced soon after", want: Pass, history: watched(left("n1")[:3], promoted(4.1, 1, "n1", "n2"), left("n1")[3:])},
		{name: "on the new primary", want: Violation, kind: Orphan, ops: []int{2, 4, 3}, history: watched(promoted(2, 1, "n1", "n2"), left("n2"))},
		{name: "on the old one, after it was promoted again", want: Violation, kind: Orphan, ops: []int{4, 6, 5},
			history: watched(promoted(1, 1, "n1", "n2"), promoted(2, 2, "n2", "n1"), left("n1"))},
	})
}

// With a second primary the lock is granted twice, and both grants are inside
// the other's lease.
func TestExclusionInASplitBrain(t *testing.T) {
	worked := note(9, "c1", history.Worked, 1)
	try(t, exclusionName, []trial{
		{name: "two primaries grant it", want: Violation, kind: Broken, ops: []int{2, 7}, fault: "promotion", history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"),
			invoke(2.9, "c2", history.Acquire, 2), server(2.95, "n2", "c2", "SET", "c2#1", 10), ok(3, "c2", history.Acquire, 2), worked)},
		{name: "the second grants it when the first lease is over", want: Violation, kind: Overrun, ops: []int{2, 7}, fault: "promotion",
			history: watched(taken(1, "c1", 1, "c1#1"), promoted(2, 1, "n1", "n2"),
				invoke(11.9, "c2", history.Acquire, 2), server(11.95, "n2", "c2", "SET", "c2#1", 10), ok(12, "c2", history.Acquire, 2), note(13, "c1", history.Worked, 1))},
	})
}

func TestAvailability(t *testing.T) {
	figures := func(events ...any) map[string]float64 { return Judge(watched(events...))[len(All())-1].Figures }
	got := figures(taken(1, "c1", 1, "c1#1"), hit(3, 1, history.Start, "kill", "n1"), given(5, "c1", 1), taken(9, "c2", 2, "c2#1"), given(12, "c2", 2), hit(13, 1, history.Stop, "kill", "n1"))
	for name, want := range map[string]float64{HeldDuring: 50, LongestFree: 4, HeldBefore: 100 * 2.0 / 3} {
		if diff := got[name] - want; diff > 0.1 || diff < -0.1 {
			t.Errorf("%s is %.2f, want %.2f", name, got[name], want)
		}
	}
	if got := figures(taken(1, "c1", 1, "c1#1"), given(5, "c1", 1)); got[HeldDuring] != 0 {
		t.Errorf("without faults: %v", got)
	}
}
