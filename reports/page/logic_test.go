package page_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
)

// browserless runs logic.js, which needs no browser.
func browserless(t *testing.T) *goja.Runtime {
	t.Helper()
	vm := goja.New()
	if _, err := vm.RunString(page.LogicJS); err != nil {
		t.Fatal(err)
	}
	return vm
}

func value(t *testing.T, vm *goja.Runtime, code string) string {
	t.Helper()
	v, err := vm.RunString("JSON.stringify(" + code + ")")
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return v.String()
}

// load decodes the data of a run's page as the page does.
func load(t *testing.T, scenario, lock string) (*goja.Runtime, *history.History) {
	t.Helper()
	r, h := played(t, scenario, lock)
	vm := browserless(t)
	if err := vm.Set("text", dataOf(t, write(t, r, h))); err != nil {
		t.Fatal(err)
	}
	if _, err := vm.RunString("const m = Logic.decode(JSON.parse(text))"); err != nil {
		t.Fatal(err)
	}
	return vm, h
}

func dataOf(t *testing.T, page string) string {
	t.Helper()
	for _, e := range elements(t, page) {
		if attr(e, "id") == "data" {
			return textOf(e)
		}
	}
	t.Fatal("the page has no data")
	return ""
}

func TestScriptsParse(t *testing.T) {
	if _, err := goja.Compile("page", page.Script, true); err != nil {
		t.Fatal(err)
	}
}

// TestEveryEventArrives holds that what the page shows of an event is what the
// history says: the two are written by different code.
func TestEveryEventArrives(t *testing.T) {
	for _, run := range [][2]string{{"kleppmann-clock-jump", "redlock"}, {"kleppmann-fencing", "basic+fence"}, {"renewal-blip", "reference"}} {
		vm, h := load(t, run[0], run[1])
		if got := value(t, vm, "m.n"); got != strconv.Itoa(len(h.Events)) {
			t.Fatalf("%s events arrive, want %d", got, len(h.Events))
		}
		for i, e := range h.Events {
			var pairs [][2]string
			if err := json.Unmarshal([]byte(value(t, vm, fmt.Sprintf("Logic.fields(m, %d)", i))), &pairs); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, p := range pairs {
				got[p[0]] = p[1]
			}
			if tt := value(t, vm, fmt.Sprintf("m.T[%d]", i)); tt != strconv.FormatInt(e.T, 10) {
				t.Fatalf("event %d is at %s, want %d", i, tt, e.T)
			}
			for name, want := range expected(e) {
				if got[name] != want {
					t.Fatalf("event %d (%v): %s is %q, want %q; all: %v", i, e, name, got[name], want, got)
				}
			}
		}
	}
}

// expected is what a reader must find of an event.
func expected(e history.Event) map[string]string {
	switch {
	case e.Op != nil:
		want := map[string]string{"client": e.Op.Client, "call": e.Op.F, "type": string(e.Op.Type), "lock": e.Op.Lock, "code": e.Op.Code, "error": reports.Printable(e.Op.Error)}
		if e.Op.Acq > 0 {
			want["acquisition"] = strconv.Itoa(e.Op.Acq)
		}
		if e.Op.Fence != nil {
			want["fence"] = strconv.FormatUint(*e.Op.Fence, 10)
		}
		if e.Op.Version != nil {
			want["version"] = strconv.FormatInt(*e.Op.Version, 10)
		}
		if e.Op.Thread > 0 {
			want["thread"] = strconv.Itoa(e.Op.Thread + 1)
		}
		want["mode"] = e.Op.Mode
		if e.Op.Until != nil {
			want["valid until"] = inSeconds(*e.Op.Until)
		}
		return want
	case e.Server != nil:
		want := map[string]string{"node": e.Server.Node, "client": e.Server.Client, "command": e.Server.Cmd, "key": e.Server.Key, "reply": e.Server.Reply, "value": e.Server.Value}
		if e.Server.PTTL >= 0 {
			want["time to live"] = fmt.Sprintf("%d ms", e.Server.PTTL)
		}
		if e.Server.Owner != "" {
			want["owner afterwards"] = e.Server.Owner
		}
		return want
	case e.Nemesis != nil:
		return map[string]string{"fault": e.Nemesis.Fault, "phase": e.Nemesis.Phase, "what": e.Nemesis.What, "why": e.Nemesis.Why, "on": strings.Join(e.Nemesis.On, ", ")}
	}
	applied := map[bool]string{true: "yes", false: "no"}[e.Resource.Applied]
	return map[string]string{"client": e.Resource.Client, "call": e.Resource.F, "had seen version": strconv.FormatInt(e.Resource.Seen, 10),
		"version before": strconv.FormatInt(e.Resource.Before, 10), "version after": strconv.FormatInt(e.Resource.Version, 10), "applied": applied, "refused": e.Resource.Refused}
}

// inSeconds is Logic.time in Go.
func inSeconds(ns int64) string {
	digits := 4
	if ns != 0 && ns < 1e6 && ns > -1e6 {
		digits = 6
	}
	s := strconv.FormatFloat(float64(ns)/1e9, 'f', digits, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + " s"
}

// TestLanes holds what the lanes of Kleppmann's story show.
func TestLanes(t *testing.T) {
	vm, h := load(t, "kleppmann-gc-pause", "basic")
	lease := checker.Gather(h).Acquisitions[0].Guaranteed[0].To // what it is, package checker says
	for code, want := range map[string]string{
		`m.lanes.map((l) => l.kind + " " + l.name)`:                                                          `["client c1","client c2","node n1","storage storage"]`,
		`[m.lanes[0].holds[0].ops, m.lanes[0].holds[0].from === m.T[2], m.lanes[0].holds[0].to === m.T[64]]`: `[[0,2,64],true,true]`,
		`m.lanes[0].lease[0].to`: strconv.FormatInt(lease, 10),
		`m.lanes[0].over.map((i) => [i.from === m.lanes[0].lease[0].to, i.to === m.T[64]])`: `[[true,true]]`,
		`m.lanes[0].pauses.length`: `1`,
		`m.data.faults[0].lanes`:   `[0]`,
		`[m.lanes[1].waits[0].from === m.T[6], m.lanes[1].waits[0].to === m.T[30]]`: `[true,true]`,
		`m.lanes[2].owners[0].owner`:                                     `"c1#1"`,
		`m.lanes[2].owners[0].pttl`:                                      `10000000000`,
		`m.lanes[3].events.filter((i) => Logic.mark(m, i).sign === "*")`: `[62,69]`,
		`Logic.sentence(m, 62)`:                                          `"c1 lost update at 17.0036 s, version 3"`,
		`Logic.sentence(m, 2)`:                                           `"c1 acquire ok (acquisition 1) at 0.0024 s"`,
		`m.data.violations[0].ops`:                                       `[2,30,64,38]`,
		`Logic.nearest(m, 0, 17003600000, 1e6)`:                          `62`,
		`Logic.nearest(m, 0, 17003600000, 10)`:                           `-1`,
		`m.callOf[1]`:                                                    `0`, // the SET belongs to the acquire
		`m.doneOf[0]`:                                                    `2`,
		`Logic.step(m, 2, 0, 1) > 2`:                                     `true`,
		`Logic.search(m, "c1 lost", 0, 10).found`:                        `[62]`,
		`Logic.search(m, "no such words", 0, 10)`:                        `{"found":[],"next":123}`,
		`m.lanes[0].holds.length === 3 && Logic.firstReaching(m.lanes[0].holds, 17.5e9)`: `1`,
	} {
		if got := value(t, vm, code); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
}

// TestClockAndDown holds what the lanes of nodes show of faults.
func TestClockAndDown(t *testing.T) {
	vm, _ := load(t, "kleppmann-clock-jump", "redlock")
	if got := value(t, vm, `m.lanes.filter((l) => l.name === "n3").map((l) => l.clocks.map((c) => Math.round(c.offset / 1e9)))`); got != "[[20,0]]" {
		t.Errorf("the clock of n3 steps to %s, want 20 s and back", got)
	}
	if got := value(t, vm, `m.lanes.filter((l) => l.kind === "client" && l.both.length).map((l) => l.name)`); got != `["c1","c2"]` {
		t.Errorf("two good leases are shown for %s", got)
	}
	vm, _ = load(t, "crash-restart-amnesia", "basic")
	if got := value(t, vm, `m.lanes.filter((l) => l.name === "n1").map((l) => l.down.map((d) => [d.words, d.to - d.from]))`); got != `[[["down",200000000]]]` {
		t.Errorf("n1 is shown as %s", got)
	}
}

func TestViews(t *testing.T) {
	vm := browserless(t)
	for code, want := range map[string]string{
		`Logic.clamp({from: -5e6, to: 5e6}, 1e9)`:                                 `{"from":0,"to":10000000}`,
		`Logic.clamp({from: 0.99e9, to: 1.5e9}, 1e9)`:                             `{"from":490000000,"to":1000000000}`,
		`Logic.clamp({from: 5, to: 6}, 1e9)`:                                      `{"from":5,"to":1005}`,
		`Logic.clamp({from: -10, to: 1e12}, 1e9)`:                                 `{"from":0,"to":1000000000}`,
		`Logic.zoom({from: 0, to: 1e9}, 0.5, 0.25e9, 1e9)`:                        `{"from":125000000,"to":625000000}`,
		`Logic.pan({from: 0, to: 1e8}, 1e12, 1e9)`:                                `{"from":900000000,"to":1000000000}`,
		`Logic.ticks(0, 25e9, 6).map((t) => t.label)`:                             `["0 s","5 s","10 s","15 s","20 s","25 s"]`,
		`Logic.ticks(1e9, 1e9 + 400, 4).map((t) => t.label)`:                      `["1.0000000 s","1.0000001 s","1.0000002 s","1.0000003 s","1.0000004 s"]`,
		`Logic.ticks(5, 5, 4)`:                                                    `[]`,
		`Logic.place("#op-62")`:                                                   `{"what":"op","number":62}`,
		`Logic.place("#violation-2")`:                                             `{"what":"violation","number":2}`,
		`[Logic.place("#op-"), Logic.place("#op-1<b>"), Logic.place("")]`:         `[null,null,null]`,
		`Logic.clip("abcdef", 4, (s) => s.length)`:                                `"abc…"`,
		`Logic.clip("abc", 4, (s) => s.length)`:                                   `"abc"`,
		`Logic.clip("abc", 0, (s) => s.length)`:                                   `""`,
		`[Logic.time(0), Logic.time(1500), Logic.time(17003584003)]`:              `["0 s","0.000002 s","17.0036 s"]`,
		`Logic.packed([{from: 0, to: 5}, {from: 2, to: 3}, {from: 5, to: 6}], 8)`: `{"row":[0,1,0],"count":2}`,
		`Logic.packed([{from: 0, to: 9}, {from: 1, to: 9}, {from: 2, to: 9}], 2)`: `{"row":[0,1,1],"count":2}`,
	} {
		if got := value(t, vm, code); got != want {
			t.Errorf("%s is %s, want %s", code, got, want)
		}
	}
}

// TestDataOfAStory is the embedded data of a short history, to the byte.
func TestDataOfAStory(t *testing.T) {
	fence, big, until := uint64(7), uint64(1)<<60, int64(90)
	h := &history.History{Header: history.Header{TTL: 50}, Events: []history.Event{
		{T: 10, Op: &history.Op{Client: "c<1>", F: history.Acquire, Type: history.Invoke, Acq: 1}},
		{T: 12, Server: &history.Server{Node: "n1", Clock: 15, Client: "c<1>", Cmd: "SET", Key: "k", Reply: "OK", Owner: "c<1>#1", PTTL: 50}},
		{T: 14, Op: &history.Op{Client: "c<1>", F: history.Acquire, Type: history.OK, Acq: 1, Fence: &fence, Until: &until}},
		{T: 20, Resource: &history.Resource{Client: "c<1>", Acq: 1, F: history.Write, Fence: &big, Version: 1, Applied: true}},
		{T: 21, Nemesis: &history.Nemesis{ID: 1, Fault: "cut", Phase: history.Start, On: []string{"c<1>->n1"}}},
	}}
	got := dataOf(t, write(t, silent(h), h))
	lease := checker.Gather(h).Acquisitions[0].Guaranteed[0]
	want := fmt.Sprintf(`{"events":[[10,0,0,1,2,3,0,1],
[2,2,4,1,5,6,7,8,50,3],
[2,0,0,1,2,9,0,1,0,0,8,77],
[6,3,1,0,1,10,0,1,0,1,"1152921504606846976",0],
[1,1,1,11,12,0,0,0,13]],"holds":[[1,0,[0,2,-1],[0,7],[0,%d],[]]],"waits":[[0,10,4]],"both":[],`+
		`"strings":["","c\u003c1\u003e","acquire","invoke","n1","SET","k","OK","c\u003c1\u003e#1","ok","write","cut","start","c\u003c1\u003e-\u003en1"],`+
		`"seats":[{"client":"c\u003c1\u003e","thread":0,"lock":"","label":"c\u003c1\u003e"}],"places":[["n1","k"]],"faults":[{"fault":"cut","what":"c\u003c1\u003e-\u003en1","why":"","on":["c\u003c1\u003e","n1"],"from":21,"to":21,"stopped":false}],`+
		`"violations":[],"ttl":50,"end":21}`, lease.To-lease.From)
	if got != want {
		t.Errorf("the data is\n%s\nwant\n%s", got, want)
	}
}

// TestContrast holds the contrast of WCAG AA: 4.5 for text, 3 for lines and
// marks that carry meaning, in both themes.
func TestContrast(t *testing.T) {
	for name, theme := range themes(t) {
		for _, c := range []struct {
			ink, paper string
			least      float64
		}{
			{"fg", "bg", 7}, {"fg", "panel", 7}, {"muted", "bg", 4.5}, {"muted", "panel", 4.5}, {"link", "bg", 4.5}, {"link", "panel", 4.5},
			{"bad", "bg", 4.5}, {"bad", "bad-bg", 4.5}, {"ok", "ok-bg", 4.5}, {"warn", "warn-bg", 4.5}, {"warn", "bg", 4.5}, {"bg", "bad", 4.5},
			{"hold-ink", "hold", 4.5}, {"over-ink", "over", 4.5}, {"both-ink", "both", 4.5},
			{"fg", "c0", 4.5}, {"fg", "c1", 4.5}, {"fg", "c2", 4.5}, {"fg", "c3", 4.5}, {"fg", "c4", 4.5}, {"fg", "c5", 4.5}, {"fg", "c6", 4.5}, {"fg", "c7", 4.5},
			{"lease", "bg", 3}, {"wait", "bg", 3}, {"edge", "bg", 3}, {"edge", "panel", 3}, {"pause", "bg", 3}, {"fault", "bg", 3},
			{"bad", "band", 4.5}, {"ok", "band", 4.5}, {"muted", "band", 4.5}, {"link", "band", 4.5}, {"warn", "band", 4.5}, {"purple", "band", 4.5},
		} {
			got := contrast(t, theme[c.ink], theme[c.paper])
			if got < c.least {
				t.Errorf("%s theme: --%s on --%s has a contrast of %.2f, less than %.1f", name, c.ink, c.paper, got, c.least)
			}
		}
	}
}

// themes reads the colours from the style sheet; the dark ones stand there
// twice, for the system's choice and for the reader's.
func themes(t *testing.T) map[string]map[string]string {
	t.Helper()
	blocks := regexp.MustCompile(`color-scheme: (light|dark);([^}]*)`).FindAllStringSubmatch(page.PageCSS, -1)
	if len(blocks) != 3 {
		t.Fatalf("the style sheet has %d themes, want light and twice dark", len(blocks))
	}
	if blocks[1][2] != blocks[2][2] {
		t.Error("the dark theme of the system and the chosen one differ")
	}
	out := map[string]map[string]string{}
	for _, b := range blocks {
		colours := map[string]string{}
		for _, c := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(b[2], -1) {
			colours[c[1]] = c[2]
		}
		out[b[1]] = colours
	}
	if len(out["light"]) < 20 || len(out["light"]) != len(out["dark"]) {
		t.Fatalf("%d colours in the light theme, %d in the dark one", len(out["light"]), len(out["dark"]))
	}
	return out
}
