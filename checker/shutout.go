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
			delete(rows, a.Client)
		case a.Pending() || a.Outcome != history.Fail || meets(busy, ask.Interval):
		case row == nil:
			rows[a.Client] = &turnedAway{first: ask, last: ask, n: 1}
		default:
			row.last, row.n = ask, row.n+1
		}
	}
	for _, client := range f.clients() {
		row := rows[client]
		if row == nil || row.n < fewRefusals || row.last.To-row.first.From <= bound {
			continue
		}
		found = append(found, Found{Kind: ShutOut, Ops: []int{row.first.a.InvokeIndex, row.last.a.InvokeIndex}, suspects: f.active(0, row.first.From),
			Summary: fmt.Sprintf("%s asked for %s %d times from %s to %s while nobody held it and no node had its key, and was refused each time, although every fault had been healed and others were granted it (bound %s).",
				client, f.theLock(w.lock), row.n, f.at(row.first.From), f.at(row.last.To), f.at(bound))})
	}
	return found
}

// turnedAway is a row of refusals of a free lock.
type turnedAway struct {
	first, last span
	n           int
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
