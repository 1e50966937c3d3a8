package checker

import (
	"container/heap"
)

// countOn goes on where a sweep has seen more pairs than anybody will look at: it
// counts what overlaps without forming the pairs, and looks at one pair for each
// grant, the one with the active holder whose lease is guaranteed for longest.
// If that pair was not promised twice, none of this grant's was:
//
//	held since   guaranteed until
//	1            11
//	2            12     <- the one to look at
//	grant at 12.5: its lease begins when all others had ended
//
// so that a broken promise is found however many overruns there are. Only first
// intervals of belief count, so that no pair is counted twice.
func (o *overlaps) countOn(active, rest []span) {
	ends, leases := &spans{key: func(s span) int64 { return -s.To }}, &spans{key: func(s span) int64 { return lastGuarantee(s.a) }}
	enter := func(s span) {
		if s.From == s.a.Belief[0].From {
			heap.Push(ends, s)
			heap.Push(leases, s)
		}
	}
	for _, s := range active {
		enter(s)
	}
	for _, s := range rest {
		if s.From != s.a.Belief[0].From {
			continue
		}
		for ends.Len() > 0 && ends.all[0].To <= s.From {
			heap.Pop(ends)
		}
		for leases.Len() > 0 && leases.all[0].To <= s.From {
			heap.Pop(leases)
		}
		n := ends.Len()
		if n > 0 && (promisedTwice(leases.all[0].a, s.a) || o.facts.baseless(s.a) != "") {
			o.add(leases.all[0], s)
			n--
		}
		o.total += n
		o.unjudged += n
		enter(s)
	}
}

// spans is a heap with the largest key on top.
type spans struct {
	all []span
	key func(span) int64
}

// Len implements [heap.Interface].
func (h *spans) Len() int { return len(h.all) }

// Less implements [heap.Interface].
func (h *spans) Less(i, j int) bool { return h.key(h.all[i]) > h.key(h.all[j]) }

// Swap implements [heap.Interface].
func (h *spans) Swap(i, j int) { h.all[i], h.all[j] = h.all[j], h.all[i] }

// Push implements [heap.Interface].
func (h *spans) Push(x any) { h.all = append(h.all, x.(span)) }

// Pop implements [heap.Interface].
func (h *spans) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}
