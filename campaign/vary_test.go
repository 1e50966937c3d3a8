package campaign

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

func TestAxes(t *testing.T) {
	for text, want := range map[string][]string{
		"ttl=1s..16s":      {"1s", "4s", "16s"}, // equal ratios
		"pause=0..2ttl":    {"0s", "1ttl", "2ttl"},
		"hold=100ms..0.3s": {"100ms", "200ms", "300ms"},
		"fault=1ttl..1ttl": {"1ttl"},
	} {
		a, err := ParseAxis(text)
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, p := range a.Points(3) {
			got = append(got, p.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for text, words := range map[string]string{
		"ttl": "is no range", "ttl=1s": "is no range", "seed=1..2": "nothing called", "ttl=1ttl..2ttl": "a TTL is a time",
		"ttl=0..2s": "a TTL is a time", "pause=2ttl..1ttl": "begins behind its end", "pause=1s..2ttl": "both ends", "pause=-1ttl..0": "not negative",
		"pause=x..1s": "not a duration",
	} {
		if _, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
}

// TestSweepFindsTheEdge: a pause within the lease harms nobody, one beyond it
// lets a second holder in, every time.
func TestSweepFindsTheEdge(t *testing.T) {
	s, err := scenarios.Load("kleppmann-gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	axes := []Axis{{Name: AxisTTL, From: nemesis.Span{Fixed: time.Second}, To: nemesis.Span{Fixed: 10 * time.Second}}, {Name: AxisPause, To: nemesis.TTLs(2)}}
	cells, err := Grid(s, []string{"basic"}, axes, 2, store.Job{World: "sim", Seed: 1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []store.Job
	for _, c := range cells {
		jobs = append(jobs, c.Jobs...)
	}
	runs := Runner{}.Play(context.Background(), jobs)
	sweep := SweepOf(s, axes, cells, runs)
	if len(sweep.Points) != 4 {
		t.Fatalf("%d points, want 4", len(sweep.Points))
	}
	for _, p := range sweep.Points {
		want := reports.RateOf(0, 3)
		if p.Values[1] == "2ttl" {
			want = reports.RateOf(3, 3)
		}
		if p.Shared != want || p.Violations != want || (p.Lost > 0) != (want.Hits > 0) || p.Writes == 0 || p.Errors+p.Unproven > 0 {
			t.Errorf("%v: %+v, want two holders in %d of 3 runs", p.Values, p, want.Hits)
		}
	}
	if _, _, err := Vary(sample(t, "calm"), store.Job{}, AxisPause, nemesis.TTLs(1)); err == nil {
		t.Error("a scenario without a pause lets its pause be varied")
	}
}

func sample(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
