package plots

import (
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func labels(ticks []plot.Tick) string {
	var out []string
	for _, t := range ticks {
		if t.Label != "" {
			out = append(out, t.Label)
		}
	}
	return strings.Join(out, " | ")
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name      string
		ticks     func(low, high float64) []plot.Tick
		low, high float64
		want      string
	}{
		{"a run", round, 0, 25.3, "0 | 5 | 10 | 15 | 20 | 25"},
		{"around zero", round, -0.01, 0.03, "-0.01 | 0 | 0.01 | 0.02 | 0.03"},
		{"no span", round, 3, 3, "3"},
		{"few clients", whole, 0, 2.6, "0 | 1 | 2"},
		{"short latencies", decades, 200e-6, 9e-3, "200 \u00b5s | 500 \u00b5s | 1 ms | 2 ms | 5 ms"},
		{"long latencies", decades, 1e-3, 20, "1 ms | 10 ms | 100 ms | 1 s | 10 s"},
	} {
		if got := labels(c.ticks(c.low, c.high)); got != c.want {
			t.Errorf("%s, %v to %v: ticks %q, want %q", c.name, c.low, c.high, got, c.want)
		}
	}
}

// TestThin holds that points on one spot are drawn once and others stay.
func TestThin(t *testing.T) {
	c := &chart{facts: facts(100)}
	xys := points(100_000, 100)
	thin := c.thin(xys, false)
	if len(thin) < 500 || len(thin) > 240*60+240 {
		t.Errorf("%d of %d points are left", len(thin), len(xys))
	}
	if few := points(20, 100); len(c.thin(few, true)) != 20 {
		t.Errorf("%d of 20 points that lie apart are left", len(c.thin(few, true)))
	}
}
