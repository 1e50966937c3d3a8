package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdfast-io/holdfast/reports"
)

// OfSweep draws what a sweep measured against the first quantity that was
// varied: a line for each lock, and for each value of the other quantities.
func OfSweep(s reports.Sweep) []Plot {
	if len(s.Axes) == 0 || len(s.Points) == 0 {
		return nil
	}
	const bars = " The bars are 95 % confidence intervals (Wilson)."
	return []Plot{
		sweepPlot(s, "violations", "runs with a violation", "Share of runs with any violation."+bars,
			func(p reports.SweepPoint) (reports.Rate, bool) { return p.Violations, p.Violations.Of > 0 }),
		sweepPlot(s, "two-holders", "runs with two holders at once", "Share of runs in which two held the lock at once."+bars,
			func(p reports.SweepPoint) (reports.Rate, bool) { return p.Shared, p.Shared.Of > 0 }),
		sweepPlot(s, "lost-updates", "acknowledged updates lost", "Share of all acknowledged updates of all runs that were lost.",
			func(p reports.SweepPoint) (reports.Rate, bool) {
				share := p.LostShare()
				return reports.Rate{Hits: p.Lost, Of: p.Writes, Low: share, High: share}, p.Writes > 0
			}),
	}
}

// curve is the line of one lock, with a bar at each point.
type curve struct {
	name   string
	at     []bar
	colour color.Color
	dashes []vg.Length
	shape  shape
	// aside moves the line sideways, so that bars of different lines do not
	// cover each other.
	aside vg.Length
}

type bar struct{ x, y, low, high float64 }

// Plot implements [plot.Plotter].
func (c curve) Plot(dc draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&dc)
	line, marks := vg.Path{}, vg.Path{}
	for i, b := range c.at {
		at := vg.Point{X: toX(b.x) + c.aside, Y: toY(b.y)}
		if i == 0 {
			line.Move(at)
		} else {
			line.Line(at)
		}
		marks = dots{shape: c.shape}.add(marks, at)
		if b.low < b.high {
			low, high := toY(b.low), toY(b.high)
			thin := draw.LineStyle{Color: c.colour, Width: 0.8}
			dc.StrokeLine2(thin, at.X, low, at.X, high)
			dc.StrokeLine2(thin, at.X-2.5, low, at.X+2.5, low)
			dc.StrokeLine2(thin, at.X-2.5, high, at.X+2.5, high)
		}
	}
	c.ink(dc, line, marks)
}

// Thumbnail implements [plot.Thumbnailer].
func (c curve) Thumbnail(dc *draw.Canvas) {
	var line vg.Path
	y := dc.Center().Y
	line.Move(vg.Point{X: dc.Min.X, Y: y})
	line.Line(vg.Point{X: dc.Max.X, Y: y})
	c.ink(*dc, line, dots{shape: c.shape}.add(nil, dc.Center()))
}

func (c curve) ink(dc draw.Canvas, line, marks vg.Path) {
	if len(line) > 0 {
		dc.SetLineStyle(draw.LineStyle{Color: c.colour, Width: 1.3, Dashes: c.dashes})
		dc.Stroke(line)
	}
	dots{colour: c.colour, shape: c.shape}.ink(dc, marks)
}

// curves puts the points of each line together. Where a sweep has several
// locks, each has its colour, and the dashes tell the other quantities apart.
func curves(s reports.Sweep, of func(reports.SweepPoint) (reports.Rate, bool)) []curve {
	type key struct{ lock, rest string }
	colours := []color.Color{blue, bad, good, purple, warn, ink, muted}
	var locks, rests []string
	var order []key
	lines := map[key]*curve{}
	for _, p := range s.Points {
		k := key{lock: p.Lock, rest: others(s, p)}
		if !slices.Contains(locks, k.lock) {
			locks = append(locks, k.lock)
		}
		if !slices.Contains(rests, k.rest) {
			rests = append(rests, k.rest)
		}
		if lines[k] == nil {
			order = append(order, k)
			lines[k] = &curve{name: strings.TrimSuffix(reports.Printable(k.lock)+", "+k.rest, ", ")}
		}
		if r, some := of(p); some {
			lines[k].at = append(lines[k].at, bar{x: p.Numbers[0], y: 100 * float64(r.Hits) / float64(r.Of), low: 100 * r.Low, high: 100 * r.High})
		}
	}
	var out []curve
	for i, k := range order {
		c := lines[k]
		lock, rest := slices.Index(locks, k.lock), slices.Index(rests, k.rest)
		tint, dash := lock, rest
		switch {
		case len(locks) == 1:
			tint = rest
		case len(rests) == 1:
			dash = lock
		}
		c.colour, c.dashes, c.shape = colours[tint%len(colours)], dashes[dash%len(dashes)], []shape{diamond, triangle, cross}[tint%3]
		c.aside = vg.Length(min(3, 12/float64(len(order)))) * (vg.Length(i) - vg.Length(len(order)-1)/2)
		out = append(out, *c)
	}
	return out
}

// others names the values of all quantities but the first.
func others(s reports.Sweep, p reports.SweepPoint) string {
	var words []string
	for i := 1; i < len(s.Axes) && i < len(p.Values); i++ {
		words = append(words, s.Axes[i]+" "+reports.Printable(p.Values[i]))
	}
	return strings.Join(words, ", ")
}

func sweepPlot(s reports.Sweep, name, what, caption string, of func(reports.SweepPoint) (reports.Rate, bool)) Plot {
	p := plot.New()
	p.BackgroundColor = nil
	title := reports.Printable(s.Scenario) + ": " + what
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, axisLabel(s, 0), what+" (%)"
	style(p)
	xs := []float64{}
	for _, pt := range s.Points {
		if !slices.Contains(xs, pt.Numbers[0]) {
			xs = append(xs, pt.Numbers[0])
		}
	}
	slices.Sort(xs)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xs[0], xs[len(xs)-1], 0, 100
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = 0.5*p.X.Min, 1.5*p.X.Max+1e-9
	}
	if s.Axes[0] == "ttl" { // its values are in equal ratios
		p.X.Scale = plot.LogScale{}
	}
	if len(xs) <= 12 {
		p.X.Tick.Marker = measured(xs)
	}
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
	p.Add(lines)
	legend, highest := p.Legend, 0.0
	for _, c := range curves(s, of) {
		p.Add(c)
		legend.Add(c.name, c)
		for _, b := range c.at {
			highest = max(highest, b.high)
		}
	}
	p.Y.Max = min(100, 10*math.Ceil(highest/10+0.01)) // small shares would lie on the axis
	const gap = 14                                    // so that the bars of the outer points are whole
	p.X.Padding, p.Y.Padding = 3, gap
	return Plot{Name: name, Title: title, Caption: caption, width: 540, height: 250, draw: func(dc draw.Canvas) {
		wide := legend.Rectangle(dc).Size().X + 8
		p.Draw(draw.Crop(dc, 4, -wide-gap, 3, -4))
		legend.Draw(draw.Crop(dc, dc.Max.X-dc.Min.X-wide, -4, 3, -24))
	}}
}

// measured has a tick at each value that was played.
type measured []float64

// Ticks implements [plot.Ticker].
func (m measured) Ticks(float64, float64) []plot.Tick {
	var out []plot.Tick
	for _, x := range m {
		out = append(out, plot.Tick{Value: x, Label: number(x)})
	}
	return out
}

// axisLabel says what is varied and in which unit.
func axisLabel(s reports.Sweep, axis int) string {
	what := map[string]string{
		"ttl": "TTL of the leases", "pause": "length of each pause", "fault": "length of each fault", "hold": "how long holders work",
	}[s.Axes[axis]]
	if what == "" {
		what = s.Axes[axis]
	}
	unit := "s"
	if axis < len(s.Units) && s.Units[axis] != "" {
		unit = s.Units[axis]
	}
	return fmt.Sprintf("%s (%s)", what, unit)
}
