package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker/sweep"
	"github.com/holdfast-io/holdfast/history"
)

const linearizabilityName = "linearizability"

// NotLinearizable is the kind of its violations.
const NotLinearizable = "not-linearizable"

// RefusedFree is a refusal when nobody else can have held the lock.
const RefusedFree = "refused-free"

// linearizability asks whether the client ops are a history of the lock's
// sequential model, with owners and leases: a mutex, a re-entrant lock, a lock
// for readers and writers, or a semaphore, with fences that rise where there are
// fences. Package sweep has the models and decides.
//
// The state is the acquisitions that hold the lock. There are two steps:
//
//   - grant A: at some moment of A's acquire, if the model lets A in beside
//     those that hold it;
//   - free A: by its release or by the end of its lease.
//
// What is told to clients binds the model as little as it may:
//
//   - An acquire that was refused is no step, since a busy answer may stem
//     from a key that was about to go, or from other nodes' votes. Where it
//     cannot, see [Facts.definite], it must have met a holder.
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
	for _, lock := range f.Locks {
		before := len(r.Violations)
		f.linearize(&r, holds[lock])
		if len(r.Violations) == before {
			f.refused(&r, lock, holds[lock])
		}
	}
	switch {
	case len(r.Violations) > 0:
		r.Verdict, r.Kind = Violation, r.Violations[0].Kind
	case n == 0:
		r.Verdict, r.Reason = Unknown, "no acquire succeeded"
		return r
	}
	r.Figures = map[string]float64{"lock_ops": float64(2 * n)}
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

// linearize judges one lock. Of a mutex, two holds that cannot both be are looked
// for first: they are the smallest explanation.
func (f *Facts) linearize(r *Result, holds []hold) {
	if f.History.Header.Kind == "" && !f.History.Header.Reentrant {
		if one, two, ok := collide(holds); ok {
			r.Violations = append(r.Violations, f.collision(one.a, two.a))
			return
		}
	}
	rules := f.rules()
	report := sweep.Check(rules, f.operations(holds))
	switch report.Verdict {
	case sweep.Undecided:
		r.Verdict = Worst(r.Verdict, Unknown)
		r.Reason = report.Reason
	case sweep.Illegal:
		r.Violations = append(r.Violations, f.contradiction(holds, report))
	}
}

// rules are the lock's sequential model.
func (f *Facts) rules() sweep.Rules {
	h := &f.History.Header
	fenced := h.Has("fence")
	switch {
	case h.Kind == history.KindSemaphore:
		return sweep.Rules{Model: sweep.Semaphore, Permits: f.permits()}
	case h.Kind == history.KindRW:
		return sweep.Rules{Model: sweep.ReadWrite}
	case h.Reentrant && fenced:
		return sweep.Rules{Model: sweep.ReentrantFenced}
	case h.Reentrant:
		return sweep.Rules{Model: sweep.Reentrant}
	case fenced:
		return sweep.Rules{Model: sweep.Fenced}
	}
	return sweep.Rules{Model: sweep.Mutex}
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
func (f *Facts) operations(holds []hold) []sweep.Op {
	ops := make([]sweep.Op, 0, 2*len(holds))
	owners := map[threadOf]int{}
	for i, h := range holds {
		owner, known := owners[h.a.thread()]
		if !known {
			owner = len(owners)
			owners[h.a.thread()] = owner
		}
		acquire := sweep.Op{
			ID: i, Owner: owner, Hold: i, Kind: sweep.Acquire, Outcome: sweep.OK,
			Call: h.invoked, Return: h.granted, LeaseEnd: sweep.Infinity,
		}
		release := sweep.Op{
			ID: i, Owner: owner, Hold: i, Kind: sweep.Release, Outcome: sweep.OK, Call: h.free, Return: h.freedBy,
		}
		if h.a.Fence != nil {
			acquire.Fence = *h.a.Fence
		}
		if h.a.Mode == history.Reading {
			acquire.Kind, release.Kind = sweep.RAcquire, sweep.RRelease
		}
		// An acquire that waited for its turn hears of its grant when a lease that
		// counts from its invoke is over. It may have been freed since.
		if h.freedBy == never || h.free < h.granted {
			acquire.LeaseEnd = h.free
			ops = append(ops, acquire)
			continue
		}
		ops = append(ops, acquire, release)
	}
	return ops
}

func (f *Facts) collision(one, two *Acquisition) Found {
	a, b := names(one, two)
	return Found{Kind: NotLinearizable, Ops: []int{one.DoneIndex, two.DoneIndex}, suspects: f.blameSince(two.Done, one),
		Summary: fmt.Sprintf("%s was granted %s at %s, when %s held it since %s with a lease until %s and had not released it: no order of the calls explains both.",
			b, f.theLock(one.Lock), f.at(two.Done), a, f.at(one.Done), f.at(one.LeaseEnd))}
}

// contradiction explains a refutation that is more than two holds of a mutex
// which overlap: the last of the grants that contradict each other had no room.
func (f *Facts) contradiction(holds []hold, report sweep.Report) Found {
	var involved []*Acquisition
	for _, id := range report.Ops {
		if a := holds[id].a; !slices.Contains(involved, a) {
			involved = append(involved, a)
		}
	}
	slices.SortFunc(involved, func(a, b *Acquisition) int { return cmp.Compare(a.Done, b.Done) })
	last := involved[len(involved)-1]
	found := Found{Kind: NotLinearizable, suspects: f.blameSince(last.Done, involved[0]), Summary: f.noRoom(involved, last)}
	for _, a := range involved {
		found.Ops = append(found.Ops, a.InvokeIndex, a.DoneIndex)
	}
	return found
}

// noRoom says what the last of the grants that contradict each other lacked.
func (f *Facts) noRoom(involved []*Acquisition, last *Acquisition) string {
	first := involved[0]
	var fences []string
	for _, a := range involved {
		if a.Fence != nil {
			fences = append(fences, fmt.Sprintf("%s %d (asked at %s)", a.named(involved), *a.Fence, f.at(a.Invoked)))
		}
	}
	switch h := &f.History.Header; {
	case h.Kind == history.KindSemaphore:
		return fmt.Sprintf("%s was granted a permit of %s at %s, and no order of the calls leaves one of the %d free at any moment since it asked at %s.",
			last.named(involved), f.theLock(last.Lock), f.at(last.Done), f.permits(), f.at(last.Invoked))
	case len(fences) > 1 && len(fences) == len(involved) && sweep.Check(sweep.Rules{Model: withoutFences(f.rules().Model)}, f.operations(newHolds(involved))).Verdict == sweep.Linearizable:
		return fmt.Sprintf("the fencing tokens of %s rise in no order of the calls that explains the answers: %s.", f.theLock(last.Lock), strings.Join(fences, ", "))
	case len(involved) == 2 && (h.Kind != "" || h.Reentrant):
		return f.collision(first, last).Summary
	}
	return fmt.Sprintf("%s was granted %s at %s, and no order of the calls leaves the lock free at any moment since it asked at %s.",
		last.Client, f.theLock(last.Lock), f.at(last.Done), f.at(last.Invoked))
}

func withoutFences(m sweep.Model) sweep.Model {
	if m == sweep.ReentrantFenced {
		return sweep.Reentrant
	}
	return sweep.Mutex
}

func newHolds(acquisitions []*Acquisition) []hold {
	var holds []hold
	for _, a := range acquisitions {
		holds = append(holds, newHold(a))
	}
	return holds
}
