package study

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// run is one with the checks that it is given.
func run(checks ...checker.Result) reports.Run { return reports.Run{Checks: checks} }

func result(name string, v checker.Verdict) checker.Result {
	return checker.Result{Name: name, Verdict: v, Applies: true}
}

// TestAnswers: a violation counts whatever else the run has missed, and its
// absence counts only where the run has done what it was to do.
func TestAnswers(t *testing.T) {
	covered, not := result("coverage", checker.Pass), result("coverage", checker.Unknown)
	held, broken := result("exclusion", checker.Pass), result("exclusion", checker.Violation)
	lost, unwritten := result("updates", checker.Violation), result("updates", checker.Unknown)
	aside := lost
	aside.Applies = false
	tests := []struct {
		name       string
		q          Question
		run        reports.Run
		gap        float64
		yes, known bool
	}{
		{name: "held", q: TwoHolders, run: run(covered, held), known: true},
		{name: "broken", q: TwoHolders, run: run(covered, broken), yes: true, known: true},
		{name: "broken though uncovered", q: TwoHolders, run: run(not, broken), yes: true, known: true},
		{name: "held and uncovered", q: TwoHolders, run: run(not, held)},
		{name: "no such check", q: TwoHolders, run: run(covered)},
		{name: "no coverage", q: TwoHolders, run: run(held)},
		{name: "lost", q: Harm, run: run(covered, held, lost), yes: true, known: true},
		{name: "nothing written", q: Harm, run: run(covered, held, unwritten), known: true},
		{name: "nothing written, of the updates", q: LostUpdate, run: run(covered, held, unwritten)},
		{name: "does not apply", q: Harm, run: run(covered, held, aside), known: true},
		{name: "long gap", q: NoGrant, run: run(not), gap: 0.95, yes: true, known: true},
		{name: "short gap", q: NoGrant, run: run(covered), gap: 0.85, known: true},
	}
	for _, tt := range tests {
		if yes, known := tt.q.of(tt.run, Costs{LongestGap: tt.gap}); yes != tt.yes || known != tt.known {
			t.Errorf("%s: yes %v, known %v; want %v, %v", tt.name, yes, known, tt.yes, tt.known)
		}
	}
}

// TestCheck: a text that says more than the runs is an error, and so is one
// that rests on runs which prove nothing.
func TestCheck(t *testing.T) {
	c := Case{Scenario: "s", Lock: "l"}
	yes := run(result("coverage", checker.Pass), result("exclusion", checker.Violation))
	no := run(result("coverage", checker.Pass), result("exclusion", checker.Pass))
	silent := run(result("coverage", checker.Unknown), result("exclusion", checker.Pass))
	of := func(runs ...reports.Run) Book {
		return Book{c: {Case: c, Runs: runs, Costs: make([]Costs, len(runs))}}
	}
	for _, tt := range []struct {
		book Book
		want Share
		err  string
	}{
		{book: of(yes, yes), want: Always},
		{book: of(no, no), want: Never},
		{book: of(yes, no), want: Sometimes},
		{book: of(yes, no), want: Always, err: "always two clients held the lock at once, and it was so in 1 of 2"},
		{book: of(yes, no), want: Never, err: "never"},
		{book: of(no, silent), want: Never, err: "1 of 2 runs prove nothing"},
	} {
		err := tt.book.Check(Test{Case: c, Asks: TwoHolders, Want: tt.want})
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("want %q, got %v", tt.err, err)
		}
	}
	a := of(yes, no, silent)[c].Ask(TwoHolders)
	if a.Of != 2 || a.Silent != 1 || a.All().Of != 3 || a.All().Hits != 1 {
		t.Errorf("%+v, all %+v", a, a.All())
	}
	if got := of(silent)[c].Ask(TwoHolders).String(); got != "no answer" {
		t.Errorf("got %q", got)
	}
}

// TestGather plays each case once with each seed, in order, and stops at a run
// that failed.
func TestGather(t *testing.T) {
	var played []store.Job
	failing := false
	player := func(_ context.Context, j store.Job) (reports.Run, *history.History) {
		played = append(played, j)
		if failing {
			return reports.Run{Repeat: "holdfast run a", Error: "it broke"}, nil
		}
		return reports.Run{Seed: j.Seed}, &history.History{Header: history.Header{Seed: j.Seed}}
	}
	a, b := Case{Scenario: "a", Lock: "l"}, Case{Scenario: "b", Lock: "l", World: "process"}
	planned, done := 0, 0
	o := Options{Seeds: 2, Play: player, Planned: func(n int) { planned = n }, Done: func(reports.Run) { done++ }}
	book, err := Gather(t.Context(), []Case{a, b, a}, o)
	if err != nil || planned != 4 || done != 4 || len(played) != 4 {
		t.Fatalf("%v, planned %d, done %d, played %v", err, planned, done, played)
	}
	if played[0].World != "sim" || played[1].Seed != 2 || played[2].World != "process" {
		t.Errorf("played %+v", played)
	}
	if e := book[a]; len(e.Runs) != 2 || e.Shown.Header.Seed != 1 {
		t.Errorf("%+v", e)
	}
	failing = true
	if _, err := Gather(t.Context(), []Case{a}, o); err == nil || !strings.Contains(err.Error(), "holdfast run a: the run failed: it broke") {
		t.Errorf("a failed run: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Gather(ctx, []Case{a}, o); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestCosts: one fault from 1 to 3 s at a TTL of 1 s; grants at 0.5, 2 and 5 s.
func TestCosts(t *testing.T) {
	h := &history.History{Header: history.Header{TTL: time.Second}}
	add := func(at float64, e history.Event) {
		e.T = int64(at * 1e9)
		h.Events = append(h.Events, e)
	}
	op := func(acq int, f string, ty history.Type) history.Event {
		return history.Event{Op: &history.Op{Process: acq, Client: "c1", Lock: "orders", F: f, Type: ty, Acq: acq}}
	}
	fault := func(phase string) history.Event {
		return history.Event{Nemesis: &history.Nemesis{ID: 1, Fault: "cut", Phase: phase}}
	}
	add(0.4, op(1, history.Acquire, history.Invoke))
	add(0.5, op(1, history.Acquire, history.OK))
	add(1, fault(history.Start))
	add(1.25, op(2, history.Acquire, history.Invoke))
	add(2, op(2, history.Acquire, history.OK))
	add(2.5, op(3, history.Acquire, history.Invoke))
	add(2.9, op(3, history.Acquire, history.Fail))
	add(3, fault(history.Stop))
	add(4, op(4, history.Acquire, history.Invoke))
	add(5, op(4, history.Acquire, history.OK))
	c := CostsOf(h)
	if len(c.Waited) != 1 || c.Waited[0] != 750*time.Millisecond || c.Grants != 1 || c.Faulty != 2 || c.LongestGap != 3 {
		t.Errorf("%+v", c)
	}
	e := &Evidence{Costs: []Costs{c, {Waited: []time.Duration{1, 3}, Grants: 3, Faulty: 2, LongestGap: 4}}}
	if e.Quantile(0.5) != 3 || e.Quantile(0.99) != 750*time.Millisecond || e.GrantsPerTTL() != 1 || e.LongestGap() != 4 {
		t.Errorf("%v %v %v %v", e.Quantile(0.5), e.Quantile(0.99), e.GrantsPerTTL(), e.LongestGap())
	}
	h.Events = h.Events[:1]
	none := CostsOf(h)
	if got := (&Evidence{Costs: []Costs{none}}).Quantile(0.5); got != 0 || none.LongestGap != 0.4 {
		t.Errorf("without a grant: %v, %+v", got, none)
	}
}

// TestLanes drops the keys that nobody asked for, and the words on them.
func TestLanes(t *testing.T) {
	diagram := []string{
		"Who held the lock", "c1        r==W", "n1 key    1111", "n3 key    1122", "clock     [~~]",
		". idle   = holds, its lease is good   r read", "in the key lanes: who owns it on the node (1 = c1)",
	}
	got := strings.Join(lanes(diagram, []string{"n3"}), "\n")
	want := "Who held the lock\nc1        r==W\nn3 key    1122\nclock     [~~]\n" +
		". idle   = holds, its lease is good   r read   in the key lanes: who owns it on the node (1 = c1)"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(lanes(diagram, nil), "\n"); strings.Contains(got, "key") || !strings.HasSuffix(got, "r read") {
		t.Errorf("without keys\n%s", got)
	}
}

func TestPage(t *testing.T) {
	p := &page{}
	p.table([]string{"a", "b"}, [][]string{{"x|y", "z"}})
	p.list(strings.Repeat("word ", 40))
	want := "| a | b |\n|---|---|\n| x\\|y | z |\n\n- " + strings.TrimSpace(strings.Repeat("word ", 23)) + "\n  " +
		strings.TrimSpace(strings.Repeat("word ", 17)) + "\n\n"
	if got := p.b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
