package plots

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
)

// The lanes of the diagram that are no client's.
const (
	serviceLane = "lock service"
	storageLane = "storage"
)

// step is one thing that happens in the story: a message between two lanes, or
// a note on one.
type step struct {
	t        int64
	sent     int64 // when a message left, if that was clearly before t
	from, to string
	words    string
	// answer is what the storage made of it.
	answer string
	alarm  bool
	// reply turns the pen to dashes.
	reply bool
}

// story is what the diagram shows: two holds, or one, and what concerns them.
type story struct {
	facts  *checker.Facts
	holds  []*checker.Acquisition
	lanes  []string
	steps  []step
	pauses []checker.Fault
}

// Sequence draws the story of a run as messages between the clients, the lock
// service and the storage, in the style of Kleppmann's article: time runs down,
// but not to scale. There is none for a run in which nobody held the lock.
func Sequence(facts *checker.Facts, results []checker.Result) (Plot, bool) {
	s := &story{facts: facts, holds: protagonists(facts, results)}
	if len(s.holds) == 0 {
		return Plot{}, false
	}
	s.lanes = []string{serviceLane}
	for _, a := range s.holds {
		if !slices.Contains(s.lanes, a.Client) {
			s.lanes = append(s.lanes, a.Client)
		}
	}
	if len(facts.Resource) > 0 {
		s.lanes = append(s.lanes, storageLane)
	}
	s.faults() // first: of what happens at one instant the cause comes first
	s.nodes()
	for _, a := range s.holds {
		s.calls(a)
		s.leaseEnds(a)
	}
	s.arrivals()
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.t, b.t) })
	d := newDiagram(s)
	names := s.holds[0].Client
	if len(s.holds) > 1 && s.holds[1].Client != names {
		names += " and " + s.holds[1].Client
	}
	caption := "The lock service, the storage, and what " + reports.Printable(names) + " did. Time runs down and is not to scale. " +
		"Bars: green, the client believes that it holds the lock; red, it does so though its lease is over; the line beside is the lease."
	return Plot{Name: Story, Title: "The story as messages", Caption: caption, width: d.width, height: d.height, draw: d.draw}, true
}

// protagonists are the holds that the story is about: those of a lost update
// that were believed at once, else those that were believed at once, else those
// around a refused write, else the first two.
func protagonists(facts *checker.Facts, results []checker.Result) []*checker.Acquisition {
	overlaps := reports.Overlaps(facts, results)
	for _, r := range results {
		if r.Name != "updates" || r.Verdict != checker.Violation {
			continue
		}
		for _, v := range r.Violations {
			pair := holdsOf(facts, v.Ops)
			if len(pair) == 2 && (len(overlaps) == 0 || slices.ContainsFunc(overlaps, func(o reports.Overlap) bool {
				return slices.Contains(o.Holds, pair[0]) && slices.Contains(o.Holds, pair[1])
			})) {
				return pair
			}
		}
	}
	if len(overlaps) > 0 {
		best := overlaps[0]
		if i := slices.IndexFunc(overlaps, func(o reports.Overlap) bool { return len(o.Promised) > 0 }); i >= 0 {
			best = overlaps[i]
		}
		return ordered(best.Holds)
	}
	for _, w := range facts.Resource {
		if w.F == history.Write && !w.Applied {
			return ordered(append(held(facts.ByAcq[w.Acq]), before(facts, w)...))
		}
	}
	var first []*checker.Acquisition
	for _, a := range facts.Acquisitions {
		if a.Held() && len(first) < 2 && !slices.ContainsFunc(first, func(b *checker.Acquisition) bool { return b.Client == a.Client }) {
			first = append(first, a)
		}
	}
	return ordered(first)
}

// before is the hold of the last write that was applied before another one
// arrived.
func before(facts *checker.Facts, w checker.Arrival) []*checker.Acquisition {
	for _, x := range slices.Backward(facts.Resource) {
		if x.Index < w.Index && x.F == history.Write && x.Applied && x.Acq != w.Acq {
			return held(facts.ByAcq[x.Acq])
		}
	}
	return nil
}

func held(a *checker.Acquisition) []*checker.Acquisition {
	if a == nil || !a.Held() {
		return nil
	}
	return []*checker.Acquisition{a}
}

// holdsOf gives the holds that ops belong to, in the order of their grants.
func holdsOf(facts *checker.Facts, ops []int) []*checker.Acquisition {
	var out []*checker.Acquisition
	for _, i := range ops {
		if i < 0 || i >= len(facts.History.Events) {
			continue
		}
		acq := 0
		switch e := facts.History.Events[i]; {
		case e.Op != nil:
			acq = e.Op.Acq
		case e.Resource != nil:
			acq = e.Resource.Acq
		}
		for _, a := range held(facts.ByAcq[acq]) {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return ordered(out)
}

func ordered(holds []*checker.Acquisition) []*checker.Acquisition {
	holds = slices.Clone(holds)
	slices.SortStableFunc(holds, func(a, b *checker.Acquisition) int { return cmp.Compare(a.Done, b.Done) })
	return holds[:min(len(holds), 2)]
}

// span is the stretch of time that the story takes.
func (s *story) span() (from, to int64) {
	from, to = s.holds[0].Invoked, s.holds[0].BeliefEnd
	for _, a := range s.holds {
		from, to = min(from, a.Invoked), max(to, a.BeliefEnd)
	}
	return from, to
}

func (s *story) about(acq int) *checker.Acquisition {
	for _, a := range s.holds {
		if a.Acq == acq {
			return a
		}
	}
	return nil
}

// calls adds the acquire, the release, and what the holder noticed.
func (s *story) calls(a *checker.Acquisition) {
	granted := "ok"
	if a.Fence != nil {
		granted += ", fence " + strconv.FormatUint(*a.Fence, 10)
	}
	s.steps = append(s.steps,
		step{t: a.Invoked, from: a.Client, to: serviceLane, words: "get lease"},
		step{t: a.Done, from: serviceLane, to: a.Client, words: granted, reply: true})
	if a.ReleaseIndex >= 0 {
		words := "release"
		if a.ReleaseOutcome == history.Fail {
			words = "release: refused"
		}
		s.steps = append(s.steps, step{t: a.ReleaseInvoked, from: a.Client, to: serviceLane, words: words})
	}
	switch a.BeliefWhy {
	case checker.EndLost:
		s.steps = append(s.steps, step{t: a.BeliefEnd, from: a.Client, words: "is told that the lease is lost"})
	case checker.EndAbandon, checker.EndUntil:
		s.steps = append(s.steps, step{t: a.BeliefEnd, from: a.Client, words: "sees that its lease is over"})
	case checker.EndCrash:
		s.steps = append(s.steps, step{t: a.BeliefEnd, from: a.Client, words: "dies", alarm: true})
	}
}

// leaseEnds adds the end of a lease that its holder did not give back in time.
func (s *story) leaseEnds(a *checker.Acquisition) {
	if a.LeaseEnd < a.BeliefEnd {
		s.steps = append(s.steps, step{t: a.LeaseEnd, from: serviceLane, words: "lease of " + a.Client + " ends"})
	}
}

// arrivals adds reads and writes as they came to the storage. A write that was
// called long before it arrived is drawn from its call, or from the end of the
// pause that held it up.
func (s *story) arrivals() {
	called := map[int]int64{}
	next := 0
	for _, w := range s.facts.Resource {
		for ; next < w.Index; next++ {
			if op := s.facts.History.Events[next].Op; op != nil && op.Type == history.Invoke {
				called[op.Process] = s.facts.History.Events[next].T
			}
		}
		a := s.about(w.Acq)
		if a == nil {
			continue
		}
		st := step{t: w.T, from: a.Client, to: storageLane, sent: called[w.Process]}
		for _, x := range s.facts.Faults {
			if x.Fault == "pause" && slices.Contains(x.On, a.Client) && x.Start <= w.T && x.Stop > st.sent {
				st.sent = min(x.Stop, w.T)
			}
		}
		switch w.F {
		case history.Read:
			st.words, st.answer = "read", fmt.Sprintf("version %d", w.Version)
		case history.Write:
			st.write(w)
		default:
			continue
		}
		s.steps = append(s.steps, st)
	}
}

// write says what was asked of the storage and what it made of it.
func (st *step) write(w checker.Arrival) {
	st.words = "write"
	if w.Fence != nil {
		st.words += ", fence " + strconv.FormatUint(*w.Fence, 10)
	}
	switch {
	case !w.Applied:
		st.alarm, st.answer = true, "REFUSED: "+w.Refused
	case w.Seen != w.Before:
		st.alarm, st.answer = true, fmt.Sprintf("version %d over %d, had read %d: LOST UPDATE", w.Version, w.Before, w.Seen)
	default:
		st.answer = fmt.Sprintf("version %d", w.Version)
	}
}

// nodes adds the moments at which a node no longer carried a token that its
// holder believed in.
func (s *story) nodes() {
	type place struct{ node, key string }
	carried := map[place]string{}
	for _, e := range s.facts.History.Events {
		if e.Server == nil {
			continue
		}
		at := place{e.Server.Node, e.Server.Key}
		before := carried[at]
		carried[at] = e.Server.Owner
		if e.Server.Cmd != history.Expired && e.Server.Cmd != history.Lostkeys {
			continue
		}
		carried[at] = ""
		for _, a := range s.holds {
			if a.Alias == "" || before != a.Alias || e.T <= a.Done || e.T >= min(a.BeliefEnd, a.LeaseEnd) {
				continue
			}
			words := "key of " + a.Client + " expires on " + e.Server.Node
			if e.Server.Cmd == history.Lostkeys {
				words = e.Server.Node + " loses the key of " + a.Client
			}
			s.steps = append(s.steps, step{t: e.T, from: serviceLane, words: words, alarm: true})
		}
	}
}

// faults adds the pauses of the story's clients, and a note for each other
// fault that begins meanwhile.
func (s *story) faults() {
	from, to := s.span()
	notes := 0
	for _, x := range s.facts.Faults {
		if x.Start > to || x.Stop < from {
			continue
		}
		if x.Fault == "pause" && len(x.On) > 0 && slices.Contains(s.lanes, x.On[0]) {
			s.pauses = append(s.pauses, x)
			s.steps = append(s.steps, step{t: x.Start, from: x.On[0], words: "paused"}, step{t: x.Stop, from: x.On[0], words: "goes on"})
			continue
		}
		if notes++; notes <= 4 {
			s.steps = append(s.steps, step{t: max(x.Start, from), from: serviceLane, words: x.Fault + ": " + x.What, alarm: true})
		}
	}
}

// The measures of the diagram in points.
const (
	laneGap, left, right, header = 130, 110, 196, 34
	rowLeast, stretch            = 19, 150
)

// diagram gives each step of a story its row.
type diagram struct {
	*story
	width, height vg.Length
	ys            []vg.Length // of the steps, from the top
}
