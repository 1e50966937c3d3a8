package reports

import (
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// TestCalls: instants keep their order in the picture, an open call is open, and
// times have the digits that tell them apart.
func TestCalls(t *testing.T) {
	calls := []Call{
		{Who: "c2", What: "acquire ok", From: 3_000_001_000, To: 5_000_000_000},
		{Who: "c1", What: "acquire ok, fence 5", From: 1_000_000_000, To: 3_000_000_000},
		{Who: "c1", What: "release no answer", From: 9_000_000_000, To: Open, Context: true},
	}
	faults := []Call{{Who: "pause", What: "c1 paused", From: 2_000_000_000, To: 4_000_000_000}}
	got := Calls(calls, faults, 100, false)
	want := []string{
		"  c1     acquire ok, fence 5  [=======]                          1.000000s to 3.000000s",
		"  c2     acquire ok                      [=======]               3.000001s to 5.000000s",
		"  c1     release no answer                            [------->  9.000000s on",
		"  pause  c1 paused                    [~~~~~~~~~~]               2.000000s to 4.000000s",
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, line := range got {
		// The columns are judged by what is above what, not counted.
		if fields := strings.Fields(line); !strings.HasPrefix(want[i], line[:20]) || fields[len(fields)-1] != strings.Fields(want[i])[len(strings.Fields(want[i]))-1] {
			t.Errorf("got  %q\nwant %q", line, want[i])
		}
	}
	if one, two := strings.Index(got[0], "]"), strings.Index(got[1], "["); one >= two {
		t.Errorf("c2 is called after c1 was granted, but is drawn before:\n%s", strings.Join(got, "\n"))
	}
	if !strings.Contains(got[2], ">") || !strings.Contains(got[2], "-") || strings.Contains(got[2], "=") {
		t.Errorf("an open call for orientation is drawn as %q", got[2])
	}
	var many []Call
	for i := range int64(40) {
		many = append(many, Call{Who: "c", What: "acquire", From: i, To: i + 1})
	}
	if got := Calls(many, nil, 80, false); len(got) != mostCalls+1 || !strings.Contains(got[mostCalls], "16 more calls") {
		t.Errorf("%d lines, %q", len(got), got[len(got)-1])
	}
	for _, line := range Calls(calls, faults, 60, false) {
		if len(line) > 80 {
			t.Errorf("%q is %d wide", line, len(line))
		}
	}
}

// TestCallsOf: the calls of a violation, with the releases of their acquisitions
// for orientation and the faults of their time only.
func TestCallsOf(t *testing.T) {
	op := func(at int64, client string, process int, f string, kind history.Type, acq int) history.Event {
		return history.Event{T: at, Op: &history.Op{Client: client, Process: process, F: f, Type: kind, Acq: acq}}
	}
	fault := func(at int64, id int, phase string) history.Event {
		return history.Event{T: at, Nemesis: &history.Nemesis{ID: id, Fault: "pause", Phase: phase, What: "c1 paused"}}
	}
	h := &history.History{Events: []history.Event{
		fault(0, 1, history.Start), fault(0, 1, history.Stop),
		op(1, "c1", 1, history.Acquire, history.Invoke, 1), op(2, "c1", 1, history.Acquire, history.OK, 1),
		fault(3, 2, history.Start),
		op(4, "c2", 2, history.Acquire, history.Invoke, 2), op(5, "c2", 2, history.Acquire, history.OK, 2),
		op(6, "c1", 1, history.Release, history.Invoke, 1), op(7, "c1", 1, history.Release, history.Info, 1),
		fault(8, 2, history.Stop),
		op(9, "c3", 3, history.Acquire, history.Invoke, 3), op(10, "c3", 3, history.Acquire, history.OK, 3),
	}}
	calls, faults := callsOf(h, []int{3, 6})
	want := []Call{
		{Who: "c1", What: "acquire ok", From: 1, To: 2}, {Who: "c2", What: "acquire ok", From: 4, To: 5},
		{Who: "c1", What: "release info", From: 6, To: Open, Context: true},
	}
	if len(calls) != len(want) {
		t.Fatalf("%+v", calls)
	}
	for i := range want {
		if calls[i] != want[i] {
			t.Errorf("got %+v, want %+v", calls[i], want[i])
		}
	}
	if len(faults) != 1 || faults[0].From != 3 || faults[0].To != 8 {
		t.Errorf("faults %+v", faults)
	}
}
