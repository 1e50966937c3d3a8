package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestValidity(t *testing.T) {
	told := func(at float64) []history.Event {
		return []history.Event{invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), until(ok(1, "c1", history.Acquire, 1), at)}
	}
	slow := func(at float64, fault ...history.Event) *history.History {
		return story(join(invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), fault, ok(at, "c1", history.Acquire, 1), note(at, "c1", history.Worked, 1))...)
	}
	five := func(until5 float64) *history.History {
		return with(story(invoke(0, "c1", history.Acquire, 1), server(1, "n1", "c1", "SET", "c1#1", 10), server(2, "n2", "c1", "SET", "c1#1", 10),
			server(3, "n3", "c1", "SET", "c1#1", 10), server(4, "n4", "c1", "SET", "c1#1", 10), until(ok(5, "c1", history.Acquire, 1), until5)),
			func(h *history.Header) { h.Topology, h.Nodes = "independent", 5 })
	}
	try(t, validityName, []trial{
		{name: "told less than the server keeps", want: Pass, history: story(told(10.8)...)},
		{name: "told more", want: Violation, kind: TooLate, ops: []int{2, 2}, summary: []string{"until 11.05s, but the server keeps its token until 10.95s only: 0.10s"}, history: story(told(11.05)...)},
		{name: "told more at a renewal", want: Violation, kind: TooLate, ops: []int{2, 4},
			history: story(join(told(10.8), server(4, "n1", "c1", "EVALSHA", "c1#1", 10), until(note(4.1, "c1", history.Check, 1), 14.5))...)},
		{name: "told less at a renewal", want: Pass, history: story(join(told(10.8), server(4, "n1", "c1", "EVALSHA", "c1#1", 10), until(note(4.1, "c1", history.Check, 1), 13.9))...)},
		{name: "a renewal that leaves the end where it was, since the node's clock had jumped", want: Pass, history: story(join(
			invoke(0.9, "c1", history.Acquire, 1), clocked(server(0.95, "n1", "c1", "SET", "c1#1", 10), 5), until(ok(1, "c1", history.Acquire, 1), 10.8),
			clocked(server(5, "n1", "c1", "EVALSHA", "c1#1", 10), 5), until(note(5.1, "c1", history.Check, 1), 14.9))...)},
		{name: "four of five nodes: two may go", want: Pass, history: five(12)},
		{name: "four of five nodes: the third latest ends it", want: Violation, kind: TooLate, ops: []int{5, 5}, summary: []string{"until 12.00s only"}, history: five(12.1)},
		{name: "heard of when the key had ended", want: Violation, kind: OverAtGrant, ops: []int{0, 4}, fault: "delay", summary: []string{"told at 12.00s", "the server's key had ended at 10.95s"},
			history: slow(12, hit(1, 1, history.Start, "delay", "n1->c1"), hit(2, 1, history.Stop, "delay", "n1->c1"))},
		{name: "a pause may have come after the lock's last look", want: Pass,
			history: slow(12, hit(1, 1, history.Start, "pause", "c1"), hit(11.9, 1, history.Stop, "pause", "c1"))},
		{name: "told an end in the past", want: Violation, kind: OverAtGrant, ops: []int{0, 2}, summary: []string{"the validity that it was told had ended at 0.50s"}, history: story(told(0.5)...)},
		{name: "a key without an end", want: Pass, history: story(invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", -0.001), ok(1, "c1", history.Acquire, 1))},
		{name: "no token seen", want: Unknown, reason: "no granted acquisition's token", history: story(join(server(0, "n1", "c2", "SET", "c2#1", 10), grant(1, "c1", 1))...)},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}
