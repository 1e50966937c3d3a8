package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestExclusion(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	try(t, exclusionName, []trial{
		{name: "one after the other", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(5, "c1", release, 1), ok(5.1, "c1", release, 1), grant(5.2, "c2", 2))...)},
		{name: "granted as soon as the release is invoked", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(5, "c2", acquire, 2), invoke(6, "c1", release, 1), ok(6, "c2", acquire, 2), fail(7, "c1", release, 1))...)},
		{name: "late release of an expired lock is refused", want: Violation, kind: Overrun, ops: []int{1, 3, 4},
			summary: []string{"c2 was granted the lock at 11.00s while c1 still believed it held it (granted at 1.00s, its lease ended at 10.90s)", "c1 outlived its lease by 4.10s (0.41 TTL)"},
			history: story(join(grant(1, "c1", 1), grant(11, "c2", 2), invoke(15, "c1", release, 1), fail(15.1, "c1", release, 1))...)},
		{name: "pause while holding", want: Violation, kind: Overrun, ops: []int{3, 6, 8}, fault: "pause (1.5 TTL, 1.20s to 16.20s)",
			history: story(join(invoke(0, "c1", acquire, 1), fault(0.1, 9, history.Start, "before"), fault(0.2, 9, history.Stop, ""), ok(1, "c1", acquire, 1), fault(1.2, 1, history.Start, "1.5 TTL"), grant(11, "c2", 2),
				fault(16.2, 1, history.Stop, ""), invoke(16.3, "c1", release, 1))...)},
		{name: "promised twice", want: Violation, kind: Broken, ops: []int{1, 3},
			summary: []string{"c2 was granted the lock at 5.00s while c1 still believed it held it (granted at 1.00s)", "c1's lease was guaranteed until 10.90s: the lock service broke its promise"},
			history: story(join(grant(1, "c1", 1), grant(5, "c2", 2), note(6, "c2", history.Worked, 2))...)},
		{name: "pause in acquire is an overrun, not broken", want: Violation, kind: Overrun, ops: []int{4, 5}, fault: "pause (1.02 TTL, 0.10s to 10.30s)",
			summary: []string{"c1 heard at 15.00s that it had been granted the lock, when its lease had already ended at 10.00s", "c1 outlived its lease by 6.00s"},
			history: story(join(invoke(0, "c1", acquire, 1), fault(0.1, 1, history.Start, "1.02 TTL"), fault(10.3, 1, history.Stop, ""), grant(10.5, "c2", 2), ok(15, "c1", acquire, 1), note(16, "c1", history.Worked, 1))...)},
		{name: "belief ended by told validity", want: Pass, history: story(join(
			invoke(0, "c1", acquire, 1), until(ok(1, "c1", acquire, 1), 9.9), grant(11, "c2", 2), note(15, "c1", history.Worked, 1))...)},
		{name: "belief goes on by a later validity told in time", want: Violation, kind: Broken, ops: []int{1, 5},
			history: story(join(invoke(0, "c1", acquire, 1), until(ok(1, "c1", acquire, 1), 9.9), invoke(8, "c1", history.Extend, 1), until(ok(8.1, "c1", history.Extend, 1), 18),
				grant(11, "c2", 2), note(15, "c1", history.Worked, 1))...)},
		{name: "belief has a gap where the later validity was told late", want: Pass, history: story(join(
			invoke(0, "c1", acquire, 1), until(ok(1, "c1", acquire, 1), 9.9), grant(11, "c2", 2), invoke(12, "c2", release, 2), ok(12.1, "c2", release, 2),
			until(note(13, "c1", history.Check, 1), 20), note(15, "c1", history.Worked, 1))...)},
		{name: "loss notice ends belief", want: Pass, history: story(join(
			grant(1, "c1", 1), note(4, "c1", history.Lost, 1), grant(5, "c2", 2), invoke(15, "c1", release, 1))...)},
		{name: "crash ends belief", want: Pass, history: story(join(
			grant(1, "c1", 1), note(4, "c1", history.Crash, 0), grant(11.1, "c2", 2), note(12, "c2", history.Worked, 2))...)},
		{name: "abandon ends belief", want: Pass, history: story(join(
			grant(1, "c1", 1), note(4, "c1", history.Abandon, 1), grant(11.1, "c2", 2), note(12, "c2", history.Worked, 2))...)},
		{name: "drift shortens the guarantee", want: Violation, kind: Overrun, ops: []int{1, 3}, history: with(story(join(
			grant(1, "c1", 1), grant(10.85, "c2", 2), note(12, "c2", history.Worked, 2))...), func(h *history.Header) { h.Drift = 0.01 })},
		{name: "a session near its end when it took the lock", want: Violation, kind: Overrun, ops: []int{1, 3}, summary: []string{"its lease guaranteed until 2.40s", "outlived what it was guaranteed by"},
			history: with(story(join(grant(1, "c1", 1), grant(7, "c2", 2), note(12, "c2", history.Worked, 2))...), func(h *history.Header) { h.Drift = 0.85 })},
		{name: "and one that was taken away at once", want: Violation, kind: Broken, ops: []int{1, 3},
			history: with(story(join(grant(1, "c1", 1), grant(2, "c2", 2), note(12, "c2", history.Worked, 2))...), func(h *history.Header) { h.Drift = 0.85 })},
		{name: "two threads of one client", want: Violation, kind: Broken, ops: []int{1, 3}, summary: []string{"c1 (acquisition 2)", "c1 (acquisition 1)"},
			history: story(join(grant(1, "c1/1", 1), grant(2, "c1/2", 2), note(3, "c1/2", history.Worked, 2))...)},
		{name: "renewal in the trace extends the guarantee", want: Violation, kind: Broken, ops: []int{2, 5}, summary: []string{"guaranteed until 18.00s"},
			history: story(join(invoke(0.9, "c1", acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), ok(1, "c1", acquire, 1),
				server(8, "n1", "c1", "EVALSHA", "c1#1", 10), grant(12, "c2", 2), note(13, "c2", history.Worked, 2))...)},
		{name: "a renewal of another token does not", want: Violation, kind: Overrun, ops: []int{2, 5},
			history: story(join(invoke(0.9, "c1", acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), ok(1, "c1", acquire, 1),
				server(8, "n1", "c1", "EVALSHA", "c2#1", 10), grant(12, "c2", 2), note(13, "c2", history.Worked, 2))...)},
		{name: "nor a refused one, nor a look", want: Violation, kind: Overrun, ops: []int{2, 6},
			history: story(join(invoke(0.9, "c1", acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), ok(1, "c1", acquire, 1),
				server(2, "n1", "c1", "EVALSHA", "c1#1", 8.95), server(8, "n1", "c1", "GET", "c1#1", 10), grant(12, "c2", 2), note(13, "c2", history.Worked, 2))...)},
		{name: "nor one after the lease had ended", want: Violation, kind: Overrun, ops: []int{2, 4},
			history: story(join(invoke(0.9, "c1", acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), ok(1, "c1", acquire, 1),
				grant(12, "c2", 2), server(13, "n1", "c1", "EVALSHA", "c1#1", 10), note(14, "c2", history.Worked, 2))...)},
		{name: "an acquire that waited has its lease from the grant", want: Violation, kind: Broken, ops: []int{2, 4},
			history: story(join(invoke(1, "c1", acquire, 1), server(20, "n1", "c1", "SET", "c1#1", 10), ok(20.1, "c1", acquire, 1),
				grant(25, "c2", 2), note(26, "c2", history.Worked, 2))...)},
		{name: "a renewal that changes the token extends the guarantee", want: Violation, kind: Broken, ops: []int{2, 6}, summary: []string{"guaranteed until 18.00s"},
			history: story(join(taken(1, "c1", 1, "c1#1"), server(4, "n1", "c1", "EVALSHA", "c1#2", 10), server(8, "n1", "c1", "EVALSHA", "c1#3", 10), grant(12, "c2", 2), note(13, "c2", history.Worked, 2))...)},
		{name: "a grant that asked no node, slow enough for a lease to be over", want: Violation, kind: Broken, ops: []int{2, 4},
			summary: []string{"c2 was told at 14.00s that it holds the lock, but it had asked no node", "c1 believed it held it (granted at 3.00s)", "the lock service broke its promise"},
			history: insim(story(join(taken(3, "c1", 1, "c1#1"), invoke(3.5, "c2", acquire, 2), ok(14, "c2", acquire, 2), note(15, "c2", history.Worked, 2))...))},
		{name: "a yes to a refusal, slow enough for a lease to be over", want: Violation, kind: Broken, ops: []int{2, 5},
			summary: []string{"c2 was told at 14.00s that it holds the lock, but no node had granted it"},
			history: insim(story(join(taken(3, "c1", 1, "c1#1"), invoke(3.5, "c2", acquire, 2), server(3.6, "n1", "c2", "SET", "c1#1", 9.35), ok(14, "c2", acquire, 2), note(15, "c2", history.Worked, 2))...))},
		{name: "a slow grant that a node gave is the holder's matter", want: Violation, kind: Overrun, ops: []int{5, 6},
			history: insim(story(join(invoke(0, "c1", acquire, 1), server(0.1, "n1", "c1", "SET", "c1#1", 10), gone(10.101, "n1", "", history.Expired),
				taken(11, "c2", 2, "c2#1"), ok(15, "c1", acquire, 1), note(16, "c1", history.Worked, 1))...))},
		{name: "no acquire succeeded", want: Unknown, reason: "no acquire succeeded", history: story(
			invoke(1, "c1", acquire, 1), fail(2, "c1", acquire, 1))},
	})
}

// TestExclusionAgainstBruteForce compares the sweep with all pairs of all
// intervals on random beliefs.
func TestExclusionAgainstBruteForce(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := Gather(story())
		f.Locks = []string{"a"}
		for i := range 1 + r.IntN(12) {
			a := &Acquisition{Acq: i, Client: fmt.Sprint("c", i), Lock: "a", Outcome: history.OK, DoneIndex: i, BeliefEndIndex: -1}
			at := r.Int64N(40)
			a.Done = at
			for range 1 + r.IntN(2) {
				to := at + r.Int64N(8)
				if to > at {
					a.Belief = append(a.Belief, Interval{at, to})
				}
				at = to + r.Int64N(8)
			}
			if to := a.Done + r.Int64N(6); to > a.Done {
				a.Guaranteed = []Interval{{a.Done, to}}
			}
			f.Acquisitions = append(f.Acquisitions, a)
		}
		pairs, broken := 0, 0
		for i, a := range f.Acquisitions {
			for _, b := range f.Acquisitions[:i] {
				if !anyOverlap(a.Belief, b.Belief) {
					continue
				}
				pairs++
				if anyOverlap(a.Guaranteed, b.Guaranteed) {
					broken++
				}
			}
		}
		got := exclusion(f)
		if int(got.Figures["overlaps"]) != pairs || int(got.Figures["broken"]) != broken || (pairs > 0) != (got.Verdict == Violation) {
			t.Fatalf("seed %d: %v %v, want %d overlaps and %d broken", seed, got.Verdict, got.Figures, pairs, broken)
		}
	}
}

func anyOverlap(xs, ys []Interval) bool {
	for _, x := range xs {
		for _, y := range ys {
			for n := x.From; n < x.To; n++ {
				if y.From <= n && n < y.To {
					return true
				}
			}
		}
	}
	return false
}

// TestExclusionCountsAll: so many hold the lock at once that not every pair is
// looked at. All are counted all the same, and the one broken promise is found
// though it comes last.
func TestExclusionCountsAll(t *testing.T) {
	for _, holders := range []int{3000, 20_000} { // 4,498,500 pairs and 199,990,000
		f := Gather(story())
		f.Locks = []string{"a"}
		for i := range holders {
			at := int64(i)
			a := &Acquisition{Acq: i, Client: fmt.Sprint("c", i), Lock: "a", Outcome: history.OK, Done: at, DoneIndex: i, BeliefEndIndex: -1,
				Belief: []Interval{{at, 1e6}}}
			if i >= holders-2 { // the last two were promised the lock for one and the same time
				a.Guaranteed = []Interval{{at, at + 10}}
			}
			f.Acquisitions = append(f.Acquisitions, a)
		}
		r := exclusion(f)
		pairs := holders * (holders - 1) / 2
		if int(r.Figures["overlaps"]) != pairs || r.Figures["broken"] != 1 || r.Kind != Broken {
			t.Errorf("%s, figures %v, want %d pairs", r.Kind, r.Figures, pairs)
		}
		if len(r.Violations) != mostListed || !strings.Contains(r.Reason, fmt.Sprint(pairs-mostListed, " more were found")) {
			t.Errorf("%d listed, reason %q", len(r.Violations), r.Reason)
		}
	}
}

// TestExclusionListsAtMost: one early holder that never lets go, and 399 later
// ones that are granted the lock at once. Broken pairs go first on the list.
func TestExclusionListsAtMost(t *testing.T) {
	var events []history.Event
	for i := range 400 {
		who := fmt.Sprintf("c%d", i+1)
		at := 1 + float64(i)*0.001
		if i > 0 {
			at += 11
		}
		events = append(events, invoke(at, who, history.Acquire, i+1), ok(at, who, history.Acquire, i+1))
	}
	r := exclusion(Gather(story(append(events, note(14, "c1", history.Worked, 1))...)))
	if len(r.Violations) != mostListed || r.Violations[0].Kind != Broken || r.Kind != Broken {
		t.Errorf("%d listed, the first %s; the check is %s", len(r.Violations), r.Violations[0].Kind, r.Kind)
	}
	if r.Figures["overrun"] != 399 || r.Figures["broken"] != 399*398/2 {
		t.Errorf("figures %v", r.Figures)
	}
}
