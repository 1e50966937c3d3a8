package checker

import (
	"cmp"
	"slices"
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// refusals is a final phase in which c1 holds the lock from 21 to 22, from 25 to
// 26 and from 28 to 29, and c2 is refused at each of some moments. Its calls take
// 0.1 s.
func refusals(at ...float64) []history.Event {
	events := []history.Event{final(20)}
	for i, from := range []float64{21, 25, 28} {
		events = append(events, taken(from, "c1", 10+i, "c1#1")...)
		events = append(events, given(from+1, "c1", 10+i)...)
	}
	for i, from := range at {
		events = append(events, invoke(from, "c2", history.Acquire, 20+i), fail(from+0.1, "c2", history.Acquire, 20+i))
	}
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.T, b.T) })
	return events
}

func TestLiveness(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	try(t, livenessName, []trial{
		{name: "granted within the bound", want: Pass, history: story(join(final(20), invoke(21, "c1", acquire, 1), ok(25.9, "c1", acquire, 1))...)},
		{name: "a waiter is not granted", want: Violation, kind: NoGrant, ops: []int{3}, earlier: "pause (1.5 TTL, 1.00s to 18.00s)",
			summary: []string{"nobody held the lock and c1 asked for it from 21.00s on", "not granted for 5.10s (0.51 TTL) (bound 5.00s)"},
			history: story(join(fault(1, 1, history.Start, "1.5 TTL"), fault(18, 1, history.Stop, ""), final(20), invoke(21, "c1", acquire, 1), ok(26.1, "c1", acquire, 1))...)},
		{name: "a row of refusals", want: Violation, kind: NoGrant, ops: []int{1, 5}, history: story(
			final(20), invoke(21, "c1", acquire, 1), fail(22, "c1", acquire, 1), invoke(24, "c2", acquire, 2), fail(25, "c2", acquire, 2), invoke(27, "c1", acquire, 3), fail(28, "c1", acquire, 3))},
		{name: "pending since before the final phase", want: Violation, kind: NoGrant, ops: []int{0}, history: story(
			invoke(1, "c1", acquire, 1), final(20), invoke(26, "c2", acquire, 2))},
		{name: "somebody held it meanwhile", want: Pass, history: story(join(final(20), invoke(21, "c1", acquire, 1), grant(22, "c2", 2),
			invoke(30, "c2", release, 2), ok(30.1, "c2", release, 2), ok(31, "c1", acquire, 1))...)},
		{name: "the waiter came back much later", want: Pass, history: story(join(final(20), invoke(21, "c1", acquire, 1), fail(22, "c1", acquire, 1), grant(30, "c1", 2))...)},
		{name: "an acquire before the gap is no waiting", want: Pass, history: story(join(final(20), grant(21, "c1", 1),
			invoke(21, "c1", release, 1), ok(21.1, "c1", release, 1), invoke(25.9, "c1", acquire, 2), ok(30.8, "c1", acquire, 2))...)},
		{name: "a fault outlasts the beginning of the phase", want: Pass, history: story(join(fault(1, 1, history.Start, ""), final(20), invoke(21, "c1", acquire, 1),
			fault(25, 1, history.Stop, ""), ok(29.9, "c1", acquire, 1))...)},
		{name: "a dead waiter asks for nothing", want: Unknown, reason: "no acquire was granted", history: story(
			final(20), invoke(21, "c1", acquire, 1), note(22, "c1", history.Crash, 0), note(40, "c1", history.Crash, 0))},
		{name: "no final phase", want: Unknown, reason: "no final phase", history: story(grant(1, "c1", 1)...)},
		{name: "nobody asked", want: Unknown, reason: "no acquire was attempted in the final phase", history: story(join(grant(1, "c1", 1), final(20))...)},
		{name: "a phase shorter than the bound", want: Unknown, reason: "no acquire was granted", history: story(final(20), invoke(21, "c1", acquire, 1), fail(22, "c1", acquire, 1))},
		{name: "no bound", want: Unknown, reason: "no liveness bound", history: with(story(final(20), invoke(21, "c1", acquire, 1)), func(h *history.Header) { h.LivenessBound = 0 })},
		{name: "one client is refused whenever the lock is free", want: Violation, kind: ShutOut, ops: []int{7, 23}, count: 1,
			summary: []string{"c2 asked for the lock 3 times from 22.60s to 29.70s while nobody held it and no node had its key", "refused each time", "others were granted it"},
			history: story(refusals(22.6, 26.6, 29.6)...)},
		{name: "a grant after the bound makes no good of it", want: Violation, kind: ShutOut, ops: []int{7, 23}, count: 1,
			history: story(join(refusals(22.6, 26.6, 29.6), taken(30.5, "c2", 30, "c2#1"))...)},
		{name: "a row that a grant breaks within the bound", want: Pass,
			history: story(join(refusals(22.6, 22.8, 26.6), taken(30.5, "c2", 30, "c2#1"))...)},
		{name: "refused while another holds it is bad luck", want: Pass, history: story(refusals(21.6, 25.6, 28.6)...)},
		{name: "refused for less than the bound", want: Pass, history: story(refusals(22.6, 22.8, 26.6)...)},
		{name: "a key without expiry is left", want: Violation, kind: NoTTLKey, ops: []int{1}, summary: []string{"key lock:a on n1 names c1#1 and has no expiry, last seen at 30.00s"},
			history: story(server(1, "n1", "c1", "SETNX", "c1#1", -0.001), server(30, "n1", "", history.Left, "c1#1", -0.001))},
		{name: "a key that got its expiry", want: Unknown, reason: "no final phase", history: story(server(1, "n1", "c1", "SETNX", "c1#1", -0.001), server(1.1, "n1", "c1", "PEXPIRE", "c1#1", 10))},
		{name: "a queue that is left is no lock", want: Unknown, reason: "no final phase",
			history: story(join(taken(1, "c1", 1, "c1#1"), keyed(server(1.5, "n1", "c2", "ZADD", "c2#1", -0.001), "lock:a:queue"), given(3, "c1", 1),
				keyed(server(30, "n1", "", history.Left, "c2#1", -0.001), "lock:a:queue"))...)},
		{name: "permits that a sweep takes back need no expiry", want: Unknown, reason: "no final phase",
			history: able(story(server(1, "n1", "c1", "ZADD", "c1#1", -0.001), server(30, "n1", "", history.Left, "c1#1", -0.001)), "semaphore")},
		{name: "a lock's key that is left beside a queue", want: Violation, kind: NoTTLKey, ops: []int{8}, summary: []string{"key lock:a on n1"},
			history: story(join(taken(1, "c1", 1, "c1#1"), keyed(server(1.5, "n1", "c2", "ZADD", "c2#1", -0.001), "lock:a:queue"), given(3, "c1", 1),
				server(4, "n1", "c2", "SETNX", "c2#2", -0.001), server(30, "n1", "", history.Left, "c2#2", -0.001))...)},
		{name: "a counter needs no expiry", want: Unknown, reason: "no final phase", history: story(server(1, "n1", "c1", "INCR", "", -0.001))},
	})
}
