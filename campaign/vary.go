package campaign

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// The quantities that a sweep varies.
const (
	AxisTTL   = "ttl"   // of the leases
	AxisPause = "pause" // how long each pause of the scenario lasts
	AxisFault = "fault" // how long each fault lasts, pauses included
	AxisHold  = "hold"  // how long holders work
)

// Axes lists them.
func Axes() []string { return []string{AxisTTL, AxisPause, AxisFault, AxisHold} }

// Axis is one quantity from one value to another, both included.
type Axis struct {
	Name     string
	From, To nemesis.Span
}

// ParseAxis reads "ttl=1s..30s" or "pause=0..2ttl". Both ends are in TTLs or
// both in time; a TTL is in time.
func ParseAxis(text string) (Axis, error) {
	name, values, ok := strings.Cut(text, "=")
	from, to, both := strings.Cut(values, "..")
	if !ok || !both {
		return Axis{}, fmt.Errorf("%q is no range: write %s=1s..30s or %s=0..2ttl", text, AxisTTL, AxisPause)
	}
	if !slices.Contains(Axes(), name) {
		return Axis{}, fmt.Errorf("nothing called %q can be varied: there are %s", name, strings.Join(Axes(), ", "))
	}
	a := Axis{Name: name}
	var err error
	if a.From, err = nemesis.ParseSpan(from); err != nil {
		return Axis{}, fmt.Errorf("%s: %w", text, err)
	}
	if a.To, err = nemesis.ParseSpan(to); err != nil {
		return Axis{}, fmt.Errorf("%s: %w", text, err)
	}
	switch inTTLs, inTime := a.From.TTLs != 0 || a.To.TTLs != 0, a.From.Fixed != 0 || a.To.Fixed != 0; {
	case inTTLs && inTime:
		return Axis{}, fmt.Errorf("%s: both ends in TTLs or both in time", text)
	case a.From.TTLs > a.To.TTLs || a.From.Fixed > a.To.Fixed:
		return Axis{}, fmt.Errorf("%s: the range begins behind its end", text)
	case a.From.TTLs < 0 || a.From.Fixed < 0:
		return Axis{}, fmt.Errorf("%s: times are not negative", text)
	case name == AxisTTL && (inTTLs || a.From.Fixed <= 0):
		return Axis{}, fmt.Errorf("%s: a TTL is a time above zero, such as 1s", text)
	}
	return a, nil
}

// Points are n values from one end to the other, a TTL's in equal ratios, since
// one second more matters to a TTL of one second and not to one of thirty.
func (a Axis) Points(n int) []nemesis.Span {
	if n < 2 || a.From == a.To {
		return []nemesis.Span{a.From}
	}
	points := make([]nemesis.Span, n)
	for i := range n {
		share := float64(i) / float64(n-1)
		points[i] = nemesis.Span{
			TTLs:  round(a.From.TTLs + share*(a.To.TTLs-a.From.TTLs)),
			Fixed: time.Duration(float64(a.From.Fixed) + share*float64(a.To.Fixed-a.From.Fixed)).Round(time.Millisecond),
		}
		if a.Name == AxisTTL {
			points[i].Fixed = geometric(a.From.Fixed, a.To.Fixed, share)
		}
	}
	points[n-1] = a.To
	return points
}

// Vary gives a scenario and a job in which the quantity has one value. What the
// scenario expects is left out, and what a run must have exercised: they were
// said of another value. A pause that ends inside the lease shows nothing of
// the scenario's story, and is a point of the sweep all the same.
func Vary(s *scenarios.Scenario, j store.Job, axis string, v nemesis.Span) (*scenarios.Scenario, store.Job, error) {
	out := *s
	out.Expect, out.Coverage = nil, history.Coverage{}
	switch axis {
	case AxisTTL:
		j.TTL = v.Fixed
	case AxisHold:
		out.Workload.Hold = v
	default:
		var plan nemesis.Plan
		hit := false
		for _, st := range s.Nemesis {
			if axis == AxisFault && !st.For.IsZero() || st.Fault.Kind() == AxisPause {
				hit = true
				if v.IsZero() {
					continue // without a length it would last until everything heals
				}
				st.For = v
			}
			plan = append(plan, st)
		}
		if !hit {
			return nil, j, fmt.Errorf("%s has no %s whose length could be varied", s.Name, axis)
		}
		out.Nemesis = plan
	}
	return &out, j, nil
}

// Cell is one point of a sweep and the runs that were played there.
type Cell struct {
	Lock   string
	Values []nemesis.Span // in the order of the axes
	Jobs   []store.Job
}

// Grid lists the points of a sweep, and the runs of each: every lock with every
// combination of values.
func Grid(s *scenarios.Scenario, locks []string, axes []Axis, steps int, base store.Job, seeds int) ([]Cell, error) {
	combos := [][]nemesis.Span{nil}
	for _, a := range axes {
		var longer [][]nemesis.Span
		for _, c := range combos {
			for _, v := range a.Points(steps) {
				longer = append(longer, append(slices.Clone(c), v))
			}
		}
		combos = longer
	}
	var cells []Cell
	for _, lock := range locks {
		for _, values := range combos {
			cell, err := cellOf(s, lock, axes, values, base, seeds)
			if err != nil {
				return nil, err
			}
			cells = append(cells, cell)
		}
	}
	return cells, nil
}

func cellOf(s *scenarios.Scenario, lock string, axes []Axis, values []nemesis.Span, base store.Job, seeds int) (Cell, error) {
	whole := *s
	varied, job, name := &whole, base, s.Name
	for i, a := range axes {
		var err error
		if varied, job, err = Vary(varied, job, a.Name, values[i]); err != nil {
			return Cell{}, err
		}
		name += "-" + a.Name + "-" + strings.ReplaceAll(values[i].String(), ".", "p")
	}
	varied.Name = name // runs of different points are different runs
	text, err := scenarios.Encode(varied)
	if err != nil {
		return Cell{}, err
	}
	cell := Cell{Lock: lock, Values: values}
	for i := range seeds {
		j := job
		j.Lock, j.Seed, j.Inline = lock, base.Seed+uint64(i), string(text)
		j.Scenario = name
		cell.Jobs = append(cell.Jobs, j)
	}
	return cell, nil
}

// SweepOf puts the runs of a grid together; some may be missing.
func SweepOf(s *scenarios.Scenario, axes []Axis, cells []Cell, runs []reports.Run) reports.Sweep {
	type point struct {
		scenario, lock string
		seed           uint64
	}
	at := map[point]reports.Run{}
	for _, r := range runs {
		at[point{r.Scenario, r.Lock, r.Seed}] = r
	}
	out := reports.Sweep{Schema: reports.SweepSchema, Scenario: s.Name, About: s.About}
	for _, a := range axes {
		out.Axes, out.Units = append(out.Axes, a.Name), append(out.Units, a.unit())
	}
	for _, c := range cells {
		p := reports.SweepPoint{Lock: c.Lock}
		var played []reports.Run
		for _, j := range c.Jobs {
			if r, ok := at[point{j.Scenario, j.Lock, j.Seed}]; ok {
				played = append(played, r)
			}
		}
		for _, v := range c.Values {
			p.Values = append(p.Values, v.String())
			p.Numbers = append(p.Numbers, number(v))
		}
		out.Points = append(out.Points, p.With(played))
	}
	return out
}

// unit is that of the numbers of an axis.
func (a Axis) unit() string {
	if a.From.TTLs != 0 || a.To.TTLs != 0 {
		return "TTLs"
	}
	return "s"
}

// number is a value for a plot: TTLs, or seconds.
func number(v nemesis.Span) float64 {
	if v.TTLs != 0 {
		return v.TTLs
	}
	return v.Fixed.Seconds()
}

// round cuts a number of TTLs to what a person would write.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// geometric is the value at a share of the way in equal ratios.
func geometric(from, to time.Duration, share float64) time.Duration {
	return time.Duration(float64(from) * math.Pow(float64(to)/float64(from), share)).Round(time.Millisecond)
}
