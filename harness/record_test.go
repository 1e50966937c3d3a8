package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
)

// TestThreadRetires: after an unknown outcome the process number is never used
// again, and the next one is still this client's own.
func TestThreadRetires(t *testing.T) {
	var n notebook
	th := newThread(&n)
	for _, kind := range []history.Type{history.OK, history.Fail, history.Info, history.OK, history.Info, history.OK} {
		th.done(history.Op{F: history.Acquire, Type: kind})
	}
	for i, want := range []int{1, 1, 1, 4, 4, 7} {
		if got := n.ops[i]; got.Process != want || got.Client != "c2" {
			t.Errorf("event %d: process %d of %s, want %d of c2", i, got.Process, got.Client, want)
		}
	}
	th.note(history.Op{F: history.Worked, Type: history.Note})
	if th.process != 7 {
		t.Errorf("a note retired the process: %d", th.process)
	}
}

// TestOutcome: definite errors are fails, all others are infos, each with its
// code and text.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		err  error
		want history.Type
		code impl.Code
	}{
		{nil, history.OK, ""},
		{impl.ErrNotObtained, history.Fail, impl.CodeNotObtained},
		{impl.ErrNotHeld, history.Fail, impl.CodeNotHeld},
		{impl.ErrUnreachable, history.Fail, impl.CodeUnreachable},
		{impl.ErrUnknownOutcome, history.Info, impl.CodeUnknown},
		{context.DeadlineExceeded, history.Info, impl.CodeUnclassified},
		{errors.New("never seen"), history.Info, impl.CodeUnclassified},
	} {
		op := outcome(history.Op{F: history.Acquire, Acq: 3}, c.err)
		if op.Type != c.want || op.Code != string(c.code) || op.Acq != 3 || (c.err != nil && op.Error != c.err.Error()) {
			t.Errorf("%v: got %+v, want %s %s", c.err, op, c.want, c.code)
		}
	}
}

func TestStoreOutcome(t *testing.T) {
	for _, c := range []struct {
		err  error
		want history.Type
		code string
	}{
		{nil, history.OK, ""},
		{errRefused, history.Fail, codeRefused},
		{context.DeadlineExceeded, history.Info, string(impl.CodeUnknown)},
	} {
		if op := storeOutcome(history.Op{F: history.Write}, c.err); op.Type != c.want || op.Code != c.code {
			t.Errorf("%v: got %s %s, want %s %s", c.err, op.Type, op.Code, c.want, c.code)
		}
	}
}

// TestAcquireRecords: invoke before the call, ok after it with all that the
// lease tells, and nothing to hold after a failure.
func TestAcquireRecords(t *testing.T) {
	var n notebook
	start := time.Now()
	lease := &talkative{fence: 33, until: start.Add(time.Second), lost: make(chan struct{})}
	r := recorded{lock: &fakeLock{lease: lease}, name: "orders", thread: newThread(&n), start: start}
	h, err := r.acquire(context.Background(), 5, "")
	if err != nil || h.acq != 5 {
		t.Fatalf("%+v, %v", h, err)
	}
	lease.err = impl.ErrNotHeld
	h.release(context.Background())
	r.lock = &fakeLock{err: impl.ErrUnknownOutcome}
	if h, err := r.acquire(context.Background(), 8, ""); err == nil {
		t.Fatalf("a hold without a lease: %+v", h)
	}
	want := []struct {
		f    string
		kind history.Type
		acq  int
	}{
		{history.Acquire, history.Invoke, 5}, {history.Acquire, history.OK, 5},
		{history.Release, history.Invoke, 5}, {history.Release, history.Fail, 5},
		{history.Acquire, history.Invoke, 8}, {history.Acquire, history.Info, 8},
	}
	for i, w := range want {
		if op := n.ops[i]; op.F != w.f || op.Type != w.kind || op.Acq != w.acq {
			t.Errorf("event %d: %+v, want %+v", i, op, w)
		}
	}
	if ok := n.ops[1]; ok.Fence == nil || *ok.Fence != 33 || ok.Until == nil || *ok.Until != time.Second.Nanoseconds() {
		t.Errorf("acquire ok lost what the lease told: %+v", ok)
	}
}

// TestValid: a hold is believed in until its lease tells that it is over; what
// it tells is noted when it is new.
func TestValid(t *testing.T) {
	hold := func(l impl.Lease) (*hold, *notebook) {
		n := &notebook{}
		r := recorded{lock: &fakeLock{lease: l}, name: "orders", thread: newThread(n), start: time.Now()}
		h, err := r.acquire(context.Background(), 1, "")
		if err != nil {
			t.Fatal(err)
		}
		return h, n
	}
	last := func(n *notebook) string { return n.ops[len(n.ops)-1].F }

	h, n := hold(&plainLease{})
	if !h.valid() || h.lost() != nil || last(n) != history.Acquire {
		t.Errorf("a lease that tells nothing: %+v", n.ops)
	}

	told := &talkative{until: time.Now().Add(time.Hour), lost: make(chan struct{})}
	h, n = hold(told)
	if !h.valid() || last(n) != history.Acquire {
		t.Errorf("nothing new was told, and %s was noted", last(n))
	}
	told.until = told.until.Add(time.Hour)
	if !h.valid() || last(n) != history.Check || n.ops[2].Until == nil || len(n.ops) != 3 {
		t.Errorf("the end moved on: %+v", n.ops)
	}
	told.until = time.Now().Add(-time.Nanosecond)
	if h.valid() || last(n) != history.Abandon {
		t.Errorf("the end has passed: %+v", n.ops)
	}

	told = &talkative{until: time.Now().Add(time.Hour), lost: make(chan struct{})}
	h, n = hold(told)
	close(told.lost)
	if h.valid() || last(n) != history.Lost {
		t.Errorf("the lease was lost: %+v", n.ops)
	}
	select {
	case <-h.lost():
	default:
		t.Error("the loss notice is not handed on")
	}
}

// TestLiveness: the final phase is over once every client that lives has been
// granted the lock in it.
func TestLiveness(t *testing.T) {
	l := newLiveness([]string{"c1", "c2", "c3"})
	granted := func(client string) {
		l.observe(history.Event{Op: &history.Op{Client: client, F: history.Acquire, Type: history.OK}})
	}
	granted("c1") // before the phase: shows nothing
	l.observe(history.Event{Nemesis: &history.Nemesis{Fault: "cut"}})
	l.observe(finalEvent())
	l.observe(history.Event{Op: &history.Op{Client: "c1", F: history.Acquire, Type: history.Fail}})
	granted("c2")
	l.observe(history.Event{Op: &history.Op{Client: "c3", F: history.Crash, Type: history.Note}})
	if l.shown() {
		t.Error("c1 has not been granted the lock since the phase began")
	}
	granted("c1")
	if !l.shown() {
		t.Error("all that live have been granted the lock")
	}
}
