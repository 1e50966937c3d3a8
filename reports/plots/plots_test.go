package plots_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/plots"
	"github.com/holdfast-io/holdfast/store"
)

// played gives the plots of a real run by their names.
func played(t *testing.T, scenario, lock string) map[string]plots.Plot {
	t.Helper()
	r, h := campaign.Play(context.Background(), store.Job{Scenario: scenario, Lock: lock, World: "sim", Seed: 1}, "")
	return plotsOf(t, r, h)
}

func plotsOf(t *testing.T, r reports.Run, h *history.History) map[string]plots.Plot {
	t.Helper()
	out := map[string]plots.Plot{}
	for _, p := range plots.Of(checker.Gather(h), r.Checks) {
		if _, twice := out[p.Name]; twice {
			t.Errorf("two plots are called %s", p.Name)
		}
		out[p.Name] = p
	}
	return out
}

// words lists the texts of a drawing from top to bottom of the file, and holds
// that it is well formed and draws only.
func words(t *testing.T, svg string) []string {
	t.Helper()
	var out []string
	d := xml.NewDecoder(strings.NewReader(svg))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the drawing is not well formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			if !slices.Contains([]string{"svg", "g", "path", "text"}, token.Name.Local) {
				t.Errorf("the drawing has an element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "url(") || a.Name.Local == "href" {
					t.Errorf("the drawing has %s=%q", a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			if inText {
				out = append(out, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func TestFigures(t *testing.T) {
	ps := played(t, "kleppmann-gc-pause", "basic")
	for name, want := range map[string][]string{
		"latency":   {"Latency of acquires by outcome", "time in the run (s)", "latency", "1 ms", "granted (7)", "refused (9)"},
		"quantiles": {"Latency of granted acquires", "median", "95 %", "longest"},
		"rates":     {"calls per second", "acquires granted", "released"},
		"held":      {"time held (s)", "TTL", "within its lease (6)", "outlived its lease (1)", "10"},
		"clocks":    {"offset (s)", "n1"},
		"waiting":   {"clients", "1", "2"},
		"kleppmann": {"lock service", "c1", "c2", "storage"},
	} {
		p, ok := ps[name]
		if !ok {
			t.Errorf("there is no plot %s", name)
			continue
		}
		for _, svg := range []string{string(p.SVG()), p.Inline()} {
			got := words(t, svg)
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("%s does not say %q: %q", name, w, got)
				}
			}
			if !strings.Contains(svg, `role="img"`) {
				t.Errorf("%s has no role", name)
			}
		}
		if fixed := regexp.MustCompile("#[0-9A-Fa-f]{6}").FindString(p.Inline()); fixed != "" {
			t.Errorf("%s has a colour that does not follow the theme: %s", name, fixed)
		}
		var b bytes.Buffer
		if err := p.PNG(&b); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if size := img.Bounds().Size(); size.X < 800 || size.Y < 400 {
			t.Errorf("%s is only %v", name, size)
		}
		if p.Caption == "" || name != "kleppmann" && !strings.Contains(p.Caption, "Shaded: pause (c1 paused, 2.00s to 17.00s).") {
			t.Errorf("the caption of %s is %q", name, p.Caption)
		}
	}
}

// TestShading holds that a fault is shaded where it was, and nothing in a calm
// run.
func TestShading(t *testing.T) {
	shaded := func(scenario string) bool {
		return strings.Contains(string(played(t, scenario, "basic")["rates"].SVG()), "#F7E8CB")
	}
	if !shaded("kleppmann-gc-pause") {
		t.Error("the pause is not shaded")
	}
	if shaded("calm") {
		t.Error("a run without faults has a shaded stretch")
	}
}

// TestStories holds that the diagram of messages tells what the scenario is
// about.
func TestStories(t *testing.T) {
	for _, c := range []struct {
		scenario, lock string
		want           []string
	}{
		{"kleppmann-gc-pause", "basic", []string{"get lease", "paused", "lease of c1 ends", "get lease", "version 2", "goes on", "version 3 over 2, had read 0: LOST UPDATE", "release: refused"}},
		{"kleppmann-fencing", "basic+fence", []string{"ok, fence 1", "paused", "ok, fence 2", "write, fence 2", "goes on", "write, fence 1", "REFUSED: fence 1 is older than 4"}},
		{"kleppmann-clock-jump", "redlock", []string{"clock: n3 clock jumps 2 TTL forward", "key of c1 expires on n3", "get lease", "version 2 over 1, had read 0: LOST UPDATE"}},
		{"crash-restart-amnesia", "basic", []string{"kill: n1 killed, restarts empty", "n1 loses the key of c1", "version 2 over 1, had read 0: LOST UPDATE"}},
		{"delayed-write", "basic", []string{"release", "get lease", "version 8 over 7, had read 0: LOST UPDATE"}},
	} {
		got := words(t, string(played(t, c.scenario, c.lock)["kleppmann"].SVG()))
		at := 0
		for _, w := range c.want {
			i := slices.Index(got[at:], w)
			if i < 0 {
				t.Errorf("%s / %s: %q is missing, or not behind what comes before it: %q", c.scenario, c.lock, w, got)
				break
			}
			at += i + 1
		}
	}
}

func TestSameRunSameBytes(t *testing.T) {
	one, other := played(t, "kleppmann-clock-jump", "redlock"), played(t, "kleppmann-clock-jump", "redlock")
	for name, p := range one {
		var a, b bytes.Buffer
		if err := errors.Join(p.PNG(&a), other[name].PNG(&b)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.SVG(), other[name].SVG()) || p.Inline() != other[name].Inline() || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("two drawings of %s differ", name)
		}
	}
}

func TestHostileNames(t *testing.T) {
	const bad = "</text><script>alert(1)</script>\" onload=\"x\u202e\x00$1"
	r, h := campaign.Play(context.Background(), store.Job{Scenario: "kleppmann-gc-pause", Lock: "basic", World: "sim", Seed: 1}, "")
	for i := range h.Events {
		switch e := &h.Events[i]; {
		case e.Op != nil:
			e.Op.Client = bad + e.Op.Client
		case e.Server != nil:
			e.Server.Node, e.Server.Client, e.Server.Owner = bad, bad+e.Server.Client, bad+e.Server.Owner
		case e.Nemesis != nil:
			e.Nemesis.What, e.Nemesis.On = bad, []string{bad + "c1"}
		case e.Resource != nil:
			e.Resource.Client, e.Resource.Refused = bad+e.Resource.Client, bad
		}
	}
	r.Checks = checker.Judge(h)
	ps := plotsOf(t, r, h)
	if len(ps) < 7 {
		t.Errorf("only %d plots", len(ps))
	}
	for _, p := range ps {
		words(t, string(p.SVG()))
		words(t, p.Inline())
	}
}

func TestNothingToDraw(t *testing.T) {
	if ps := plots.Of(checker.Gather(&history.History{}), nil); len(ps) > 0 {
		t.Errorf("an empty history has %d plots, the first is %s", len(ps), ps[0].Name)
	}
}
