package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// seat is what a client's lane is about: one thread of it and one lock. In most
// runs a client has one.
type seat struct {
	client string
	thread int
	lock   string
}

// seats are the lanes of the clients.
type seats struct {
	facts *checker.Facts
	lanes map[seat]*lane
	order []seat
}

// Seat is one lane of a client in a picture, with what is written beside it.
type Seat struct {
	Client string
	Thread int
	Lock   string
	Label  string
}

// Seats lists the lanes of some clients: one for each thread and each lock. The
// locks stand in the order in which they were first asked for.
func Seats(facts *checker.Facts, clients []string) []Seat {
	used := map[seat]bool{}
	threads := map[string]int{}
	for _, a := range facts.Acquisitions {
		used[seat{a.Client, a.Thread, a.Lock}] = true
		threads[a.Client] = max(threads[a.Client], a.Thread)
	}
	locks := facts.Locks
	if len(locks) == 0 {
		locks = []string{""} // nobody asked for any
	}
	var out []Seat
	for _, client := range clients {
		for thread := range threads[client] + 1 {
			for i, lock := range locks {
				at := seat{client, thread, lock}
				// Who did nothing still has one lane, which says so.
				if used[at] || thread == 0 && i == 0 {
					out = append(out, Seat{Client: client, Thread: thread, Lock: lock, Label: at.label(threads[client] > 0, len(locks) > 1)})
				}
			}
		}
	}
	return out
}

// seatsOf makes the lanes of some clients, and says how many of their lanes do
// not fit.
func (p *picture) seatsOf(clients []string) (s *seats, left int) {
	s = &seats{facts: p.facts, lanes: map[seat]*lane{}}
	for _, x := range Seats(p.facts, clients) {
		if len(s.order) == mostLanes {
			left++
			continue
		}
		at := seat{x.Client, x.Thread, x.Lock}
		s.order = append(s.order, at)
		s.lanes[at] = &lane{label: x.Label, cells: blank(p.cols, '.')}
	}
	return s, left
}

// mostLanes are as many as fit a screen with what the nodes say below.
const mostLanes = 16

// label names a lane: c1, c1/2 for the second thread, c1 stock for a lock.
func (at seat) label(threaded, several bool) string {
	label := at.client
	if threaded {
		label += fmt.Sprintf("/%d", at.thread+1)
	}
	if several {
		label += " " + at.lock
	}
	return label
}

// of is the lane of an acquisition, or nil.
func (s *seats) of(a *checker.Acquisition) *lane {
	if a == nil {
		return nil
	}
	return s.lanes[seat{a.Client, a.Thread, a.Lock}]
}

// all are the lanes of a client.
func (s *seats) all(client string) []*lane {
	var out []*lane
	for _, at := range s.order {
		if at.client == client {
			out = append(out, s.lanes[at])
		}
	}
	return out
}

// concern are the lanes that an op or an arrival is about: its acquisition's,
// or all of the client's where it has none.
func (s *seats) concern(client string, acq int) []*lane {
	if l := s.of(s.facts.ByAcq[acq]); l != nil {
		return []*lane{l}
	}
	return s.all(client)
}

// drawn are the lanes from top to bottom.
func (s *seats) drawn() []*lane {
	var out []*lane
	for _, at := range s.order {
		out = append(out, s.lanes[at])
	}
	return out
}

// overlapOf is when several holds were believed at once, and guaranteed.
func overlapOf(holds []*checker.Acquisition) Overlap {
	o := Overlap{Holds: holds, Times: holds[0].Belief, Promised: holds[0].Guaranteed}
	for _, a := range holds[1:] {
		o.Times, o.Promised = both(o.Times, a.Belief), both(o.Promised, a.Guaranteed)
	}
	o.Promised = both(o.Times, o.Promised)
	return o
}

// counting says of which keys a node keeps a number rather than an owner, and
// what it counts: permits, readers without names, or waiters in a queue.
func counting(h *history.History) map[string]string {
	what := map[string]string{}
	for _, e := range h.Events {
		s := e.Server
		switch {
		case s == nil || s.Owner == "":
		case h.Header.Kind == history.KindSemaphore:
			what[s.Key] = "permits"
		case h.Header.Kind == history.KindRW && s.Value != "":
			what[s.Key] = "readers"
		case strings.Contains(s.Owner, ","):
			what[s.Key] = "waiters"
		}
	}
	return what
}

// countOf is the number that a node keeps after an event.
func countOf(s *history.Server, what string) int {
	n := 0
	if what == "readers" {
		_, _ = fmt.Sscan(s.Value, &n) // 0 for what is no number
		return n
	}
	return strings.Count(s.Owner, ",") + 1
}

// digit is a number in one column.
func digit(n int) rune {
	if n > 9 {
		return '+'
	}
	return rune('0' + n)
}

// keyLabels names the lanes of the nodes' keys: n1 key where each node has one,
// otherwise what tells the keys apart.
func keyLabels(h *history.History) map[string]string {
	keys, counted := map[string]bool{}, counting(h)
	locks := map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.Op != nil && e.Op.F == history.Acquire:
			locks[e.Op.Lock] = true
		case e.Server != nil && e.Server.Owner != "":
			keys[e.Server.Key] = true
		}
	}
	labels, taken := map[string]string{}, map[string]int{}
	sorted := slices.Sorted(maps.Keys(keys))
	for _, key := range sorted {
		labels[key] = "key"
		name := ""
		for lock := range locks {
			if strings.Contains(key, lock) && len(lock) > len(name) {
				name = lock
			}
		}
		switch {
		case counted[key] != "":
			labels[key] = counted[key]
		case len(locks) > 1 && name != "":
			labels[key] = name
		case len(keys) > 1:
			labels[key] = strings.TrimRight(strings.Replace(key, name, "", 1), ":")
		}
		taken[labels[key]]++
	}
	for _, key := range sorted {
		if taken[labels[key]] > 1 {
			labels[key] = key
		}
	}
	return labels
}

// theLocks names the locks in the title, where there are several.
func (p *picture) theLocks() string {
	if len(p.facts.Locks) < 2 {
		return ""
	}
	last := len(p.facts.Locks) - 1
	return "s " + strings.Join(p.facts.Locks[:last], ", ") + " and " + p.facts.Locks[last]
}

// tooMany is the label of the lane that marks a violated exclusion, and clash
// says it in words.
func (p *picture) tooMany() string {
	if p.h.Header.Kind == history.KindSemaphore {
		return "too many"
	}
	return "two hold"
}

func (p *picture) clash() string {
	switch p.h.Header.Kind {
	case history.KindSemaphore:
		return fmt.Sprintf("more than %d believe at once that they hold a permit", p.h.Header.Permits)
	case history.KindRW:
		return "a writer and another believe at once that they hold it"
	}
	return "two clients believe at once that they hold it"
}

// counted explains the numbers in the lanes of keys that count.
func (p *picture) counted() string {
	for _, what := range slices.Sorted(maps.Values(counting(p.h))) {
		return "in the lane of the " + what + ": how many the node counts"
	}
	return ""
}
