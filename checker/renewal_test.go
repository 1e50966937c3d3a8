package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestRenewal(t *testing.T) {
	// c2 shows that the lock renews itself.
	renewed := join(taken(30, "c2", 2, "c2#1"), server(33.3, "n1", "c2", "EVALSHA", "c2#1", 10),
		note(36, "c2", history.Worked, 2), invoke(37, "c2", history.Release, 2), gone(37.1, "n1", "c2", "EVALSHA"), ok(37.2, "c2", history.Release, 2), final(50))
	held := taken(1, "c1", 1, "c1#1")
	leftAt := func(at float64) []history.Event {
		return join(note(at, "c1", history.Lost, 1), invoke(at, "c1", history.Release, 1), gone(at+0.02, "n1", "c1", "EVALSHA"), ok(at+0.03, "c1", history.Release, 1))
	}
	overran := join(gone(10.95, "n1", "", history.Expired), note(12, "c1", history.Worked, 1), invoke(12.1, "c1", history.Release, 1), server(12.2, "n1", "c1", "EVALSHA", "", -0.002), fail(12.3, "c1", history.Release, 1))
	blip := func(from, to float64, on string) []history.Event {
		return join(hit(from, 1, history.Start, "cut", on), hit(to, 1, history.Stop, "cut", on))
	}
	try(t, renewalName, []trial{
		{name: "a lease that ends unrenewed, and its holder is told", want: Violation, kind: Stopped, ops: []int{2, 2},
			summary: []string{"c1's lease on the lock, last confirmed at 1.00s, ran out at 10.85s", "since 5.35s"}, fault: "",
			history: story(join(held, leftAt(10.85), renewed)...)},
		{name: "after a blip that was over in time", want: Violation, kind: Stopped, ops: []int{2, 2}, fault: "cut",
			history: story(join(held, blip(4, 4.5, "c1->n1"), leftAt(10.85), renewed)...)},
		{name: "and its holder is not told", want: Violation, kind: Stopped, ops: []int{2, 2},
			history: story(join(held, overran, renewed)...)},
		{name: "the blip may have met the one try", want: Pass, history: story(join(held, blip(4, 5.5, "c1->n1"), leftAt(10.85), renewed)...)},
		{name: "the node is in trouble", want: Pass, history: story(join(held, blip(6, 7, "n1"), leftAt(10.85), renewed)...)},
		{name: "another client's trouble is no excuse", want: Violation, kind: Stopped, ops: []int{2, 2}, fault: "cut",
			history: story(join(held, blip(6, 7, "c2->n1"), leftAt(10.85), renewed)...)},
		{name: "a renewer that only looks", want: Violation, kind: Stopped, ops: []int{2, 2},
			history: story(join(held, server(6, "n1", "c1", "GET", "c1#1", 4.95), server(9, "n1", "c1", "GET", "c1#1", 1.95), leftAt(10.85), renewed)...)},
		{name: "a look that met an error", want: Pass,
			history: story(join(held, replied(server(8, "n1", "c1", "GET", "c1#1", 2.95), "ERR busy"), leftAt(10.85), renewed)...)},
		{name: "a transaction that did not come to its end", want: Pass,
			history: story(join(held, server(8, "n1", "c1", "WATCH", "c1#1", 2.95), server(8.01, "n1", "c1", "GET", "c1#1", 2.94), leftAt(10.85), renewed)...)},
		{name: "a try that came too late", want: Pass, history: story(join(held, server(8, "n1", "c1", "EVALSHA", "c1#1", 2.95), leftAt(10.85), renewed)...)},
		{name: "the key was gone", want: Pass, history: story(join(held, gone(3, "n1", "", history.Lostkeys), leftAt(10.85), renewed)...)},
		{name: "lost early, by word of the server", want: Pass, history: story(join(held, gone(3, "n1", "", history.Lostkeys), server(4.3, "n1", "c1", "EVALSHA", "", -0.002), leftAt(4.4), renewed)...)},
		{name: "released in time", want: Pass, history: story(join(held, invoke(9, "c1", history.Release, 1), gone(9.1, "n1", "c1", "EVALSHA"), ok(9.2, "c1", history.Release, 1), renewed)...)},
		{name: "dead before the end", want: Pass, history: story(join(held, note(6, "c1", history.Crash, 0), gone(10.95, "n1", "", history.Expired), renewed)...)},
		{name: "a lock that never renews", want: Unknown, skipped: true, reason: "no lease was renewed in the background", history: story(join(held, overran)...)},
		{name: "a lock that is extended by hand", want: Unknown, skipped: true, reason: "no lease was renewed in the background",
			history: story(join(held, invoke(3, "c1", history.Extend, 1), server(3.1, "n1", "c1", "EVALSHA", "c1#1", 10), ok(3.2, "c1", history.Extend, 1), invoke(9, "c1", history.Release, 1), gone(9.1, "n1", "c1", "EVALSHA"), ok(9.2, "c1", history.Release, 1))...)},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}

// TestRenewalOfAQuorum: two of three nodes decide.
func TestRenewalOfAQuorum(t *testing.T) {
	on := func(at float64, who, cmd, token string) (out []history.Event) {
		for _, node := range []string{"n1", "n2", "n3"} {
			out = append(out, server(at, node, who, cmd, token, 10))
		}
		return out
	}
	absent := func(at float64, who string) (out []history.Event) {
		for _, node := range []string{"n1", "n2", "n3"} {
			out = append(out, gone(at, node, who, "EVALSHA"))
		}
		return out
	}
	held := join(invoke(0.9, "c1", history.Acquire, 1), on(0.95, "c1", "SET", "c1#1"), ok(1, "c1", history.Acquire, 1))
	left := join(note(10.85, "c1", history.Lost, 1), invoke(10.85, "c1", history.Release, 1), absent(10.87, "c1"), ok(10.9, "c1", history.Release, 1))
	// c2 shows that the lock renews itself.
	renewed := join(invoke(29.9, "c2", history.Acquire, 2), on(29.95, "c2", "SET", "c2#1"), ok(30, "c2", history.Acquire, 2), on(33.3, "c2", "EVALSHA", "c2#1"),
		note(36, "c2", history.Worked, 2), invoke(37, "c2", history.Release, 2), absent(37.1, "c2"), ok(37.2, "c2", history.Release, 2), final(50))
	blip := func(on ...string) []history.Event {
		return join(hit(6, 1, history.Start, "cut", on...), hit(7, 1, history.Stop, "cut", on...))
	}
	try(t, renewalName, []trial{
		{name: "a lease that ends unrenewed", want: Violation, kind: Stopped, ops: []int{4, 4},
			summary: []string{"c1's lease on the lock, last confirmed at 1.00s, ran out at 10.85s"}, history: three(join(held, left, renewed)...)},
		{name: "a minority is cut off", want: Violation, kind: Stopped, ops: []int{4, 4}, fault: "cut", history: three(join(held, blip("c1->n3"), left, renewed)...)},
		{name: "no quorum can be reached", want: Pass, history: three(join(held, blip("c1->n3", "n2->c1"), left, renewed)...)},
		{name: "a try at one node", want: Pass, history: three(join(held, server(8, "n2", "c1", "EVALSHA", "c1#1", 2.95), left, renewed)...)},
		{name: "a quorum was lost", want: Pass, history: three(join(held, gone(3, "n1", "", history.Lostkeys), gone(3, "n2", "", history.Lostkeys), left, renewed)...)},
		{name: "a lock that never renews", want: Unknown, skipped: true, reason: "no lease was renewed in the background", history: three(join(held, left)...)},
		{name: "an extend that returns with its quorum", want: Unknown, skipped: true, reason: "no lease was renewed in the background",
			history: three(join(held, invoke(3, "c1", history.Extend, 1), on(3.1, "c1", "EVALSHA", "c1#1")[:2], ok(3.2, "c1", history.Extend, 1), on(3.3, "c1", "EVALSHA", "c1#1")[2:], note(12.9, "c1", history.Lost, 1))...)},
		{name: "a vote that comes late is no renewal", want: Unknown, skipped: true, reason: "no lease was renewed in the background",
			history: three(join(invoke(0.9, "c1", history.Acquire, 1), on(0.95, "c1", "SET", "c1#1")[:2], ok(1, "c1", history.Acquire, 1), on(3, "c1", "SET", "c1#1")[2:], left)...)},
	})
}
