package reports

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// seated is a run of two seconds in which every op is one of a client's thread
// on a lock.
func seated(change func(*history.Header), events ...history.Event) *history.History {
	h := &history.History{Header: history.Header{Schema: history.Schema, Lock: "some", World: "sim", TTL: time.Second, Clients: 2}, Events: events}
	change(&h.Header)
	return h
}

func opAt(t float64, op history.Op) history.Event {
	return history.Event{T: int64(t * 1e9), Op: &op}
}

func keyAt(t float64, key, owner, value string) history.Event {
	return history.Event{T: int64(t * 1e9), Server: &history.Server{Node: "n1", Client: "c1", Cmd: "EVAL", Key: key, Owner: owner, Value: value, PTTL: 1000}}
}

// granted is an acquire and its release.
func granted(from, to float64, op history.Op) []history.Event {
	all := make([]history.Event, 0, 4)
	for _, step := range []struct {
		t    float64
		f    string
		kind history.Type
	}{{from - 0.01, history.Acquire, history.Invoke}, {from, history.Acquire, history.OK}, {to, history.Release, history.Invoke}, {to + 0.01, history.Release, history.OK}} {
		op.F, op.Type = step.f, step.kind
		all = append(all, opAt(step.t, op))
	}
	return all
}

func TestLanesOfThreadsAndLocks(t *testing.T) {
	first := granted(0.1, 0.5, history.Op{Client: "c1", Lock: "orders", Acq: 1})
	second := granted(1, 1.5, history.Op{Client: "c1", Process: 2, Thread: 1, Lock: "stock", Acq: 2})
	h := seated(func(*history.Header) {}, append(first, append(second, opAt(2, history.Op{Process: -1, Client: "c1", F: history.Crash, Type: history.Note}))...)...)
	picture := Diagram(h, nil, 100, false)
	if !strings.Contains(picture[0], "Who held the locks orders and stock") {
		t.Errorf("the title does not say which locks: %s", picture[0])
	}
	if l := laneOf(t, picture, "c1/1 orders"); !inOrder(l, "=", ".", "X") {
		t.Errorf("the first thread held orders and crashed: %s", l)
	}
	if l := laneOf(t, picture, "c1/2 stock"); !inOrder(l, "..", "=", "X") {
		t.Errorf("the second thread held stock and crashed: %s", l)
	}
}

func TestLanesOfReadersAndPermits(t *testing.T) {
	reader := granted(0.1, 1, history.Op{Client: "c1", Lock: "orders", Mode: history.Reading, Acq: 1})
	events := append(reader[:2:2], keyAt(0.2, "readers:orders", "c1#1", "2"))
	events = append(events, reader[2:]...)
	picture := Diagram(seated(func(h *history.Header) { h.Kind = history.KindRW }, events...), nil, 100, false)
	if l := laneOf(t, picture, "c1"); !strings.Contains(l, "::") || strings.Contains(l, "=") {
		t.Errorf("a hold for reading: %s", l)
	}
	if l := laneOf(t, picture, "n1 readers"); !strings.Contains(l, "22") {
		t.Errorf("the node counts two readers: %s", l)
	}
	holder := granted(0.1, 1, history.Op{Client: "c1", Lock: "orders", Acq: 1})
	events = append(holder[:2:2], keyAt(0.2, "permits:orders", "c2#1,c1#1,c3#1", ""))
	events = append(events, holder[2:]...)
	picture = Diagram(seated(func(h *history.Header) { h.Kind, h.Permits = history.KindSemaphore, 3 }, events...), nil, 100, false)
	if l := laneOf(t, picture, "n1 permits"); !strings.Contains(l, "33") {
		t.Errorf("the node counts three permits: %s", l)
	}
	if all := strings.Join(picture, "\n"); !strings.Contains(all, "how many the node counts") || strings.Contains(all, "who owns it") {
		t.Errorf("the legend takes numbers for clients:\n%s", all)
	}
}
