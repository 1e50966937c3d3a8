package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// fewRefusals is how many refusals of a free lock make a client shut out. One
// may meet a connection that is just being made anew.
const fewRefusals = 3

// shutOut finds clients that are refused for longer than the bound although the
// lock was free each time, while others are served. Whoever is merely unlucky is
// refused because somebody else holds the lock, so only those refusals count
// during whose whole call nobody believed in it and no node had its key:
//
//	c1   [holds]      [holds]      [holds]
//	c2      x     x      x     x      x     x
//	                ^            ^            ^  refused a free lock
func (w *waiting) shutOut(bound int64) []Found {
	f := w.facts
	if f.untraced() != "" || w.granted == 0 {
		return nil
	}
	busy := w.busy()
	rows := map[string]*turnedAway{}
	var found []Found
	for _, ask := range w.asks {
		a := ask.a
		switch row := rows[a.Client]; {
		case a.Held():
			if row.beyond(bound) && w.servedOther(row) {
				found = append(found, w.tellShutOut(row, bound))
			}
			delete(rows, a.Client)
		case a.Pending() || a.Outcome != history.Fail || meets(busy, ask.Interval):
		case row == nil:
			rows[a.Client] = &turnedAway{first: ask, last: ask, n: 1}
		default:
			row.last, row.n = ask, row.n+1
		}
	}
	for _, client := range f.clients() {
		if row := rows[client]; row.beyond(bound) {
			found = append(found, w.tellShutOut(row, bound))
		}
	}
	return found
}

func (w *waiting) tellShutOut(row *turnedAway, bound int64) Found {
	f, first, last := w.facts, row.first, row.last
	return Found{Kind: ShutOut, Ops: []int{first.a.InvokeIndex, last.a.InvokeIndex}, suspects: f.active(0, first.From),
		Summary: fmt.Sprintf("%s asked for %s %d times from %s to %s while nobody held it and no node had its key, and was refused each time, although every fault had been healed and others were granted it (bound %s).",
			first.a.Client, f.theLock(w.lock), row.n, f.at(first.From), f.at(last.To), f.at(bound))}
}

// servedOther says whether another client was granted the lock during a row. If
// nobody was, the lock was granted to nobody at all, see [waiting.starved].
func (w *waiting) servedOther(row *turnedAway) bool {
	return slices.ContainsFunc(w.asks, func(s span) bool {
		return s.a.Held() && s.a.Client != row.first.a.Client && s.a.Done >= row.first.From && s.a.Done <= row.last.To
	})
}

// turnedAway is a row of refusals of a free lock.
type turnedAway struct {
	first, last span
	n           int
}

// beyond says whether a row makes its client shut out. The row is judged when it
// ends, by a grant too: who was refused a free lock for ten bounds was shut out
// for as long, whatever came then.
func (r *turnedAway) beyond(bound int64) bool {
	return r != nil && r.n >= fewRefusals && r.last.To-r.first.From > bound
}

// busy is when somebody believed in the lock, or a node had a key of it: in
// order, and disjoint.
func (w *waiting) busy() []Interval {
	f := w.facts
	all := slices.Clone(w.taken)
	for _, p := range f.keys.places {
		if !f.keys.judged(p) {
			continue
		}
		from, there := int64(0), false
		for _, i := range f.keys.byPlace[p] {
			s := &f.keys.touches[i]
			if there && s.Owner == "" {
				all = append(all, Interval{From: from, To: s.t})
			} else if !there && s.Owner != "" {
				from = s.t
			}
			there = s.Owner != ""
		}
		if there {
			all = append(all, Interval{From: from, To: f.End + 1})
		}
	}
	slices.SortFunc(all, func(x, y Interval) int { return cmp.Compare(x.From, y.From) })
	var out []Interval
	for _, i := range all {
		i.From -= f.slack() + int64(time.Millisecond)
		i.To += f.slack() + int64(time.Millisecond)
		if n := len(out); n > 0 && i.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, i.To)
		} else {
			out = append(out, i)
		}
	}
	return out
}

// meets says whether one of several disjoint intervals in order touches another.
func meets(all []Interval, i Interval) bool {
	n, _ := slices.BinarySearchFunc(all, i.From, func(x Interval, t int64) int { return cmp.Compare(x.To, t) })
	return n < len(all) && all[n].From <= i.To
}
