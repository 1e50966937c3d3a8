package reports

import (
	"math"
	"strconv"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// How much of a run a picture shows, in TTLs. Six TTLs in about 85 columns
// leave a lease 14 columns wide, the least in which a story can be read.
const (
	wholeRun  = 3
	widest    = 6
	lookBack  = 2
	marginPer = 4 // the margin is a quarter of a TTL
)

// frame is the part of a run that is drawn and its scale.
type frame struct {
	from, to int64
	step     int64 // nanoseconds in one column
	cols     int
	end      int64 // end of the run
	why      string
}

// span is a stretch of the run in nanoseconds.
type span struct{ from, to int64 }

func (s span) join(o span) span {
	return span{from: min(s.from, o.from), to: max(s.to, o.to)}
}

// newFrame chooses what to draw: around the violations, or the first fault, or
// the start, or all of a short run.
func newFrame(facts *checker.Facts, results []checker.Result, cols int) frame {
	h := facts.History
	var end int64
	for _, e := range h.Events {
		end = max(end, e.T)
	}
	ttl := int64(h.Header.TTL)
	if ttl <= 0 {
		ttl = max(end/wholeRun, 1)
	}
	f := frame{end: end, to: end, why: "the whole run"}
	if end > wholeRun*ttl {
		s, why := focus(facts, results, ttl, end)
		f.from, f.to, f.why = max(0, s.from-ttl/marginPer), min(end, s.to+ttl/marginPer), why
		if f.from == 0 && f.to == end {
			f.why = "the whole run"
		}
	}
	f.scale(cols)
	return f
}

// focus is the interesting stretch and what it is.
func focus(facts *checker.Facts, results []checker.Result, ttl, end int64) (span, string) {
	if spans := violationSpans(facts, results, ttl); len(spans) > 0 {
		s, shown := spans[0], 0
		for _, o := range spans {
			if j := s.join(o); j.to-j.from <= widest*ttl {
				s = j
				shown++
			}
		}
		if shown < len(spans) {
			return s, "around the first violation"
		}
		return s, "around the violation" + plural(len(spans))
	}
	for _, ft := range facts.Faults {
		return span{from: max(0, ft.Start-ttl), to: min(end, ft.Start+(widest-1)*ttl)}, "around the first fault"
	}
	return span{to: min(end, widest*ttl)}, "the start of the run"
}

// violationSpans gives a span for each violation, gravest check first. It
// takes in the holds that are concerned, but of a hold that was renewed for
// hours no more than the last TTLs.
func violationSpans(facts *checker.Facts, results []checker.Result, ttl int64) []span {
	var spans []span
	for _, r := range violated(results) {
		for _, v := range r.Violations {
			events := eventsOf(facts.History, v)
			if len(events) == 0 {
				continue
			}
			core := span{from: events[0].T, to: events[0].T}
			for _, e := range events {
				core = core.join(span{from: e.T, to: e.T})
			}
			core.from = max(core.from, core.to-widest*ttl)
			s := core
			for _, a := range holdsIn(facts, v) {
				s.from = max(min(s.from, a.Invoked), core.from-lookBack*ttl)
				s.to = min(max(s.to, a.BeliefEnd), core.to+lookBack*ttl)
			}
			spans = append(spans, s)
		}
	}
	return spans
}

// eventsOf gives the events that a violation names; an index that is out of
// range, as in a history that was cut, is left out.
func eventsOf(h *history.History, v checker.Found) []history.Event {
	var events []history.Event
	for _, i := range v.Ops {
		if i >= 0 && i < len(h.Events) {
			events = append(events, h.Events[i])
		}
	}
	return events
}

// tickEvery is the number of columns between two labels of the axis.
const tickEvery = 10

// scale picks the finest column whose tenfold is a number a reader can add up.
func (f *frame) scale(cols int) {
	cols = max(cols, tickEvery)
	need := float64(f.to-f.from) / float64(cols-1)
	unit := math.Pow(10, math.Floor(math.Log10(max(need, 1))))
	f.step = int64(10 * unit)
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if m*unit >= need {
			f.step = int64(m * unit)
			break
		}
	}
	f.step = max(f.step, 1)
	f.from -= f.from % f.step
	f.cols = int(min((f.to-f.from)/f.step+1, int64(cols)))
}

// col is the column of an instant, clipped to the frame.
func (f *frame) col(t int64) int {
	return int(min(max((t-f.from)/f.step, 0), int64(f.cols-1)))
}

// shows says whether any of a stretch lies in the frame.
func (f *frame) shows(from, to int64) bool {
	return to >= f.from && from < f.from+int64(f.cols)*f.step
}

// axis gives the two lines of the time axis.
func (f *frame) axis() (labels, ticks []rune) {
	labels, ticks = blank(f.cols+8, ' '), blank(f.cols, '-')
	free := 0
	for c := range f.cols {
		t := f.from + int64(c)*f.step
		if t%(f.step*tickEvery) != 0 {
			continue
		}
		ticks[c] = '|'
		text := []rune(sec(t))
		if c >= free && c+len(text) <= len(labels) {
			copy(labels[c:], text)
			free = c + len(text) + 1
		}
	}
	return labels, ticks
}

func blank(n int, r rune) []rune {
	cells := make([]rune, n)
	for i := range cells {
		cells[i] = r
	}
	return cells
}

// sec writes a time in seconds, as short as it is exact to the millisecond;
// below a millisecond it gives the microseconds.
func sec(ns int64) string {
	digits := 3
	if ns != 0 && ns < 1e6 && ns > -1e6 {
		digits = 6
	}
	scale := math.Pow(10, float64(digits))
	return strconv.FormatFloat(math.Round(float64(ns)/1e9*scale)/scale, 'f', -1, 64) + "s"
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
