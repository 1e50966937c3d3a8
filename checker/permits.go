package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// crowds looks for more holders than permits, by the same two words as for a
// mutex: the service is to blame (broken) if it had promised a permit to more
// than there are for one and the same stretch of time; otherwise one of them
// outlived its lease (overrun).
//
//	2 permits
//	0    c1 and c2 are granted one each; their leases end at 10
//	3    c2's permit is swept, by a client whose clock is ahead
//	3.1  c3 is granted one: broken, since three are guaranteed at 3.1
//	10   or else: c1 is paused, and its permit is swept, rightly
//	10.1 c3 is granted one while c1 believes: overrun, by c1
func (o *overlaps) crowds(held []*Acquisition, permits int) {
	var active []span
	for _, s := range beliefs(held) {
		active = slices.DeleteFunc(active, func(earlier span) bool { return earlier.To <= s.From })
		active = append(active, s)
		if len(active) > permits {
			o.crowd(active, s, permits)
		}
		if len(o.pairs) >= mostPairs {
			return
		}
	}
}

// crowd takes a grant that made one holder too many, once.
func (o *overlaps) crowd(active []span, last span, permits int) {
	key := [2]int{last.a.DoneIndex, last.a.DoneIndex}
	if o.pairs[key] {
		return
	}
	all := make([]*Acquisition, 0, len(active))
	both := Interval{From: last.From, To: never}
	for _, s := range active {
		all = append(all, s.a)
		both.To = min(both.To, s.To)
	}
	slices.SortStableFunc(all, func(a, b *Acquisition) int { return cmp.Compare(a.DoneIndex, b.DoneIndex) })
	o.pairs[key] = true
	kind := Overrun
	if promised(all) > permits {
		kind = Broken
	}
	o.note(kind, func() Found { return o.facts.crowded(kind, all, permits, both) })
}

// promised is to how many at once a permit was guaranteed, at most.
func promised(all []*Acquisition) int {
	type edge struct {
		t  int64
		by int
	}
	var edges []edge
	for _, a := range all {
		for _, g := range a.Guaranteed {
			edges = append(edges, edge{g.From, 1}, edge{g.To, -1})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.t, y.t), cmp.Compare(x.by, y.by)) })
	most, n := 0, 0
	for _, e := range edges {
		n += e.by
		most = max(most, n)
	}
	return most
}

// crowded describes a violation; all are in the order of their grants.
func (f *Facts) crowded(kind string, all []*Acquisition, permits int, both Interval) Found {
	found := Found{Kind: kind}
	var ends []int
	var words []string
	first, stale := all[0], all[0]
	for _, a := range all {
		found.Ops = append(found.Ops, a.DoneIndex)
		if a.BeliefEndIndex >= 0 {
			ends = append(ends, a.BeliefEndIndex)
		}
		words = append(words, fmt.Sprintf("%s (granted at %s)", a.named(all), f.at(a.Done)))
		if lastGuarantee(a) < lastGuarantee(stale) {
			stale = a
		}
	}
	found.Ops = append(found.Ops, ends...)
	last := len(words) - 1
	whose := "although the lease of each was guaranteed: the lock service broke its promise"
	if kind == Overrun {
		whose = fmt.Sprintf("and %s, whose lease had ended at %s, outlived it by %s", stale.named(all), f.at(lastGuarantee(stale)), f.long(stale.BeliefEnd-lastGuarantee(stale)))
	}
	found.suspects = f.active(first.Done, both.From)
	found.Summary = fmt.Sprintf("at %s %d believed that they hold one of the %d permits of %s, %s and %s, %s.",
		f.at(both.From), len(all), permits, f.theLock(first.Lock), strings.Join(words[:last], ", "), words[last], whose)
	return found
}

// named is the name of an acquisition's client, with its number where the
// client has several among these.
func (a *Acquisition) named(among []*Acquisition) string {
	for _, b := range among {
		if b != a && b.Client == a.Client {
			return fmt.Sprintf("%s (acquisition %d)", a.Client, a.Acq)
		}
	}
	return a.Client
}
