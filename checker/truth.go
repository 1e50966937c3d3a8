package checker

import (
	"cmp"
	"fmt"
	"slices"
)

const leaseName = "lease"

// Kinds of a lease violation.
const (
	NeverThere   = "never-there"
	DataLost     = "data-lost"
	Deleted      = "deleted"
	Overwritten  = "overwritten"
	ExpiredEarly = "expired-early"
)

var leaseKinds = map[string]string{
	lapseNever: NeverThere, lapseLost: DataLost, lapseDeposed: DataLost, lapseDeleted: Deleted,
	lapseOverwritten: Overwritten, lapseExpired: ExpiredEarly,
}

var leaseGravity = []string{NeverThere, DataLost, Overwritten, Deleted, ExpiredEarly}

// truth is the lease check: while an acquisition's guaranteed lease runs and
// its holder believes in it, its token is on record: on the node, on the
// primary, or on a quorum of independent nodes. Whether somebody else was let
// in meanwhile is another matter; here the ground was gone.
//
//	0    c1's SET runs, TTL 10; c1 believes
//	2    the node restarts empty
//	2.1  nobody else asks: exclusion holds, by luck, and the lease does not
func truth(f *Facts) Result {
	if why := f.untraced(); why != "" {
		return Result{Verdict: Unknown, Reason: why + ", so nobody knows what the nodes carried"}
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	judged, unknown := 0, 0
	for _, a := range f.Acquisitions {
		if a.Held() && len(a.Guaranteed) == 0 && f.baseless(a) != "" && len(a.Belief) > 0 {
			judged++
			found = append(found, f.fallen(a, a.lapses[0], a.Done))
			continue
		}
		if !a.Held() || len(a.Guaranteed) == 0 {
			continue
		}
		if a.Alias == "" && len(a.lapses) == 0 {
			unknown++
			continue
		}
		judged++
		if l, at, ok := f.fell(a); ok {
			found = append(found, f.fallen(a, l, at))
		}
	}
	r.Figures = map[string]float64{"judged": float64(judged), "token_unknown": float64(unknown), "fallen": float64(len(found))}
	if judged == 0 {
		r.Verdict, r.Reason = Unknown, "no granted acquisition's token was seen on a node"
	}
	return r.with(found, leaseGravity)
}

// fell finds the first lapse inside a believed guaranteed lease.
func (f *Facts) fell(a *Acquisition) (l lapse, at int64, ok bool) {
	slack := f.slack()
	for _, l := range a.lapses {
		if slack > 0 && l.To-l.From <= slack {
			continue // two nodes' clocks, read apart
		}
		for _, g := range a.Guaranteed {
			for _, b := range a.Belief {
				in := Interval{From: max(g.From, b.From, l.From), To: min(g.To-slack, b.To, l.To)}
				if in.From < in.To {
					return l, in.From, true
				}
			}
		}
	}
	return lapse{}, 0, false
}

func (f *Facts) fallen(a *Acquisition, l lapse, at int64) Found {
	where := "the node"
	if f.quorum() > 1 {
		where = fmt.Sprintf("a quorum of %d nodes", f.quorum())
	}
	promise := fmt.Sprintf("although its lease (granted at %s) was guaranteed until %s and %s believed in it",
		f.at(a.Done), f.at(lastGuarantee(a)), a.Client)
	carried := "did not carry"
	if a.unasked {
		carried = "carried"
	}
	how := map[string]string{
		lapseNever:       "%[2]s " + carried + " %[1]s's token at %[3]s, when it was told that it holds the lock, %[4]s.",
		lapseLost:        "%[2]s lost %[1]s's token at %[3]s, %[4]s.",
		lapseDeposed:     "%[1]s was granted the lock at %[3]s by %[5]s, in whose place another node was the primary by then, so that nobody else will hear of it, %[4]s.",
		lapseDeleted:     "%[2]s lost %[1]s's token at %[3]s to a command of %[5]s that deleted it, %[4]s.",
		lapseOverwritten: "%[2]s lost %[1]s's token at %[3]s to a command of %[5]s that wrote over it, %[4]s.",
		lapseExpired:     "%[1]s's token expired on %[2]s at %[3]s, %[4]s.",
	}[l.cause]
	switch {
	case l.cause == lapseNever && a.unasked:
		where, promise = "no node", "and it had asked none"
	case l.cause == lapseNever && len(a.Guaranteed) == 0:
		promise = "and had not granted it before"
	case l.cause == lapseNever:
		promise = fmt.Sprintf("and its lease was to last until %s", f.at(lastGuarantee(a)))
	}
	ops := []int{a.DoneIndex}
	if l.index != a.DoneIndex {
		ops = append(ops, l.index)
	}
	slices.Sort(ops)
	from := min(a.LeaseStart, a.Done)
	if l.cause == lapseNever {
		from = a.Invoked
	}
	return Found{Kind: leaseKinds[l.cause], Ops: ops, suspects: f.blame(from, at),
		Summary: fmt.Sprintf(how, a.Client, where, f.at(at), promise, l.by)}
}

// with takes up what was found, gravest kinds first where not all fit.
func (r Result) with(found []Found, gravity []string) Result {
	if len(found) == 0 {
		return r
	}
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Compare(slices.Index(gravity, a.Kind), slices.Index(gravity, b.Kind))
	})
	r.Verdict, r.Kind, r.Reason = Violation, found[0].Kind, ""
	r.Violations = found[:min(len(found), mostListed)]
	return r
}
