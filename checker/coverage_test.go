package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestCoverage(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	asks := func(h *history.History, c history.Coverage) *history.History {
		h.Header.Coverage = c
		return h
	}
	faulty := func() *history.History {
		return story(join(grant(1, "c1", 1), invoke(2, "c1", release, 1), ok(2.1, "c1", release, 1), fault(3, 1, history.Start, ""),
			grant(4, "c2", 2), invoke(5, "c2", release, 2), ok(5.1, "c2", release, 2), fault(6, 1, history.Stop, ""), grant(7, "c3", 3))...)
	}
	try(t, coverageName, []trial{
		{name: "nothing asked", want: Pass, history: story(grant(1, "c1", 1)...)},
		{name: "nothing asked, nothing granted", want: Unknown, reason: "no acquire succeeded", history: story(invoke(1, "c1", acquire, 1), fail(2, "c1", acquire, 1))},
		{name: "before, during and after", want: Pass, history: asks(faulty(), history.Coverage{AcquiresBefore: 1, AcquiresDuring: 1, AcquiresAfter: 1, FaultOverlapsOp: true})},
		{name: "too few of each", want: Unknown, reason: "1 acquires before the first fault, want 2; 1 acquires during a fault, want 2; 1 acquires after the last fault, want 2",
			history: asks(faulty(), history.Coverage{AcquiresBefore: 2, AcquiresDuring: 2, AcquiresAfter: 2})},
		{name: "without faults all count as before", want: Unknown, reason: "0 acquires during", history: asks(story(grant(1, "c1", 1)...), history.Coverage{AcquiresBefore: 1, AcquiresDuring: 1})},
		{name: "a fault healed by the final phase", want: Pass, history: asks(story(join(fault(1, 1, history.Start, ""), final(2), grant(3, "c1", 1))...), history.Coverage{AcquiresAfter: 1})},
		{name: "the fault hit nothing", want: Unknown, reason: "no fault was active", history: asks(story(join(fault(1, 1, history.Start, ""), fault(2, 1, history.Stop, ""), grant(3, "c1", 1))...), history.Coverage{FaultOverlapsOp: true})},
		{name: "a fault that never struck", want: Unknown, reason: "a fault never struck: pause (write invoke number 9)",
			history: story(append(grant(1, "c1", 1), history.Event{T: 2e9, Nemesis: &history.Nemesis{Fault: "pause (write invoke number 9)", Phase: history.Never}})...)},
		{name: "refused while held", want: Pass, history: asks(story(join(grant(1, "c1", 1), invoke(2, "c2", acquire, 2), fail(3, "c2", acquire, 2))...), history.Coverage{Contention: true})},
		{name: "waited while held", want: Pass, history: asks(story(join(grant(1, "c1", 1), invoke(2, "c2", acquire, 2), invoke(3, "c1", release, 1), ok(4, "c2", acquire, 2))...), history.Coverage{Contention: true})},
		{name: "asked before the other held", want: Pass, history: asks(story(invoke(0, "c2", acquire, 2), invoke(0.5, "c1", acquire, 1), ok(1, "c1", acquire, 1), fail(2, "c2", acquire, 2)), history.Coverage{Contention: true})},
		{name: "asked after the release", want: Unknown, reason: "no client asked", history: asks(faulty(), history.Coverage{Contention: true})},
		{name: "another thread of the same client is no other client", want: Unknown, reason: "no client asked", history: asks(story(join(grant(1, "c1/1", 1), invoke(2, "c1/2", acquire, 2), fail(3, "c1/2", acquire, 2))...), history.Coverage{Contention: true})},
		{name: "refused at the moment of the other's grant", want: Unknown, reason: "no client asked", history: asks(story(invoke(1, "c1", acquire, 1), invoke(2, "c2", acquire, 2), fail(5, "c2", acquire, 2), ok(5, "c1", acquire, 1), note(6, "c1", history.Worked, 1)), history.Coverage{Contention: true})},
		{name: "a write that arrives after the release", want: Unknown, reason: "no holder stayed inside", history: asks(story(join(grant(1, "c1", 1), invoke(2, "c1", release, 1), arrive(30, "c1", 1, 0, 0, true))...), history.Coverage{Outlived: true})},
		{name: "a request that left no client is no contention", want: Unknown, reason: "no client asked", history: asks(story(join(grant(1, "c1", 1), invoke(2, "c2", acquire, 2), code(fail(3, "c2", acquire, 2), unreachable))...), history.Coverage{Contention: true})},
		{name: "outlived its TTL", want: Pass, history: asks(story(join(grant(1, "c1", 1), arrive(11.2, "c1", 1, 0, 0, true))...), history.Coverage{Outlived: true})},
		{name: "outlived it inside the acquire", want: Pass, history: asks(story(invoke(0, "c1", acquire, 1), ok(15, "c1", acquire, 1)), history.Coverage{Outlived: true})},
		{name: "waited, then was quick", want: Unknown, reason: "no holder stayed inside", history: asks(story(invoke(0, "c1", acquire, 1), server(14.9, "n1", "c1", "SET", "c1#1", 10),
			ok(15, "c1", acquire, 1), invoke(16, "c1", release, 1)), history.Coverage{Outlived: true})},
		{name: "sent elsewhere in both ways", want: Pass, history: with(asks(story(grant(1, "c1", 1)...), history.Coverage{Redirects: true}), func(h *history.Header) { h.Moved, h.Asked = 1, 2 })},
		{name: "sent elsewhere in one way", want: Unknown, reason: "3 times by MOVED and 0 times by ASK", history: with(asks(story(grant(1, "c1", 1)...), history.Coverage{Redirects: true}), func(h *history.Header) { h.Moved = 3 })},
		{name: "left in time", want: Unknown, reason: "no holder stayed inside", history: asks(story(join(grant(1, "c1", 1), invoke(9, "c1", release, 1), ok(30, "c1", release, 1))...), history.Coverage{Outlived: true})},
	})
}
