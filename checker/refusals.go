package checker

import (
	"fmt"

	"github.com/holdfast-io/holdfast/checker/sweep"
	"github.com/holdfast-io/holdfast/history"
)

// notObtained is the error code of an acquire that was refused because somebody
// else holds the lock.
const notObtained = "LOCK_TIMEOUT"

// definite are the refusals of a lock that must have met a holder: one node said
// that somebody else holds the lock, and nothing had been broken until then. All
// others may be spurious:
//
//   - Votes of several nodes may split between two who both lose.
//   - A fault leaves keys behind that nobody holds: a request that was answered
//     with an error and ran all the same, the second copy of one whose reply was
//     lost. That these keys are there is for the orphans check.
//   - The writer of a lock for readers and writers may put down its key before
//     it looks for readers, and turn readers away that it loses against.
func (f *Facts) definite(lock string) []*Acquisition {
	h := &f.History.Header
	if h.Kind == history.KindRW || h.Topology == "independent" || f.quorum() > 1 {
		return nil
	}
	whole := int64(never)
	for _, x := range f.Faults {
		whole = min(whole, x.Start)
	}
	var out []*Acquisition
	for _, a := range f.Acquisitions {
		if a.Lock == lock && a.Outcome == history.Fail && a.Code == notObtained && a.Done < whole {
			out = append(out, a)
		}
	}
	return out
}

// refused looks for a refusal at which nobody can have been in the way. Now
// acquires with unknown outcomes count: they may have taken effect, and be what
// others met. Such a hold may end at any time: its client may have cleaned up.
//
//	0    c1 acquires a lock that promises to be re-entrant
//	1    c1 acquires it again and is refused: c1 alone can have been in its way
func (f *Facts) refused(r *Result, lock string, holds []hold) {
	refusals := f.definite(lock)
	if len(refusals) == 0 {
		return
	}
	ops := f.operations(holds)
	calls := map[int]*Acquisition{}
	owners := map[threadOf]int{}
	for _, op := range ops {
		owners[holds[op.ID].a.thread()] = op.Owner
	}
	add := func(a *Acquisition, outcome sweep.Outcome) {
		owner, known := owners[a.thread()]
		if !known {
			owner = len(owners)
			owners[a.thread()] = owner
		}
		id := len(holds) + len(calls)
		calls[id] = a
		op := sweep.Op{ID: id, Owner: owner, Hold: id, Kind: sweep.Acquire, Outcome: outcome, Call: a.Invoked, Return: a.Done, LeaseEnd: a.Invoked + 1}
		if a.Mode == history.Reading {
			op.Kind = sweep.RAcquire
		}
		ops = append(ops, op)
	}
	for _, a := range refusals {
		add(a, sweep.Busy)
	}
	for _, a := range f.Acquisitions {
		if a.Lock == lock && a.Outcome == history.Info {
			add(a, sweep.Unknown)
		}
	}
	rules := f.rules()
	rules.StrictBusy = true
	report := sweep.Check(rules, ops)
	if report.Verdict != sweep.Illegal {
		return // undecided is no finding: that a refusal is definite is more than the check has to show
	}
	for _, id := range report.Ops {
		if a := calls[id]; a != nil && a.Outcome == history.Fail {
			r.Violations = append(r.Violations, f.freeAt(a))
			return
		}
	}
}

// freeAt describes a refusal without a holder.
func (f *Facts) freeAt(a *Acquisition) Found {
	found := Found{Kind: RefusedFree, Ops: []int{a.InvokeIndex, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done)}
	for _, b := range f.Acquisitions {
		if b != a && b.Held() && b.Lock == a.Lock && b.thread() == a.thread() && f.History.Header.Reentrant && b.Done <= a.Invoked && a.Done <= b.BeliefEnd {
			found.Ops = append([]int{b.DoneIndex}, found.Ops...)
			found.Summary = fmt.Sprintf("%s asked at %s for %s, which it held since %s and which promises to be re-entrant, and was refused at %s: nobody else can have been in its way.",
				a.Client, f.at(a.Invoked), f.theLock(a.Lock), f.at(b.Done), f.at(a.Done))
			return found
		}
	}
	found.Summary = fmt.Sprintf("%s asked for %s at %s and was refused at %s, but nobody can have held it at any moment in between.",
		a.Client, f.theLock(a.Lock), f.at(a.Invoked), f.at(a.Done))
	return found
}
