package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestOrphans(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	// left is an acquire that fails at 2 and leaves a key set at 1.
	left := func(events ...any) []history.Event {
		return join(append([]any{invoke(0.9, "c1", acquire, 1), server(1, "n1", "c1", "SET", "c1#1", 10), fail(2, "c1", acquire, 1)}, events...)...)
	}
	end := gone(11.001, "n1", "", history.Expired)
	struck := hit(0, 1, history.Start, "strike", "c1->n1")
	struck.Nemesis.What = "the reply of SET 1 from c1 to n1 comes 0.1 TTL late"
	try(t, orphansName, []trial{
		{name: "acquired and released", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), given(5, "c1", 1), taken(7, "c1", 2, "c1#1"), given(8, "c1", 2), final(20))...)},
		{name: "deleted by the next attempt, in time", want: Pass, history: story(left(gone(3, "n1", "c1", "EVALSHA"), final(20))...)},
		{name: "left by a failed acquire", want: Violation, kind: Orphan, ops: []int{0, 2, 1}, summary: []string{"c1's key on n1 was there for 9.00s (0.90 TTL) more", "after its acquire had failed at 2.00s"},
			history: story(left(end)...)},
		{name: "a lost reply is no excuse", want: Violation, kind: Orphan, ops: []int{1, 3, 2}, fault: "lose-reply",
			history: story(join(hit(0, 1, history.Start, "lose-reply", "n1->c1"), left(end))...)},
		{name: "the link is cut when it should clean up", want: Pass, history: story(join(hit(0, 1, history.Start, "cut", "c1->n1"), left(hit(2.1, 1, history.Stop, "cut", "c1->n1"), end))...)},
		{name: "paused when the key was made, and awake when its acquire was refused", want: Violation, kind: Orphan, ops: []int{0, 4, 2}, fault: "pause",
			history: story(invoke(0.9, "c1", acquire, 1), hit(0.95, 1, history.Start, "pause", "c1"), server(1, "n1", "c1", "SET", "c1#1", 10), hit(1.9, 1, history.Stop, "pause", "c1"), fail(2, "c1", acquire, 1), end)},
		{name: "refused at the moment at which it goes on", want: Violation, kind: Orphan, ops: []int{0, 4, 2}, fault: "pause",
			history: story(invoke(0.9, "c1", acquire, 1), hit(0.95, 1, history.Start, "pause", "c1"), server(1, "n1", "c1", "SET", "c1#1", 10), hit(2, 1, history.Stop, "pause", "c1"), fail(2, "c1", acquire, 1), end)},
		{name: "paused before the key was made", want: Violation, kind: Orphan, ops: []int{0, 4, 3}, fault: "pause",
			history: story(invoke(0.8, "c1", acquire, 1), hit(0.85, 1, history.Start, "pause", "c1"), hit(0.9, 1, history.Stop, "pause", "c1"), server(1, "n1", "c1", "SET", "c1#1", 10), fail(2, "c1", acquire, 1), end)},
		{name: "paused when it may have been cleaning up", want: Pass,
			history: story(invoke(0.9, "c1", acquire, 1), server(1, "n1", "c1", "SET", "c1#1", 10), hit(1.6, 1, history.Start, "pause", "c1"), hit(1.9, 1, history.Stop, "pause", "c1"), fail(2, "c1", acquire, 1), end)},
		{name: "paused until after its acquire was refused", want: Pass,
			history: story(invoke(0.9, "c1", acquire, 1), hit(0.95, 1, history.Start, "pause", "c1"), server(1, "n1", "c1", "SET", "c1#1", 10), fail(2, "c1", acquire, 1), hit(2, 1, history.Stop, "pause", "c1"), end)},
		{name: "another's link is no excuse", want: Violation, kind: Orphan, ops: []int{1, 3, 2}, fault: "cut", history: story(join(hit(0, 1, history.Start, "cut", "c2->n1"), left(hit(2.1, 1, history.Stop, "cut", "c2->n1"), end))...)},
		{name: "its client is dead", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), note(2, "c1", history.Crash, 0), gone(10.951, "n1", "", history.Expired), final(20))...)},
		{name: "its client is dead and the key has no end", want: Violation, kind: LeftForEver, ops: []int{0, 2, 1}, summary: []string{"c1's key on n1 has no expiry after its hold was over at 2.00s"},
			history: story(join(invoke(0.9, "c1", acquire, 1), server(1, "n1", "c1", "SET", "c1#1", -0.001), ok(1.1, "c1", acquire, 1), note(2, "c1", history.Crash, 0), final(20))...)},
		{name: "a release that was cut", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), hit(4, 1, history.Start, "partition", "c1->n1", "n1->c1"), invoke(5, "c1", release, 1), info(6, "c1", release, 1),
			hit(6, 1, history.Stop, "partition", "c1->n1", "n1->c1"), gone(10.951, "n1", "", history.Expired))...)},
		{name: "a release that takes one of two holds off", want: Violation, kind: Orphan, ops: []int{0, 2, 3, 5, 4}, summary: []string{"after its hold was over at 5.20s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), invoke(5, "c1", release, 1), server(5.1, "n1", "c1", "EVALSHA", "c1#1", 10), ok(5.2, "c1", release, 1), gone(15.2, "n1", "", history.Expired))...)},
		{name: "renewed when its hold was over", want: Violation, kind: KeptAlive, ops: []int{0, 2, 3, 4, 5}, summary: []string{"was renewed by c1 at 9.00s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), invoke(5, "c1", release, 1), fail(5.2, "c1", release, 1), server(9, "n1", "c1", "EVALSHA", "c1#1", 10), gone(19.1, "n1", "", history.Expired))...)},
		{name: "the same token is acquired anew", want: Pass, history: story(join(left(invoke(2.1, "c1", acquire, 2), server(2.2, "n1", "c1", "EVALSHA", "c1#1", 10), ok(2.3, "c1", acquire, 2), given(8, "c1", 2)))...)},
		{name: "a request that was delayed until its acquire was over", want: Pass, history: story(join(hit(0, 1, history.Start, "delay", "c1->n1"), invoke(0.1, "c1", acquire, 1), hit(1, 1, history.Stop, "delay", "c1->n1"), info(3, "c1", acquire, 1),
			server(6, "n1", "c1", "SET", "c1#1", 10), gone(16.1, "n1", "", history.Expired))...)},
		{name: "a delayed copy of an earlier grant arrives in a later hold", want: Pass, history: story(join(hit(0, 1, history.Start, "delay", "c1->n1"), taken(1, "c1", 1, "c1#1"), hit(1.5, 1, history.Stop, "delay", "c1->n1"), given(2, "c1", 1),
			taken(4, "c1", 2, "c1#2"), invoke(5, "c1", release, 2), gone(5.05, "n1", "c1", "EVALSHA"), server(5.06, "n1", "c1", "EVALSHA", "c1#1", 10), ok(5.1, "c1", release, 2), gone(15.1, "n1", "", history.Expired))...)},
		{name: "its own request, and a slow reply", want: Violation, kind: Orphan, ops: []int{1, 3, 2}, fault: "strike", history: story(join(struck, left(end))...)},
		{name: "the old primary's keys are nobody's", want: Pass, history: with(story(join(taken(1, "c1", 1, "c1#1"), hit(2, 1, history.Start, "failover", "n1", "n2"), hit(2.5, 1, history.Stop, "failover", "n1", "n2"),
			invoke(3, "c1", release, 1), server(3.1, "n2", "c1", "EVALSHA", "", -0.002), fail(3.2, "c1", release, 1), final(20))...), func(h *history.Header) { h.Topology, h.Nodes = "replicated", 2 })},
		{name: "the replica had not heard of the release", want: Pass, history: with(story(join(taken(1, "c1", 1, "c1#1"), given(3, "c1", 1), hit(3.2, 1, history.Start, "failover", "n1", "n2"),
			server(3.2, "n2", "", history.Promoted, "c1#1", 7.75), gone(10.951, "n2", "", history.Expired), final(20))...), func(h *history.Header) { h.Topology, h.Nodes = "replicated", 2 })},
		{name: "the replica had a key that was released later", want: Violation, kind: Orphan, ops: []int{0, 2, 5, 6, 4}, fault: "failover", history: with(story(join(taken(1, "c1", 1, "c1#1"), hit(2, 1, history.Start, "failover", "n1", "n2"),
			server(2, "n2", "", history.Promoted, "c1#1", 8.95), invoke(3, "c1", release, 1), ok(3.1, "c1", release, 1), gone(10.951, "n2", "", history.Expired), final(20))...), func(h *history.Header) { h.Topology, h.Nodes = "replicated", 2 })},
		{name: "the key moved with its slot and was not released there", want: Violation, kind: Orphan, ops: []int{0, 2, 5, 6, 3}, history: with(story(join(taken(1, "c1", 1, "c1#1"),
			server(2, "n2", "", history.Moved, "c1#1", 8.95), gone(2, "n1", "", "MIGRATE"), invoke(3, "c1", release, 1), ok(3.1, "c1", release, 1), gone(10.951, "n2", "", history.Expired), final(20))...), func(h *history.Header) { h.Topology, h.Nodes = "cluster", 6 })},
		{name: "what a deposed primary keeps is nobody's", want: Pass, history: with(story(join(taken(1, "c1", 1, "c1#1"), server(1.1, "n4", "", "SET", "c1#1", 9.85),
			server(2, "n4", "", history.Promoted, "c1#1", 8.95), invoke(3, "c1", release, 1), gone(3.05, "n4", "c1", "EVALSHA"), ok(3.1, "c1", release, 1), final(20))...), func(h *history.Header) { h.Topology, h.Nodes = "cluster", 6 })},
		{name: "the disk had not heard of the release", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), given(3, "c1", 1), hit(3.2, 1, history.Start, "kill", "n1"),
			server(4, "n1", "", history.Lostkeys, "c1#1", 6.95), hit(4, 1, history.Stop, "kill", "n1"), server(5, "n1", "c2", "SET", "c1#1", 5.95), gone(10.951, "n1", "", history.Expired), final(20))...)},
		{name: "nobody made a key", want: Unknown, reason: "no client made", history: story(invoke(0.9, "c1", acquire, 1), gone(1, "n1", "c1", "EVALSHA"), fail(2, "c1", acquire, 1))},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}
