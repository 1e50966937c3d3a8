package reports

import (
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// holdsOf gives the acquisitions that were granted, in the order of their
// invokes. What their holders believed, and what was guaranteed to them, is
// worked out by package checker, so that a picture and a verdict cannot differ.
func holdsOf(facts *checker.Facts) []*checker.Acquisition {
	var held []*checker.Acquisition
	for _, a := range facts.Acquisitions {
		if a.Held() {
			held = append(held, a)
		}
	}
	return held
}

// holdsIn gives the granted acquisitions that a violation names, each once.
func holdsIn(facts *checker.Facts, v checker.Found) []*checker.Acquisition {
	var held []*checker.Acquisition
	seen := map[int]bool{}
	for _, e := range eventsOf(facts.History, v) {
		acq := acqOf(e)
		if a := facts.ByAcq[acq]; a != nil && a.Held() && !seen[acq] {
			seen[acq] = true
			held = append(held, a)
		}
	}
	return held
}

// acqOf is the number of the acquisition that an event belongs to, or 0.
func acqOf(e history.Event) int {
	switch {
	case e.Op != nil:
		return e.Op.Acq
	case e.Resource != nil:
		return e.Resource.Acq
	}
	return 0
}

// both gives the stretches that two lists of intervals share.
func both(as, bs []checker.Interval) []checker.Interval {
	var out []checker.Interval
	for _, a := range as {
		for _, b := range bs {
			if a.Overlaps(b) {
				out = append(out, checker.Interval{From: max(a.From, b.From), To: min(a.To, b.To)})
			}
		}
	}
	return out
}

// without gives what is left of intervals when others, in ascending order and
// disjoint, are taken away.
func without(as, bs []checker.Interval) []checker.Interval {
	var out []checker.Interval
	for _, a := range as {
		for _, b := range bs {
			if b.From > a.From && b.From < a.To {
				out = append(out, checker.Interval{From: a.From, To: b.From})
			}
			if b.To > a.From {
				a.From = max(a.From, min(b.To, a.To))
			}
		}
		if a.To > a.From {
			out = append(out, a)
		}
	}
	return out
}
