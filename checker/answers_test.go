package checker

import (
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

func TestAnswers(t *testing.T) {
	asked := func(at float64, typ func(float64, string, string, int) history.Event, c string, events ...history.Event) []history.Event {
		return join(invoke(0.5, "c1", history.Acquire, 1), events, code(typ(at, "c1", history.Acquire, 1), c))
	}
	set := server(0.6, "n1", "c1", "SET", "c1#1", 10)
	again := server(0.7, "n1", "c1", "SET", "c1#1", 9.9)
	held := taken(1, "c1", 1, "c1#1")
	released := func(typ func(float64, string, string, int) history.Event, c string, events ...history.Event) []history.Event {
		return join(invoke(15, "c1", history.Release, 1), events, code(typ(15.5, "c1", history.Release, 1), c))
	}
	expired := gone(10.95, "n1", "", history.Expired)
	deleted := gone(15.1, "n1", "c1", "EVALSHA")
	lengthened := server(8, "n1", "c1", "EVALSHA", "c1#1", 10)
	takenAt := func(at float64) history.Event { return server(at, "n1", "c1", "SET", "c2#1", 5) }
	absent := server(15.1, "n1", "c1", "EVALSHA", "", -0.002)
	try(t, answersName, []trial{
		{name: "refused by its own key", want: Violation, kind: NoButKept, ops: []int{0, 1, 3}, summary: []string{"c1 was told at 0.80s that it does not hold the lock (LOCK_TIMEOUT)", "at 0.60s"},
			history: story(asked(0.8, fail, saidNo, set, again)...)},
		{name: "refused by another's", want: Pass, history: story(join(server(0.1, "n1", "c2", "SET", "c2#1", 10), asked(0.8, fail, saidNo, server(0.6, "n1", "c1", "SET", "c2#1", 9.5)))...)},
		{name: "taken and given back", want: Pass, history: story(asked(0.8, fail, saidNo, set, gone(0.7, "n1", "c1", "DEL"))...)},
		{name: "it does not say no", want: Pass, history: story(asked(0.8, info, "UNKNOWN_OUTCOME", set)...)},
		{name: "an earlier request arrives in a later call", want: Pass, history: story(join(
			hit(0, 1, history.Start, "delay", "c1->n1"), asked(0.55, info, "UNKNOWN_OUTCOME"), hit(1, 1, history.Stop, "delay", "c1->n1"),
			invoke(2, "c1/7", history.Acquire, 3), server(2.1, "n1", "c1", "SET", "c1#1", 10), server(2.2, "n1", "c1", "SET", "c1#1", 9.9), code(fail(2.3, "c1/7", history.Acquire, 3), saidNo))...)},
		{name: "a grant that came in time and was called used up", want: Violation, kind: NoButValid, ops: []int{0, 1, 3}, summary: []string{"the first of its votes was cast at 0.60s"},
			history: story(asked(0.8, fail, tooLate, set, gone(0.7, "n1", "c1", "DEL"))...)},
		{name: "one that was used up", want: Pass, history: story(asked(9, fail, tooLate, set, gone(8.9, "n1", "c1", "DEL"))...)},
		{name: "one of a call that was held up", want: Pass, history: story(join(hit(0, 1, history.Start, "cut", "c1->n1"), asked(0.8, fail, tooLate, set, gone(0.7, "n1", "c1", "DEL")))...)},
		{name: "yes to a release of nothing", want: Violation, kind: YesButGone, ops: []int{4, 5, 6}, summary: []string{"the key was nobody's"},
			history: story(join(held, expired, released(ok, "", absent))...)},
		{name: "yes to a release of another's", want: Violation, kind: YesButGone, ops: []int{5, 6, 7}, summary: []string{"the key was c2's"},
			history: story(join(held, expired, server(12, "n1", "c2", "SET", "c2#1", 10), released(ok, "", server(15.1, "n1", "c1", "EVALSHA", "c2#1", 6.9)))...)},
		{name: "yes, since the first try did it", want: Pass, history: story(join(held, lengthened, released(ok, "", deleted, server(15.2, "n1", "c1", "EVALSHA", "", -0.002)))...)},
		{name: "no to a release of nothing", want: Pass, history: story(join(held, expired, released(fail, notHeld, absent))...)},
		{name: "no to a release that deleted", want: Violation, kind: NoButDeleted, ops: []int{4, 5, 6}, summary: []string{"it had deleted its own key at 15.10s"},
			history: story(join(held, lengthened, released(fail, notHeld, deleted))...)},
		{name: "no, where the first reply was lost", want: Pass, history: story(join(held, lengthened, hit(14, 1, history.Start, "lose-reply", "c1"), released(fail, notHeld, deleted))...)},
		{name: "a waiter that gives up early", want: Violation, kind: GaveUpEarly, ops: []int{0, 2}, summary: []string{"0.30s (0.03 TTL) after it had asked", "30.00s"},
			history: waits(story(asked(0.8, fail, saidNo, takenAt(0.6))...))},
		{name: "one that has waited", want: Pass, history: waits(story(asked(30.4, fail, saidNo, takenAt(0.6))...))},
		{name: "a release without an answer", want: Pass, history: silent(story(join(held, expired, released(ok, "", absent))...))},
		{name: "two threads of one client", want: Unknown, skipped: true, reason: "several calls for the lock under way at once", history: story(join(
			invoke(0.5, "c1", history.Acquire, 1), invoke(0.5, "c1/7", history.Acquire, 3), set, again, code(fail(0.8, "c1", history.Acquire, 1), saidNo), code(fail(0.8, "c1/7", history.Acquire, 3), saidNo))...)},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}

// TestAnswersOfAQuorum: two of three nodes decide.
func TestAnswersOfAQuorum(t *testing.T) {
	set := func(at float64, node, client, token string) history.Event {
		return server(at, node, client, "SET", token, 10)
	}
	del := func(at float64, node string) history.Event { return gone(at, node, "c1", "EVALSHA") }
	asked := func(c string, events ...history.Event) []history.Event {
		return join(invoke(0.5, "c1", history.Acquire, 1), events, code(fail(1, "c1", history.Acquire, 1), c))
	}
	back := join(del(0.7, "n1"), del(0.71, "n2"))
	refused := join(set(0.6, "n1", "c1", "c1#1"), set(0.61, "n2", "c1", "c1#1"), back)
	held := []history.Event{invoke(0.5, "c1", history.Acquire, 1), set(0.6, "n1", "c1", "c1#1"), set(0.61, "n2", "c1", "c1#1"), set(0.62, "n3", "c1", "c1#1"), ok(1, "c1", history.Acquire, 1)}
	released := func(typ func(float64, string, string, int) history.Event, c string, events ...history.Event) []history.Event {
		return join(held, invoke(5, "c1", history.Release, 1), events, code(typ(5.5, "c1", history.Release, 1), c), final(9))
	}
	cutOff := func(on string, events []history.Event) []history.Event {
		return join(hit(0.1, 1, history.Start, "cut", on), events, hit(9.5, 1, history.Stop, "cut", on))
	}
	whole := func(events ...history.Event) *history.History { return insim(three(events...)) }
	try(t, answersName, []trial{
		{name: "no with a quorum of votes", want: Violation, kind: NoButQuorum, ops: []int{0, 2, 5}, summary: []string{"(QUORUM_NOT_REACHED), but at 0.61s 2 nodes carried its votes"},
			history: whole(asked(noQuorum, refused...)...)},
		{name: "no with a quorum of votes, and the third node cut off", want: Violation, kind: NoButQuorum, ops: []int{1, 3, 6}, fault: "cut (c1->n3",
			history: whole(cutOff("c1->n3", asked(noQuorum, refused...))...)},
		{name: "called another's lock", want: Violation, kind: NoButQuorum, ops: []int{0, 2, 5}, history: whole(asked(saidNo, refused...)...)},
		{name: "split votes", want: Pass, history: whole(asked(noQuorum, set(0.55, "n2", "c2", "c2#1"), set(0.6, "n1", "c1", "c1#1"), set(0.61, "n2", "c1", "c2#1"), set(0.62, "n3", "c3", "c3#1"), del(0.7, "n1"))...)},
		{name: "two votes, one after the other", want: Pass, history: whole(asked(noQuorum, set(0.6, "n1", "c1", "c1#1"), del(0.65, "n1"), set(0.7, "n2", "c1", "c1#1"), del(0.75, "n2"))...)},
		{name: "used up by slow nodes", want: Pass, history: whole(join(invoke(0.5, "c1", history.Acquire, 1), set(0.6, "n1", "c1", "c1#1"), set(7, "n2", "c1", "c1#1"), del(8, "n1"), del(8.1, "n2"), code(fail(9, "c1", history.Acquire, 1), tooLate))...)},
		{name: "one attempt used up, and the next split", want: Pass, history: whole(join(invoke(0.5, "c1", history.Acquire, 1), set(0.6, "n1", "c1", "c1#1"), set(0.61, "n2", "c1", "c1#1"), del(7, "n1"), del(7.1, "n2"),
			set(8, "n1", "c1", "c1#1"), set(8.1, "n2", "c2", "c2#1"), del(8.2, "n1"), code(fail(9, "c1", history.Acquire, 1), noQuorum))...)},
		{name: "no, and the votes are left", want: Violation, kind: NoButKept, ops: []int{0, 1, 3}, count: 2, history: whole(asked(saidNo, set(0.6, "n1", "c1", "c1#1"), set(0.61, "n2", "c1", "c1#1"))...)},
		{name: "a short TTL that slow nodes may have used up", want: Pass, history: with(whole(cutOff("c1->n3", asked(noQuorum, refused...))...), func(h *history.Header) { h.TTL = 500 * time.Millisecond })},
		{name: "the answers of a voter are cut off", want: Pass, history: whole(cutOff("n2->c1", asked(noQuorum, refused...))...)},
		{name: "a vote of an earlier call, held up", want: Pass, history: whole(join(hit(0.1, 1, history.Start, "delay", "c1->n2"),
			invoke(0.1, "c1/7", history.Acquire, 3), hit(0.2, 1, history.Stop, "delay", "c1->n2"), info(0.3, "c1/7", history.Acquire, 3), asked(noQuorum, refused...))...)},
		{name: "real machines are slow by themselves", want: Pass, history: with(three(asked(noQuorum, refused...)...), func(h *history.Header) { h.World = "process" })},
		{name: "yes, and a quorum is left", want: Violation, kind: YesButKept, ops: []int{5, 7}, summary: []string{"2 nodes, which are a quorum, carried its token until 8.00s at least"},
			history: whole(released(ok, "", del(5.1, "n1"))...)},
		{name: "yes, and a minority is left", want: Pass, history: whole(released(ok, "", del(5.1, "n1"), del(5.2, "n2"))...)},
		{name: "yes, and the others were cut off", want: Pass, history: whole(cutOff("c1->n2", released(ok, "", del(5.1, "n1")))...)},
		{name: "yes, and the rest is deleted in the background", want: Pass, history: whole(join(released(ok, "", del(5.1, "n1"))[:8], del(6, "n2"), del(6, "n3"), final(9))...)},
		{name: "no, and a quorum was deleted", want: Violation, kind: NoButDeleted, ops: []int{5, 7, 8}, summary: []string{"it had deleted its own keys on 2 nodes, the last at 5.20s"},
			history: whole(released(fail, notHeld, del(5.1, "n1"), del(5.2, "n2"))...)},
		{name: "no, and a minority was deleted", want: Pass, history: whole(released(fail, notHeld, del(5.1, "n1"))...)},
		{name: "yes to a release of nothing: the algorithm does not look", want: Pass, history: whole(join(held, gone(10.6, "n1", "", history.Expired), gone(10.61, "n2", "", history.Expired), gone(10.62, "n3", "", history.Expired),
			invoke(15, "c1", history.Release, 1), del(15.1, "n1"), del(15.1, "n2"), del(15.1, "n3"), ok(15.5, "c1", history.Release, 1), final(19))...)},
	})
}

func waits(h *history.History) *history.History {
	return with(h, func(h *history.Header) { h.Waits = 30 * time.Second })
}

func silent(h *history.History) *history.History {
	return with(h, func(h *history.Header) { h.SilentRelease = true })
}
