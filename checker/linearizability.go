package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-io/holdfast/history"
)

const linearizabilityName = "linearizability"

// NotLinearizable is the kind of its violations.
const NotLinearizable = "not-linearizable"

const (
	// mostLockOps: porcupine is quadratic on the history of one lock, and
	// 200,000 ops take gigabytes.
	mostLockOps = 20_000
	// patience with the search.
	patience = 10 * time.Second
)

// linearizability asks whether the client ops are a history of the lock's
// sequential model, a mutex with owners and leases.
//
// The state is the acquisition that holds the lock, or 0. There are two steps:
//
//   - grant A: from 0 to A, at some moment of A's acquire;
//   - free A: from A to 0, by its release or by the end of its lease.
//
// What is told to clients binds the model as little as it may:
//
//   - An acquire that was refused says nothing, since a busy answer may stem
//     from a key that was about to go. It is no step.
//   - An acquire with an unknown outcome may have happened or not, then or
//     later. It is no step either: in any order of steps that explains the
//     others, taking out its grant and its free leaves an order that explains
//     them too, for the lock is only free more often.
//   - A release that says yes frees the lock by its end, if A still held it.
//     After the lease it may find nothing to free and say yes all the same;
//     Redlock always does.
//   - A release that says no, or whose outcome is unknown, frees the lock at
//     any time from its invoke. A "not held" is the service's own word that A
//     holds nothing. Only if no request left the client is it no step.
//   - A loss notice or a refused extend is the same word, given earlier.
//   - The lease ends LeaseEnd at the earliest, renewals included.
func linearizability(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: true}
	holds := map[string][]hold{}
	n := 0
	for _, a := range f.Acquisitions {
		if a.Held() {
			holds[a.Lock] = append(holds[a.Lock], newHold(a))
			n++
		}
	}
	if n == 0 {
		r.Verdict, r.Reason = Unknown, "no acquire succeeded"
		return r
	}
	r.Figures = map[string]float64{"lock_ops": float64(2 * n)}
	deadline := time.Now().Add(patience)
	for _, lock := range f.Locks {
		f.linearize(&r, holds[lock], deadline)
	}
	if len(r.Violations) > 0 {
		r.Verdict, r.Kind = Violation, NotLinearizable
	}
	return r
}

// hold is one granted acquisition as the model sees it: granted at some moment
// of [invoked, granted], freed at some moment of [free, freed].
type hold struct {
	a                               *Acquisition
	invoked, granted, free, freedBy int64
}

func newHold(a *Acquisition) hold {
	h := hold{a: a, invoked: a.Invoked, granted: a.Done, free: min(a.LeaseEnd, a.gone), freedBy: never}
	sent := a.ReleaseIndex >= 0 && !(a.ReleaseOutcome == history.Fail && a.ReleaseCode == unreachable)
	if sent {
		h.free = min(h.free, a.ReleaseInvoked)
	}
	if sent && a.ReleaseOutcome == history.OK {
		h.freedBy = a.ReleaseDone
	}
	h.free = max(h.free, h.invoked)
	h.freedBy = max(h.freedBy, h.free)
	return h
}

// linearize judges one lock. Two holds that cannot both be are looked for
// first: they are a proof at any length, and the smallest explanation.
func (f *Facts) linearize(r *Result, holds []hold, deadline time.Time) {
	if one, two, ok := collide(holds); ok {
		r.Violations = append(r.Violations, f.collision(one.a, two.a))
		return
	}
	ops := operations(holds)
	left := time.Until(deadline)
	if len(ops) > mostLockOps {
		r.Verdict = Worst(r.Verdict, Unknown)
		r.Reason = fmt.Sprintf("%d lock ops are more than the %d that the search is given", len(ops), mostLockOps)
		return
	}
	result := porcupine.Unknown
	if left > 0 {
		result = porcupine.CheckOperationsTimeout(model(), ops, left)
	}
	switch result {
	case porcupine.Unknown:
		r.Verdict = Worst(r.Verdict, Unknown)
		r.Reason = fmt.Sprintf("gave up after %.0f s, %d ops", patience.Seconds(), len(ops))
	case porcupine.Illegal:
		r.Violations = append(r.Violations, f.blocked(holds, ops, deadline))
	}
}

// collide finds the first two holds whose cores overlap. The core of a hold,
// from its grant's return to its earliest free, is when it surely held. Holds
// with an empty core, over before the client heard of them, need the search.
func collide(holds []hold) (one, two hold, found bool) {
	sorted := slices.Clone(holds)
	slices.SortStableFunc(sorted, func(x, y hold) int { return cmp.Compare(x.granted, y.granted) })
	var longest hold
	for _, h := range sorted {
		if h.free <= h.granted {
			continue
		}
		if longest.a != nil && h.granted < longest.free {
			return longest, h, true
		}
		if longest.a == nil || h.free > longest.free {
			longest = h
		}
	}
	return hold{}, hold{}, false
}

// step is the input of one operation of the model.
type step struct {
	acq  int
	free bool
}

func operations(holds []hold) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, 2*len(holds))
	for i, h := range holds {
		ops = append(ops,
			porcupine.Operation{ClientId: i, Input: step{acq: h.a.Acq}, Call: h.invoked, Return: h.granted},
			porcupine.Operation{ClientId: i, Input: step{acq: h.a.Acq, free: true}, Call: h.free, Return: h.freedBy})
	}
	return ops
}

// model is the sequential mutex. A free is legal only from its own holder:
// every grant takes effect, so its free has a place after it, at the latest
// behind everything else. That keeps the search small.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(int), input.(step)
			if in.free {
				return s == in.acq, 0
			}
			return s == 0, in.acq
		},
		Hash: func(state any) uint64 { return uint64(state.(int)) },
	}
}

func (f *Facts) collision(one, two *Acquisition) Found {
	a, b := names(one, two)
	return Found{Kind: NotLinearizable, Ops: []int{one.DoneIndex, two.DoneIndex}, Fault: f.active(one.Done, two.Done),
		Summary: fmt.Sprintf("%s was granted %s at %s, when %s held it since %s with a lease until %s and had not released it: no order of the calls explains both.",
			b, f.theLock(one.Lock), f.at(two.Done), a, f.at(one.Done), f.at(one.LeaseEnd))}
}

// blocked explains a refutation by search: the first grant, in the order of
// replies, that the longest explainable prefix leaves out.
func (f *Facts) blocked(holds []hold, ops []porcupine.Operation, deadline time.Time) Found {
	explained := map[int]bool{}
	if left := time.Until(deadline); left > 0 {
		_, info := porcupine.CheckOperationsVerbose(model(), ops, left)
		var longest []porcupine.Operation
		for _, partition := range info.PartialLinearizationsOperations() {
			for _, partial := range partition {
				if len(partial) > len(longest) {
					longest = partial
				}
			}
		}
		for _, op := range longest {
			if in := op.Input.(step); !in.free {
				explained[in.acq] = true
			}
		}
	}
	var first *Acquisition
	done := int64(math.MaxInt64)
	for _, h := range holds {
		if !explained[h.a.Acq] && h.granted < done {
			first, done = h.a, h.granted
		}
	}
	if first == nil {
		first = holds[len(holds)-1].a
	}
	return Found{Kind: NotLinearizable, Ops: []int{first.InvokeIndex, first.DoneIndex}, Fault: f.active(first.Invoked, first.Done),
		Summary: fmt.Sprintf("%s was granted %s at %s, and no order of the calls before it leaves the lock free at any moment since it asked at %s.",
			first.Client, f.theLock(first.Lock), f.at(first.Done), f.at(first.Invoked))}
}
