package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestDeadline(t *testing.T) {
	call := due(invoke(1, "c1", history.Acquire, 1), 3)
	try(t, deadlineName, []trial{
		{name: "in time", want: Pass, history: story(call, ok(2, "c1", history.Acquire, 1))},
		{name: "a clean-up after the deadline", want: Pass, history: story(call, info(12.9, "c1", history.Acquire, 1))},
		{name: "late", want: Violation, kind: LateReturn, ops: []int{0, 1}, summary: []string{"the acquire that c1 called at 1.00s with a deadline at 3.00s returned at 13.10s: 10.10s (1.01 TTL) late"},
			history: story(call, info(13.1, "c1", history.Acquire, 1))},
		{name: "never", want: Violation, kind: NeverReturned, ops: []int{0}, summary: []string{"had not returned at 20.00s"}, history: story(call, final(20))},
		{name: "the run ends first", want: Pass, history: story(call, final(12))},
		{name: "its client died", want: Pass, history: story(call, note(2, "c1", history.Crash, 0), final(20))},
		{name: "its client was paused", want: Pass, history: story(call, hit(2, 1, history.Start, "pause", "c1"), hit(17, 1, history.Stop, "pause", "c1"), fail(17.1, "c1", history.Acquire, 1))},
		{name: "its client was paused just before the call", want: Pass, history: story(hit(0.1, 1, history.Start, "pause", "c1"), hit(15, 1, history.Stop, "pause", "c1"), due(invoke(15, "c1", history.Acquire, 1), 3), fail(16, "c1", history.Acquire, 1))},
		{name: "another was paused", want: Violation, kind: LateReturn, ops: []int{0, 3}, fault: "pause", history: story(call, hit(2, 1, history.Start, "pause", "c2"), hit(17, 1, history.Stop, "pause", "c2"), fail(17.1, "c1", history.Acquire, 1))},
		{name: "no deadlines", want: Unknown, skipped: true, reason: "no deadlines", history: story(grant(1, "c1", 1)...)},
	})
}
