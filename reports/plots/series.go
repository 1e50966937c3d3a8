package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
)

// least is the shortest latency that a logarithmic axis shows, in seconds.
const least = 1e-6

// answered calls f for each acquire that returned.
func answered(facts *checker.Facts, f func(a *checker.Acquisition, latency float64)) {
	for _, a := range facts.Acquisitions {
		if !a.Pending() {
			f(a, math.Max(seconds(a.Done-a.Invoked), least))
		}
	}
}

// latency is how long each acquire took, by its outcome.
func latency(facts *checker.Facts) (Plot, bool) {
	by := map[history.Type]plotter.XYs{}
	low, high := math.Inf(1), 0.0
	answered(facts, func(a *checker.Acquisition, l float64) {
		by[a.Outcome] = append(by[a.Outcome], plotter.XY{X: seconds(a.Done), Y: l})
		low, high = math.Min(low, l), math.Max(high, l)
	})
	if len(by) == 0 {
		return Plot{}, false
	}
	c := newChart(facts, "latency", "Latency of acquires by outcome", "latency",
		"Each point is one acquire, drawn when it returned.")
	c.logarithmic()
	c.points(by[history.Fail], "refused", muted, cross, true)
	c.points(by[history.OK], "granted", good, diamond, true)
	c.points(by[history.Info], "unknown", bad, triangle, true)
	return c.done(low/1.6, high*4)
}

func (c *chart) logarithmic() {
	c.Y.Scale, c.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
}

// buckets are the stretches of equal length into which a run is cut for rates
// and quantiles: more where there is more to count.
type buckets struct {
	end float64 // of the run, in seconds
	n   int
}

func bucketsFor(facts *checker.Facts, things int) buckets {
	return buckets{end: math.Max(seconds(facts.End), 1e-9), n: min(max(things/10, 12), 60)}
}

func (b buckets) of(t float64) int     { return min(max(int(t/b.end*float64(b.n)), 0), b.n-1) }
func (b buckets) start(i int) float64  { return float64(i) * b.end / float64(b.n) }
func (b buckets) middle(i int) float64 { return (float64(i) + 0.5) * b.end / float64(b.n) }
func (b buckets) rate(n int) float64   { return float64(n) * float64(b.n) / b.end }

// quantiles is how long granted acquires took, in each part of the run.
func quantiles(facts *checker.Facts) (Plot, bool) {
	b := bucketsFor(facts, len(facts.Acquisitions))
	all := make([][]float64, b.n)
	n, low, high := 0, math.Inf(1), 0.0
	answered(facts, func(a *checker.Acquisition, l float64) {
		if a.Held() {
			i := b.of(seconds(a.Done))
			all[i] = append(all[i], l)
			n, low, high = n+1, math.Min(low, l), math.Max(high, l)
		}
	})
	if n < 2 {
		return Plot{}, false
	}
	c := newChart(facts, "quantiles", "Latency of granted acquires", "latency",
		fmt.Sprintf("Quantiles of the latency of %d granted acquires, for each of %d parts of the run in which there are any.", n, b.n))
	c.logarithmic()
	for _, q := range []struct {
		share  float64
		name   string
		colour color.Color
	}{{0.5, "median", blue}, {0.95, "95 %", warn}, {1, "longest", bad}} {
		var xys plotter.XYs
		for i := range all {
			if len(all[i]) == 0 {
				continue
			}
			slices.Sort(all[i])
			at := int(math.Ceil(q.share*float64(len(all[i])))) - 1
			xys = append(xys, plotter.XY{X: b.middle(i), Y: all[i][max(at, 0)]})
		}
		c.line(xys, q.name, q.colour, false)
	}
	return c.done(low/1.6, high*4)
}

// rates is how many acquires and releases there were in a second.
func rates(facts *checker.Facts) (Plot, bool) {
	b := bucketsFor(facts, len(facts.Acquisitions))
	granted, refused, released := make([]int, b.n), make([]int, b.n), make([]int, b.n)
	for _, a := range facts.Acquisitions {
		switch {
		case a.Held():
			granted[b.of(seconds(a.Done))]++
		case !a.Pending():
			refused[b.of(seconds(a.Done))]++
		}
		if a.ReleaseOutcome == history.OK {
			released[b.of(seconds(a.ReleaseDone))]++
		}
	}
	if len(facts.Acquisitions) == 0 || facts.End <= 0 {
		return Plot{}, false
	}
	c := newChart(facts, "rates", "Acquires and releases", "calls per second", "How many calls returned in a second, by outcome.")
	high := 0.0
	for _, s := range []struct {
		counts []int
		name   string
		colour color.Color
	}{{granted, "acquires granted", good}, {refused, "acquires refused or unknown", muted}, {released, "released", blue}} {
		var xys plotter.XYs
		for i, n := range s.counts {
			xys = append(xys, plotter.XY{X: b.start(i), Y: b.rate(n)})
			high = math.Max(high, b.rate(n))
		}
		xys = append(xys, plotter.XY{X: b.end, Y: xys[b.n-1].Y})
		c.line(xys, s.name, s.colour, true)
	}
	return c.done(0, math.Max(high*1.4, 1e-9))
}

// timeHeld is how long each holder believed in its hold, against the TTL.
func timeHeld(facts *checker.Facts) (Plot, bool) {
	var within, beyond plotter.XYs
	high, ttl := 0.0, seconds(int64(facts.History.Header.TTL))
	for _, a := range facts.Acquisitions {
		if !a.Held() {
			continue
		}
		p := plotter.XY{X: seconds(a.Done), Y: seconds(a.BeliefEnd - a.Done)}
		high = math.Max(high, p.Y)
		if len(reports.Outlived(facts.History, a)) > 0 {
			beyond = append(beyond, p)
		} else {
			within = append(within, p)
		}
	}
	if len(within)+len(beyond) == 0 {
		return Plot{}, false
	}
	c := newChart(facts, "held", "Time held against the TTL", "time held (s)",
		"Each point is one hold, drawn at its grant: how long its holder believed in it. A hold that was renewed may be longer than one TTL.")
	c.points(within, "within its lease", good, diamond, false)
	c.points(beyond, "outlived its lease", bad, triangle, false)
	if ttl > 0 {
		c.level(ttl, "TTL", ink)
		high = math.Max(high, ttl)
	}
	return c.done(0, high*1.35)
}

// clocks is how far the wall clock of each node was off.
func clocks(facts *checker.Facts) (Plot, bool) {
	by := map[string]plotter.XYs{}
	low, high := 0.0, 0.0
	for _, e := range facts.History.Events {
		if e.Server == nil {
			continue
		}
		off := seconds(e.Server.Clock - e.T)
		xys := by[e.Server.Node]
		if n := len(xys); n > 0 && math.Abs(xys[n-1].Y-off) < 1e-4 {
			continue
		}
		by[e.Server.Node] = append(xys, plotter.XY{X: seconds(e.T), Y: off})
		low, high = math.Min(low, off), math.Max(high, off)
	}
	if len(by) == 0 {
		return Plot{}, false
	}
	var nodes []string
	for n := range by {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, reports.Natural)
	c := newChart(facts, "clocks", "How far the nodes' clocks are off", "offset (s)",
		"The wall clock of each node less the time in the run, as its commands showed it.")
	colours := []color.Color{blue, bad, good, warn, purple, ink}
	for i, n := range nodes {
		if i == 12 {
			c.caption += fmt.Sprintf(" %d more nodes are not drawn.", len(nodes)-i)
			break
		}
		xys := append(by[n], plotter.XY{X: seconds(facts.End), Y: by[n][len(by[n])-1].Y})
		c.line(xys, short(n), colours[i%len(colours)], true)
	}
	room := math.Max((high-low)*0.1, 1e-2)
	return c.done(low-room, high+room*3)
}

// waiting is how many clients wanted the lock and did not have it.
func waiting(facts *checker.Facts) (Plot, bool) {
	type change struct {
		t  int64
		by int
	}
	var changes []change
	for _, w := range reports.Waits(facts) {
		if w.To > w.From {
			changes = append(changes, change{w.From, 1}, change{w.To, -1})
		}
	}
	if len(changes) == 0 {
		return Plot{}, false
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(min(max(a.t-b.t, -1), 1)) })
	xys := plotter.XYs{{X: 0, Y: 0}}
	n, most := 0, 0
	for i, ch := range changes {
		n += ch.by
		most = max(most, n)
		if i+1 < len(changes) && changes[i+1].t == ch.t {
			continue
		}
		xys = append(xys, plotter.XY{X: seconds(ch.t), Y: float64(n)})
	}
	xys = append(xys, plotter.XY{X: seconds(facts.End), Y: float64(n)})
	c := newChart(facts, "waiting", "Clients that wait for the lock", "clients",
		"How many clients wanted the lock and did not have it; a client between two tries waits.")
	if len(xys) > 240 {
		c.envelope(xys)
	} else {
		c.line(xys, "waiting", blue, true)
	}
	c.Y.Tick.Marker = plot.TickerFunc(whole)
	return c.done(0, float64(most)*1.3)
}

// envelope draws a long curve as the most and the fewest of each part of the run.
func (c *chart) envelope(xys plotter.XYs) {
	b := bucketsFor(c.facts, len(xys))
	low, high := make([]float64, b.n), make([]float64, b.n)
	for i := range low {
		low[i], high[i] = math.Inf(1), math.Inf(-1)
	}
	for _, p := range xys {
		i := b.of(p.X)
		low[i], high[i] = math.Min(low[i], p.Y), math.Max(high[i], p.Y)
	}
	for _, s := range []struct {
		values []float64
		name   string
		colour color.Color
	}{{high, "most", bad}, {low, "fewest", blue}} {
		var out plotter.XYs
		for i, y := range s.values {
			if !math.IsInf(y, 0) {
				out = append(out, plotter.XY{X: b.start(i), Y: y})
			}
		}
		c.line(out, s.name, s.colour, true)
	}
}

// short is a name that fits into a figure.
func short(s string) string {
	r := []rune(reports.Printable(s))
	if len(r) > 18 {
		return string(r[:17]) + "\u2026"
	}
	return string(r)
}
