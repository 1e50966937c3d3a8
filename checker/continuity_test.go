package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestContinuity(t *testing.T) {
	const extend = history.Extend
	expired := gone(10.951, "n1", "", history.Expired)
	// c1's token is on two of three nodes, which is a quorum.
	quorate := []history.Event{invoke(0.8, "c1", history.Acquire, 1), server(0.85, "n1", "c1", "SET", "c1#1", 10), server(0.86, "n2", "c1", "SET", "c1#1", 10), ok(1, "c1", history.Acquire, 1)}
	try(t, continuityName, []trial{
		{name: "extended in time", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), invoke(8, "c1", extend, 1), server(8.1, "n1", "c1", "EVALSHA", "c1#1", 10), ok(8.2, "c1", extend, 1))...)},
		{name: "extended after the key had gone", want: Violation, kind: Gap, ops: []int{2, 3, 6}, summary: []string{"c1 was told that its extend had succeeded at 12.20s", "nobody's since 10.95s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), expired, invoke(12, "c1", extend, 1), server(12.1, "n1", "c1", "SET", "c1#1", 10), ok(12.2, "c1", extend, 1))...)},
		{name: "extended after another had it", want: Violation, kind: OwnerBetween, ops: []int{2, 3, 5, 12}, summary: []string{"had been c2's since 10.95s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), expired, taken(11.5, "c2", 2, "c2#1"), given(11.6, "c2", 2), invoke(12, "c1", extend, 1), server(12.1, "n1", "c1", "SET", "c1#1", 10), ok(12.2, "c1", extend, 1))...)},
		{name: "an extend that ran just before the expiry", want: Pass,
			history: story(join(taken(1, "c1", 1, "c1#1"), invoke(10.9, "c1", extend, 1), server(10.94, "n1", "c1", "EVALSHA", "c1#1", 10), ok(13, "c1", extend, 1), gone(20.95, "n1", "", history.Expired))...)},
		{name: "a refused extend", want: Unknown, skipped: true, reason: "no lease was extended", history: story(join(taken(1, "c1", 1, "c1#1"), expired, invoke(12, "c1", extend, 1), fail(12.2, "c1", extend, 1))...)},
		{name: "a renewal that goes on over a gap", want: Violation, kind: Gap, ops: []int{2, 3, 5}, summary: []string{"c1 renewed it at 5.00s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(2, "n1", "", history.Lostkeys), server(3, "n1", "c1", "SET", "c1#1", 10), server(5, "n1", "c1", "EVALSHA", "c1#1", 10), note(6, "c1", history.Worked, 1))...)},
		{name: "a delayed grant makes the key anew, and says nothing", want: Unknown, skipped: true, reason: "no lease was extended",
			history: story(join(taken(1, "c1", 1, "c1#1"), expired, server(12, "n1", "c1", "SET", "c1#1", 10), note(13, "c1", history.Worked, 1))...)},
		{name: "a later end told across a loss", want: Violation, kind: Gap, ops: []int{2, 3, 5}, summary: []string{"was told that its lease lasts until 14.00s at 4.20s"},
			history: story(join(invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), until(ok(1, "c1", history.Acquire, 1), 10.9),
				gone(2, "n1", "", history.Lostkeys), server(4.1, "n1", "c1", "SET", "c1#1", 10), until(note(4.2, "c1", history.Check, 1), 14))...)},
		{name: "a later end told, confirmed before the loss", want: Pass,
			history: story(join(invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), until(ok(1, "c1", history.Acquire, 1), 10.9),
				server(4.1, "n1", "c1", "EVALSHA", "c1#1", 10), gone(4.15, "n1", "", history.Lostkeys), until(note(4.2, "c1", history.Check, 1), 14))...)},
		{name: "without a trace, another was granted it in between", want: Violation, kind: OwnerBetween, ops: []int{1, 3, 5}, summary: []string{"c2 had been granted the lock at 12.00s, after c1's last success at 1.00s"},
			history: story(join(grant(1, "c1", 1), grant(12, "c2", 2), invoke(13, "c1", extend, 1), ok(13.1, "c1", extend, 1))...)},
		{name: "without a trace, another's acquire overlaps the extend", want: Pass,
			history: story(join(grant(1, "c1", 1), invoke(11, "c2", history.Acquire, 2), invoke(12, "c1", extend, 1), ok(12.1, "c1", extend, 1), ok(13, "c2", history.Acquire, 2))...)},
		{name: "another's failed vote on one of three nodes", want: Violation, kind: Gap, ops: []int{3, 4, 11}, summary: []string{"nobody's since 10.85s"},
			history: three(join(quorate, gone(10.85, "n1", "", history.Expired), invoke(11, "c2", history.Acquire, 2), server(11.1, "n1", "c2", "SET", "c2#1", 10), server(11.2, "n2", "c2", "SET", "c1#1", 0.1),
				gone(11.3, "n1", "c2", "EVALSHA"), fail(11.4, "c2", history.Acquire, 2), invoke(12, "c1", extend, 1), ok(12.2, "c1", extend, 1))...)},
		{name: "another's votes made a quorum of three nodes", want: Violation, kind: OwnerBetween, ops: []int{3, 5, 8, 12}, summary: []string{"had been c2's since 10.85s"},
			history: three(join(quorate, server(10.8, "n3", "c2", "SET", "c2#1", 10), gone(10.85, "n1", "", history.Expired), gone(10.86, "n2", "", history.Expired), invoke(11, "c2", history.Acquire, 2), server(11.1, "n1", "c2", "SET", "c2#1", 10),
				server(11.2, "n2", "c2", "SET", "c2#1", 10), ok(11.4, "c2", history.Acquire, 2), invoke(12, "c1", extend, 1), ok(12.2, "c1", extend, 1))...)},
		{name: "nothing to judge", want: Unknown, skipped: true, reason: "no lease was extended", history: story(grant(1, "c1", 1)...)},
	})
}
