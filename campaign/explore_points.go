package campaign

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// mood is a kind of base run.
type mood string

const (
	// calm runs have time for everything.
	calm mood = ""
	// hurried runs have contexts that end while somebody else holds the lock,
	// or while a reply is late.
	hurried mood = "hurried"
	// brisk runs have leases that are shorter than the time-outs of client
	// libraries, seconds by default: an answer may come in time for the library
	// and too late for the lease.
	brisk mood = "brisk"
)

var moods = []mood{calm, hurried, brisk}

// hurry is the deadline of calls in a hurried run, in TTLs: less than the
// delay of a slow reply, so that a deadline cuts it off.
const hurry = 0.1

// briskTTL is the lease of brisk runs, unless the exploration's own is that
// short.
const briskTTL = time.Second

// ttl of the runs in a mood.
func (m mood) ttl(own time.Duration) time.Duration {
	if m == brisk {
		return briskTTL
	}
	return own
}

// apt says whether a mood differs from the calm one.
func (m mood) apt(own time.Duration) bool { return m != brisk || own > briskTTL }

// worth says whether a blow may do in a mood what it does not do in calm.
func (m mood) worth(b blow) bool {
	late := strings.HasPrefix(b.kind, "slow") || strings.HasSuffix(b.kind, "stall") ||
		b.kind == "lost reply" || strings.HasPrefix(b.kind, "stall") || strings.HasPrefix(b.kind, "cut off")
	switch m {
	case hurried:
		return late || b.kind == "cancelled context" || b.kind == cutBefore || b.kind == cutAfter
	case brisk:
		renews := strings.Contains(b.at.struck, history.Extend) || strings.Contains(b.at.struck, background)
		return late && (b.size > 1 || b.size == 0) || b.stops && renews
	}
	return true
}

// baseRun is the run without a fault in which an exploration looks for the
// moments worth breaking: two rounds of each client, an acquire that is
// refused, leases that are extended by hand, renewed and released.
func (e Exploration) baseRun(m mood) *scenarios.Scenario {
	topology, nodes := e.topology()
	s := &scenarios.Scenario{
		Name:     "explore-" + nameOf(e.Lock),
		About:    "Two rounds of each client, with nothing broken.",
		Topology: map[string]cluster.Topology{scenarios.Default: topology},
		Nodes:    map[cluster.Topology]int{cluster.Single: 1, cluster.Replicated: 2, cluster.Independent: nodes},
		Clients:  e.Clients,
		Locks:    []string{e.Lock},
		Workload: scenarios.Workload{
			Kind: scenarios.Update, Hold: nemesis.TTLs(0.45), Extend: nemesis.TTLs(0.15), Think: nemesis.TTLs(0.1),
			Retry: nemesis.TTLs(0.1), Stagger: nemesis.TTLs(0.1), AcquireTimeout: nemesis.TTLs(4),
			CallTimeout: nemesis.TTLs(1), WriteTimeout: nemesis.TTLs(4),
			// A lock whose fences work is given the resource that heeds them;
			// for all others it is a plain one.
			Resource: scenarios.Guarded,
		},
		Length: nemesis.TTLs(1.1 * float64(e.Clients)),
		Final:  scenarios.Final{Heal: true, Wait: nemesis.TTLs(2)},
		Expect: scenarios.Expect{},
	}
	lock, _ := FindLock(e.Lock) // Run has looked
	switch lock.Kind {
	case catalogue.Semaphore:
		s.Workload.Kind = scenarios.Permits
	case catalogue.RW:
		s.Workload.ReadShare = 0.5
	}
	if m != calm {
		s.Name += "-" + string(m)
	}
	switch m {
	case hurried:
		s.Workload.AcquireTimeout, s.Workload.CallTimeout = nemesis.TTLs(hurry), nemesis.TTLs(hurry)
	case brisk:
		// A call may take as long as the client library lets it.
		s.Workload.AcquireTimeout, s.Workload.CallTimeout = nemesis.TTLs(10), nemesis.TTLs(10)
	}
	return s
}

// nameOf makes a word for names of scenarios and files out of any text.
func nameOf(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}

// background is what a command is in that no call has sent: a renewal.
const background = "in the background"

// point is one moment of the base run: a command that a node executed, or a
// step of a client.
type point struct {
	// at is its place in the history, t its time.
	at int
	t  int64
	// struck says in words what it is: "SET in acquire", "write invoke".
	struck string
	client string
	// node and cmd are those of a command. nth counts commands of that name
	// from the client on the node, as a strike does.
	node, cmd string
	nth       int
	// when is the trigger that fires there. A script that the node did not
	// know has none, see [nemesis.Trigger].
	when    nemesis.Trigger
	fires   bool
	calling bool // a call to the lock is under way, which can be cancelled
	invoke  bool // the step is the invoke of a call to the lock
}

// where names the moment exactly: "SET 2 from c1 to n1".
func (p point) where() string {
	if p.cmd != "" {
		return fmt.Sprintf("%s %d from %s to %s", p.cmd, p.nth, p.client, p.node)
	}
	return fmt.Sprintf("%s %d of %s", p.struck, p.when.Nth, p.client)
}

// pointsOf lists the moments of a history's safety phase. Moments that are
// like those before and behind them are left out: of ten polls that are
// refused one after the other, the first and the last stay.
func pointsOf(h *history.History) []point {
	w := &walk{redundant: refusedAgain(h), open: map[string]string{}, sent: map[string]int{}, runs: map[string][]shape{}}
	for i, ev := range h.Events {
		if ev.Op != nil && ev.Op.F == history.Phase {
			break
		}
		switch {
		case ev.Server != nil && ev.Server.Client != "":
			w.command(h.Events, i)
		case ev.Op != nil && ev.Op.Client != "":
			w.step(h.Events, i)
		}
	}
	return w.thinned()
}

// walk goes through a history once.
type walk struct {
	redundant map[int]bool
	// open is the call to the lock that each client has under way.
	open map[string]string
	// sent counts commands by client, node and name.
	sent map[string]int
	runs map[string][]shape
	out  []point
}

// shape is what makes two moments of one client on one node alike.
type shape struct {
	text string
	at   int // of the point in out, or -1 if it is left out already
}

func (w *walk) command(events []history.Event, i int) {
	s := events[i].Server
	key := s.Client + " " + s.Node + " " + s.Cmd
	if again(events, i) {
		return // the second key of one command
	}
	w.sent[key]++
	during := w.open[s.Client]
	p := point{
		at: i, t: events[i].T, client: s.Client, node: s.Node, cmd: s.Cmd, nth: w.sent[key],
		calling: during != "",
		when:    nemesis.Trigger{Command: s.Cmd, Node: s.Node, Client: s.Client},
	}
	name := strings.TrimSuffix(s.Cmd, "SHA") // which of both is sent is the script cache's affair
	p.struck = name + " " + background
	if during != "" {
		p.struck = name + " in " + during
	}
	if p.fires = p.when.Matches(events[i]); p.fires {
		p.when.Nth = count(events[:i+1], p.when)
	}
	w.add(p, s.Client+" "+s.Node, fmt.Sprint(s.Cmd, s.Reply, s.Owner, during), w.redundant[i])
}

// again says whether an event is of the same command as the one before it: a
// script with two keys leaves two events.
func again(events []history.Event, i int) bool {
	if i == 0 || events[i-1].Server == nil || events[i-1].T != events[i].T {
		return false
	}
	a, b := events[i-1].Server, events[i].Server
	return a.Client == b.Client && a.Node == b.Node && a.Cmd == b.Cmd && a.Key != b.Key
}

func count(events []history.Event, t nemesis.Trigger) int {
	n := 0
	for _, ev := range events {
		if t.Matches(ev) {
			n++
		}
	}
	return n
}

func (w *walk) step(events []history.Event, i int) {
	op := events[i].Op
	lockCall := op.F == history.Acquire || op.F == history.Release || op.F == history.Extend
	switch {
	case lockCall && op.Type == history.Invoke:
		w.open[op.Client] = op.F
	case lockCall:
		w.open[op.Client] = ""
	}
	when := nemesis.Trigger{Op: op.F, Type: op.Type, Client: op.Client}
	when.Nth = count(events[:i+1], when)
	struck := op.F + " " + string(op.Type)
	if op.Type == history.Note {
		struck = op.F
	}
	w.add(point{
		at: i, t: events[i].T, struck: struck, client: op.Client, when: when, fires: true,
		invoke: lockCall && op.Type == history.Invoke,
	}, op.Client, struck, w.redundant[i] || sameInstant(events, i))
}

// sameInstant says that a step is a read that follows its acquire at once: to
// stop the client at either is the same.
func sameInstant(events []history.Event, i int) bool {
	op := events[i].Op
	if op.F != history.Read || op.Type != history.Invoke || i == 0 || events[i-1].Op == nil {
		return false
	}
	return events[i-1].T == events[i].T && events[i-1].Op.Client == op.Client
}

func (w *walk) add(p point, of, text string, drop bool) {
	at := -1
	if !drop {
		at = len(w.out)
		w.out = append(w.out, p)
	}
	w.runs[of] = append(w.runs[of], shape{text: text, at: at})
}

// longestPeriod is how many moments one poll may consist of. One that takes a
// vote and gives it back sends two commands, and three with a script that a
// node does not know.
const longestPeriod = 3

// thinned drops the middle of each row of moments that repeat, however many
// moments one repetition has. The first and the last repetition stay:
//
//	SET nil, EVAL 0, SET nil, EVAL 0, SET nil, EVAL 0, SET OK
//	first            dropped          last             another
func (w *walk) thinned() []point {
	drop := map[int]bool{}
	for _, run := range w.runs {
		for period := 1; period <= longestPeriod; period++ {
			for from := 0; from+period < len(run); {
				to := from
				for to+period < len(run) && run[to].text == run[to+period].text {
					to++
				}
				for i := from + period; i < to; i++ {
					drop[run[i].at] = true
				}
				from = to + 1
			}
		}
	}
	var out []point
	for i, p := range w.out {
		if !drop[i] {
			out = append(out, p)
		}
	}
	return out
}

// refusedAgain finds the events of an acquire that was refused between two
// others of its client that were refused as well.
func refusedAgain(h *history.History) map[int]bool {
	type attempt struct {
		from, to int
		failed   bool
	}
	attempts := map[string][]attempt{}
	for i, ev := range h.Events {
		if ev.Op == nil || ev.Op.F != history.Acquire {
			continue
		}
		c := ev.Op.Client
		if ev.Op.Type == history.Invoke {
			attempts[c] = append(attempts[c], attempt{from: i, to: len(h.Events)})
			continue
		}
		last := &attempts[c][len(attempts[c])-1]
		last.to, last.failed = i, ev.Op.Type == history.Fail
	}
	out := map[int]bool{}
	for client, all := range attempts {
		for i := 1; i+1 < len(all); i++ {
			if !all[i-1].failed || !all[i].failed || !all[i+1].failed {
				continue
			}
			for j := all[i].from; j <= all[i].to; j++ {
				if clientOf(h.Events[j]) == client {
					out[j] = true
				}
			}
		}
	}
	return out
}

func clientOf(ev history.Event) string {
	switch {
	case ev.Op != nil:
		return ev.Op.Client
	case ev.Server != nil:
		return ev.Server.Client
	}
	return ""
}
