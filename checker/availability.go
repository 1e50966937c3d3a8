package checker

import (
	"cmp"
	"slices"
)

// Figures of the coverage check that tell how much of a lock was to be had while
// something was broken: for what share of that time somebody held it, how long
// it was nobody's at a stretch, and the share of the time before for comparison.
// They judge nothing: a lock that refuses is safe, and this is its price. A
// workload that thinks for long between its rounds has a small share at best.
const (
	HeldDuring  = "held_percent_during_faults"
	HeldBefore  = "held_percent_before_faults"
	LongestFree = "longest_free_seconds_during_faults"
)

// availability adds them to the figures, for a run with one lock and faults that
// lasted.
//
//	0 to 4.2    c1 believes
//	3           the primary loses touch with its replicas, and refuses writes
//	7.5 to 10   c2 believes; at 10 all is healed
//
// Of 7 s with a fault the lock was held for 1.2 and 2.5 s: 53 %. It was free for
// 3.3 s at a stretch.
func (f *Facts) availability(figures map[string]float64) {
	if len(f.Locks) != 1 {
		return
	}
	broken := Interval{From: never}
	for _, x := range f.Faults {
		broken.From, broken.To = min(broken.From, x.Start), max(broken.To, x.Stop)
	}
	var taken []Interval
	for _, a := range f.Acquisitions {
		taken = append(taken, a.Belief...)
	}
	slices.SortFunc(taken, func(x, y Interval) int { return cmp.Compare(x.From, y.From) })
	if len(f.Faults) == 0 || broken.To <= broken.From {
		return
	}
	held, free := covered(taken, broken)
	figures[HeldDuring] = 100 * float64(held) / float64(broken.To-broken.From)
	figures[LongestFree] = float64(free) / 1e9
	if before := (Interval{To: broken.From}); before.To > int64(f.History.Header.TTL)/10 {
		held, _ := covered(taken, before)
		figures[HeldBefore] = 100 * float64(held) / float64(before.To)
	}
}

// covered is how much of a stretch some intervals cover, which are in the order
// of their beginnings, and the longest part that none covers.
func covered(by []Interval, in Interval) (covered, longest int64) {
	at := in.From
	for _, x := range by {
		if x.To <= at || x.From >= in.To {
			continue
		}
		from, to := max(x.From, at), min(x.To, in.To)
		longest = max(longest, from-at)
		covered += to - from
		at = to
	}
	return covered, max(longest, in.To-at)
}
