package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-io/holdfast/history"
)

const exclusionName = "exclusion"

// mostPairs bounds the work on a history in which everybody holds the lock at
// once: 20,000 holders are 200,000,000 pairs. Beyond it pairs are counted, but
// only the gravest ones are looked at one by one; see
// [overlaps.countOn].
const mostPairs = 20_000_000

// exclusion looks for holders that believe in the lock at the same time and may
// not, and says whose fault it was. Two readers may, and so may two holds of one
// thread on a re-entrant lock, see [Facts.together].
//
// The service is to blame (broken) if it had promised the lock to both for one
// and the same stretch of time: their guaranteed leases intersect. Otherwise a
// holder outlived its lease (overrun). To ask instead whether the later grant
// fell into the earlier one's guaranteed lease would blame the service for a
// client that slept inside its acquire:
//
//	0      A's SET runs: A's lease ends at T
//	0.01T  A is paused, the reply is unread
//	1.05T  B is granted the lock, rightly; its lease ends at 2.05T
//	1.5T   A goes on, reads OK, and believes
//
// A's is the later grant and it falls into B's lease, but the service gave
// A's lease away long ago and rightly. A's guaranteed lease was over before A
// heard of it, so it intersects nothing: A is the one who outlived it.
func exclusion(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: true}
	held := map[string][]*Acquisition{}
	n := 0
	for _, a := range f.Acquisitions {
		if a.Held() {
			held[a.Lock] = append(held[a.Lock], a)
			n++
		}
	}
	if n == 0 {
		r.Verdict, r.Reason = Unknown, "no acquire succeeded"
		return r
	}
	o := &overlaps{facts: f, pairs: map[[2]int]bool{}}
	for _, lock := range f.Locks {
		if permits := f.permits(); permits > 0 {
			o.crowds(held[lock], permits)
		} else {
			o.sweep(held[lock])
		}
	}
	r.Figures = map[string]float64{
		"acquisitions": float64(n), "overlaps": float64(o.total),
		"broken": float64(o.count[Broken]), "overrun": float64(o.count[Overrun]),
	}
	if o.total == 0 {
		return r
	}
	r.Verdict, r.Kind = Violation, Overrun
	if o.count[Broken] > 0 {
		r.Kind = Broken
	}
	r.Violations = o.listed()
	if more := o.total - len(r.Violations); more > 0 {
		r.Reason = fmt.Sprintf("%d overlaps are listed, and %d more were found", len(r.Violations), more)
	}
	if o.unjudged > 0 {
		r.Reason += fmt.Sprintf("; of %d, at least, only the gravest were told apart", o.unjudged)
	}
	return r
}

// overlaps collects the pairs that believed at once.
type overlaps struct {
	facts *Facts
	// total overlaps; unjudged are those that were not looked at one by one.
	total, unjudged int
	// pairs that may be met again: of acquisitions that believed twice.
	pairs map[[2]int]bool
	count map[string]int
	found map[string][]Found
}

// span is one interval of belief.
type span struct {
	a *Acquisition
	Interval
}

// beliefs are the intervals in the order of their starts.
func beliefs(held []*Acquisition) []span {
	var spans []span
	for _, a := range held {
		for _, i := range a.Belief {
			spans = append(spans, span{a: a, Interval: i})
		}
	}
	slices.SortFunc(spans, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.a.DoneIndex, y.a.DoneIndex))
	})
	return spans
}

// sweep goes through the intervals and keeps those that have not ended. With a
// mutex that works there is at most one.
func (o *overlaps) sweep(held []*Acquisition) {
	var active []span
	spans := beliefs(held)
	for n, s := range spans {
		kept := active[:0]
		for _, earlier := range active {
			if earlier.To <= s.From {
				continue
			}
			// Never the same acquisition: its intervals are disjoint.
			kept = append(kept, earlier)
			if !o.facts.together(earlier.a, s.a) {
				o.add(earlier, s)
			}
		}
		active = append(kept, s)
		// Where some may hold the lock together, each pair has to be asked.
		if h := &o.facts.History.Header; o.total >= mostPairs && h.Kind != history.KindRW && !h.Reentrant {
			o.countOn(active, spans[n+1:])
			return
		}
	}
}

// add takes a pair once, at its first overlap.
func (o *overlaps) add(x, y span) {
	if y.a.DoneIndex < x.a.DoneIndex {
		x, y = y, x
	}
	if len(x.a.Belief) > 1 || len(y.a.Belief) > 1 {
		pair := [2]int{x.a.DoneIndex, y.a.DoneIndex}
		if o.pairs[pair] {
			return
		}
		o.pairs[pair] = true
	}
	kind := Overrun
	if promisedTwice(x.a, y.a) || o.facts.baseless(x.a) != "" || o.facts.baseless(y.a) != "" {
		kind = Broken
	}
	o.note(kind, func() Found {
		return o.facts.overlap(kind, x.a, y.a, Interval{From: max(x.From, y.From), To: min(x.To, y.To)})
	})
}

// note counts a violation, and describes it if it will be listed.
func (o *overlaps) note(kind string, describe func() Found) {
	if o.count == nil {
		o.count, o.found = map[string]int{}, map[string][]Found{}
	}
	o.count[kind]++
	o.total++
	if len(o.found[kind]) < mostListed {
		o.found[kind] = append(o.found[kind], describe())
	}
}

// promisedTwice says whether the guaranteed leases of two acquisitions
// intersect.
func promisedTwice(a, b *Acquisition) bool {
	for _, x := range a.Guaranteed {
		for _, y := range b.Guaranteed {
			if x.Overlaps(y) {
				return true
			}
		}
	}
	return false
}

// listed picks the violations to show, broken ones before overruns where not
// all fit, in the order of the later grant.
func (o *overlaps) listed() []Found {
	all := append(slices.Clone(o.found[Broken]), o.found[Overrun]...)
	all = all[:min(len(all), mostListed)]
	slices.SortStableFunc(all, func(a, b Found) int { return cmp.Compare(a.Ops[1], b.Ops[1]) })
	return all
}

// overlap describes one violation; first was granted before second.
func (f *Facts) overlap(kind string, first, second *Acquisition, both Interval) Found {
	ops := []int{first.DoneIndex, second.DoneIndex}
	for _, a := range []*Acquisition{first, second} {
		if a.BeliefEndIndex >= 0 {
			ops = append(ops, a.BeliefEndIndex)
		}
	}
	return Found{Kind: kind, Ops: ops, suspects: f.blameSince(both.From, first), Summary: f.tell(kind, first, second)}
}

// tell is the sentence for an overlap.
func (f *Facts) tell(kind string, first, second *Acquisition) string {
	one, two := names(first, second)
	lock := f.theLock(first.Lock)
	switch {
	case kind == Broken && f.baseless(second) != "":
		return fmt.Sprintf("%s was told at %s that it holds %s, but %s, while %s believed it held it (granted at %s): the lock service broke its promise.",
			two, f.at(second.Done), lock, f.baseless(second), one, f.at(first.Done))
	case kind == Broken && f.baseless(first) != "":
		return fmt.Sprintf("%s was granted %s at %s while %s believed it held it, as it had been told at %s, but %s: the lock service broke its promise.",
			two, lock, f.at(second.Done), one, f.at(first.Done), f.baseless(first))
	case kind == Broken:
		return fmt.Sprintf("%s was granted %s at %s while %s still believed it held it (granted at %s), although %s's lease was guaranteed until %s: the lock service broke its promise.",
			two, lock, f.at(second.Done), one, f.at(first.Done), one, f.at(first.LeaseEnd))
	case second.LeaseEnd <= second.Done && second.LeaseEnd <= first.LeaseEnd:
		// The pause inside an acquire: the later grant is the stale one.
		return fmt.Sprintf("%s heard at %s that it had been granted %s, when its lease had already ended at %s and %s held it (granted at %s): %s outlived its lease by %s.",
			two, f.at(second.Done), lock, f.at(second.LeaseEnd), one, f.at(first.Done), two, f.long(second.BeliefEnd-second.LeaseEnd))
	case f.History.Header.Drift >= sharePromised:
		return fmt.Sprintf("%s was granted %s at %s while %s still believed it held it (granted at %s, its lease guaranteed until %s): %s outlived what it was guaranteed by %s.",
			two, lock, f.at(second.Done), one, f.at(first.Done), f.at(lastGuarantee(first)), one, f.long(first.BeliefEnd-lastGuarantee(first)))
	default:
		return fmt.Sprintf("%s was granted %s at %s while %s still believed it held it (granted at %s, its lease ended at %s): %s outlived its lease by %s.",
			two, lock, f.at(second.Done), one, f.at(first.Done), f.at(lastGuarantee(first)), one, f.long(first.BeliefEnd-lastGuarantee(first)))
	}
}

// sharePromised is from which drift on a guarantee is not what a lease is: a
// session that is renewed in the background lasts longer as a rule.
const sharePromised = 0.1

// lastGuarantee is the end of the last lease that was guaranteed.
func lastGuarantee(a *Acquisition) int64 {
	if n := len(a.Guaranteed); n > 0 {
		return a.Guaranteed[n-1].To
	}
	return a.GuaranteedEnd
}
