package history

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one way in which a history is malformed.
type Problem struct {
	// Index of the event, or -1 for the header.
	Index int
	Text  string
}

// Line is the line of the file on which the problem stands.
func (p Problem) Line() int { return p.Index + 2 }

// String names the line and the problem.
func (p Problem) String() string {
	if p.Index < 0 {
		return fmt.Sprintf("line 1: %s", p.Text)
	}
	return fmt.Sprintf("line %d (event %d): %s", p.Line(), p.Index, p.Text)
}

// Validate says what is malformed in a history. A malformed history is the fault
// of whoever recorded it, and nothing about a lock can be concluded from it.
//
// An invoke without a completion is legal anywhere: the run was stopped, or
// the client died, and the call reads as info.
func Validate(h *History) []Problem {
	f := &form{
		processes: map[int]*processForm{},
		acqs:      map[int]*acqForm{},
		faults:    map[int]*faultForm{},
	}
	f.header(&h.Header)
	last := int64(0)
	for i := range h.Events {
		e := &h.Events[i]
		f.index = i
		switch {
		case e.T < 0:
			f.problem("its time is %d, before the start of the run", e.T)
		case e.T < last:
			f.problem("its time %d is before the event before it, at %d", e.T, last)
		}
		last = max(last, e.T)
		f.event(e)
	}
	return f.problems
}

// form is what has to be remembered while a history is read once.
type form struct {
	index     int
	problems  []Problem
	processes map[int]*processForm
	acqs      map[int]*acqForm
	faults    map[int]*faultForm
	final     bool
}

type processForm struct {
	client  string
	pending *Op
	// ended says why nothing more may come from the process.
	ended string
}

type acqForm struct{ client, lock string }

type faultForm struct {
	fault   string
	stopped bool
}

func (f *form) problem(format string, args ...any) {
	f.problems = append(f.problems, Problem{Index: f.index, Text: fmt.Sprintf(format, args...)})
}

func (f *form) header(h *Header) {
	f.index = -1
	if h.Schema != Schema {
		f.problem("the schema is %q, want %q", h.Schema, Schema)
	}
	if h.TTL <= 0 {
		f.problem("the TTL is %d, want more than 0", h.TTL)
	}
	if !(h.Drift >= 0 && h.Drift < 1) {
		f.problem("the drift is %v, want a share of the TTL from 0 to below 1", h.Drift)
	}
	if h.LivenessBound < 0 || h.Nodes < 0 {
		f.problem("the liveness bound or the nodes are below 0")
	}
	if h.Clients < 1 {
		f.problem("the clients are %d, want at least one: nobody else could have called", h.Clients)
	}
	if h.Quorum < 0 || h.Quorum > h.Nodes {
		f.problem("the quorum is %d of %d nodes, want from 0, for a majority, to all of them", h.Quorum, h.Nodes)
	}
	if !slices.Contains([]string{"", KindRW, KindSemaphore}, h.Kind) {
		f.problem("the lock's kind is %q, want %s, %s or none", h.Kind, KindRW, KindSemaphore)
	}
	if h.Permits < 0 || (h.Permits > 0) != (h.Kind == KindSemaphore) {
		f.problem("the lock has %d permits and the kind %q: a semaphore has permits, and nothing else has", h.Permits, h.Kind)
	}
	if !slices.Contains([]string{"", "plain", "guarded", "checked"}, h.Resource) {
		f.problem("the resource is %q, want plain or guarded", h.Resource)
	}
}

func (f *form) event(e *Event) {
	if err := e.onePart(); err != nil {
		f.problem("%v", err)
		return
	}
	switch {
	case e.Op != nil:
		f.op(e.Op)
	case e.Nemesis != nil:
		f.nemesis(e.Nemesis)
	case e.Server != nil:
		f.server(e.Server)
	case e.Resource != nil:
		f.resource(e.Resource)
	}
}

var (
	calls = []string{Acquire, Release, Extend, Read, Write}
	notes = []string{Lost, Check, Abandon, Renewal, Worked, Crash, Phase}
)

func (f *form) op(op *Op) {
	if op.Type == Note {
		f.note(op)
		return
	}
	if !slices.Contains([]Type{Invoke, OK, Fail, Info}, op.Type) {
		f.problem("the type %q is none of invoke, ok, fail, info and note", op.Type)
		return
	}
	if !slices.Contains(calls, op.F) {
		f.problem("the op %q is none of %s", op.F, strings.Join(calls, ", "))
		return
	}
	p := f.process(op)
	if p.ended != "" {
		f.problem("%s %s by process %d, which ended: %s", op.F, op.Type, op.Process, p.ended)
		return
	}
	if op.Type == Invoke {
		f.invoke(p, op)
		return
	}
	f.complete(p, op)
}

func (f *form) process(op *Op) *processForm {
	p := f.processes[op.Process]
	if p == nil {
		p = &processForm{client: op.Client}
		f.processes[op.Process] = p
	}
	if op.Client == "" {
		f.problem("%s %s names no client", op.F, op.Type)
	} else if p.client != op.Client {
		f.problem("process %d belongs to client %s, not to %s", op.Process, p.client, op.Client)
	}
	return p
}

func (f *form) invoke(p *processForm, op *Op) {
	if p.pending != nil {
		f.problem("process %d invokes %s while its %s has not completed", op.Process, op.F, p.pending.F)
	}
	p.pending = op
	if op.F != Acquire {
		f.known(op)
		return
	}
	if !slices.Contains([]string{"", Reading, Writing}, op.Mode) {
		f.problem("the mode of an acquire is %q, want %s, %s or none", op.Mode, Reading, Writing)
	}
	switch {
	case op.Acq <= 0:
		f.problem("an acquire has no acquisition id")
	case f.acqs[op.Acq] != nil:
		f.problem("acquisition %d has been invoked before", op.Acq)
	default:
		f.acqs[op.Acq] = &acqForm{client: op.Client, lock: op.Lock}
	}
}

func (f *form) complete(p *processForm, op *Op) {
	in := p.pending
	p.pending = nil
	switch {
	case in == nil:
		f.problem("process %d completes %s without an invoke", op.Process, op.F)
	case in.F != op.F:
		f.problem("process %d completes %s, but it had invoked %s", op.Process, op.F, in.F)
	case in.Acq != op.Acq:
		f.problem("%s %s is under acquisition %d, but its invoke was under %d", op.F, op.Type, op.Acq, in.Acq)
	}
	if op.Type == Info {
		p.ended = "its " + op.F + " had an unknown outcome"
	}
}

// known says that an op or note stands under an acquisition of its client.
func (f *form) known(op *Op) {
	a := f.acqs[op.Acq]
	switch {
	case a == nil:
		f.problem("%s under acquisition %d, which nobody has invoked", op.F, op.Acq)
	case a.client != op.Client:
		f.problem("%s by %s under acquisition %d of %s", op.F, op.Client, op.Acq, a.client)
	case op.Lock != "" && a.lock != "" && op.Lock != a.lock:
		f.problem("%s on lock %s under acquisition %d of lock %s", op.F, op.Lock, op.Acq, a.lock)
	}
}

// note checks what stands alone. A loss notice comes on a goroutine of its
// own, so it may come in the middle of a call and after the process's last.
func (f *form) note(op *Op) {
	switch op.F {
	case Phase:
		f.phase(op)
	case Crash:
		f.crash(op)
	case Lost:
		f.known(op)
	case Check, Abandon, Renewal, Worked:
		if p := f.process(op); p.ended != "" {
			f.problem("note %s by process %d, which ended: %s", op.F, op.Process, p.ended)
		}
		f.known(op)
	default:
		f.problem("the note %q is none of %s", op.F, strings.Join(notes, ", "))
	}
}

func (f *form) phase(op *Op) {
	if op.Error == "" {
		f.problem("a phase note names no phase")
	}
	if op.Error == "final" {
		if f.final {
			f.problem("the final phase begins a second time")
		}
		f.final = true
	}
}

// crash ends all processes of the client that have been seen so far. The
// client may be started again; its threads are new processes then.
func (f *form) crash(op *Op) {
	if op.Client == "" {
		f.problem("a crash note names no client")
		return
	}
	for _, p := range f.processes {
		if p.client == op.Client {
			p.ended = "its client crashed"
		}
	}
}

func (f *form) nemesis(n *Nemesis) {
	if n.Fault == "" {
		f.problem("a nemesis event names no fault")
	}
	started := f.faults[n.ID]
	switch n.Phase {
	case Never: // stands alone
	case Start:
		if started != nil {
			f.problem("fault %d starts a second time", n.ID)
			return
		}
		f.faults[n.ID] = &faultForm{fault: n.Fault}
	case Stop:
		switch {
		case started == nil:
			f.problem("fault %d (%s) stops but has not started", n.ID, n.Fault)
			return
		case started.stopped:
			f.problem("fault %d (%s) stops a second time", n.ID, n.Fault)
		case started.fault != n.Fault:
			f.problem("fault %d stops as %s but started as %s", n.ID, n.Fault, started.fault)
		}
		started.stopped = true
	default:
		f.problem("the nemesis phase %q is none of start, stop and never", n.Phase)
	}
}

func (f *form) server(s *Server) {
	if s.Node == "" || s.Cmd == "" || s.Key == "" {
		f.problem("a server event needs node, cmd and key; it has %q, %q and %q", s.Node, s.Cmd, s.Key)
	}
	if s.PTTL < -2 {
		f.problem("a server event has a PTTL of %d, below -2", s.PTTL)
	}
}

func (f *form) resource(r *Resource) {
	if r.Client == "" {
		f.problem("a resource event names no client")
	}
	if r.F != Read && r.F != Write {
		f.problem("a resource event is %q, neither read nor write", r.F)
	}
	if f.acqs[r.Acq] == nil {
		f.problem("a %s arrived under acquisition %d, which nobody has invoked", r.F, r.Acq)
	}
	if r.Applied && r.Refused != "" {
		f.problem("a %s was both applied and refused (%s)", r.F, r.Refused)
	}
}
