package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-io/holdfast/checker/sweep"
	"github.com/holdfast-io/holdfast/history"
)

const linearizabilityName = "linearizability"

// NotLinearizable is the kind of its violations.
const NotLinearizable = "not-linearizable"

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
	for _, lock := range f.Locks {
		f.linearize(&r, holds[lock])
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
// first: they are the smallest explanation.
func (f *Facts) linearize(r *Result, holds []hold) {
	if one, two, ok := collide(holds); ok {
		r.Violations = append(r.Violations, f.collision(one.a, two.a))
		return
	}
	report := sweep.Check(sweep.Rules{Model: sweep.Mutex}, operations(holds))
	switch report.Verdict {
	case sweep.Undecided:
		r.Verdict = Worst(r.Verdict, Unknown)
		r.Reason = report.Reason
	case sweep.Illegal:
		r.Violations = append(r.Violations, f.contradiction(holds, report))
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

// operations puts the holds as calls: an acquire with its release, or with the
// end of a lease where nobody knows whether it was released. The number of a
// call names its hold.
func operations(holds []hold) []sweep.Op {
	ops := make([]sweep.Op, 0, 2*len(holds))
	for i, h := range holds {
		acquire := sweep.Op{
			ID: i, Owner: i, Hold: i, Kind: sweep.Acquire, Outcome: sweep.OK,
			Call: h.invoked, Return: h.granted, LeaseEnd: sweep.Infinity,
		}
		if h.freedBy == never {
			acquire.LeaseEnd = h.free
			ops = append(ops, acquire)
			continue
		}
		ops = append(ops, acquire, sweep.Op{
			ID: i, Owner: i, Hold: i, Kind: sweep.Release, Outcome: sweep.OK, Call: h.free, Return: h.freedBy,
		})
	}
	return ops
}

func (f *Facts) collision(one, two *Acquisition) Found {
	a, b := names(one, two)
	return Found{Kind: NotLinearizable, Ops: []int{one.DoneIndex, two.DoneIndex}, Fault: f.blameSince(two.Done, one),
		Summary: fmt.Sprintf("%s was granted %s at %s, when %s held it since %s with a lease until %s and had not released it: no order of the calls explains both.",
			b, f.theLock(one.Lock), f.at(two.Done), a, f.at(one.Done), f.at(one.LeaseEnd))}
}

// contradiction explains a refutation that is more than two holds which overlap:
// the last of the grants that contradict each other had no room.
func (f *Facts) contradiction(holds []hold, report sweep.Report) Found {
	var involved []*Acquisition
	for _, id := range report.Ops {
		if a := holds[id].a; !slices.Contains(involved, a) {
			involved = append(involved, a)
		}
	}
	slices.SortFunc(involved, func(a, b *Acquisition) int { return cmp.Compare(a.Done, b.Done) })
	last := involved[len(involved)-1]
	found := Found{Kind: NotLinearizable, Fault: f.blameSince(last.Done, involved[0]),
		Summary: fmt.Sprintf("%s was granted %s at %s, and no order of the calls leaves the lock free at any moment since it asked at %s.",
			last.Client, f.theLock(last.Lock), f.at(last.Done), f.at(last.Invoked))}
	for _, a := range involved {
		found.Ops = append(found.Ops, a.InvokeIndex, a.DoneIndex)
	}
	return found
}
