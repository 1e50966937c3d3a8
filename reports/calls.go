package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// Call is one call in a picture of calls that contradict each other.
type Call struct {
	// Who called, and What: "acquire ok, fence 5".
	Who, What string
	// From the call to its return; To is Open for a call without answer.
	From, To int64
	// Context says that it is drawn for orientation only.
	Context bool
}

// Open is the end of a call without an answer.
const Open = int64(math.MaxInt64)

// mostCalls is how many calls are drawn. More are no picture.
const mostCalls = 24

// Calls draws calls and faults in the order of time, not to scale: what counts
// is what came before what, and a contradiction may span nanoseconds or hours.
func Calls(calls []Call, faults []Call, width int, colour bool) []string {
	left := max(0, len(calls)-mostCalls)
	calls = slices.Clone(calls[:len(calls)-left])
	slices.SortStableFunc(calls, func(a, b Call) int { return int(max(-1, min(1, a.From-b.From))) })
	rows := slices.Concat(calls, faults)
	at := toTell(calls)
	who, what, when := 0, 0, 0
	for _, c := range rows {
		who, what = max(who, len([]rune(c.Who))), max(what, len([]rune(c.What)))
		when = max(when, len([]rune(during(c, at))))
	}
	who, what = min(who, 20), min(what, 30)
	scale := newOrder(calls, max(12, width-who-what-when-8))
	ink := ink{on: colour}
	var out []string
	for i, c := range rows {
		bar, code := scale.bar(c, '='), ""
		switch {
		case i >= len(calls):
			bar, code = scale.bar(c, '~'), yellow
		case c.Context:
			bar = scale.bar(c, '-')
		default:
			code = red
		}
		line := fmt.Sprintf("  %-*s  %-*s  %s  %s", who, narrow(c.Who, who), what, narrow(c.What, what),
			ink.paint(code, bar), during(c, at))
		out = append(out, Printable(strings.TrimRight(line, " ")))
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("  (%d more call%s not drawn)", left, plural(left)))
	}
	return out
}

func narrow(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "~"
	}
	return s
}

func during(c Call, at func(int64) string) string {
	if c.To == Open {
		return at(c.From) + " on"
	}
	return at(c.From) + " to " + at(c.To)
}

// toTell writes times in seconds with as many digits as it takes to tell them
// apart.
func toTell(calls []Call) func(int64) string {
	times := newOrder(calls, 1).times
	digits, unit := 3, int64(1e6)
	for i := 1; i < len(times); i++ {
		for unit > 1 && times[i]/unit == times[i-1]/unit {
			digits, unit = digits+1, unit/10
		}
	}
	return func(t int64) string { return fmt.Sprintf("%.*fs", digits, float64(t)/1e9) }
}

// order gives the instants of calls columns in their order.
type order struct {
	times []int64
	cols  int
}

func newOrder(calls []Call, cols int) order {
	o := order{cols: cols}
	for _, c := range calls {
		o.times = append(o.times, c.From)
		if c.To != Open {
			o.times = append(o.times, c.To)
		}
	}
	slices.Sort(o.times)
	o.times = slices.Compact(o.times)
	return o
}

// col of a time is that of the first instant that is not before it.
func (o order) col(t int64) int {
	i, _ := slices.BinarySearch(o.times, t)
	return min(i, len(o.times)) * (o.cols - 1) / max(1, len(o.times))
}

func (o order) bar(c Call, fill rune) string {
	cells := slices.Repeat([]rune{' '}, o.cols)
	from, to := o.col(c.From), o.cols-1
	if c.To != Open {
		to = o.col(c.To)
	}
	for i := from; i <= to; i++ {
		cells[i] = fill
	}
	cells[from] = '['
	switch {
	case c.To == Open:
		cells[to] = '>'
	case to > from:
		cells[to] = ']'
	default:
		cells[from] = '|'
	}
	return string(cells)
}

// contradiction draws the calls of the first violation of linearizability.
func (p *page) contradiction(r Run, h *history.History) {
	if h == nil {
		return
	}
	for _, c := range violated(r.Checks) {
		if c.Name != "linearizability" || len(c.Violations) == 0 {
			continue
		}
		calls, faults := callsOf(h, c.Violations[0].Ops)
		if len(calls) == 0 {
			return
		}
		p.add("", "Calls that no order explains (=), and their releases (-); in order, not to scale")
		p.add(Calls(calls, faults, p.width, p.on)...)
		return
	}
}

// acquisition names one in a history.
type acquisition struct {
	lock string
	acq  int
}

func acquisitionOf(op *history.Op) acquisition { return acquisition{lock: op.Lock, acq: op.Acq} }

// callsOf finds the calls that some events of a history belong to, the releases
// of their acquisitions, and the faults of their time.
func callsOf(h *history.History, events []int) (calls, faults []Call) {
	invokes := map[int]int{} // the open call of a process
	wanted := map[int]bool{}
	done := map[int]int{}
	of := map[int]int{} // from a completion to its invoke
	for i, e := range h.Events {
		if e.Op == nil {
			continue
		}
		switch e.Op.Type {
		case history.Invoke:
			invokes[e.Op.Process] = i
		case history.OK, history.Fail, history.Info:
			if at, ok := invokes[e.Op.Process]; ok {
				done[at], of[i] = i, at
				delete(invokes, e.Op.Process)
			}
		}
	}
	for _, i := range events {
		if at, ok := of[i]; ok {
			i = at
		}
		if i >= 0 && i < len(h.Events) && h.Events[i].Op != nil && h.Events[i].Op.Type == history.Invoke {
			wanted[i] = true
		}
	}
	held := map[acquisition]bool{}
	for i := range wanted {
		held[acquisitionOf(h.Events[i].Op)] = true
	}
	from, to := Open, int64(0)
	for i, e := range h.Events {
		orient := e.Op != nil && e.Op.Type == history.Invoke && e.Op.F == history.Release && held[acquisitionOf(e.Op)]
		if !wanted[i] && !orient {
			continue
		}
		c := Call{Context: !wanted[i], Who: e.Op.Client, What: e.Op.F + " without answer", From: e.T, To: Open}
		if at, ok := done[i]; ok {
			op := h.Events[at].Op
			c.What = e.Op.F + " " + string(op.Type)
			if op.Fence != nil {
				c.What += fmt.Sprintf(", fence %d", *op.Fence)
			}
			if op.Type != history.Info {
				c.To = h.Events[at].T
			}
		}
		calls = append(calls, c)
		from, to = min(from, c.From), max(to, c.From)
		if c.To != Open {
			to = max(to, c.To)
		}
	}
	for _, f := range checker.Gather(h).Faults {
		if f.Start <= to && f.Stop >= from {
			faults = append(faults, Call{Who: f.Fault, What: f.What, From: f.Start, To: f.Stop})
		}
	}
	return calls, faults
}
