package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestFencing(t *testing.T) {
	const acquire = history.Acquire
	fenced := func(h *history.Header) { h.Abilities = []string{"fence"} }
	guarded := func(h *history.Header) { h.Abilities, h.Resource = []string{"fence"}, "guarded" }
	granted := func(t float64, who string, acq int, n uint64) []history.Event {
		g := grant(t, who, acq)
		return []history.Event{g[0], fence(g[1], n)}
	}
	both := join(granted(1, "c1", 1, 33), granted(12, "c2", 2, 34)) // events 0 to 3

	try(t, fencingName, []trial{
		{name: "tokens grow", want: Pass, reason: "the resource is plain", history: with(story(both...), fenced)},
		{name: "tokens go backwards", want: Violation, kind: FenceNotMonotonic, ops: []int{1, 3},
			summary: []string{"c2 was given fencing token 6 at 12.00s, after c1 had been given 100 at 1.00s"},
			history: with(story(join(granted(1, "c1", 1, 100), granted(12, "c2", 2, 6))...), fenced)},
		{name: "the maximum counts, not the last", want: Violation, kind: FenceNotMonotonic, ops: []int{3, 5},
			history: with(story(join(granted(1, "c1", 1, 9), granted(2, "c2", 2, 12), granted(3, "c3", 3, 11))...), fenced)},
		{name: "measured by the newest, not by the last", want: Violation, kind: FenceNotMonotonic, ops: []int{1, 3}, count: 2,
			history: with(story(join(granted(1, "c1", 1, 12), granted(2, "c2", 2, 3), granted(3, "c3", 3, 9))...), fenced)},
		{name: "slow reply of an older token is lawful", want: Pass, reason: "plain", history: with(story(
			invoke(0, "c1", acquire, 1), invoke(1, "c2", acquire, 2), fence(ok(2, "c2", acquire, 2), 2), fence(ok(3, "c1", acquire, 1), 1)), fenced)},
		{name: "the same token twice", want: Violation, kind: FenceRepeated, ops: []int{1, 3}, count: 1, summary: []string{"fencing token 7", "the same one"},
			history: with(story(join(granted(1, "c1", 1, 7), granted(12, "c2", 2, 7))...), fenced)},
		{name: "the counter was lost before the reply", want: Violation, kind: FenceRepeated, ops: []int{3, 5}, fault: "flush",
			history: with(story(join(invoke(0.9, "c1", acquire, 1), hit(0.95, 1, history.Start, "flush", "n1"), hit(0.95, 1, history.Stop, "flush", "n1"),
				fence(ok(1, "c1", acquire, 1), 7), granted(2, "c2", 2, 7))...), fenced)},
		{name: "the same token at once", want: Violation, kind: FenceRepeated, ops: []int{2, 3}, history: with(story(
			invoke(0, "c1", acquire, 1), invoke(1, "c2", acquire, 2), fence(ok(2, "c2", acquire, 2), 2), fence(ok(3, "c1", acquire, 1), 2)), fenced)},
		{name: "guard refuses the stale write", want: Pass, history: with(story(join(both,
			token(arrive(13, "c2", 2, 0, 0, true), 34), token(arrive(16, "c1", 1, 0, 1, false), 33))...), guarded)},
		{name: "guard lets the stale write through", want: Violation, kind: StaleWrite, ops: []int{4, 5},
			summary: []string{"write of c1 with fencing token 33 was applied at 16.00s, after the write of c2 with token 34"},
			history: with(story(join(both, token(arrive(13, "c2", 2, 0, 0, true), 34), token(arrive(16, "c1", 1, 0, 1, true), 33))...), guarded)},
		{name: "guard refuses the newest", want: Violation, kind: NewestRefused, ops: []int{5}, summary: []string{"token 34 is the newest it has seen"},
			history: with(story(join(both, token(arrive(13, "c1", 1, 0, 0, true), 33), token(arrive(16, "c2", 2, 0, 1, false), 34))...), guarded)},
		{name: "a refusal after a newer token was only seen", want: Pass, history: with(story(join(both,
			token(history.Event{T: ns(13), Resource: &history.Resource{Client: "c2", Acq: 2, F: history.Read}}, 34),
			token(arrive(16, "c1", 1, 0, 1, false), 33))...), guarded)},
		{name: "guard takes an older token than one it saw on a read", want: Violation, kind: StaleWrite, ops: []int{4, 5},
			summary: []string{"write of c1 with fencing token 33 was applied at 16.00s, after the read of c2 with token 34 at 13.00s"},
			history: with(story(join(both,
				token(history.Event{T: ns(13), Resource: &history.Resource{Client: "c2", Acq: 2, F: history.Read, Applied: true}}, 34),
				token(arrive(16, "c1", 1, 0, 0, true), 33))...), guarded)},
		{name: "stale write on a plain resource is no matter of the fence", want: Pass, reason: "the resource is plain", history: with(story(join(both,
			token(arrive(13, "c2", 2, 0, 0, true), 34), token(arrive(16, "c1", 1, 0, 1, true), 33))...), fenced)},
		{name: "a write without a token gets past the guard", want: Violation, kind: UnfencedWrite, ops: []int{4},
			summary: []string{"the write of c2 at 13.00s carried no fencing token and was applied"},
			history: with(story(join(both, arrive(13, "c2", 2, 0, 0, true))...), guarded)},
		{name: "a refused write without a token", want: Pass, history: with(story(join(both, arrive(13, "c2", 2, 0, 0, false))...), guarded)},
		{name: "a grant without the token that the lock declares", want: Violation, kind: FenceMissing, ops: []int{3},
			summary: []string{"basic declares fencing tokens, but the grant to c2 at 12.00s came with none"},
			history: with(story(join(granted(1, "c1", 1, 33), grant(12, "c2", 2))...), fenced)},
		{name: "a token that the lock does not declare", want: Violation, kind: FenceUndeclared, ops: []int{1},
			summary: []string{"c1 was given fencing token 33 at 1.00s, but basic declares none"},
			history: story(both...)},
		{name: "a lock without fences before a guard", want: Unknown, skipped: true, reason: "the guard let 1 write without a token through",
			history: with(story(join(grant(1, "c1", 1), arrive(2, "c1", 1, 0, 0, true))...), func(h *history.Header) { h.Resource = "guarded" })},
		{name: "a lock without fences", want: Unknown, skipped: true, reason: "basic hands out no fencing tokens: it cannot be fenced", history: story(grant(1, "c1", 1)...)},
		{name: "no token was handed out", want: Unknown, reason: "no acquire handed out", history: with(story(invoke(1, "c1", acquire, 1)), fenced)},
	})
}
