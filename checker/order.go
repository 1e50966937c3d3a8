package checker

import (
	"cmp"
	"fmt"
	"slices"
)

const orderName = "order"

// Overtaken: somebody who came later was served first.
const Overtaken = "overtaken"

// order judges locks that promise to be fair: who has been queued first is
// granted the lock first. Only what is certain counts: an acquire is overtaken
// by one that was invoked after the server had run the first one's first
// command (without a server trace, a tenth of a TTL after its invoke), and that
// was granted while the first one still waited.
//
//	0    A asks and is queued
//	1    B asks
//	5    the holder leaves; B is granted the lock; A still waits
//
// A waiter that a fault keeps from its nodes may be passed over.
func order(f *Facts) Result {
	if !f.History.Header.Has("fair") {
		return Result{Verdict: Unknown, Reason: f.History.Header.Lock + " does not promise to be fair"}
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	waits, overtakes, most := 0, 0, 0
	for _, lock := range f.Locks {
		w := f.line(lock)
		waits += len(w.waits)
		for _, x := range w.waits {
			passed := w.passed(x)
			overtakes += len(passed)
			most = max(most, len(passed))
			if len(passed) > 0 {
				found = append(found, f.overtaken(x, passed))
			}
		}
	}
	r.Figures = map[string]float64{"acquires": float64(waits), "overtakes": float64(overtakes), "most_for_one": float64(most)}
	if waits < 2 {
		r.Verdict, r.Reason = Unknown, "fewer than two acquires waited"
	}
	return r.with(found, []string{Overtaken})
}

// queued is an acquire with the moment at which it certainly stood in line.
type queued struct {
	a  *Acquisition
	at int64
}

// line is everybody who asked for a lock.
type line struct {
	waits  []queued
	grants []*Acquisition // in the order of their grants
}

func (f *Facts) line(lock string) *line {
	l := &line{}
	for _, a := range f.Acquisitions {
		if a.Lock != lock {
			continue
		}
		if a.Held() {
			l.grants = append(l.grants, a)
		}
		at := a.Invoked + int64(f.History.Header.TTL)/10
		if f.untraced() == "" {
			at = never
			end := len(f.History.Events)
			if a.DoneIndex >= 0 {
				end = a.DoneIndex
			}
			for _, i := range f.keys.of(a.Client, a.InvokeIndex, end) {
				if s := &f.keys.touches[i]; !isError(s.Reply) {
					at = s.t
					break
				}
			}
		}
		if _, hindered := f.kept(a); at < a.Done && !hindered {
			l.waits = append(l.waits, queued{a: a, at: at})
		}
	}
	slices.SortStableFunc(l.grants, func(x, y *Acquisition) int { return cmp.Compare(x.Done, y.Done) })
	return l
}

// kept names a fault that kept a waiter from its nodes while it waited.
func (f *Facts) kept(a *Acquisition) (*Fault, bool) {
	for i := range f.Faults {
		if x := &f.Faults[i]; x.Start <= a.Done && x.ends() >= a.Invoked && f.strikes(x, a.Client) {
			return x, true
		}
	}
	return nil, false
}

// passed are the acquires that were invoked after x stood in line and granted
// before x was done.
func (l *line) passed(x queued) []*Acquisition {
	n, _ := slices.BinarySearchFunc(l.grants, x.at, func(a *Acquisition, t int64) int { return cmp.Compare(a.Done, t) })
	var out []*Acquisition
	for _, b := range l.grants[n:] {
		if b.Done >= x.a.Done {
			break
		}
		if b != x.a && b.Invoked > x.at {
			out = append(out, b)
		}
	}
	return out
}

func (f *Facts) overtaken(x queued, passed []*Acquisition) Found {
	ops := []int{x.a.InvokeIndex}
	for _, b := range passed[:min(len(passed), 4)] {
		ops = append(ops, b.DoneIndex)
	}
	b := passed[0]
	one, two := names(x.a, b)
	more := ""
	if len(passed) > 1 {
		more = fmt.Sprintf(", and %d more followed", len(passed)-1)
	}
	return Found{Kind: Overtaken, Ops: ops, suspects: f.active(x.a.Invoked, b.Done),
		Summary: fmt.Sprintf("%s stood in line for %s from %s on, but %s, which asked at %s, was granted it at %s%s: it was overtaken.",
			one, f.theLock(x.a.Lock), f.at(x.at), two, f.at(b.Invoked), f.at(b.Done), more)}
}
