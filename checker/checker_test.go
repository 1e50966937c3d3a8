package checker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

func TestWorst(t *testing.T) {
	order := []Verdict{Pass, Unknown, Error, Violation}
	for i, a := range order {
		for j, b := range order {
			if got := Worst(a, b); got != order[max(i, j)] {
				t.Errorf("Worst(%s, %s) is %s", a, b, got)
			}
		}
	}
	if Worst() != Pass {
		t.Error("no verdict is not a pass")
	}
}

func TestOverallCountsWhatApplies(t *testing.T) {
	if got := Overall([]Result{{Verdict: Pass, Applies: true}, {Verdict: Unknown}}); got != Pass {
		t.Errorf("overall %s: a check that does not apply was counted", got)
	}
	if got := Overall([]Result{{Verdict: Unknown, Applies: true}, {Verdict: Pass, Applies: true}}); got != Unknown {
		t.Errorf("overall %s, want unknown", got)
	}
}

func TestJudge(t *testing.T) {
	h := story(join(grant(1, "c1", 1), arrive(2, "c1", 1, 0, 0, true), invoke(3, "c1", history.Release, 1), ok(3.1, "c1", history.Release, 1),
		final(20), grant(21, "c2", 2))...)
	results := Judge(h)
	for i, c := range All() {
		if results[i].Name != c.Name {
			t.Errorf("check %d is %s, want %s", i, results[i].Name, c.Name)
		}
		want := Pass
		if !results[i].Applies {
			want = Unknown
		}
		if results[i].Verdict != want {
			t.Errorf("%s: %s (%s), want %s", c.Name, results[i].Verdict, results[i].Reason, want)
		}
	}
	if Overall(results) != Pass {
		t.Errorf("overall %s, want pass", Overall(results))
	}
	idle := 0
	for _, r := range results {
		if !r.Applies {
			idle++
		}
	}
	// No trace, no fences, no deadlines, no renewals, nothing told, not fair.
	if idle != 14 {
		t.Errorf("%d checks do not apply, want 14", idle)
	}
}

func TestAssumptions(t *testing.T) {
	try(t, assumptionsName, []trial{{name: "well formed", want: Pass, history: story(grant(1, "c1", 1)...)}})

	h := story(ok(1, "c1", history.Acquire, 1), ok(2, "c1", history.Acquire, 1), ok(3, "c1", history.Acquire, 1), ok(4, "c1", history.Acquire, 1))
	results := Judge(h)
	if len(results) != 1 || results[0].Verdict != Error || Overall(results) != Error {
		t.Fatalf("a malformed history was judged: %+v", results)
	}
	for _, want := range []string{"line 2 (event 0): process 1 completes acquire without an invoke", "line 4", "and 1 more"} {
		if !strings.Contains(results[0].Reason, want) {
			t.Errorf("reason %q lacks %q", results[0].Reason, want)
		}
	}
}

// TestAssumptionsOfTheHeader: with a quorum that no votes, or any, can make, every
// check after it would judge another lock.
func TestAssumptionsOfTheHeader(t *testing.T) {
	for name, change := range map[string]func(*history.Header){
		"quorum below 0":        func(h *history.Header) { h.Quorum = -1 },
		"quorum past the nodes": func(h *history.Header) { h.Quorum = 1000 },
	} {
		if r := assumptions(Gather(with(story(grant(1, "c1", 1)...), change))); r.Verdict != Error || !strings.Contains(r.Reason, "quorum") {
			t.Errorf("%s: %s (%s)", name, r.Verdict, r.Reason)
		}
	}
}

func TestPanicIsAnError(t *testing.T) {
	checks := []Check{{Name: "clumsy", Run: func(*Facts) Result { panic("fell over") }}}
	r := judge(story(), checks)[0]
	if r.Name != "clumsy" || r.Verdict != Error || !r.Applies || !strings.Contains(r.Reason, "fell over") || !strings.Contains(r.Reason, "checker_test.go") {
		t.Errorf("%+v", r)
	}
	blind := []Check{{Name: "blind", Run: func(*Facts) Result { return Result{Verdict: Pass, Applies: true} }}}
	if r := judge(nil, blind)[0]; r.Verdict != Error || !strings.Contains(r.Reason, "reading the history panicked") {
		t.Errorf("a check passed a history that could not be read: %+v", r)
	}
	if got := Overall(Judge(nil)); got != Error {
		t.Errorf("no history at all is %s, want error", got)
	}
}

func TestFaultWords(t *testing.T) {
	h := story(fault(0.2, 1, history.Start, "1.5 TTL"), fault(1, 2, history.Start, "2 TTL forward"), fault(15.2, 1, history.Stop, ""), final(30))
	f := Gather(h)
	if got, want := inWords(f.active(ns(10), ns(20))), "pause (1.5 TTL, 0.20s to 15.20s); pause (2 TTL forward, from 1.00s on)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := inWords(f.active(0, 0.1e9)); got != "" {
		t.Errorf("%q was active before its start", got)
	}
	if got, want := inWords(f.active(ns(16), ns(20))), "pause (2 TTL forward, from 1.00s on)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h.Header.TTL = 50 * time.Millisecond
	if got := Gather(h).at(ns(0.2)); got != "0.2000s" {
		t.Errorf("%s: too few digits for a TTL of 50 ms", got)
	}
}

func FuzzJudge(f *testing.F) {
	add := func(h *history.History) {
		var buf bytes.Buffer
		if err := history.WriteAll(&buf, h); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	h := with(story(join(invoke(0, "c1", history.Acquire, 1), server(0.1, "n1", "c1", "SET", "c1#1", 10),
		fence(until(ok(0.2, "c1", history.Acquire, 1), 9), 3), fault(1, 1, history.Start, "x"), server(8, "n1", "c1", "EVALSHA", "c1#1", 10),
		until(note(8.1, "c1", history.Check, 1), 18), fault(9, 1, history.Stop, ""), grant(12, "c2", 2), arrive(13, "c2", 2, 0, 0, true), token(arrive(14, "c1", 1, 0, 1, true), 3),
		invoke(15, "c1", history.Release, 1), info(15.1, "c1", history.Release, 1), final(16), note(17, "c2", history.Crash, 0), invoke(18, "c3", history.Acquire, 3))...),
		func(h *history.Header) { h.Abilities, h.Resource = []string{"fence", "until"}, "guarded" })
	add(h)
	broken := *h
	broken.Events = slices.Clone(h.Events)
	slices.Reverse(broken.Events)
	add(&broken)
	independent := *h
	independent.Header.Topology, independent.Header.Nodes = "independent", 5
	add(&independent)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _ := history.ReadAll(bytes.NewReader(b))
		if h == nil {
			return
		}
		// All checks, well formed or not: each has to survive by itself.
		facts, failed := gather(h)
		if failed != "" {
			t.Fatal(failed)
		}
		for _, c := range All() {
			if r := run(c, facts); strings.Contains(r.Reason, "panicked") {
				t.Fatal(r.Reason)
			}
		}
	})
}

// BenchmarkJudge: 10,000 acquisitions one after the other, without the search.
func BenchmarkJudge(b *testing.B) {
	var events []history.Event
	for i := range 10_000 {
		at, who := float64(i), fmt.Sprintf("c%d", 1+i%3)
		events = append(events, grant(at+0.2, who, i+1)...)
		events = append(events, invoke(at+0.5, who, history.Release, i+1), ok(at+0.6, who, history.Release, i+1))
	}
	h := story(events...)
	for b.Loop() {
		Judge(h)
	}
}
