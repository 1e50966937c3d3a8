package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestLossNotice(t *testing.T) {
	lost := gone(2, "n1", "", history.Lostkeys)
	try := func(t *testing.T, trials []trial) {
		for _, tt := range trials {
			if !tt.skipped {
				able(tt.history, "lost")
			}
		}
		try(t, lossNoticeName, trials)
	}
	try(t, []trial{
		{name: "told in time", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), lost, note(6, "c1", history.Lost, 1))...)},
		{name: "told before it happened", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), note(10.9, "c1", history.Lost, 1), gone(10.951, "n1", "", history.Expired))...)},
		{name: "released cleanly", want: Pass, reason: "no lease was lost", history: story(join(taken(1, "c1", 1, "c1#1"), given(2, "c1", 1))...)},
		{name: "worked on and told nothing", want: Violation, kind: NoNotice, ops: []int{2, 3, 4}, summary: []string{"c1 lost the lock at 2.00s and still worked on", "at 7.10s, 5.10s (0.51 TTL) later (bound 5.00s)"},
			history: story(join(taken(1, "c1", 1, "c1#1"), lost, note(7.1, "c1", history.Worked, 1))...)},
		{name: "told too late", want: Violation, kind: LateNotice, ops: []int{2, 3, 4}, history: story(join(taken(1, "c1", 1, "c1#1"), lost, note(7.1, "c1", history.Lost, 1))...)},
		{name: "told after a long call, in which nobody looks", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), invoke(1.1, "c1", history.Read, 1), lost, ok(9, "c1", history.Read, 1), note(9, "c1", history.Lost, 1))...)},
		{name: "a pause is taken off", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), lost, hit(2.1, 1, history.Start, "pause", "c1"), hit(9, 1, history.Stop, "pause", "c1"), note(10, "c1", history.Lost, 1))...)},
		{name: "cut off, it knows when its lease is over", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), hit(1.5, 1, history.Start, "cut", "c1->n1"), lost, note(10.8, "c1", history.Lost, 1))...)},
		{name: "cut off, and no wiser then", want: Violation, kind: NoNotice, ops: []int{2, 4, 5}, fault: "cut", history: story(join(taken(1, "c1", 1, "c1#1"), hit(1.5, 1, history.Start, "cut", "c1->n1"), lost, note(12.1, "c1", history.Worked, 1))...)},
		{name: "told of a loss after a clean release", want: Violation, kind: FalseNotice, ops: []int{5, 6}, summary: []string{"c1 released the lock cleanly at 2.10s and was told at 3.00s that it had lost it"},
			history: story(join(taken(1, "c1", 1, "c1#1"), given(2, "c1", 1), note(3, "c1", history.Lost, 1))...)},
		{name: "told of a loss, and released", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), note(1.9, "c1", history.Lost, 1), given(2, "c1", 1))...)},
		{name: "without a trace, an acquire that waited for longer than a TTL", want: Pass, reason: "no lease was lost", history: story(
			invoke(1, "c1", history.Acquire, 1), ok(15, "c1", history.Acquire, 1), note(20, "c1", history.Worked, 1), note(22, "c1", history.Worked, 1))},
		{name: "without a trace, renewed in the background", want: Pass, reason: "no lease was lost", history: story(
			invoke(1, "c1", history.Acquire, 1), ok(1.1, "c1", history.Acquire, 1), note(30, "c1", history.Worked, 1))},
		{name: "without a trace, and somebody else has it", want: Violation, kind: NoNotice, ops: []int{1, 3, 4}, summary: []string{"c1 lost the lock at 12.10s"}, history: story(
			invoke(1, "c1", history.Acquire, 1), ok(1.1, "c1", history.Acquire, 1),
			invoke(2, "c2", history.Acquire, 2), ok(12.1, "c2", history.Acquire, 2), note(18, "c1", history.Worked, 1))},
		{name: "without a trace, told after the next grant and in time", want: Pass, history: story(
			invoke(1, "c1", history.Acquire, 1), ok(1.1, "c1", history.Acquire, 1), invoke(2, "c2", history.Acquire, 2), note(5, "c1", history.Worked, 1),
			ok(12.1, "c2", history.Acquire, 2), note(16, "c1", history.Lost, 1))},
		{name: "nobody held it", want: Unknown, reason: "no acquire succeeded", history: story(invoke(1, "c1", history.Acquire, 1), fail(2, "c1", history.Acquire, 1))},
		{name: "a lock that tells nothing", want: Unknown, skipped: true, reason: "basic tells its holder of no loss", history: story(join(taken(1, "c1", 1, "c1#1"), lost)...)},
	})
}
