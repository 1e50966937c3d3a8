package plots

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
)

// newDiagram lays the steps out: each takes a row, and what is left of the
// height goes to the long waits.
func newDiagram(s *story) *diagram {
	d := &diagram{story: s}
	y := vg.Length(header + 12)
	first, last := s.steps[0].t, s.steps[len(s.steps)-1].t
	for i, st := range s.steps {
		if i > 0 {
			share := float64(st.t-s.steps[i-1].t) / math.Max(float64(last-first), 1)
			y += rowLeast + vg.Length(share*stretch)
		}
		d.ys = append(d.ys, y)
	}
	d.width = vg.Length(left + laneGap*(len(s.lanes)-1) + right)
	d.height = y + 26
	return d
}

func (d *diagram) x(lane string) vg.Length {
	return vg.Length(left + laneGap*slices.Index(d.lanes, lane))
}

// y is the height of an instant: of the step at it, or between two steps.
func (d *diagram) y(t int64) vg.Length {
	i, found := slices.BinarySearchFunc(d.steps, t, func(s step, t int64) int { return cmp.Compare(s.t, t) })
	switch {
	case found:
		return d.ys[i]
	case i == 0:
		return d.ys[0] - 6
	case i == len(d.steps):
		return d.ys[i-1] + 10
	}
	a, b := d.steps[i-1].t, d.steps[i].t
	return d.ys[i-1] + (d.ys[i]-d.ys[i-1])*vg.Length(float64(t-a)/float64(b-a))
}

// pen draws with the origin at the top left, as one reads.
type pen struct {
	draw.Canvas
	height vg.Length
}

func (p *pen) line(c color.Color, w vg.Length, dashes []vg.Length, x0, y0, x1, y1 vg.Length) {
	p.StrokeLine2(draw.LineStyle{Color: c, Width: w, Dashes: dashes}, x0, p.height-y0, x1, p.height-y1)
}

func (p *pen) box(c color.Color, x0, y0, x1, y1 vg.Length) {
	p.FillPolygon(c, []vg.Point{{X: x0, Y: p.height - y0}, {X: x1, Y: p.height - y0}, {X: x1, Y: p.height - y1}, {X: x0, Y: p.height - y1}})
}

func (p *pen) words(c color.Color, size float64, bold bool, align text.XAlignment, x, y vg.Length, s string) {
	f := sans
	if bold {
		f.Weight = boldWeight
	}
	p.FillText(text.Style{Color: c, Font: font.From(f, vg.Length(size)), XAlign: align, YAlign: text.YCenter, Handler: text.Plain{Fonts: font.DefaultCache}},
		vg.Point{X: x, Y: p.height - y}, s)
}

func (p *pen) arrow(c color.Color, dashes []vg.Length, x0, y0, x1, y1 vg.Length) {
	p.line(c, 1, dashes, x0, y0, x1, y1)
	a := math.Atan2(float64(y1-y0), float64(x1-x0))
	tip := func(by float64) vg.Point {
		return vg.Point{X: x1 - vg.Length(6*math.Cos(a+by)), Y: p.height - (y1 - vg.Length(6*math.Sin(a+by)))}
	}
	p.FillPolygon(c, []vg.Point{{X: x1, Y: p.height - y1}, tip(0.4), tip(-0.4)})
}

func (d *diagram) draw(c draw.Canvas) {
	p := &pen{Canvas: c, height: d.height}
	for _, lane := range d.lanes {
		x := d.x(lane)
		p.words(ink, 10, true, text.XCenter, x, 16, short(lane))
		p.line(muted, 1, nil, x, header-4, x, d.height-8)
	}
	for _, a := range d.holds {
		d.hold(p, a)
	}
	for _, x := range d.pauses {
		d.pause(p, x)
	}
	lastTime := ""
	for i, s := range d.steps {
		if at := seconds4(s.t); at != lastTime {
			p.words(muted, 8, false, text.XRight, 46, d.ys[i], at)
			lastTime = at
		}
		d.step(p, s, d.ys[i])
	}
}

// hold draws what a client believed as a bar on its lane, and its lease as a
// line beside.
func (d *diagram) hold(p *pen, a *checker.Acquisition) {
	x := d.x(a.Client)
	for _, i := range a.Belief {
		p.box(kept, x-5, d.y(i.From), x+5, d.y(i.To))
	}
	for _, i := range reports.Outlived(d.facts.History, a) {
		p.box(over, x-5, d.y(i.From), x+5, d.y(i.To))
	}
	for _, i := range a.Guaranteed {
		p.line(good, 2, nil, x+8, d.y(i.From), x+8, d.y(i.To))
	}
	p.line(muted, 1, nil, x, d.y(a.Done), x, d.y(a.BeliefEnd))
}

// pause hatches the lane of a client that does not run.
func (d *diagram) pause(p *pen, x checker.Fault) {
	at, a, b := d.x(x.On[0]), d.y(x.Start), d.y(x.Stop)
	p.box(band, at-12, a, at-7, b)
	for y := a; y+5 < b; y += 5 {
		p.line(warn, 0.8, nil, at-12, y+5, at-7, y)
	}
	p.line(warn, 0.8, nil, at-12, a, at-7, a)
	p.line(warn, 0.8, nil, at-12, b, at-7, b)
}

func (d *diagram) step(p *pen, s step, y vg.Length) {
	c := color.Color(ink)
	if s.alarm {
		c = bad
	}
	from := d.x(s.from)
	if s.to == "" {
		p.box(c, from-2.5, y-2.5, from+2.5, y+2.5)
		if s.from == serviceLane {
			d.patch(p, from+6, y, s.words)
			d.label(p, c, s.alarm, text.XLeft, from+8, y, s.words)
		} else { // on the left, where a pause is hatched; messages to the storage start on the right
			d.label(p, c, s.alarm, text.XRight, from-16, y, s.words)
		}
		return
	}
	to := d.x(s.to)
	dashes := []vg.Length(nil)
	if s.reply {
		dashes = []vg.Length{3, 2}
	}
	start := y - 3
	if sent := d.y(s.sent); s.sent > 0 && sent < y-rowLeast/2 {
		start = sent
	}
	// The ends keep off the bars on the lanes.
	off := vg.Length(11)
	if to < from {
		off = -6
	}
	p.arrow(c, dashes, from+off, start, to-off/4, y)
	if s.to == storageLane {
		d.label(p, c, s.alarm, text.XLeft, from+14, start-6, s.words)
		d.label(p, c, s.alarm, text.XLeft, to+8, y, s.answer)
		return
	}
	d.label(p, c, s.alarm, text.XCenter, d.x(serviceLane)+laneGap/2, y-8, s.words)
}

// patch takes the lanes away behind words that may be long.
func (d *diagram) patch(p *pen, x, y vg.Length, s string) {
	f := sans
	f.Weight = boldWeight
	style := text.Style{Font: font.From(f, 8), Handler: text.Plain{Fonts: font.DefaultCache}}
	if w := style.Width(clip(reports.Printable(s), longestLabel)); w > laneGap-16 {
		p.box(paper, x, y-6, x+w+6, y+6)
	}
}

// longestLabel is how many characters of a text are drawn.
const longestLabel = 46

func (d *diagram) label(p *pen, c color.Color, bold bool, align text.XAlignment, x, y vg.Length, s string) {
	p.words(c, 8, bold, align, x, y, clip(reports.Printable(s), longestLabel))
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "\u2026"
	}
	return s
}

// seconds4 writes a time with up to four digits behind the point.
func seconds4(ns int64) string {
	return strconv.FormatFloat(math.Round(float64(ns)/1e5)/1e4, 'f', -1, 64) + " s"
}
