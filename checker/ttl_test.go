package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestTimeToLive(t *testing.T) {
	held := func(pttl float64) []history.Event {
		return []history.Event{invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", pttl), ok(1, "c1", history.Acquire, 1)}
	}
	counter := server(1.95, "n1", "c1", "INCR", "", -0.001)
	counter.Server.Key, counter.Server.Value = "fence:a", "3"
	queue := server(2, "n1", "c2", "EVALSHA", "c2#1", 60)
	queue.Server.Key = "queue:a"
	try(t, ttlName, []trial{
		{name: "as asked, and after a renewal", want: Pass, history: story(join(held(10), server(4, "n1", "c1", "EVALSHA", "c1#1", 10), given(5, "c1", 1))...)},
		{name: "a refused command shows what is left", want: Pass, history: story(join(held(10), server(9, "n1", "c2", "SET", "c1#1", 1.95))...)},
		{name: "a waiter's place in the queue has a time of its own", want: Pass, history: story(join(held(10), queue)...)},
		{name: "a counter needs none", want: Pass, history: story(join(held(10), counter)...)},
		{name: "none", want: Violation, kind: NoTTL, ops: []int{1}, summary: []string{"the SET of c1 at 0.95s left its key on n1 with no TTL"}, history: story(held(-0.001)...)},
		{name: "none for a moment", want: Violation, kind: NoTTL, ops: []int{1}, history: story(join(held(-0.001), server(1.1, "n1", "c1", "PEXPIRE", "c1#1", 10))...)},
		{name: "none inside one transaction", want: Pass, history: story(join(held(-0.001)[:2], server(0.95002, "n1", "c1", "PEXPIRE", "c1#1", 10), ok(1, "c1", history.Acquire, 1))...)},
		{name: "persisted", want: Violation, kind: NoTTL, ops: []int{3}, history: story(join(held(10), server(2, "n1", "c1", "PERSIST", "c1#1", -0.001))...)},
		{name: "a thousand times too long", want: Violation, kind: TooLong, ops: []int{3}, summary: []string{"a TTL of 2h46m40s, although 10s was asked for"}, history: story(join(held(10), server(2, "n1", "c1", "EXPIRE", "c1#1", 10000))...)},
		{name: "cut to whole units", want: Violation, kind: TooShort, ops: []int{1}, history: story(held(9)...)},
		{name: "a little shorter than asked", want: Pass, history: story(held(9.6)...)},
		{name: "a refused acquire may leave what it likes", want: Pass, history: story(invoke(0.9, "c1", history.Acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 3), info(1, "c1", history.Acquire, 1))},
		{name: "shorter with a renewal", want: Violation, kind: Shrinks, ops: []int{3}, summary: []string{"a TTL of 5s, although it was granted with 10s"}, history: story(join(held(10), server(2, "n1", "c1", "EVALSHA", "c1#1", 5))...)},
		{name: "a release that lets the key run out at once", want: Pass,
			history: story(join(held(10), invoke(3, "c1", history.Release, 1), server(3.05, "n1", "c1", "EVAL", "c1#1", 0.001), gone(3.052, "n1", "", history.Expired), ok(3.1, "c1", history.Release, 1))...)},
		{name: "a renewal that shrinks before the release", want: Violation, kind: Shrinks, ops: []int{3},
			history: story(join(held(10), server(2.9, "n1", "c1", "EVAL", "c1#1", 0.5), invoke(3, "c1", history.Release, 1), gone(3.05, "n1", "c1", "EVAL"), ok(3.1, "c1", history.Release, 1))...)},
		{name: "another client's hold under the same token is not given back by it", want: Violation, kind: Shrinks, ops: []int{8},
			history: story(join(held(10), invoke(3, "c1", history.Release, 1), gone(3.005, "n1", "c1", "EVAL"), invoke(3.01, "c2", history.Acquire, 2), server(3.02, "n1", "c2", "SET", "c1#1", 10), ok(3.04, "c2", history.Acquire, 2), server(3.05, "n1", "c1", "EVAL", "c1#1", 0.001))...)},
		{name: "a renewal to an absolute end, held up by a pause", want: Pass,
			history: story(join(held(10), hit(1.5, 1, history.Start, "pause", "c1"), hit(5, 1, history.Stop, "pause", "c1"), server(5.01, "n1", "c1", "EVALSHA", "c1#1", 7))...)},
		{name: "a grant to an absolute end, held up by a link", want: Pass,
			history: story(invoke(0.9, "c1", history.Acquire, 1), hit(0.91, 1, history.Start, "delay", "c1->n1"), server(3.9, "n1", "c1", "SET", "c1#1", 7.01), hit(4, 1, history.Stop, "delay", "c1->n1"), ok(4.1, "c1", history.Acquire, 1))},
		{name: "shorter than a pause explains", want: Violation, kind: Shrinks, ops: []int{5},
			history: story(join(held(10), hit(1.5, 1, history.Start, "pause", "c1"), hit(2, 1, history.Stop, "pause", "c1"), server(5.01, "n1", "c1", "EVALSHA", "c1#1", 6.5))...)},
		{name: "an end that was made before the grant's command", want: Violation, kind: Shrinks, ops: []int{5}, fault: "",
			history: story(join(held(10), hit(1, 1, history.Start, "pause", "c1"), hit(2, 1, history.Stop, "pause", "c1"), server(5.01, "n1", "c1", "EVALSHA", "c1#1", 5.5))...)},
		{name: "a grant whose end would lie before its acquire", want: Violation, kind: TooShort, ops: []int{2}, fault: "delay",
			history: story(invoke(0.9, "c1", history.Acquire, 1), hit(0.91, 1, history.Start, "delay", "c1->n1"), server(3.9, "n1", "c1", "SET", "c1#1", 5), hit(4, 1, history.Stop, "delay", "c1->n1"), ok(4.1, "c1", history.Acquire, 1))},
		{name: "gone at the grant", want: Violation, kind: Gone, ops: []int{1, 2}, summary: []string{"right after its EVALSHA at 0.95s the key was absent"},
			history: story(invoke(0.9, "c1", history.Acquire, 1), gone(0.95, "n1", "c1", "EVALSHA"), ok(1, "c1", history.Acquire, 1))},
		{name: "nothing was set", want: Unknown, reason: "no command set a TTL", history: story(invoke(0.9, "c1", history.Acquire, 1), gone(0.95, "n1", "c1", "EVALSHA"), fail(1, "c1", history.Acquire, 1))},
		{name: "no trace", want: Unknown, skipped: true, reason: "no server trace", history: story(grant(1, "c1", 1)...)},
	})
}
