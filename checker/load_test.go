package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestLoad(t *testing.T) {
	held := join(taken(1, "c1", 1, "c1#1"), given(2, "c1", 1), taken(3, "c2", 2, "c2#1"))
	renewals := func(who string, at ...float64) []history.Event {
		var events []history.Event
		for _, t := range at {
			events = append(events, server(t, "n1", who, "EVALSHA", "c2#1", 10-(t-2.95)))
		}
		return events
	}
	storm := join(taken(1, "c1", 1, "c1#1"))
	for i := range 200 {
		storm = append(storm, server(1+float64(i)*0.01, "n1", "c1", "GET", "c1#1", 9.9-float64(i)*0.01))
	}
	try(t, loadName, []trial{
		{name: "a quiet end", want: Pass, history: story(join(held, final(20))...)},
		{name: "two stragglers", want: Pass, history: story(join(held, renewals("c1", 3.1, 3.2), final(20))...)},
		{name: "a renewer that was left running", want: Violation, kind: AfterRelease, ops: []int{9, 10, 11}, summary: []string{"c1 sent 3 commands for the lock's key, the first at 3.30s"},
			history: story(join(held, renewals("c1", 3.3, 6.6, 9.9), final(20))...)},
		{name: "one renewal that takes effect", want: Violation, kind: AfterRelease, ops: []int{5},
			history: story(join(taken(1, "c1", 1, "c1#1"), invoke(2, "c1", history.Release, 1), fail(2.1, "c1", history.Release, 1), server(4, "n1", "c1", "EVALSHA", "c1#1", 10), final(20))...)},
		{name: "held up by a slow link", want: Pass, history: story(join(hit(0, 1, history.Start, "delay", "c1->n1"), hit(0.5, 1, history.Stop, "delay", "c1->n1"), held, renewals("c1", 3.3, 6.6, 9.9), final(20))...)},
		{name: "a client that still asks", want: Pass, history: story(join(held, invoke(3.2, "c1", history.Acquire, 3), renewals("c1", 3.3, 6.6, 9.9), fail(10, "c1", history.Acquire, 3))...)},
		{name: "a storm", want: Violation, kind: Storm, ops: []int{2, 3, 202}, summary: []string{"c1 sent 200 commands for the lock's key while it held the lock for 2.00s", "at most 60"}, history: story(append(storm, note(3, "c1", history.Worked, 1))...)},
		{name: "no commands", want: Unknown, reason: "no command of a client", history: story(join(gone(1, "n1", "", history.Expired), invoke(1, "c1", history.Acquire, 1), server(2, "n1", "", history.Left, "c1#1", 3), named(gone(2, "n1", "c1", "GET"), "fence:a"))...)},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}

// named puts a server event on another key, which holds a counter.
func named(e history.Event, key string) history.Event {
	e.Server.Key, e.Server.Value = key, "1"
	return e
}
