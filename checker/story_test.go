package checker

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// The builders below let a test read as a history. Times are in seconds, the
// TTL is 10 s. "c1" is client c1 with process 1; "c1/7" is its process 7.

const ttl = 10 * time.Second

func ns(t float64) int64 { return int64(t*1e9 + 0.5) }

func event(t float64, who, f string, typ history.Type, acq int) history.Event {
	client, process, ok := strings.Cut(who, "/")
	if !ok {
		process = strings.TrimPrefix(client, "c")
	}
	n, _ := strconv.Atoi(process)
	return history.Event{T: ns(t), Op: &history.Op{Client: client, Process: n, F: f, Type: typ, Lock: "a", Acq: acq}}
}

func invoke(t float64, who, f string, acq int) history.Event {
	return event(t, who, f, history.Invoke, acq)
}
func ok(t float64, who, f string, acq int) history.Event { return event(t, who, f, history.OK, acq) }
func fail(t float64, who, f string, acq int) history.Event {
	return event(t, who, f, history.Fail, acq)
}
func info(t float64, who, f string, acq int) history.Event {
	return event(t, who, f, history.Info, acq)
}
func note(t float64, who, f string, acq int) history.Event {
	return event(t, who, f, history.Note, acq)
}

func until(e history.Event, t float64) history.Event {
	n := ns(t)
	e.Op.Until = &n
	return e
}

func fence(e history.Event, n uint64) history.Event {
	e.Op.Fence = &n
	return e
}

func code(e history.Event, c string) history.Event {
	e.Op.Code = c
	return e
}

func final(t float64) history.Event {
	return history.Event{T: ns(t), Op: &history.Op{Process: -1, F: history.Phase, Type: history.Note, Error: "final"}}
}

func fault(t float64, id int, phase, what string) history.Event {
	return history.Event{T: ns(t), Nemesis: &history.Nemesis{ID: id, Fault: "pause", Phase: phase, On: []string{"c1"}, What: what}}
}

func server(t float64, node, client, cmd, owner string, pttl float64) history.Event {
	return history.Event{T: ns(t), Server: &history.Server{Node: node, Client: client, Clock: ns(t), Cmd: cmd, Key: "lock:a",
		Reply: "OK", Owner: owner, PTTL: int64(pttl * 1000)}}
}

// gone is a command, or an expiry, after which the key is absent.
func gone(t float64, node, client, cmd string) history.Event {
	return server(t, node, client, cmd, "", -0.002)
}

// taken is an acquire by who whose SET on n1 leaves a token, with the whole
// TTL, 0.05 s before its ok.
func taken(t float64, who string, acq int, token string) []history.Event {
	client, _, _ := strings.Cut(who, "/")
	return []history.Event{invoke(t-0.1, who, history.Acquire, acq), server(t-0.05, "n1", client, "SET", token, 10), ok(t, who, history.Acquire, acq)}
}

// given is a release that deletes the key on n1.
func given(t float64, who string, acq int) []history.Event {
	client, _, _ := strings.Cut(who, "/")
	return []history.Event{invoke(t, who, history.Release, acq), gone(t+0.05, "n1", client, "EVALSHA"), ok(t+0.1, who, history.Release, acq)}
}

// hit is a fault of any kind.
func hit(t float64, id int, phase, kind string, on ...string) history.Event {
	return history.Event{T: ns(t), Nemesis: &history.Nemesis{ID: id, Fault: kind, Phase: phase, On: on, What: strings.Join(on, ", ")}}
}

func due(e history.Event, t float64) history.Event {
	n := ns(t)
	e.Op.Deadline = &n
	return e
}

func replied(e history.Event, reply string) history.Event {
	e.Server.Reply = reply
	return e
}

// clocked is a command that ran when the node's clock stood at t.
func clocked(e history.Event, t float64) history.Event {
	e.Server.Clock = ns(t)
	return e
}

// insim says that the server trace is complete.
func insim(h *history.History) *history.History {
	h.Header.World = "sim"
	return h
}

// keyed is a server event on another key of the lock.
func keyed(e history.Event, key string) history.Event {
	e.Server.Key = key
	return e
}

// able gives the lock abilities.
func able(h *history.History, abilities ...string) *history.History {
	h.Header.Abilities = abilities
	return h
}

func arrive(t float64, client string, acq int, seen, before int64, applied bool) history.Event {
	r := &history.Resource{Client: client, Acq: acq, F: history.Write, Seen: seen, Before: before, Version: before, Applied: applied}
	if applied {
		r.Version++
	} else {
		r.Refused = "older token"
	}
	return history.Event{T: ns(t), Resource: r}
}

func token(e history.Event, n uint64) history.Event {
	e.Resource.Fence = &n
	return e
}

// story is a plain single-node history of the lock "basic".
func story(events ...history.Event) *history.History {
	return &history.History{
		Header: history.Header{Schema: history.Schema, Lock: "basic", Resource: "plain", Topology: "single", Nodes: 1, Clients: 1,
			TTL: ttl, LivenessBound: 5 * time.Second},
		Events: events,
	}
}

func with(h *history.History, change func(*history.Header)) *history.History {
	change(&h.Header)
	return h
}

// grant is an acquire by who that takes 0.1 s.
func grant(t float64, who string, acq int) []history.Event {
	return []history.Event{invoke(t-0.1, who, history.Acquire, acq), ok(t, who, history.Acquire, acq)}
}

func join(parts ...any) []history.Event {
	var all []history.Event
	for _, p := range parts {
		switch p := p.(type) {
		case history.Event:
			all = append(all, p)
		case []history.Event:
			all = append(all, p...)
		}
	}
	return all
}

// trial is one row of a check's table.
type trial struct {
	name    string
	history *history.History
	want    Verdict
	kind    string
	ops     []int    // of the first violation
	summary []string // parts of the first violation's sentence
	reason  string
	fault   string // beginning of the first violation's fault
	earlier string // and of its earlier one
	count   int    // of violations, where it matters
	skipped bool   // the check does not apply
}

func try(t *testing.T, name string, trials []trial) {
	t.Helper()
	i := slices.IndexFunc(All(), func(c Check) bool { return c.Name == name })
	for _, tt := range trials {
		t.Run(tt.name, func(t *testing.T) {
			if p := history.Validate(tt.history); len(p) > 0 {
				t.Fatalf("the test's history is malformed: %v", p)
			}
			r := run(All()[i], Gather(tt.history))
			if r.Verdict != tt.want || r.Kind != tt.kind || r.Applies == tt.skipped {
				t.Fatalf("%s %q applies=%v (%s) %+v, want %s %q", r.Verdict, r.Kind, r.Applies, r.Reason, r.Violations, tt.want, tt.kind)
			}
			if !strings.Contains(r.Reason, tt.reason) || r.Verdict == Unknown && r.Reason == "" {
				t.Errorf("reason %q, want %q", r.Reason, tt.reason)
			}
			if tt.want != Violation {
				return
			}
			if tt.count > 0 && len(r.Violations) != tt.count {
				t.Errorf("%d violations, want %d: %+v", len(r.Violations), tt.count, r.Violations)
			}
			v := r.Violations[0]
			if !slices.Equal(v.Ops, tt.ops) {
				t.Errorf("ops %v, want %v", v.Ops, tt.ops)
			}
			if !strings.HasPrefix(v.Fault, tt.fault) || tt.fault == "" && v.Fault != "" {
				t.Errorf("fault %q, want %q", v.Fault, tt.fault)
			}
			if !strings.HasPrefix(v.Earlier, tt.earlier) || tt.earlier == "" && v.Earlier != "" {
				t.Errorf("earlier fault %q, want %q", v.Earlier, tt.earlier)
			}
			for _, part := range tt.summary {
				if !strings.Contains(v.Summary, part) {
					t.Errorf("summary %q lacks %q", v.Summary, part)
				}
			}
		})
	}
}

// permits makes the lock a semaphore.
func permits(n int) func(*history.Header) {
	return func(h *history.Header) { h.Kind, h.Permits = history.KindSemaphore, n }
}

// readersAndWriters and reentrant make it a lock of that kind.
func readersAndWriters(h *history.Header) { h.Kind = history.KindRW }
func reentrant(h *history.Header)         { h.Reentrant = true }

// three is a story on three nodes of which two are a quorum.
func three(events ...history.Event) *history.History {
	return with(story(events...), func(h *history.Header) { h.Topology, h.Nodes = "independent", 3 })
}
