package page_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
	"github.com/holdfast-io/holdfast/store"
)

// played is a real run.
func played(t testing.TB, scenario, lock string) (reports.Run, *history.History) {
	t.Helper()
	r, h := campaign.Play(context.Background(), store.Job{Scenario: scenario, Lock: lock, World: "sim", Seed: 1}, "")
	if h == nil {
		t.Fatalf("%s with %s did not play: %s", scenario, lock, r.Error)
	}
	return r, h
}

func write(t testing.TB, r reports.Run, h *history.History) string {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, r, h); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// elements lists all elements of a page.
func elements(t *testing.T, text string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []*html.Node
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode {
			out = append(out, n)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return out
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

// standsAlone holds that a page has its two scripts, asks for nothing, and has
// no attribute that runs code.
func standsAlone(t *testing.T, text string, scripts int) {
	t.Helper()
	n := 0
	for _, e := range elements(t, text) {
		switch e.Data {
		case "link", "img", "iframe", "object", "embed", "base", "form", "image", "use", "foreignobject", "video", "audio":
			t.Errorf("the page has an element %s", e.Data)
		case "script":
			if n++; attr(e, "src") != "" {
				t.Errorf("a script comes from %s", attr(e, "src"))
			}
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s=%q> runs code", e.Data, a.Key, a.Val)
			}
			if slices.Contains([]string{"href", "src", "action", "data", "poster", "srcset", "xlink:href"}, a.Key) && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("<%s %s=%q> leaves the page", e.Data, a.Key, a.Val)
			}
		}
	}
	if n != scripts {
		t.Errorf("the page has %d scripts, want %d", n, scripts)
	}
	for _, bad := range []string{"@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "innerHTML", "document.write", "eval("} {
		if strings.Contains(page.PageCSS+page.Script, bad) {
			t.Errorf("the page's own code has %s", bad)
		}
	}
}

func TestPageStandsAlone(t *testing.T) {
	r, h := played(t, "kleppmann-clock-jump", "redlock")
	text := write(t, r, h)
	standsAlone(t, text, 2)
	for _, e := range elements(t, text) {
		if e.Data == "script" && attr(e, "type") == "" {
			sum := sha256.Sum256([]byte(textOf(e)))
			if want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(page.Policy, want) {
				t.Errorf("the policy %q does not allow the page's own script, %s", page.Policy, want)
			}
		}
		if e.Data == "meta" && attr(e, "http-equiv") == "Content-Security-Policy" && attr(e, "content") != page.Policy {
			t.Errorf("the policy in the page is %q, want %q", attr(e, "content"), page.Policy)
		}
	}
	if !strings.Contains(page.Policy, "default-src 'none'") {
		t.Errorf("the policy lets requests out: %s", page.Policy)
	}
}

func TestSameRunSameBytes(t *testing.T) {
	r, h := played(t, "kleppmann-clock-jump", "redlock")
	one := write(t, r, h)
	r.WallSeconds *= 3
	r.History, r.Report = "/elsewhere/history.jsonl", "/elsewhere/report.html"
	if other := write(t, r, h); one != other {
		t.Error("the page of one run differs with the time it took or the folder it is in")
	}
}

// TestOrderOfAnswers holds that a reader meets the verdict first, then what
// went wrong, the picture, and how to repeat it.
func TestOrderOfAnswers(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	text := write(t, r, h)
	at := 0
	for _, want := range []string{
		`<span class="badge violation">VIOLATION</span> exclusion: overrun, updates: lost-update`, "Whose fault:</strong> the HOLDER outlived its lease",
		"Damage:</strong> 2 of 7", "c2 was granted the lock at 10.19s", `<section id="diagram"`, `id="lanes"`, "<pre>Who held the lock", `<h2 id="h-plots">`,
		`<h2 id="h-checks">`, "basic hands out no fencing tokens", `<h2 id="h-config">`, "sha256 " + r.HistorySHA256, `id="repeat">holdfast run kleppmann-gc-pause --lock basic --seed 1<`,
	} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("after byte %d the page does not say %q", at, want)
		}
		at += i
	}
}

// TestLabels holds that everything one can use has a name, and that ids are
// there once.
func TestLabels(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	text := write(t, r, h)
	ids := map[string]bool{}
	for _, e := range elements(t, text) {
		if id := attr(e, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
		name := strings.TrimSpace(textOf(e)) + attr(e, "aria-label")
		switch {
		case (e.Data == "button" || e.Data == "a" || e.Data == "canvas" || e.Data == "summary") && name == "":
			t.Errorf("an element %s %s has no name", e.Data, attr(e, "id"))
		case e.Data == "svg" && (attr(e, "role") != "img" || attr(e, "aria-label") == ""):
			t.Error("a plot has no accessible name")
		case e.Data == "input" && e.Parent.Data != "label":
			t.Errorf("the input %s has no label", attr(e, "id"))
		case e.Data == "html" && attr(e, "lang") == "":
			t.Error("the page does not say its language")
		}
	}
	for _, used := range regexp.MustCompile(`(?:aria-labelledby|aria-describedby)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if !ids[used[1]] {
			t.Errorf("there is no element %s, which a label refers to", used[1])
		}
	}
	for _, used := range regexp.MustCompile(`\$\("([a-z]+)"\)`).FindAllStringSubmatch(page.ViewJS, -1) {
		if !ids[used[1]] {
			t.Errorf("the script uses an element %s that is not there", used[1])
		}
	}
}

var hostile = []string{
	`<script>alert(1)</script>`, `</script><img src=x onerror=alert(1)>`, "--><svg onload=alert(1)>", `"><b id=x>`, "{{.Repeat}}", "$1 ${x}",
	"a\u2028b\u2029c", "bell\a esc\x1b[31m null\x00", "bad utf8 \xff\xfe", "\u202egnp.exe", strings.Repeat("long", 5000),
}

// spoiled is a real run whose every name, error and reply is a text.
func spoiled(t testing.TB, bad string) (reports.Run, *history.History) {
	t.Helper()
	r, h := played(t, "kleppmann-clock-jump", "redlock")
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Op != nil && e.Op.Client == "": // a phase
		case e.Op != nil:
			e.Op.Client, e.Op.Lock, e.Op.Error, e.Op.Code = bad+e.Op.Client, bad, bad, bad
		case e.Server != nil:
			e.Server.Node, e.Server.Key, e.Server.Reply, e.Server.Client = bad+e.Server.Node, bad, bad, bad+e.Server.Client
			e.Server.Owner = bad + e.Server.Owner
		case e.Resource != nil:
			e.Resource.Client, e.Resource.Refused = bad+e.Resource.Client, bad
		case e.Nemesis != nil:
			e.Nemesis.Fault, e.Nemesis.What, e.Nemesis.Why, e.Nemesis.On = bad, bad, bad, []string{bad + "c1"}
		}
	}
	h.Header.Lock, h.Header.Versions = bad, map[string]string{bad: bad}
	r.Scenario, r.Lock, r.About, r.Error, r.Repeat, r.Leaks = bad, bad, bad, bad, bad, []string{bad}
	r.Checks = checker.Judge(h)
	for i := range r.Checks {
		r.Checks[i].Reason += bad
		for k := range r.Checks[i].Violations {
			r.Checks[i].Violations[k].Summary += bad
			r.Checks[i].Violations[k].Fault = bad
		}
	}
	return r, h
}

// TestHostileNames holds that names, errors and replies are text, whatever
// stands in them.
func TestHostileNames(t *testing.T) {
	for _, bad := range hostile {
		r, h := spoiled(t, bad)
		text := write(t, r, h)
		name := fmt.Sprintf("%.20q", bad)
		t.Run(name, func(t *testing.T) {
			standsAlone(t, text, 2)
			if len(text) > 2<<20 {
				t.Errorf("the page has %d bytes", len(text))
			}
			if i := strings.IndexFunc(text, func(r rune) bool {
				return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u202e'
			}); i >= 0 {
				t.Errorf("the page has a control character: %q", text[max(0, i-30):i+10])
			}
			for _, e := range elements(t, text) {
				if attr(e, "id") == "x" {
					t.Error("a name became an element")
				}
				if attr(e, "id") == "data" {
					var v struct{ Seats []struct{ Client string } }
					if err := json.Unmarshal([]byte(textOf(e)), &v); err != nil || len(v.Seats) != 2 {
						t.Errorf("the data does not parse, or has %d lanes of clients: %v", len(v.Seats), err)
					}
				}
				if e.Data == "h1" && !strings.Contains(textOf(e), "VIOLATION") {
					t.Errorf("the headline became %q", textOf(e))
				}
			}
		})
	}
}

// TestNothingToDraw holds that a run that left little still has its page.
func TestNothingToDraw(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	for name, c := range map[string]struct {
		h    *history.History
		want string
	}{
		"no history": {nil, "There is nothing to draw: the run has no history."},
		"no events":  {&history.History{Header: h.Header}, "There is nothing to draw: the history has no events."},
	} {
		r := r
		r.Error, r.Verdict, r.Checks = "the child process died\npanic: oh", checker.Error, nil
		text := write(t, r, c.h)
		standsAlone(t, text, 1)
		for _, want := range []string{c.want, "the child process died", "RUN FAILED", "Nothing was judged."} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page does not say %q", name, want)
			}
		}
	}
	// Wherever a history breaks off, the page draws what is there.
	for n := 1; n < len(h.Events); n += 7 {
		cut := &history.History{Header: h.Header, Events: h.Events[:n]}
		r.Checks = checker.Judge(cut)
		standsAlone(t, write(t, r, cut), 2)
	}
}

// TestMalformedHistory holds that no history keeps the verdict from being
// shown.
func TestMalformedHistory(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	for i := range h.Events {
		h.Events[i].T = math.MaxInt64 - h.Events[i].T*int64(i%3)
		if i%5 == 0 {
			h.Events[i] = history.Event{T: -1}
		}
	}
	if text := write(t, r, h); !strings.Contains(text, "VIOLATION") {
		t.Error("the verdict is missing")
	}
}

// many is a history of so many ops, by 30 clients, with a fault in the middle.
func many(ops int) *history.History {
	h := &history.History{Header: history.Header{Schema: history.Schema, Scenario: "many", Lock: "basic", World: "sim", Topology: "single",
		Nodes: 1, Clients: 30, TTL: 10 * time.Second}}
	t := int64(0)
	add := func(e history.Event) {
		t += 104729 * int64(1+len(h.Events)%11)
		e.T = t
		h.Events = append(h.Events, e)
	}
	version := int64(0)
	for n, acq := 0, 1; n < ops; n, acq = n+4, acq+1 {
		c := acq % 30
		name, seen := fmt.Sprintf("c%d", c+1), version
		op := func(f string, typ history.Type, v *int64) {
			add(history.Event{Op: &history.Op{Process: c, Client: name, F: f, Type: typ, Lock: "orders", Acq: acq, Version: v}})
		}
		server := func(cmd, reply, owner string, pttl int64) {
			add(history.Event{Server: &history.Server{Node: "n1", Clock: t, Client: name, Cmd: cmd, Key: "lock:orders", Reply: reply, Owner: owner, PTTL: pttl}})
		}
		op(history.Acquire, history.Invoke, nil)
		server("SET", "OK", fmt.Sprintf("%s#%d", name, acq), 10000)
		op(history.Acquire, history.OK, nil)
		op(history.Read, history.Invoke, nil)
		add(history.Event{Resource: &history.Resource{Client: name, Process: c, Acq: acq, F: history.Read, Seen: seen, Version: seen, Before: seen, Applied: true}})
		op(history.Read, history.OK, &seen)
		op(history.Write, history.Invoke, &seen)
		version++
		add(history.Event{Resource: &history.Resource{Client: name, Process: c, Acq: acq, F: history.Write, Seen: seen, Version: version, Before: seen, Applied: true}})
		op(history.Write, history.OK, nil)
		op(history.Release, history.Invoke, nil)
		server("EVALSHA", "1", "", -2)
		op(history.Release, history.OK, nil)
		if n == ops/2/4*4 {
			add(history.Event{Nemesis: &history.Nemesis{ID: 1, Fault: "pause", Phase: history.Start, On: []string{"c1"}, What: "c1 paused"}})
		}
	}
	return h
}

// TestHundredThousandOps holds the size of a long run's page: under 15 MB. The
// time is measured by BenchmarkWrite.
func TestHundredThousandOps(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second or two")
	}
	h := many(100_000)
	r := campaign.Conclude(reports.Run{Scenario: "many", Lock: "basic", World: "sim", Checks: []checker.Result{{Name: "exclusion", Applies: true, Verdict: checker.Pass}}})
	began := time.Now()
	text := write(t, r, h)
	t.Logf("%d events, %d bytes, %v", len(h.Events), len(text), time.Since(began))
	if len(text) > 15e6 {
		t.Errorf("the page has %d bytes, more than 15 MB", len(text))
	}
}

func BenchmarkWrite(b *testing.B) {
	pause, story := played(b, "kleppmann-gc-pause", "basic")
	jump, nodes := played(b, "kleppmann-clock-jump", "redlock")
	for _, c := range []struct {
		name string
		r    reports.Run
		h    *history.History
	}{{"gc-pause", pause, story}, {"clock-jump", jump, nodes}, {"100000-ops", pause, many(100_000)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(len(write(b, c.r, c.h))), "bytes")
			}
		})
	}
}
