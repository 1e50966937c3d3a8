package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// laneOf finds the cells of a lane by its label.
func laneOf(t *testing.T, picture []string, label string) string {
	t.Helper()
	for _, line := range picture {
		if rest, ok := strings.CutPrefix(line, label+" "); ok {
			return strings.TrimLeft(rest, " ")
		}
	}
	t.Fatalf("no lane %q in\n%s", label, strings.Join(picture, "\n"))
	return ""
}

func inOrder(s string, parts ...string) bool {
	for _, p := range parts {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}

func TestDiagramTellsKleppmannsStory(t *testing.T) {
	run, h := kleppmann()
	picture := Diagram(h, run.Checks, 100, false)
	if l := laneOf(t, picture, "c1"); !inOrder(l, "=", "r", "p", "P", "*", "#") || strings.Contains(l, "!") {
		t.Errorf("c1 holds, reads, is paused, outlives its lease, and destroys a write: %s", l)
	}
	if l := laneOf(t, picture, "c2"); !inOrder(l, "--", "=", "r", "W", "=") || strings.ContainsAny(l, "#!") {
		t.Errorf("c2 waits and holds with a good lease: %s", l)
	}
	if l := laneOf(t, picture, "n1 key"); !inOrder(l, "1", ".", "2") {
		t.Errorf("the node gives the key to c1, takes it, gives it to c2: %s", l)
	}
	laneOf(t, picture, "two hold")
	if l := laneOf(t, picture, "pause"); !strings.Contains(l, "c1 paused, 15s") {
		t.Errorf("the fault's lane: %s", l)
	}
}

func TestDiagramShowsTwoGoodLeases(t *testing.T) {
	run, h := clockJump()
	picture := Diagram(h, run.Checks, 100, false)
	for _, c := range []string{"c1", "c2"} {
		if l := laneOf(t, picture, c); !strings.Contains(l, "!!!") || strings.Contains(l, "#") {
			t.Errorf("%s has a good lease while another has one: %s", c, l)
		}
	}
	laneOf(t, picture, "clock")
}

// TestDiagramOfTheWaiting: an acquire that is pending at the end, or when its
// client dies, is drawn up to there.
func TestDiagramOfTheWaiting(t *testing.T) {
	s := newScript("calm", "basic")
	s.op(0, "c1", 1, history.Acquire, history.Invoke)
	s.op(0.01, "c2", 2, history.Acquire, history.Invoke)
	s.op(5, "c1", 0, history.Crash, history.Note)
	s.op(10, "c3", 3, history.Acquire, history.Invoke)
	picture := Diagram(s.h, nil, 100, false)
	one, two := laneOf(t, picture, "c1"), laneOf(t, picture, "c2")
	if n := strings.Count(two, "-"); n < 60 || strings.Contains(two, ".") {
		t.Errorf("c2 waits to the end: %s", two)
	}
	if n, all := strings.Count(one, "-"), strings.Count(two, "-"); n < all/2-3 || n > all/2+3 {
		t.Errorf("c1 waits until it dies, half-way: %s", one)
	}
}

// TestDiagramOfWaitingThreads: each thread of a client that dies waits until then.
func TestDiagramOfWaitingThreads(t *testing.T) {
	s := newScript("calm", "basic")
	for thread := range 2 {
		s.at(0.01*float64(thread), history.Event{Op: &history.Op{Process: thread, Client: "c1", Thread: thread, F: history.Acquire, Type: history.Invoke, Lock: "orders", Acq: thread + 1}})
	}
	s.at(5, history.Event{Op: &history.Op{Client: "c1", F: history.Crash, Type: history.Note}})
	s.at(10, history.Event{Op: &history.Op{Process: 2, Client: "c2", F: history.Acquire, Type: history.Invoke, Lock: "orders", Acq: 3}})
	picture := Diagram(s.h, nil, 100, false)
	for _, label := range []string{"c1/1", "c1/2"} {
		l := laneOf(t, picture, label)
		if n := strings.Count(l, "-"); n < 30 || n > 60 {
			t.Errorf("%s waits until its client dies, half-way: %s", label, l)
		}
	}
}

func TestDiagramOfLittle(t *testing.T) {
	if got := Diagram(nil, nil, 100, false); got != nil {
		t.Errorf("of no history: %v", got)
	}
	s := newScript("calm", "basic")
	if got := Diagram(s.h, nil, 100, false); got != nil {
		t.Errorf("of no events: %v", got)
	}
	s.op(0, "c1", 1, history.Acquire, history.Invoke)
	if l := laneOf(t, Diagram(s.h, nil, 100, false), "c1"); !strings.HasPrefix(l, "-") {
		t.Errorf("one event: %q", l)
	}
}

// A long run is drawn around its first violation, within the width and fast.
func TestDiagramOfAHugeHistory(t *testing.T) {
	s := newScript("soak", "basic")
	var found []checker.Found
	for i := range 20000 {
		at, c := float64(i)*0.5, fmt.Sprintf("c%d", i%25+1)
		s.at(at, history.Event{Op: &history.Op{Process: i % 25, Client: c, F: history.Acquire, Type: history.Invoke, Acq: i + 1}})
		ok := s.at(at+0.1, history.Event{Op: &history.Op{Process: i % 25, Client: c, F: history.Acquire, Type: history.OK, Acq: i + 1}})
		s.node(at+0.05, "n1", "SET", c, c+"#1")
		length := 0.3
		if i%4000 == 3999 {
			length = 0.7
			found = append(found, checker.Found{Kind: checker.Broken, Ops: []int{ok, ok + 5}})
		}
		s.at(at+length, history.Event{Op: &history.Op{Process: i % 25, Client: c, F: history.Release, Type: history.Invoke, Acq: i + 1}})
		s.node(at+length, "n1", "EVALSHA", c, "")
	}
	results := []checker.Result{{Name: "exclusion", Verdict: checker.Violation, Applies: true, Kind: checker.Broken, Violations: found}}
	picture := Diagram(s.h, results, 100, false)
	text := strings.Join(picture, "\n")
	if !strings.Contains(text, "around the first violation") || !strings.Contains(text, "15 more clients") {
		t.Errorf("it must say what it left out:\n%s", text)
	}
	if !strings.Contains(picture[0], "1997s to 2003s") && !strings.Contains(text, "two hold") {
		t.Errorf("the first violation is at 2000s:\n%s", text)
	}
	for _, line := range picture {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// Names come from outside: they must neither colour a report nor break its layout.
func TestNamesCannotEscape(t *testing.T) {
	run, h := kleppmann()
	run.Lock, run.Scenario = "ba|sic`\x1b[31m", "multi\nline"
	run.Repeat = "holdfast run \x1b]0;title\a"
	run.Checks[1].Violations[0].Summary = "```\n<script>| \x1b[2J"
	for _, e := range h.Events {
		if e.Op != nil && e.Op.Client == "c1" {
			e.Op.Client = "c```\x1b[1m1"
		}
	}
	var text, mark bytes.Buffer
	if err := Text(&text, run, h, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&mark, []Run{run}, func(Run) *history.History { return h }); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{"text": text.String(), "markdown": mark.String()} {
		if strings.ContainsAny(s, "\x1b\a") {
			t.Errorf("%s passes on control characters:\n%q", name, s)
		}
	}
	if strings.Contains(mark.String(), "<script>") || !strings.Contains(mark.String(), "ba\\|sic\\`") {
		t.Errorf("markdown is not escaped:\n%s", mark.String())
	}
}

func TestColour(t *testing.T) {
	run, h := kleppmann()
	var plain, coloured bytes.Buffer
	if err := Text(&plain, run, h, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Text(&coloured, run, h, TextOptions{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.String(), "\x1b[31m") {
		t.Error("no red for what went wrong")
	}
	var b strings.Builder
	for i, part := range strings.Split(coloured.String(), "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		b.WriteString(part)
	}
	if b.String() != plain.String() {
		t.Errorf("colour changes the text:\n%s\n%s", b.String(), plain.String())
	}
}

// Histories that were cut, or are nonsense, must still be reported.
func TestNoPanicOnOddHistories(t *testing.T) {
	names := []string{"", "c1", "c2", "c10", "c1#2", "n1", "a very long name of a client indeed"}
	fs := []string{history.Acquire, history.Release, history.Extend, history.Read, history.Write, history.Lost, history.Crash, "?"}
	types := []history.Type{history.Invoke, history.OK, history.Fail, history.Info, history.Note, "?"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names)
		h := &history.History{Header: history.Header{TTL: time.Duration(rapid.Int64().Draw(t, "ttl")), Drift: rapid.Float64Range(-1, 2).Draw(t, "drift")}}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			e := history.Event{T: rapid.OneOf(rapid.Int64Range(-5, 5e10), rapid.Int64()).Draw(t, "t")}
			switch rapid.IntRange(0, 4).Draw(t, "part") {
			case 0:
				e.Op = &history.Op{Client: name.Draw(t, "c"), F: rapid.SampledFrom(fs).Draw(t, "f"), Type: rapid.SampledFrom(types).Draw(t, "type"), Acq: rapid.IntRange(-1, 4).Draw(t, "acq")}
			case 1:
				e.Server = &history.Server{Node: name.Draw(t, "n"), Key: name.Draw(t, "k"), Owner: name.Draw(t, "o")}
			case 2:
				e.Nemesis = &history.Nemesis{ID: rapid.IntRange(0, 2).Draw(t, "id"), Fault: rapid.SampledFrom([]string{"pause", "", "cut"}).Draw(t, "kind"), Phase: rapid.SampledFrom([]string{"start", "stop", ""}).Draw(t, "phase"), On: []string{name.Draw(t, "on")}, What: name.Draw(t, "what")}
			case 3:
				e.Resource = &history.Resource{Client: name.Draw(t, "c"), F: rapid.SampledFrom(fs).Draw(t, "f"), Applied: rapid.Bool().Draw(t, "applied")}
			}
			h.Events = append(h.Events, e)
		}
		found := checker.Found{Kind: "overrun", Ops: rapid.SliceOfN(rapid.IntRange(-2, 32), 0, 4).Draw(t, "ops")}
		results := []checker.Result{{Name: "exclusion", Verdict: checker.Violation, Applies: true, Violations: []checker.Found{found}}}
		run := judged(Run{Error: name.Draw(t, "error")}, results...)
		opt := TextOptions{Width: rapid.IntRange(-5, 250).Draw(t, "width")}
		if err := Text(io.Discard, run, h, opt); err != nil {
			t.Fatal(err)
		}
		for _, line := range Diagram(h, results, opt.width(), false) {
			if len([]rune(line)) > opt.width() && strings.Contains(line, "|--") {
				t.Fatalf("%d columns of %d: %s", len(line), opt.width(), line)
			}
		}
		if err := Markdown(io.Discard, []Run{run}, func(Run) *history.History { return h }); err != nil {
			t.Fatal(err)
		}
	})
}
