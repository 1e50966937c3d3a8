// Package plots draws a run as figures, as SVG and as PNG from the same code:
// latencies, rates, time held against the TTL, clocks, waiting clients, and the
// story of a run as a diagram of messages in the style of Martin Kleppmann's
// article on distributed locking.
//
// The same run gives the same bytes.
package plots

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"regexp"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
)

// The colours of figures. A figure inside a page takes the page's instead, by
// the name beside each, so that it follows the theme; each is used for one
// meaning.
var (
	ink    = rgb(0x1b, 0x1f, 0x24) // --fg
	muted  = rgb(0x57, 0x60, 0x6a) // --muted
	grid   = rgb(0xd0, 0xd7, 0xde) // --line
	paper  = rgb(0xff, 0xff, 0xff) // --bg
	band   = rgb(0xf7, 0xe8, 0xcb) // --band
	good   = rgb(0x17, 0x60, 0x2f) // --ok
	bad    = rgb(0xa6, 0x1b, 0x13) // --bad
	warn   = rgb(0x7a, 0x4d, 0x00) // --warn
	blue   = rgb(0x0a, 0x4f, 0xb8) // --link
	purple = rgb(0x6f, 0x3a, 0xa0) // --purple
	kept   = rgb(0xbf, 0xe5, 0xc9) // --hold
	over   = rgb(0xf7, 0xbd, 0xb7) // --over
)

var themed = map[color.NRGBA]string{
	ink: "--fg", muted: "--muted", grid: "--line", paper: "--bg", band: "--band", good: "--ok", bad: "--bad",
	warn: "--warn", blue: "--link", purple: "--purple", kept: "--hold", over: "--over",
}

func rgb(r, g, b uint8) color.NRGBA { return color.NRGBA{R: r, G: g, B: b, A: 255} }

// Plot is one figure.
type Plot struct {
	// Name is a word for file names.
	Name string
	// Title and Caption say what it shows; the caption also what to look for.
	Title, Caption string

	width, height vg.Length
	draw          func(draw.Canvas)
}

// The size of a figure in points.
const (
	width  = 480
	height = 220
)

// Story is the name of the diagram of messages.
const Story = "kleppmann"

// Of lists the figures of a run that have anything to show, the diagram of its
// story first.
func Of(facts *checker.Facts, results []checker.Result) []Plot {
	var out []Plot
	if p, ok := Sequence(facts, results); ok {
		out = append(out, p)
	}
	for _, make := range []func(*checker.Facts) (Plot, bool){latency, quantiles, rates, timeHeld, clocks, waiting} {
		if p, ok := make(facts); ok {
			out = append(out, p)
		}
	}
	return out
}

// SVG gives the figure as a file of its own.
func (p Plot) SVG() []byte {
	svg := p.svg(paper)
	head, tail, _ := strings.Cut(svg, "\n\txmlns=")
	return []byte(head + ` role="img" aria-label="` + attribute(p.Title+". "+p.Caption) + "\"\n\txmlns=" + tail)
}

// PNG writes the figure as a picture of twice the size, sharp on any screen.
func (p Plot) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(144), vgimg.UseBackgroundColor(paper))
	p.draw(draw.New(c))
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(w); err != nil {
		return fmt.Errorf("writing the plot %s: %w", p.Name, err)
	}
	return nil
}

var (
	prelude = regexp.MustCompile(`(?s)^.*?<svg width="[^"]*" height="[^"]*" viewBox="([^"]*)"[^>]*>`)
	fonts   = regexp.MustCompile(`font-family:[^;"]*;font-variant:[^;"]*;font-weight:([^;"]*);font-style:[^;"]*;?`)
)

// Inline gives the figure as an element of a page that defines the colours. It
// takes the page's font, and its words are escaped.
func (p Plot) Inline() string {
	svg := p.svg(nil)
	svg = prelude.ReplaceAllString(svg, `<svg viewBox="$1" role="img" aria-label="`+strings.ReplaceAll(attribute(p.Title), "$", "$$")+`">`)
	svg = fonts.ReplaceAllString(svg, "font-weight:$1;")
	var pairs []string
	for c, name := range themed {
		hex := fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)
		pairs = append(pairs, hex, "var("+name+")")
	}
	return strings.NewReplacer(pairs...).Replace(svg)
}

func (p Plot) svg(back color.Color) string {
	c := vgsvg.NewWith(vgsvg.UseWH(p.width, p.height))
	dc := draw.New(c)
	if back != nil {
		dc.SetColor(back)
		dc.Fill(dc.Rectangle.Path())
	}
	p.draw(dc)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.String()
}

var quotes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;")

// attribute makes any text the value of an attribute.
func attribute(s string) string { return quotes.Replace(reports.Printable(s)) }
