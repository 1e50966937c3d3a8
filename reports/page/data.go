package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
)

// The kinds of events in the embedded data; logic.js has the same.
const (
	opEvent       = 0
	nemesisEvent  = 1
	serverEvent   = 2
	resourceEvent = 3
)

// encoder writes a run as the data that the page's script reads. Strings stand
// in a table, times are differences, and zeros at the end of an event are left
// out: an event takes about 30 bytes, a fifth of its line in the history.
type encoder struct {
	b       []byte
	index   map[string]int
	strings []string
	clients []string
	places  [][2]string
	seats   []reports.Seat
	lanes   map[reports.Seat]int64 // the place of a seat, without its label
}

// encode gives the JSON. It is safe inside a script element, whatever stands in
// the history: no "<", no "&" and no line separator is left unescaped.
func encode(h *history.History, facts *checker.Facts, checks []checker.Result, told []violation) ([]byte, error) {
	e := &encoder{index: map[string]int{"": 0}, strings: []string{""}, clients: clientsOf(h), places: placesOf(h)}
	e.seats = reports.Seats(facts, e.clients)
	e.lanes = make(map[reports.Seat]int64, len(e.seats))
	for i, at := range e.seats {
		e.lanes[reports.Seat{Client: at.Client, Thread: at.Thread, Lock: at.Lock}] = int64(i)
	}
	e.b = make([]byte, 0, 40*len(h.Events)+4096)
	e.b = append(e.b, `{"events":[`...)
	last := int64(0)
	for i := range h.Events {
		if i > 0 {
			e.b = append(e.b, ',', '\n')
		}
		e.event(&h.Events[i], h.Events[i].T-last)
		last = h.Events[i].T
	}
	e.b = append(e.b, ']')
	e.list("holds", func(sep func()) { e.holds(facts, sep) })
	e.list("waits", func(sep func()) { e.waits(facts, sep) })
	e.list("both", func(sep func()) { e.both(facts, checks, sep) })
	rest := struct {
		Strings    []string    `json:"strings"`
		Seats      []seat      `json:"seats"`
		Places     [][2]string `json:"places"`
		Faults     []fault     `json:"faults"`
		Violations []link      `json:"violations"`
		Focus      []int64     `json:"focus,omitempty"`
		TTL        int64       `json:"ttl"`
		End        int64       `json:"end"`
	}{
		Strings: e.strings, Seats: e.shownSeats(), Places: e.places, Faults: faultsOf(facts), Violations: links(told),
		TTL: max(int64(h.Header.TTL), 0), End: max(facts.End, 1),
	}
	for i := range rest.Strings {
		rest.Strings[i] = shown(rest.Strings[i])
	}
	for i, p := range rest.Places {
		rest.Places[i] = [2]string{shown(p[0]), shown(p[1])}
	}
	if from, to, some := reports.Focus(facts, checks); some {
		rest.Focus = []int64{from, to}
	}
	b, err := json.Marshal(rest) // escapes <, >, & and the line separators
	if err != nil {
		return nil, fmt.Errorf("encoding the run for the HTML report: %w", err)
	}
	return append(append(e.b, ','), b[1:]...), nil
}

// list writes a named list; fill calls sep before each entry.
func (e *encoder) list(name string, fill func(sep func())) {
	e.b = append(e.b, `,"`+name+`":[`...)
	first := true
	fill(func() {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
	})
	e.b = append(e.b, ']')
}

func (e *encoder) event(ev *history.Event, dt int64) {
	switch {
	case ev.Op != nil:
		e.op(ev.Op, ev.T, dt)
	case ev.Nemesis != nil:
		n := ev.Nemesis
		row := []int64{dt, nemesisEvent, int64(n.ID), e.str(n.Fault), e.str(n.Phase), e.str(n.What), e.str(n.Why), e.str(n.Error)}
		for _, on := range n.On {
			row = append(row, e.str(on))
		}
		e.row(row...)
	case ev.Server != nil:
		s := ev.Server
		e.row(dt, serverEvent, e.str(s.Node), e.str(s.Client), e.str(s.Cmd), e.str(s.Key), e.str(s.Reply), e.str(s.Owner),
			s.PTTL, s.Clock-ev.T, e.str(s.Value))
	case ev.Resource != nil:
		r := ev.Resource
		applied := int64(0)
		if r.Applied {
			applied = 1
		}
		e.fenced(10, r.Fence, dt, resourceEvent, e.str(r.Client), int64(r.Process), int64(r.Acq), e.str(r.F),
			r.Seen, r.Version, r.Before, applied, 0, e.str(r.Refused))
	default: // a history from elsewhere; the index must stay right
		e.row(dt, nemesisEvent)
	}
}

func (e *encoder) op(o *history.Op, t, dt int64) {
	e.fenced(10, o.Fence, dt, opEvent, int64(o.Process), e.str(o.Client), e.str(o.F), e.str(string(o.Type)), e.str(o.Lock), int64(o.Acq),
		optional(o.Version, 0), optional(o.Deadline, t), 0, optional(o.Until, t), e.str(o.Code), e.str(o.Error), int64(o.Thread), e.str(o.Mode))
}

// optional encodes a number that may be absent: 0 is absent, and numbers from 0
// up are stored one higher.
func optional(v *int64, less int64) int64 {
	if v == nil {
		return 0
	}
	n := *v - less
	if n >= 0 {
		n++
	}
	return n
}

// exact is the largest whole number that a script's numbers keep exactly.
const exact = 1 << 53

// fenced writes a row with a fence at one place. A fence may be any unsigned
// number; one that a script would round is written as text.
func (e *encoder) fenced(at int, fence *uint64, row ...int64) {
	switch {
	case fence == nil:
	case *fence < exact:
		row[at] = int64(*fence) + 1
	default:
		e.b = append(e.b, '[')
		for i, v := range row {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			if i == at {
				e.b = strconv.AppendQuote(e.b, strconv.FormatUint(*fence, 10))
				continue
			}
			e.b = strconv.AppendInt(e.b, v, 10)
		}
		e.b = append(e.b, ']')
		return
	}
	e.row(row...)
}

// row writes numbers without the zeros at the end, but for the first two.
func (e *encoder) row(row ...int64) {
	for len(row) > 2 && row[len(row)-1] == 0 {
		row = row[:len(row)-1]
	}
	e.numbers(row)
}

func (e *encoder) numbers(row []int64) {
	e.b = append(e.b, '[')
	for i, v := range row {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = strconv.AppendInt(e.b, v, 10)
	}
	e.b = append(e.b, ']')
}

// str is the place of a text in the table.
func (e *encoder) str(s string) int64 {
	i, ok := e.index[s]
	if !ok {
		i = len(e.strings)
		e.index[s] = i
		e.strings = append(e.strings, s)
	}
	return int64(i)
}

func (e *encoder) lane(client string, thread int, lock string) (lane int64, known bool) {
	lane, known = e.lanes[reports.Seat{Client: client, Thread: thread, Lock: lock}]
	return lane, known
}

// holds writes [acquisition, lane, [ops], [belief], [guaranteed], [outlived]].
// The stretches are written one after the other as two numbers each, how long
// after the grant it begins and how long it is.
func (e *encoder) holds(f *checker.Facts, sep func()) {
	for _, a := range f.Acquisitions {
		lane, known := e.lane(a.Client, a.Thread, a.Lock)
		if !a.Held() || !known {
			continue
		}
		sep()
		e.b = append(e.b, '[')
		e.b = strconv.AppendInt(e.b, int64(a.Acq), 10)
		e.b = append(e.b, ',')
		e.b = strconv.AppendInt(e.b, lane, 10)
		e.b = append(e.b, ',')
		e.numbers([]int64{int64(a.InvokeIndex), int64(a.DoneIndex), int64(a.BeliefEndIndex)})
		for _, list := range [][]checker.Interval{a.Belief, a.Guaranteed, reports.Outlived(f.History, a)} {
			var flat [8]int64
			row := flat[:0]
			for _, i := range list {
				row = append(row, i.From-a.Done, i.To-i.From)
			}
			e.b = append(e.b, ',')
			e.numbers(row)
		}
		e.b = append(e.b, ']')
	}
}

// waits writes [lane, from, length].
func (e *encoder) waits(f *checker.Facts, sep func()) {
	for _, w := range reports.Waits(f) {
		if lane, known := e.lane(w.Client, w.Thread, w.Lock); known && w.To > w.From {
			sep()
			e.numbers([]int64{lane, w.From, w.To - w.From})
		}
	}
}

// both writes [lane, from, length] where two leases were guaranteed at once.
func (e *encoder) both(f *checker.Facts, checks []checker.Result, sep func()) {
	for _, o := range reports.Overlaps(f, checks) {
		for _, a := range o.Holds {
			for _, i := range o.Promised {
				if lane, known := e.lane(a.Client, a.Thread, a.Lock); known {
					sep()
					e.numbers([]int64{lane, i.From, i.To - i.From})
				}
			}
		}
	}
}

// seat is a lane of a client.
type seat struct {
	Client string `json:"client"`
	Thread int    `json:"thread"`
	Lock   string `json:"lock"`
	Label  string `json:"label"`
}

func (e *encoder) shownSeats() []seat {
	out := make([]seat, 0, len(e.seats))
	for _, at := range e.seats {
		out = append(out, seat{Client: shown(at.Client), Thread: at.Thread, Lock: shown(at.Lock), Label: shown(at.Label)})
	}
	return out
}

// fault is one fault with the names of the clients and nodes that it hits.
type fault struct {
	Fault   string   `json:"fault"`
	What    string   `json:"what"`
	Why     string   `json:"why"`
	On      []string `json:"on"`
	From    int64    `json:"from"`
	To      int64    `json:"to"`
	Stopped bool     `json:"stopped"`
}

func faultsOf(f *checker.Facts) []fault {
	out := []fault{}
	for _, x := range f.Faults {
		on := []string{}
		for _, name := range x.On {
			for _, end := range strings.Split(name, "->") {
				if end = shown(end); !slices.Contains(on, end) {
					on = append(on, end)
				}
			}
		}
		out = append(out, fault{Fault: shown(x.Fault), What: shown(cmp.Or(x.What, strings.Join(x.On, ", "))), Why: shown(x.Why),
			On: on, From: x.Start, To: x.Stop, Stopped: x.StopIndex >= 0})
	}
	return out
}

// link is a violation as the diagram needs it.
type link struct {
	Text string `json:"text"`
	Ops  []int  `json:"ops"`
}

func links(told []violation) []link {
	out := []link{}
	for _, v := range told {
		l := link{Text: v.Sentence, Ops: v.Ops}
		if l.Ops == nil {
			l.Ops = []int{}
		}
		out = append(out, l)
	}
	return out
}

// clientsOf lists the clients that do something, c2 before c10.
func clientsOf(h *history.History) []string {
	seen := map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.Op != nil && e.Op.Client != "":
			seen[e.Op.Client] = true
		case e.Resource != nil && e.Resource.Client != "":
			seen[e.Resource.Client] = true
		}
	}
	out := make([]string, 0, len(seen))
	for c := range seen {
		out = append(out, c)
	}
	slices.SortFunc(out, reports.Natural)
	return out
}

// placesOf lists the keys on the nodes that ever have an owner.
func placesOf(h *history.History) [][2]string {
	seen := map[[2]string]bool{}
	for _, e := range h.Events {
		if e.Server != nil && e.Server.Owner != "" {
			seen[[2]string{e.Server.Node, e.Server.Key}] = true
		}
	}
	out := make([][2]string, 0, len(seen))
	for p := range seen {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[1], b[1]), reports.Natural(a[0], b[0]))
	})
	return out
}
