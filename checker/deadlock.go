package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Deadlock is a circle of threads each of which holds a lock and waits for the
// next one's.
const Deadlock = "deadlock"

// DeadlockCode is the error that it amounts to.
const DeadlockCode = "DEADLOCK"

// deadlockLeast is the share of a TTL that a circle has to last. Two that ask at
// the same moment, are both refused, and let go of what they have were never
// stuck:
//
//	0.000  c1 holds orders, asks for stock; c2 holds stock, asks for orders
//	0.001  both are refused and release: a circle of a millisecond
const deadlockLeast = 10

// deadlocks finds circles of waiting. A thread waits from the first acquire
// that asks for a lock to the end of the last, if it holds something all the
// while: asking again and again is waiting too. It blocks whoever waits for a
// lock that it believes it holds.
//
//	0    c1 acquires orders
//	0.1  c2 acquires stock
//	0.2  c1 asks for stock: it waits for c2
//	0.3  c2 asks for orders: it waits for c1, which waits for c2
//
// What ends it is that somebody gives up or that a lease runs out; neither is
// the lock's or the program's plan, so each circle is a violation however it
// ended. One thread is a circle of its own if a lock does not let it in twice.
func (f *Facts) deadlocks() []Found {
	waits := f.nested()
	if len(waits) == 0 || f.permits() > 1 { // who waits for a permit waits for any holder, not for all
		return nil
	}
	w := &waitsFor{facts: f, waits: waits, held: map[string][]*Acquisition{}, byThread: map[threadOf][]*blocked{}, told: map[string]bool{}}
	for _, a := range f.Acquisitions {
		if a.Held() {
			w.held[a.Lock] = append(w.held[a.Lock], a)
		}
	}
	for i := range waits {
		t := waits[i].first.thread()
		w.byThread[t] = append(w.byThread[t], &waits[i])
	}
	for i := range waits {
		w.follow([]edge{}, &waits[i], waits[i].Interval)
	}
	slices.SortStableFunc(w.found, func(x, y Found) int { return cmp.Compare(x.Ops[0], y.Ops[0]) })
	return w.found
}

// blocked is the waiting of a thread that holds something.
type blocked struct {
	Interval
	first, last *Acquisition // the acquires with which it asked
}

// edge says that a thread waits for one that has a hold.
type edge struct {
	wait   *blocked
	holder *Acquisition
}

// nested finds the acquires that were made inside a hold of the same thread,
// and joins those that ask for the same lock in a row.
func (f *Facts) nested() []blocked {
	holds := map[threadOf][]*Acquisition{}
	row := map[threadOf]int{} // the last wait of a thread, counted from 1
	var waits []blocked
	for _, a := range f.Acquisitions {
		t := a.thread()
		inside := func(from, to int64) bool {
			return slices.ContainsFunc(holds[t], func(h *Acquisition) bool {
				return slices.ContainsFunc(h.Belief, func(b Interval) bool { return b.From <= from && to <= b.To })
			})
		}
		holds[t] = slices.DeleteFunc(holds[t], func(h *Acquisition) bool { return h.BeliefEnd <= a.Invoked })
		if inside(a.Invoked, a.Invoked) {
			n := row[t] - 1
			if n >= 0 && waits[n].last.Lock == a.Lock && !waits[n].last.Held() && inside(waits[n].To, a.Invoked) {
				waits[n].last, waits[n].To = a, a.Done
			} else {
				waits = append(waits, blocked{Interval: Interval{From: a.Invoked, To: a.Done}, first: a, last: a})
				row[t] = len(waits)
			}
		}
		if a.Held() {
			holds[t] = append(holds[t], a)
		}
	}
	return waits
}

// waitsFor is the graph of who waits for whom, over time.
type waitsFor struct {
	facts    *Facts
	waits    []blocked
	held     map[string][]*Acquisition
	byThread map[threadOf][]*blocked
	told     map[string]bool
	found    []Found
}

// mostCircle is how many threads a circle may have that is looked for.
const mostCircle = 8

// follow walks from a wait to the holds that it waits for, and from their
// threads to what these wait for at the same time, until it is back.
func (w *waitsFor) follow(path []edge, b *blocked, both Interval) {
	if len(path) == mostCircle || len(w.found) >= mostListed {
		return
	}
	for _, h := range w.held[b.first.Lock] {
		if w.facts.together(h, b.first) && h.thread() != b.first.thread() {
			continue
		}
		for _, belief := range h.Belief {
			now := Interval{From: max(both.From, belief.From), To: min(both.To, belief.To)}
			if now.To-now.From < int64(w.facts.History.Header.TTL)/deadlockLeast {
				continue
			}
			next := append(slices.Clone(path), edge{wait: b, holder: h})
			if h.thread() == next[0].wait.first.thread() {
				if len(next) > 1 || w.alone(h, now) {
					w.close(next, now)
				}
				continue
			}
			if slices.ContainsFunc(path, func(e edge) bool { return e.wait.first.thread() == h.thread() }) {
				continue // a smaller circle, found from its own waits
			}
			for _, x := range w.byThread[h.thread()] {
				if then := (Interval{From: max(now.From, x.From), To: min(now.To, x.To)}); then.From < then.To {
					w.follow(next, x, then)
				}
			}
		}
	}
}

// alone says whether nobody but a hold's own thread had the lock at the time. A
// thread that outlived its lease and asks again waits for somebody else:
//
//	0    c1 acquires a re-entrant lock, and works for longer than its TTL
//	10   c2 acquires it
//	11   c1 takes it again, inside its first hold, and waits for c2
func (w *waitsFor) alone(h *Acquisition, now Interval) bool {
	return !slices.ContainsFunc(w.held[h.Lock], func(o *Acquisition) bool {
		return o.thread() != h.thread() && slices.ContainsFunc(o.Belief, now.Overlaps)
	})
}

// close takes a circle, once, however often it was walked.
func (w *waitsFor) close(circle []edge, when Interval) {
	// Each thread has to hold, while it waits, what the one before it waits for.
	f := w.facts
	first := slices.MinFunc(circle, func(x, y edge) int { return cmp.Compare(x.wait.first.InvokeIndex, y.wait.first.InvokeIndex) })
	at := slices.Index(circle, first)
	circle = append(slices.Clone(circle[at:]), circle[:at]...)
	key := ""
	for _, e := range circle {
		key += fmt.Sprint(e.wait.first.InvokeIndex, " ")
	}
	if w.told[key] {
		return
	}
	w.told[key] = true
	var words []string
	found := Found{Kind: Deadlock, Code: DeadlockCode, suspects: f.active(when.From, when.To)}
	for i, e := range circle {
		// What a thread holds is what the one before it in the circle waits for.
		mine := circle[(i+len(circle)-1)%len(circle)].holder
		words = append(words, fmt.Sprintf("%s holds %s and waits for %s", f.nameOf(e.wait.first), mine.Lock, e.wait.first.Lock))
		found.Ops = append(found.Ops, mine.DoneIndex, e.wait.first.InvokeIndex)
	}
	slices.Sort(found.Ops)
	found.Summary = fmt.Sprintf(DeadlockCode+": %s. From %s on, for %s, none could go on until one gave up or a lease ended.",
		strings.Join(words, ", "), f.at(when.From), f.long(when.To-when.From))
	w.found = append(w.found, found)
}

// nameOf names the thread of an acquisition, where its client has several.
func (f *Facts) nameOf(a *Acquisition) string {
	if a.Thread == 0 {
		return a.Client
	}
	return fmt.Sprintf("%s (thread %d)", a.Client, a.Thread+1)
}
