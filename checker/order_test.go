package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestOrder(t *testing.T) {
	const acquire = history.Acquire
	asks := func(at float64, who string, acq int) []history.Event {
		return []history.Event{invoke(at, who, acquire, acq), server(at+0.1, "n1", who, "EVALSHA", "c9#1", 10)}
	}
	fair := func(parts ...any) *history.History { return able(story(join(parts...)...), "fair") }
	try(t, orderName, []trial{
		{name: "first come, first served", want: Pass, history: fair(asks(1, "c1", 1), asks(2, "c2", 2), ok(5, "c1", acquire, 1), ok(6, "c2", acquire, 2))},
		{name: "overtaken", want: Violation, kind: Overtaken, ops: []int{0, 4}, summary: []string{"c1 stood in line for the lock from 1.10s on, but c2, which asked at 2.00s, was granted it at 5.00s"},
			history: fair(asks(1, "c1", 1), asks(2, "c2", 2), ok(5, "c2", acquire, 2), ok(6, "c1", acquire, 1))},
		{name: "overtaken, and never served", want: Violation, kind: Overtaken, ops: []int{0, 4}, history: fair(asks(1, "c1", 1), asks(2, "c2", 2), ok(5, "c2", acquire, 2), fail(6, "c1", acquire, 1))},
		{name: "asked at the same time", want: Pass, history: fair(invoke(1, "c1", acquire, 1), invoke(1.05, "c2", acquire, 2), server(1.1, "n1", "c1", "EVALSHA", "c9#1", 10), server(1.2, "n1", "c2", "EVALSHA", "c9#1", 10), ok(5, "c2", acquire, 2), ok(6, "c1", acquire, 1))},
		{name: "gave up before", want: Pass, history: fair(asks(1, "c1", 1), asks(2, "c2", 2), fail(4, "c1", acquire, 1), ok(5, "c2", acquire, 2))},
		{name: "passed over while it was paused", want: Pass, history: fair(asks(1, "c1", 1), hit(1.5, 1, history.Start, "pause", "c1"), asks(2, "c2", 2), asks(2.2, "c3", 3), ok(5, "c2", acquire, 2), fail(5.5, "c3", acquire, 3), hit(6, 1, history.Stop, "pause", "c1"), ok(7, "c1", acquire, 1))},
		{name: "without a trace", want: Violation, kind: Overtaken, ops: []int{0, 2}, history: fair(invoke(1, "c1", acquire, 1), invoke(2.1, "c2", acquire, 2), ok(5, "c2", acquire, 2), ok(6, "c1", acquire, 1))},
		{name: "nobody to overtake", want: Unknown, reason: "fewer than two", history: fair(asks(1, "c1", 1), ok(2, "c1", acquire, 1))},
		{name: "no promise", want: Unknown, skipped: true, reason: "does not promise to be fair", history: story(grant(1, "c1", 1)...)},
	})
}
