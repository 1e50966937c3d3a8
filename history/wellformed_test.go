package history

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	nemesis := func(t int64, id int, phase string) Event {
		return Event{T: t, Nemesis: &Nemesis{ID: id, Fault: "pause", Phase: phase}}
	}
	note := func(t int64, process int, client, f string, acq int) Event {
		return op(t, process, client, f, Note, acq)
	}
	final := Event{T: 9, Op: &Op{Process: -1, F: Phase, Type: Note, Error: "final"}}
	granted := []Event{op(1, 1, "c1", Acquire, Invoke, 1), op(2, 1, "c1", Acquire, OK, 1)}
	after := func(es ...Event) []Event { return append(granted[:2:2], es...) }

	tests := []struct {
		name   string
		events []Event
		index  int // of the one problem; -2 for none
		want   string
	}{
		{name: "a whole critical section", events: after(op(3, 1, "c1", Read, Invoke, 1), op(4, 1, "c1", Read, OK, 1),
			note(5, 1, "c1", Worked, 1), note(5, 1, "c1", Check, 1), op(6, 1, "c1", Write, Invoke, 1), op(7, 1, "c1", Write, Fail, 1),
			op(8, 1, "c1", Release, Invoke, 1), op(8, 1, "c1", Release, OK, 1), final), index: -2},
		{name: "an invoke without completion", events: granted[:1], index: -2},
		{name: "release by a fresh process after an info", events: after(op(3, 1, "c1", Write, Invoke, 1), op(4, 1, "c1", Write, Info, 1),
			op(5, 2, "c1", Release, Invoke, 1)), index: -2},
		{name: "loss notice in the middle of a call and after the process", events: after(op(3, 1, "c1", Write, Invoke, 1),
			note(4, 1, "c1", Lost, 1), op(4, 1, "c1", Write, Info, 1), note(5, 1, "c1", Lost, 1)), index: -2},
		{name: "fault without stop", events: []Event{nemesis(1, 1, Start)}, index: -2},
		{name: "restart after a crash", events: after(note(3, 1, "c1", Crash, 0), op(4, 2, "c1", Acquire, Invoke, 2)), index: -2},

		{name: "time goes back for real", events: after(op(1, 1, "c1", Release, Invoke, 1)), index: 2, want: "before the event before it"},
		{name: "negative time", events: []Event{op(-1, 1, "c1", Acquire, Invoke, 1)}, index: 0, want: "before the start"},
		{name: "no part", events: []Event{{T: 1}}, index: 0, want: "exactly one"},
		{name: "two invokes", events: []Event{granted[0], op(2, 1, "c1", Acquire, Invoke, 2)}, index: 1, want: "has not completed"},
		{name: "completion without invoke", events: after(op(3, 1, "c1", Acquire, OK, 1)), index: 2, want: "without an invoke"},
		{name: "completion of another op", events: after(op(3, 1, "c1", Release, Invoke, 1), op(4, 1, "c1", Write, OK, 1)), index: 3, want: "had invoked release"},
		{name: "completion under another acquisition", events: []Event{granted[0], op(2, 1, "c1", Acquire, OK, 7)}, index: 1, want: "its invoke was under 1"},
		{name: "op after info", events: []Event{granted[0], op(2, 1, "c1", Acquire, Info, 1), op(3, 1, "c1", Acquire, Invoke, 2)}, index: 2, want: "unknown outcome"},
		{name: "op after crash", events: after(note(3, 1, "c1", Crash, 0), op(4, 1, "c1", Release, Invoke, 1)), index: 3, want: "its client crashed"},
		{name: "unknown type", events: []Event{op(1, 1, "c1", Acquire, "maybe", 1)}, index: 0, want: `type "maybe"`},
		{name: "unknown op", events: []Event{op(1, 1, "c1", "grab", Invoke, 1)}, index: 0, want: `op "grab"`},
		{name: "unknown note", events: []Event{note(1, 1, "c1", "sigh", 0)}, index: 0, want: `note "sigh"`},
		{name: "acquire without id", events: []Event{op(1, 1, "c1", Acquire, Invoke, 0)}, index: 0, want: "no acquisition id"},
		{name: "acquisition id used twice", events: after(op(3, 1, "c1", Acquire, Invoke, 1)), index: 2, want: "invoked before"},
		{name: "write under nothing", events: []Event{op(1, 1, "c1", Write, Invoke, 3)}, index: 0, want: "nobody has invoked"},
		{name: "release of another client's", events: after(op(3, 2, "c2", Release, Invoke, 1)), index: 2, want: "acquisition 1 of c1"},
		{name: "process of two clients", events: after(op(3, 1, "c2", Acquire, Invoke, 2)), index: 2, want: "belongs to client c1"},
		{name: "note under nothing", events: []Event{note(1, 1, "c1", Lost, 4)}, index: 0, want: "nobody has invoked"},
		{name: "stop without start", events: []Event{nemesis(1, 1, Stop)}, index: 0, want: "has not started"},
		{name: "second stop", events: []Event{nemesis(1, 1, Start), nemesis(2, 1, Stop), nemesis(3, 1, Stop)}, index: 2, want: "second time"},
		{name: "second start", events: []Event{nemesis(1, 1, Start), nemesis(2, 1, Start)}, index: 1, want: "second time"},
		{name: "unknown nemesis phase", events: []Event{nemesis(1, 1, "pause")}, index: 0, want: "none of start, stop and never"},
		{name: "server without key", events: []Event{{T: 1, Server: &Server{Node: "n1", Cmd: "SET"}}}, index: 0, want: "needs node, cmd and key"},
		{name: "resource under nothing", events: []Event{{T: 1, Resource: &Resource{Client: "c1", F: Write, Acq: 1}}}, index: 0, want: "nobody has invoked"},
		{name: "resource applied and refused", events: after(Event{T: 3, Resource: &Resource{Client: "c1", F: Write, Acq: 1, Applied: true, Refused: "old"}}), index: 2, want: "both"},
		{name: "two final phases", events: []Event{final, final}, index: 1, want: "second time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Validate(&History{Header: header(), Events: tt.events})
			if tt.index == -2 {
				if len(got) > 0 {
					t.Fatalf("problems %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Index != tt.index || !strings.Contains(got[0].Text, tt.want) {
				t.Fatalf("problems %v, want one at event %d with %q", got, tt.index, tt.want)
			}
		})
	}
}

func TestValidateHeader(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Header)
		want   string
	}{
		{"schema", func(h *Header) { h.Schema = "x" }, "schema"},
		{"TTL", func(h *Header) { h.TTL = 0 }, "TTL"},
		{"drift", func(h *Header) { h.Drift = 1 }, "drift"},
		{"resource", func(h *Header) { h.Resource = "magic" }, "resource"},
		{"quorum below 0", func(h *Header) { h.Quorum = -1 }, "quorum is -1"},
		{"quorum beyond the nodes", func(h *Header) { h.Quorum = h.Nodes + 1 }, "quorum is"},
		{"permits below 0", func(h *Header) { h.Kind, h.Permits = KindSemaphore, -1 }, "lock has -1 permits"},
		{"no clients", func(h *Header) { h.Clients = 0 }, "clients are 0"},
		{"clients below 0", func(h *Header) { h.Clients = -1 }, "clients are -1"},
		{"bound", func(h *Header) { h.LivenessBound = -1 }, "liveness bound"},
	}
	for _, tt := range tests {
		h := header()
		tt.change(&h)
		got := Validate(&History{Header: h})
		if len(got) != 1 || got[0].Index != -1 || !strings.Contains(got[0].String(), "line 1: the "+tt.want) {
			t.Errorf("%s: problems %v", tt.name, got)
		}
	}
}
