package plots_test

import (
	"bytes"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/plots"
)

// swept is a sweep of two locks whose violations begin at one TTL, in 10 runs
// with 40 updates each; the first loses all and the second none.
func swept(locks []string, others ...string) reports.Sweep {
	s := reports.Sweep{Scenario: "gc", Axes: []string{"pause"}, Units: []string{"TTLs"}}
	if len(others) > 0 {
		s.Axes, s.Units = append(s.Axes, "ttl"), append(s.Units, "s")
	} else {
		others = []string{""}
	}
	for i, lock := range locks {
		for _, other := range others {
			for _, x := range []float64{0, 0.5, 1, 1.5} {
				p := reports.SweepPoint{Lock: lock, Values: []string{"x", other}, Numbers: []float64{x, 0}, Writes: 40, Violations: reports.RateOf(0, 10), Shared: reports.RateOf(0, 10)}
				if x >= 1 {
					p.Violations, p.Shared = reports.RateOf(10, 10), reports.RateOf(5, 10)
					if i == 0 {
						p.Lost = 4
					}
				}
				s.Points = append(s.Points, p)
			}
		}
	}
	return s
}

func drawn(t *testing.T, s reports.Sweep) map[string]plots.Plot {
	t.Helper()
	out := map[string]plots.Plot{}
	for _, p := range plots.OfSweep(s) {
		out[p.Name] = p
	}
	return out
}

func TestSweepFigures(t *testing.T) {
	ps := drawn(t, swept([]string{"basic", "reference"}))
	for name, want := range map[string][]string{
		"violations":   {"gc: runs with a violation", "runs with a violation (%)", "length of each pause (TTLs)", "0.5", "1.5", "100", "basic", "reference"},
		"two-holders":  {"runs with two holders at once (%)", "basic", "reference"},
		"lost-updates": {"acknowledged updates lost (%)", "basic", "reference"},
	} {
		p, ok := ps[name]
		if !ok {
			t.Errorf("there is no plot %s", name)
			continue
		}
		said := words(t, string(p.SVG()))
		for _, w := range want {
			if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, w) }) {
				t.Errorf("%s lacks %q: %q", name, w, said)
			}
		}
		var b bytes.Buffer
		if err := p.PNG(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// 4 of 40 are 10 %: an axis to 100 would press the line to the ground.
	if said := words(t, string(ps["lost-updates"].SVG())); slices.Contains(said, "100") {
		t.Errorf("the axis of the lost updates goes to 100 %%: %q", said)
	}
	if again := drawn(t, swept([]string{"basic", "reference"})); !bytes.Equal(again["violations"].SVG(), ps["violations"].SVG()) {
		t.Error("one sweep has two pictures")
	}
}

// TestSweepLines: a line for each lock with each value of the second quantity,
// and bars only where there is an interval.
func TestSweepLines(t *testing.T) {
	ps := drawn(t, swept([]string{"basic"}, "1s", "30s"))
	if said := words(t, string(ps["violations"].SVG())); !slices.Contains(said, "basic, ttl 1s") || !slices.Contains(said, "basic, ttl 30s") {
		t.Errorf("the legend is %q", said)
	}
	thin := regexp.MustCompile(`stroke-width:0\.8\b`)
	if n := len(thin.FindAllString(string(ps["violations"].SVG()), -1)); n != 3*8 {
		t.Errorf("%d strokes of bars, want 3 for each of 8 points", n)
	}
	if n := len(thin.FindAllString(string(ps["lost-updates"].SVG()), -1)); n != 0 {
		t.Errorf("%d strokes of bars where there is no interval", n)
	}
}

// TestOddSweeps: nothing was played, nothing was answered, one value, a name
// with markup.
func TestOddSweeps(t *testing.T) {
	if n := len(plots.OfSweep(reports.Sweep{Axes: []string{"pause"}})); n != 0 {
		t.Errorf("%d plots of nothing", n)
	}
	empty := swept([]string{`<b>"x"&`})
	for i := range empty.Points {
		empty.Points[i] = reports.SweepPoint{Lock: empty.Points[i].Lock, Values: []string{"0"}, Numbers: []float64{0}}
	}
	logarithmic := swept([]string{"a\x1b[31m", "b", "c", "d", "e", "f", "g", "h", "i"})
	logarithmic.Axes, logarithmic.Units = []string{"ttl"}, nil
	for i := range logarithmic.Points {
		logarithmic.Points[i].Numbers[0]++
	}
	for _, s := range []reports.Sweep{empty, logarithmic} {
		for _, p := range plots.OfSweep(s) {
			said := words(t, string(p.SVG()))
			if !slices.Contains(said, reports.Printable(s.Points[0].Lock)) {
				t.Errorf("%s names %q", p.Name, said)
			}
			if strings.Contains(string(p.SVG()), "NaN") {
				t.Errorf("%s has points that are nowhere", p.Name)
			}
		}
	}
}
