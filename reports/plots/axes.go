package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdfast-io/holdfast/checker"
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

const boldWeight = xfont.WeightBold

// chart is a figure in the making: time runs to the right, and the stretches
// with faults are shaded.
type chart struct {
	*plot.Plot
	name, caption string
	facts         *checker.Facts
	// style is the number of lines so far: each has its own dashes, since
	// colour alone does not tell them apart for everybody.
	style int
}

func newChart(facts *checker.Facts, name, title, unit, caption string) *chart {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "time in the run (s)", unit
	style(p)
	p.Add(shade{facts})
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = grid, grid
	p.Add(g)
	if words := faultsIn(facts); words != "" {
		caption += " Shaded: " + words + "."
	}
	return &chart{Plot: p, name: name, caption: caption, facts: facts}
}

// style gives a figure its fonts and colours.
func style(p *plot.Plot) {
	p.Title.Padding = 4
	p.Title.TextStyle.Font = font.From(font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Weight: boldWeight}, 11)
	p.Title.TextStyle.Color = ink
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = font.From(sans, 9), ink
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs, p.Legend.ThumbnailWidth = true, -4, 0, 16
	p.Legend.Padding = 1.5
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Label.TextStyle.Color = font.From(sans, 9), muted
		a.Tick.Label.Font, a.Tick.Label.Color = font.From(sans, 8), muted
		a.LineStyle.Color, a.Tick.LineStyle.Color = muted, muted
		a.Padding = 0
		a.Tick.Marker = plot.TickerFunc(round)
	}
}

// done fixes the ranges; low and high are of the values, where they are given.
func (c *chart) done(low, high float64) (Plot, bool) {
	c.X.Min, c.X.Max = 0, math.Max(seconds(c.facts.End), 1e-6)
	if low < high {
		c.Y.Min, c.Y.Max = low, high
	}
	if c.Y.Max <= c.Y.Min {
		c.Y.Max = c.Y.Min + 1
	}
	inset := func(dc draw.Canvas) { c.Draw(draw.Crop(dc, 4, -8, 3, -4)) }
	return Plot{Name: c.name, Title: c.Title.Text, Caption: c.caption, width: width, height: height, draw: inset}, true
}

// points adds a scatter; of those that would lie on one spot only one is drawn.
func (c *chart) points(xys plotter.XYs, name string, colour color.Color, shape shape, log bool) {
	if len(xys) == 0 {
		return
	}
	s := dots{xys: c.thin(xys, log), colour: colour, shape: shape}
	c.Add(s)
	c.Legend.Add(fmt.Sprintf("%s (%d)", name, len(xys)), s)
}

// thin keeps one point for each cell of a raster, so that 100,000 points draw
// as fast, and look the same, as the few thousand that can be told apart.
func (c *chart) thin(xys plotter.XYs, log bool) plotter.XYs {
	const across, up = 240, 60
	lift := func(y float64) float64 {
		if log {
			return math.Log10(math.Max(y, 1e-12))
		}
		return y
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range xys {
		low, high = math.Min(low, lift(p.Y)), math.Max(high, lift(p.Y))
	}
	end := math.Max(seconds(c.facts.End), 1e-9)
	seen := map[[2]int]bool{}
	var out plotter.XYs
	for _, p := range xys {
		cell := [2]int{int(p.X / end * across), int((lift(p.Y) - low) / math.Max(high-low, 1e-12) * up)}
		if !seen[cell] {
			seen[cell] = true
			out = append(out, p)
		}
	}
	return out
}

// shape is what a point looks like: shapes, and not only colours, tell series
// apart.
type shape int

const (
	diamond shape = iota
	cross
	triangle
)

// dots draws all points of a series as one path, which takes a fifth of the
// bytes of as many single ones.
type dots struct {
	xys    plotter.XYs
	colour color.Color
	shape  shape
}

// Plot implements [plot.Plotter].
func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var path vg.Path
	for _, xy := range d.xys {
		at := vg.Point{X: x(xy.X), Y: y(xy.Y)}
		if c.Contains(at) {
			path = d.add(path, at)
		}
	}
	d.ink(c, path)
}

// Thumbnail implements [plot.Thumbnailer].
func (d dots) Thumbnail(c *draw.Canvas) { d.ink(*c, d.add(nil, c.Center())) }

func (d dots) add(path vg.Path, at vg.Point) vg.Path {
	const r = 2.4
	corner := func(x, y vg.Length) vg.Point { return vg.Point{X: at.X + r*x, Y: at.Y + r*y} }
	lines := func(points ...vg.Point) {
		path.Move(points[0])
		for _, p := range points[1:] {
			path.Line(p)
		}
	}
	switch d.shape {
	case cross:
		lines(corner(-0.8, -0.8), corner(0.8, 0.8))
		lines(corner(-0.8, 0.8), corner(0.8, -0.8))
	case triangle:
		lines(corner(-1.2, -1), corner(1.2, -1), corner(0, 1.3))
		path.Close()
	default:
		lines(corner(-1, 0), corner(0, 1), corner(1, 0), corner(0, -1))
		path.Close()
	}
	return path
}

func (d dots) ink(c draw.Canvas, path vg.Path) {
	if len(path) == 0 {
		return
	}
	c.SetColor(d.colour)
	if d.shape == cross {
		c.SetLineStyle(draw.LineStyle{Color: d.colour, Width: 0.8})
		c.Stroke(path)
		return
	}
	c.Fill(path)
}

var dashes = [][]vg.Length{nil, {5, 2}, {2, 2}, {7, 2, 2, 2}, {1, 2}, {9, 3}, {4, 1, 1, 1}}

// line adds a line; steps go sideways first and then up.
func (c *chart) line(xys plotter.XYs, name string, colour color.Color, steps bool) {
	l := &plotter.Line{XYs: xys, LineStyle: draw.LineStyle{Color: colour, Width: 1.3, Dashes: dashes[c.style%len(dashes)]}}
	c.style++
	if steps {
		l.StepStyle = plotter.PostStep
	}
	c.Add(l)
	c.Legend.Add(name, l)
}

// level adds a line at one height.
func (c *chart) level(y float64, name string, colour color.Color) {
	c.line(plotter.XYs{{X: 0, Y: y}, {X: seconds(c.facts.End), Y: y}}, name, colour, false)
}

// shade draws the stretches with faults over the whole height.
type shade struct{ facts *checker.Facts }

// Plot implements [plot.Plotter].
func (s shade) Plot(c draw.Canvas, p *plot.Plot) {
	for _, i := range broken(s.facts) {
		a := c.X(math.Max(0, p.X.Norm(seconds(i.From))))
		b := max(c.X(math.Min(1, p.X.Norm(seconds(i.To)))), a+1)
		c.FillPolygon(band, []vg.Point{{X: a, Y: c.Min.Y}, {X: b, Y: c.Min.Y}, {X: b, Y: c.Max.Y}, {X: a, Y: c.Max.Y}})
	}
}

// broken gives when any fault was active, in ascending order.
func broken(f *checker.Facts) []checker.Interval {
	var all []checker.Interval
	for _, x := range f.Faults {
		all = append(all, checker.Interval{From: x.Start, To: x.Stop})
	}
	slices.SortFunc(all, func(a, b checker.Interval) int { return cmp.Compare(a.From, b.From) })
	var out []checker.Interval
	for _, i := range all {
		if n := len(out); n > 0 && i.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, i.To)
			continue
		}
		out = append(out, i)
	}
	return out
}

// faultsIn names the faults for a caption.
func faultsIn(f *checker.Facts) string {
	var words []string
	for i, x := range f.Faults {
		if i == 4 {
			words = append(words, fmt.Sprintf("and %d more", len(f.Faults)-i))
			break
		}
		words = append(words, x.String())
	}
	return strings.Join(words, "; ")
}

// round gives ticks at round numbers.
func round(low, high float64) []plot.Tick {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return []plot.Tick{{Value: low, Label: number(low)}}
	}
	unit := math.Pow(10, math.Floor(math.Log10(span/6)))
	step := 10 * unit
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= span/6 {
			step = m * unit
			break
		}
	}
	var out []plot.Tick
	for k := math.Ceil(low/step - 1e-9); k*step <= high+step*1e-9; k++ {
		out = append(out, plot.Tick{Value: k * step, Label: number(k * step)})
	}
	return out
}

func number(v float64) string {
	if v == 0 { // and not -0
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// whole gives ticks at whole numbers.
func whole(low, high float64) []plot.Tick {
	return slices.DeleteFunc(round(low, high), func(t plot.Tick) bool { return t.Value != math.Trunc(t.Value) })
}

// decades gives ticks at powers of ten of a second, with labels in the unit
// that fits; a short axis has labels between them too.
func decades(low, high float64) []plot.Tick {
	var out []plot.Tick
	short := high/low < 300
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			t := plot.Tick{Value: m * math.Pow(10, e)}
			if t.Value < low*0.999 || t.Value > high*1.001 {
				continue
			}
			if m == 1 || short && (m == 2 || m == 5) {
				t.Label = duration(t.Value)
			}
			out = append(out, t)
		}
	}
	return out
}

// duration writes seconds in the unit that fits.
func duration(s float64) string {
	switch {
	case s < 0.95e-3:
		return number(math.Round(s*1e7)/10) + " \u00b5s"
	case s < 0.95:
		return number(math.Round(s*1e4)/10) + " ms"
	}
	return number(s) + " s"
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
