package checker

import (
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

func TestLease(t *testing.T) {
	worked := note(9, "c1", history.Worked, 1)
	five := func(events ...history.Event) *history.History {
		return with(story(events...), func(h *history.Header) { h.Topology, h.Nodes = "independent", 5 })
	}
	votes := func(nodes ...string) []history.Event {
		events := []history.Event{invoke(0, "c1", history.Acquire, 1)}
		for i, n := range nodes {
			events = append(events, server(0.1+float64(i)/10, n, "c1", "SET", "c1#1", 10))
		}
		return append(events, ok(1, "c1", history.Acquire, 1))
	}
	sharded := func(events ...history.Event) *history.History {
		return with(story(events...), func(h *history.Header) { h.Topology, h.Nodes = "cluster", 6 })
	}
	replicated := func(events ...history.Event) *history.History {
		return with(story(events...), func(h *history.Header) { h.Topology, h.Nodes = "replicated", 2 })
	}
	lost4 := gone(3, "n3", "", history.Lostkeys)
	try(t, leaseName, []trial{
		{name: "a minority of the voters is lost, the first votes end first", want: Pass, history: five(join(votes("n1", "n2", "n3", "n4", "n5"), lost4,
			gone(10.101, "n1", "", history.Expired), gone(10.201, "n2", "", history.Expired), gone(10.401, "n4", "", history.Expired), note(12, "c1", history.Worked, 1))...)},
		{name: "a majority of the voters is lost", want: Violation, kind: DataLost, ops: []int{6, 9}, history: five(join(votes("n1", "n2", "n3", "n4", "n5"), lost4,
			gone(3.1, "n1", "", history.Lostkeys), gone(3.2, "n2", "", history.Lostkeys), note(12, "c1", history.Worked, 1))...)},
		{name: "carried to the release", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), given(5, "c1", 1))...)},
		{name: "expired when the guarantee was over", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))...)},
		{name: "half a millisecond early", want: Violation, kind: ExpiredEarly, ops: []int{2, 3},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.9495, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))...)},
		{name: "half a millisecond early by the stamps of a real server", want: Pass,
			history: with(story(join(taken(1, "c1", 1, "c1#1"), gone(10.9495, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))...), func(h *history.Header) { h.World = "process" })},
		{name: "servers count whole milliseconds of a TTL", want: Pass,
			history: with(story(join(taken(1, "c1", 1, "c1#1"), gone(10.9501, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))...), func(h *history.Header) { h.TTL += 300 * time.Microsecond })},
		{name: "an absolute expiry counts from the request", want: Pass, history: story(
			invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "EVAL", "c1#1", 9.96), ok(1, "c1", history.Acquire, 1),
			gone(10.911, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))},
		{name: "expired early", want: Violation, kind: ExpiredEarly, ops: []int{2, 4}, fault: "clock (n1, from 2.00s on)",
			summary: []string{"c1's token expired on the node at 2.10s", "guaranteed until 10.95s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), hit(2, 1, history.Start, "clock", "n1"), gone(2.1, "n1", "", history.Expired), worked)...)},
		{name: "lost with the node's data", want: Violation, kind: DataLost, ops: []int{2, 3}, summary: []string{"lost c1's token at 3.00s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(3, "n1", "", history.Lostkeys), worked)...)},
		{name: "deleted by another", want: Violation, kind: Deleted, ops: []int{2, 3}, summary: []string{"to a command of c2 that deleted it"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(3, "n1", "c2", "DEL"), worked)...)},
		{name: "written over", want: Violation, kind: Overwritten, ops: []int{2, 3},
			history: story(join(taken(1, "c1", 1, "c1#1"), server(3, "n1", "c2", "SET", "c2#1", 10), worked)...)},
		{name: "a refused SET of another shows the same token", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), server(3, "n1", "c2", "SET", "c1#1", 7.95), worked)...)},
		{name: "told ok with nothing there", want: Violation, kind: NeverThere, ops: []int{2}, summary: []string{"did not carry c1's token at 1.00s"},
			history: story(join(server(0, "n1", "c2", "SET", "c2#1", 10), grant(1, "c1", 1), worked)...)},
		{name: "carried under a token that changes with each renewal", want: Pass,
			history: story(join(taken(1, "c1", 1, "c1#1"), server(4, "n1", "c1", "EVALSHA", "c1#2", 10), server(8, "n1", "c1", "EVALSHA", "c1#3", 10), gone(18.001, "n1", "", history.Expired), note(19, "c1", history.Worked, 1))...)},
		{name: "lost under a token that changes with each renewal", want: Violation, kind: DataLost, ops: []int{2, 5},
			history: story(join(taken(1, "c1", 1, "c1#1"), server(4, "n1", "c1", "EVALSHA", "c1#2", 10), server(8, "n1", "c1", "EVALSHA", "c1#3", 10), gone(12, "n1", "", history.Lostkeys), note(19, "c1", history.Worked, 1))...)},
		{name: "a permit that was granted, and swept while its client slept", want: Pass,
			history: insim(with(story(join(server(0, "n1", "c2", "EVALSHA", "c2#1", 10), invoke(0.05, "c1", history.Acquire, 1), server(0.1, "n1", "c1", "EVALSHA", "c1#1,c2#1", 10),
				taken(10.5, "c3", 3, "c2#1,c3#1"), server(10.6, "n1", "c3", "EVALSHA", "c3#1", 9.9), ok(15, "c1", history.Acquire, 1), note(16, "c1", history.Worked, 1))...), permits(2)))},
		{name: "a permit that is swept in the last moment of its lease has expired", want: Violation, kind: ExpiredEarly, ops: []int{2, 3},
			history: insim(with(story(join(taken(1, "c1", 1, "c1#1"), server(10.88, "n1", "c2", "EVALSHA", "c2#1", 10), note(12, "c1", history.Worked, 1))...), permits(2)))},
		{name: "told ok without asking, after a lease's time", want: Violation, kind: NeverThere, ops: []int{3}, summary: []string{"no node carried c1's token at 14.00s", "it had asked none"},
			history: insim(story(join(server(0, "n1", "c2", "SET", "c2#1", 10), invoke(2, "c1", history.Acquire, 1), gone(10.001, "n1", "", history.Expired), ok(14, "c1", history.Acquire, 1), note(15, "c1", history.Worked, 1))...))},
		{name: "belief had ended before the loss", want: Pass, history: story(join(
			invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), until(ok(1, "c1", history.Acquire, 1), 2), gone(3, "n1", "", history.Lostkeys), worked)...)},
		{name: "after a released hold the key goes", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), invoke(2, "c1", history.Release, 1), gone(2.1, "n1", "c1", "EVALSHA"), info(3, "c1", history.Release, 1))...)},
		{name: "a token of the client's own from before, as of a re-entrant lock", want: Unknown, reason: "no granted acquisition's token",
			history: story(join(server(0, "n1", "c1", "EVALSHA", "c1#1", 10), grant(1, "c1", 1), worked)...)},
		{name: "a minority node loses it", want: Pass, history: five(join(votes("n1", "n2", "n3", "n4"), gone(3, "n4", "", history.Lostkeys), worked)...)},
		{name: "the third of three nodes loses it", want: Violation, kind: DataLost, ops: []int{4, 5}, summary: []string{"a quorum of 3 nodes lost c1's token"},
			history: five(join(votes("n1", "n2", "n3"), gone(3, "n3", "", history.Lostkeys), worked)...)},
		{name: "two votes of five", want: Violation, kind: NeverThere, ops: []int{3}, history: five(join(votes("n1", "n2"), worked)...)},
		{name: "two votes of five, for a lock that wants one", want: Pass, history: with(five(join(votes("n1", "n2"), worked)...), func(h *history.Header) { h.Quorum = 1 })},
		{name: "expired under another's script", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.9, "n1", "c2", "EVALSHA"), gone(10.951, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))...)},
		{name: "promoted without it", want: Violation, kind: DataLost, ops: []int{2, 3}, fault: "failover",
			history: replicated(join(taken(1, "c1", 1, "c1#1"), hit(2, 1, history.Start, "failover", "n1", "n2"), worked)...)},
		{name: "promoted with it", want: Pass,
			history: replicated(join(taken(1, "c1", 1, "c1#1"), server(2, "n2", "", history.Promoted, "c1#1", 8.95), hit(2, 1, history.Start, "failover", "n1", "n2"), worked)...)},
		{name: "promoted again with what it had before it died", want: Violation, kind: DataLost, ops: []int{2, 5}, fault: "failover", summary: []string{"at 3.00s"},
			history: replicated(join(taken(1, "c1", 1, "c1#1"), server(2, "n2", "", history.Promoted, "c1#1", 8.95), hit(2, 1, history.Start, "failover", "n1", "n2"), hit(3, 2, history.Start, "failover", "n2", "n1"), worked)...)},
		{name: "a replica's loss is nothing", want: Pass,
			history: replicated(join(taken(1, "c1", 1, "c1#1"), server(1.1, "n2", "", "SET", "c1#1", 9.85), gone(3, "n2", "", history.Lostkeys), worked)...)},
		{name: "the key moves with its slot", want: Pass,
			history: sharded(join(taken(1, "c1", 1, "c1#1"), server(2, "n2", "", history.Moved, "c1#1", 8.95), gone(2.001, "n1", "", "MIGRATE"), worked)...)},
		{name: "the slot moves and the key does not", want: Violation, kind: DataLost, ops: []int{2, 3},
			history: sharded(join(taken(1, "c1", 1, "c1#1"), gone(2, "n1", "", "MIGRATE"), server(2.5, "n2", "c2", "SET", "c2#1", 10), worked)...)},
		{name: "the replica of a slot is told too, and does not count", want: Pass, history: sharded(join(taken(1, "c1", 1, "c1#1"),
			server(2, "n2", "", history.Moved, "c1#1", 8.95), server(2.001, "n5", "", "RESTORE-ASKING", "c1#1", 8.95), gone(2.001, "n1", "", "MIGRATE"), gone(2.1, "n5", "", history.Lostkeys), worked)...)},
		{name: "elected without it", want: Violation, kind: DataLost, ops: []int{2, 4}, fault: "failover", history: sharded(join(taken(1, "c1", 1, "c1#1"),
			hit(2, 1, history.Start, "failover", "n1", "n4"), gone(4, "n4", "", history.Promoted), worked)...)},
		{name: "elected with it", want: Pass, history: sharded(join(taken(1, "c1", 1, "c1#1"), server(1.1, "n4", "", "SET", "c1#1", 9.85),
			hit(2, 1, history.Start, "failover", "n1", "n4"), server(4, "n4", "", history.Promoted, "c1#1", 6.95), worked)...)},
		{name: "killed and not replaced yet", want: Pass, history: sharded(join(taken(1, "c1", 1, "c1#1"), hit(2, 1, history.Start, "failover", "n1", "n4"), worked)...)},
		{name: "another key's shard is elected", want: Pass, history: sharded(join(taken(1, "c1", 1, "c1#1"), keyed(gone(4, "n5", "", history.Promoted), "lock:b"), worked)...)},
		{name: "granted by a primary that had been deposed", want: Violation, kind: DataLost, ops: []int{9}, history: sharded(join(taken(1, "c1", 1, "c1#1"), given(2, "c1", 1),
			gone(3, "n4", "", history.Promoted), taken(3.5, "c2", 2, "c2#1"), note(4, "c2", history.Worked, 2))...)},
		{name: "a lock of several nodes counts votes, in a cluster as well", want: Violation, kind: NeverThere, ops: []int{2}, history: with(sharded(join(taken(1, "c1", 1, "c1#1"), worked)...),
			func(h *history.Header) { h.Quorum = 4 })},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
		{name: "nobody's commands", want: Unknown, skipped: true, reason: "which client", history: story(join(grant(1, "c1", 1), server(2, "n1", "", "SET", "?#1", 10))...)},
	})
}
