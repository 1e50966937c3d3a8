package checker

import (
	"cmp"
	"fmt"
	"slices"
)

const livenessName = "liveness"

// Kinds of a liveness violation.
const (
	NoGrant  = "no-grant"
	NoTTLKey = "no-ttl-key"
	// ShutOut: others are granted the lock, one client is refused whenever it
	// is free.
	ShutOut = "shut-out"
)

// liveness judges the final phase, when everything has been healed: a lock
// that nobody believes in and somebody asks for is granted within the bound.
// A key without expiry, and a circle of threads that wait for one another, see
// [Facts.deadlocks], is a violation in any run, since nobody but its owner
// can ever free it.
func liveness(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: true, Violations: f.eternalKeys()}
	r.Verdict, r.Reason = f.finalPhase(&r)
	r.Violations = append(f.deadlocks(), r.Violations...)
	if len(r.Violations) > 0 {
		r.Verdict, r.Kind = Violation, r.Violations[0].Kind
		r.Violations = r.Violations[:min(len(r.Violations), mostListed)]
	}
	return r
}

// finalPhase adds what is starved in the final phase, and says what a final
// phase without violations shows.
func (f *Facts) finalPhase(r *Result) (Verdict, string) {
	start, ok := f.final()
	bound := int64(f.History.Header.LivenessBound)
	switch {
	case !ok:
		return Unknown, "the history has no final phase"
	case bound <= 0:
		return Unknown, "the header gives no liveness bound"
	}
	for _, fault := range f.Faults {
		if fault.StopIndex >= 0 {
			start = max(start, fault.Stop)
		}
	}
	asked, granted := 0, 0
	for _, lock := range f.Locks {
		l := f.waiting(lock, start)
		asked += len(l.asks)
		granted += l.granted
		for _, gap := range l.gaps(start, f.End) {
			r.Violations = append(r.Violations, l.starved(gap, bound)...)
		}
		r.Violations = append(r.Violations, l.shutOut(bound)...)
	}
	r.Figures = map[string]float64{"final_seconds": float64(f.End-start) / 1e9, "asked": float64(asked), "granted": float64(granted)}
	switch {
	case asked == 0:
		return Unknown, "no acquire was attempted in the final phase"
	case granted == 0:
		return Unknown, fmt.Sprintf("no acquire was granted in the final phase of %s, but the lock was never free and asked for beyond the bound of %s", f.at(f.End-start), f.at(bound))
	}
	return Pass, ""
}

// waiting is what happened to one lock in the final phase.
type waiting struct {
	facts *Facts
	lock  string
	// asks are the acquires, by invoke, cut to the final phase.
	asks []span
	// taken is when somebody believed in the lock, grants included.
	taken   []Interval
	granted int
}

func (f *Facts) waiting(lock string, start int64) *waiting {
	w := &waiting{facts: f, lock: lock}
	for _, a := range f.Acquisitions {
		if a.Lock != lock {
			continue
		}
		if a.Done >= start {
			w.asks = append(w.asks, span{a: a, Interval: Interval{From: max(a.Invoked, start), To: a.Done}})
		}
		if !a.Held() {
			continue
		}
		if a.Done >= start {
			w.granted++
			w.taken = append(w.taken, Interval{From: a.Done, To: a.Done})
		}
		w.taken = append(w.taken, a.Belief...)
	}
	slices.SortStableFunc(w.asks, func(x, y span) int { return cmp.Compare(x.From, y.From) })
	slices.SortFunc(w.taken, func(x, y Interval) int { return cmp.Compare(x.From, y.From) })
	return w
}

// gaps are the stretches in which nobody believed in the lock.
func (w *waiting) gaps(start, end int64) []Interval {
	var gaps []Interval
	free := start
	for _, i := range w.taken {
		if i.From > free {
			gaps = append(gaps, Interval{From: free, To: min(i.From, end)})
		}
		free = max(free, i.To)
	}
	if free < end {
		gaps = append(gaps, Interval{From: free, To: end})
	}
	return gaps
}

// starved looks for a row of attempts in a gap that goes on for longer than
// the bound. Attempts make a row if no more than the bound lies between them:
// who asks once and comes back much later has not been waiting.
func (w *waiting) starved(gap Interval, bound int64) []Found {
	if gap.To-gap.From <= bound {
		return nil
	}
	var found []Found
	var first, last span
	flush := func() {
		if first.a != nil && last.To-first.From > bound {
			found = append(found, w.tell(first, last, bound))
		}
	}
	for _, ask := range w.asks {
		if ask.To <= gap.From || ask.From >= gap.To {
			continue
		}
		ask.From, ask.To = max(ask.From, gap.From), min(ask.To, gap.To)
		switch {
		case first.a == nil:
			first, last = ask, ask
		case ask.From-last.To > bound:
			flush()
			first, last = ask, ask
		case ask.To > last.To:
			last = ask
		}
	}
	flush()
	return found
}

func (w *waiting) tell(first, last span, bound int64) Found {
	f := w.facts
	ops := []int{first.a.InvokeIndex}
	if last.a != first.a {
		ops = append(ops, last.a.InvokeIndex)
	}
	return Found{Kind: NoGrant, Ops: ops, suspects: f.active(0, first.From),
		Summary: fmt.Sprintf("nobody held %s and %s asked for it from %s on, but it was not granted for %s (bound %s), although every fault had been healed.",
			f.theLock(w.lock), first.a.Client, f.at(first.From), f.long(last.To-first.From), f.at(bound))}
}

// eternalKeys finds keys that were last seen with an owner and no expiry. A key
// beside the lock's own, such as the queue of a fair lock, may last for ever: it
// grants nothing to anybody, and if the dead in it keep the living from the lock,
// that is a starved waiter. Nor is a permit of a semaphore bound to the life of
// its key: it has a time of its own, and whoever comes next sweeps it away.
func (f *Facts) eternalKeys() []Found {
	if h := &f.History.Header; h.Has("semaphore") || h.Has("permits") {
		return nil
	}
	last := map[place]int{}
	var order []place
	for i := range f.History.Events {
		s := f.History.Events[i].Server
		if s == nil {
			continue
		}
		p := place{node: s.Node, key: s.Key}
		if !f.keys.judged(p) {
			continue
		}
		if _, ok := last[p]; !ok {
			order = append(order, p)
		}
		last[p] = i
	}
	var found []Found
	for _, p := range order {
		e := f.History.Events[last[p]]
		if e.Server.Owner == "" || e.Server.PTTL != -1 {
			continue
		}
		found = append(found, Found{Kind: NoTTLKey, Ops: []int{last[p]}, suspects: f.active(0, e.T),
			Summary: fmt.Sprintf("key %s on %s names %s and has no expiry, last seen at %s: if its owner does not delete it, nobody can.",
				p.key, p.node, e.Server.Owner, f.at(e.T))})
	}
	return found
}
