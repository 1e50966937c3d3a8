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

func waits(h *history.History) *history.History {
	return with(h, func(h *history.Header) { h.Waits = 30 * time.Second })
}

func silent(h *history.History) *history.History {
	return with(h, func(h *history.Header) { h.SilentRelease = true })
}
