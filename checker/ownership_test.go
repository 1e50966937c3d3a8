package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestOwnership(t *testing.T) {
	worked := note(9, "c1", history.Worked, 1)
	try(t, ownershipName, []trial{
		{name: "a renewal that changes its own token", want: Pass,
			history: story(join(taken(1, "c1", 1, "c1#1"), server(4, "n1", "c1", "EVALSHA", "c1#2", 10), given(6, "c1", 1))...)},
		{name: "an old request that changes its own token", want: Violation, kind: StaleRelease, ops: []int{4, 5},
			history: story(join(server(0, "n1", "c1", "SET", "c1#1", 10), gone(0.5, "n1", "c1", "DEL"), invoke(0.6, "c1", history.Acquire, 1), server(0.7, "n1", "c1", "SET", "c1#2", 10),
				ok(0.8, "c1", history.Acquire, 1), server(4, "n1", "c1", "SET", "c1#1", 10), note(5, "c1", history.Worked, 1))...)},
		{name: "acquire, renew, release", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), server(4, "n1", "c1", "EVALSHA", "c1#1", 10), given(5, "c1", 1), taken(6, "c2", 2, "c2#1"))...)},
		{name: "a late release is refused", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), taken(12, "c2", 2, "c2#1"),
			invoke(13, "c1", history.Release, 1), server(13.1, "n1", "c1", "EVALSHA", "c2#1", 8.85), fail(13.2, "c1", history.Release, 1))...)},
		{name: "NOSCRIPT, then EVAL", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), replied(server(2, "n1", "c2", "EVALSHA", "c1#1", 8.95), "NOSCRIPT No matching script"), server(2.1, "n1", "c2", "EVAL", "c1#1", 8.85), given(3, "c1", 1))...)},
		{name: "a late release deletes another's", want: Violation, kind: ForeignDelete, ops: []int{6, 8}, summary: []string{"c1 deleted c2's key on n1 with its DEL at 13.10s, which c2 believed it held since 12.00s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), taken(12, "c2", 2, "c2#1"),
				invoke(13, "c1", history.Release, 1), gone(13.1, "n1", "c1", "DEL"), ok(13.2, "c1", history.Release, 1))...)},
		{name: "an extend writes over another's", want: Violation, kind: ForeignOverwrite, ops: []int{6, 7},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), taken(12, "c2", 2, "c2#1"), server(13.1, "n1", "c1", "SET", "c1#1", 10), note(14, "c2", history.Worked, 2))...)},
		{name: "an extend lengthens another's", want: Violation, kind: ForeignExtend, ops: []int{6, 7}, summary: []string{"c1 changed the time to live of c2's key"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), taken(12, "c2", 2, "c2#1"), server(13.1, "n1", "c1", "PEXPIRE", "c2#1", 10), note(14, "c2", history.Worked, 2))...)},
		{name: "a clock that jumped back lengthens nobody's key", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), skewed(server(4, "n1", "c2", "SET", "c1#1", 12.95), -6), worked)...)},
		{name: "an expiry that no event shows", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), taken(12, "c2", 2, "c2#1"))...)},
		{name: "an old release deletes the client's newer hold", want: Violation, kind: StaleRelease, ops: []int{8, 9}, summary: []string{"took away its own token on n1 at 6.50s", "hold granted at 6.00s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), given(5, "c1", 1), taken(6, "c1", 2, "c1#1"), gone(6.5, "n1", "c1", "EVALSHA"), note(7, "c1", history.Worked, 2))...)},
		{name: "another thread's release deletes the hold", want: Violation, kind: StaleRelease, ops: []int{6, 7, 8}, summary: []string{"the release of thread 0 of c1 took away the token of thread 1 on n1 at 13.10s, while thread 1 still believed in the hold granted at 12.00s", "one thread acted on another's hold"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), ofThread(1, taken(12, "c1/7", 2, "c1#1")), invoke(13, "c1", history.Release, 1), gone(13.1, "n1", "c1", "EVALSHA"), ok(13.2, "c1", history.Release, 1))...)},
		{name: "the other thread's call is over", want: Violation, kind: StaleRelease, ops: []int{6, 9}, summary: []string{"an old request acted on a newer hold"},
			history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), ofThread(1, taken(12, "c1/7", 2, "c1#1")), invoke(13, "c1", history.Release, 1), fail(13.2, "c1", history.Release, 1), gone(13.3, "n1", "c1", "EVALSHA"), note(14, "c1/7", history.Worked, 2))...)},
		{name: "an old release deletes what an old hold left on another node", want: Pass,
			history: story(join(invoke(0, "c1", history.Acquire, 1), server(0.4, "n1", "c1", "SET", "c1#1", 10), server(0.5, "n2", "c1", "SET", "c1#1", 10), ok(1, "c1", history.Acquire, 1), given(5, "c1", 1),
				taken(6, "c1", 2, "c1#1"), gone(6.5, "n2", "c1", "EVALSHA"), note(7, "c1", history.Worked, 2))...)},
		{name: "a token that two clients write", want: Violation, kind: SharedToken, ops: []int{7}, summary: []string{"c2 put a token on n1 at 6.95s that c1 had written before"},
			history: story(join(taken(1, "c1", 1, "c1#1"), given(5, "c1", 1), taken(7, "c2", 2, "c1#1"), given(8, "c2", 2))...)},
		{name: "a queue names several", want: Unknown, reason: "no command of a client changed", history: story(server(1, "n1", "c1", "ZADD", "c1#1", 10), server(2, "n1", "c2", "ZADD", "c1#1,c2#1", 10))},
		{name: "what was written while a real node came back was not seen", want: Pass, history: with(story(join(taken(1, "c1", 1, "c1#1"), hit(2, 1, history.Start, "kill", "n1"), hit(3, 1, history.Stop, "kill", "n1"),
			server(3.2, "n1", "c1", "EVALSHA", "c2#1", 9.8), gone(4, "n1", "c2", "EVALSHA"), taken(5, "c1", 3, "c1#2"))...), func(h *history.Header) { h.World = "process" })},
		{name: "the key expired under another's script", want: Pass, history: story(join(taken(1, "c1", 1, "c1#1"), gone(10.9, "n1", "c2", "EVALSHA"), gone(10.951, "n1", "", history.Expired), note(12, "c1", history.Worked, 1))...)},
		{name: "several holders at once", want: Unknown, skipped: true, reason: "several holders", history: with(story(taken(1, "c1", 1, "c1#1")...), permits(2))},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}

// skewed moves a node's clock by seconds.
func skewed(e history.Event, by float64) history.Event {
	e.Server.Clock += int64(by * 1e9)
	return e
}

// ofThread moves a client's ops to another of its threads.
func ofThread(n int, events []history.Event) []history.Event {
	for _, e := range events {
		if e.Op != nil {
			e.Op.Thread = n
		}
	}
	return events
}
