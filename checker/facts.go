package checker

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// Facts is what the checks share, computed once from a history: who held the
// lock when, by his own belief and by the lock's guarantee, and what was
// broken meanwhile. Reports draw their lanes from it.
type Facts struct {
	History *history.History
	// End is the time of the last event.
	End int64
	// Acquisitions in the order of their invokes, refused ones included.
	Acquisitions []*Acquisition
	// ByAcq finds an acquisition by its id.
	ByAcq map[int]*Acquisition
	// Locks in the order of first use.
	Locks []string
	// Faults in the order of their starts.
	Faults []Fault
	// Never lists faults whose trigger did not fire.
	Never []string
	// Resource lists the arrivals at the protected resource.
	Resource []Arrival
	// Phases in order.
	Phases []PhaseMark
	// Final is the index into Phases of the final phase, or -1.
	Final int

	// keys is the server trace, key by key, and traced whether there is one.
	keys   *keys
	traced bool
	// successions are the moments at which another node began to count, in order.
	successions []succession
	// follows maps a token to the first token of the same hold.
	follows map[string]string
}

// Interval is a half-open stretch of time, [From, To).
type Interval struct{ From, To int64 }

// Overlaps says whether two intervals share a stretch of positive length.
func (i Interval) Overlaps(o Interval) bool {
	return max(i.From, o.From) < min(i.To, o.To)
}

// Arrival is a read or write at the protected resource.
type Arrival struct {
	Index int // into History.Events
	T     int64
	*history.Resource
}

// PhaseMark is the moment at which a phase began.
type PhaseMark struct {
	Name  string
	Index int // into History.Events
	T     int64
}

// Why a belief ended.
const (
	EndRelease = "release" // the release was invoked
	EndLost    = "lost"    // the holder saw the loss notice
	EndUntil   = "until"   // the validity that the holder had been told last was over
	EndAbandon = "abandon" // the holder saw that its validity was over and gave up
	EndCrash   = "crash"   // the client died
	EndHistory = "end"     // the history ends first
)

// Acquisition is one acquire and everything done under it. Indices point into
// History.Events and are -1 for what did not happen.
type Acquisition struct {
	Acq     int
	Client  string
	Process int
	// Thread of the client, from 0.
	Thread int
	Lock   string
	// Mode is read or write where the lock is for readers and writers.
	Mode  string
	Fence *uint64

	// Outcome of the acquire; info for one that never completed.
	Outcome history.Type
	// Code of a refused or unknown acquire.
	Code string
	// Invoked and Done are the times of the acquire's invoke and completion;
	// Done is the end of the history, or the crash of the client, for one that
	// never completed. For an ok acquire, Done is the grant.
	Invoked, Done            int64
	InvokeIndex, DoneIndex   int
	ReleaseIndex             int // of the first release's invoke
	ReleaseInvoked           int64
	ReleaseDoneIndex         int // of the completion that decided the outcome
	ReleaseDone              int64
	ReleaseOutcome           history.Type // empty without release
	ReleaseCode              string
	CrashIndex, AbandonIndex int

	// Belief is when the holder believed that it held the lock. There is more
	// than one interval if it was told of a later validity only after the
	// earlier one had passed.
	Belief []Interval
	// BeliefEnd is when belief ended for good, why, and the event that ended
	// it (-1 for until and end).
	BeliefEnd      int64
	BeliefWhy      string
	BeliefEndIndex int

	// Guaranteed is when the lock service stood by its promise. It is empty
	// for a grant that the client heard about only after the lease was over.
	Guaranteed []Interval
	// GuaranteedEnd is the end of the first guaranteed lease: the first of
	// LeaseEnd and the release's invoke. It may lie before Done.
	GuaranteedEnd int64
	// LeaseStart is the moment from which the first lease counts, and
	// LeaseEnd its end with all renewals in an unbroken row, whether or not a
	// release came before it.
	LeaseStart, LeaseEnd int64
	// Alias of its token in the server trace; empty if the trace shows none.
	Alias string
	// Renewals that the server trace shows, as indices.
	Renewals []int

	// LastAct is the last time at which the client did something under the
	// acquisition, up to the release's invoke: how long it stayed inside.
	LastAct int64
	// gone is the first moment at which the service, or the lock itself, told
	// the holder that it holds nothing: a loss notice or a refused extend.
	gone int64

	marks   []mark
	extends []extension
	// told are the events with validity ends that the holder was told, and
	// looks those that show that it looked and was told of no loss.
	told, looks []int
	// noticed is the event with which it saw the loss, or -1, and quiet the
	// time of the event before that: it may have been inside a call till then.
	noticed int
	quiet   int64
	// within is the hold whose token it shares, where it has none of its own.
	within *Acquisition
	// key that its token was put on, and when the nodes did not carry it.
	key    string
	lapses []lapse
	// unasked: no command of its client ran during the acquire.
	unasked bool
}

// Held says whether the acquire succeeded.
func (a *Acquisition) Held() bool { return a.Outcome == history.OK }

// Pending says whether the acquire never completed.
func (a *Acquisition) Pending() bool { return a.DoneIndex < 0 }

// never is later than every event.
const never = math.MaxInt64

// after adds without running over the end of time.
func after(t int64, d time.Duration) int64 {
	if d > 0 && t > never-int64(d) {
		return never
	}
	return t + int64(d)
}

// Gather reads the history once and derives everything that checks share. It
// takes malformed histories too, without promising anything about the result.
func Gather(h *history.History) *Facts {
	f := &Facts{History: h, ByAcq: map[int]*Acquisition{}, Final: -1}
	if n := len(h.Events); n > 0 {
		f.End = h.Events[n-1].T
	}
	g := &gatherer{
		facts:   f,
		pending: map[int]int{},
		clients: map[string][]*Acquisition{},
		trace:   map[string][]int{},
		locks:   map[string]bool{},
		owners:  map[place]string{},
		joined:  map[int][]string{},
	}
	for i := range h.Events {
		g.event(i, &h.Events[i])
	}
	f.faults()
	f.followTokens()
	for _, a := range f.Acquisitions {
		if a.Pending() {
			a.Outcome = history.Info
			a.Done = f.End
			if a.CrashIndex >= 0 {
				a.Done = h.Events[a.CrashIndex].T
			}
		}
		if a.Held() {
			a.believe(f.End)
			g.lease(a)
		}
	}
	f.keys = f.trackKeys()
	f.homes()
	f.carry()
	return f
}

// gatherer is what the one pass over the events has to remember.
type gatherer struct {
	facts *Facts
	// pending maps a process to the index of its open invoke.
	pending map[int]int
	// clients maps a client to what it acquired since it was last started.
	clients map[string][]*Acquisition
	// trace maps a client to the server events of its commands.
	trace map[string][]int
	locks map[string]bool
	// owners of each key after the last event on it, and the tokens that an
	// event put beside others on a key.
	owners map[place]string
	joined map[int][]string
}

func (g *gatherer) event(i int, e *history.Event) {
	if e.Server != nil {
		g.join(i, e.Server)
	}
	switch {
	case e.Op != nil:
		g.op(i, e.T, e.Op)
	case e.Server != nil && e.Server.Client != "":
		g.facts.traced = true
		g.trace[e.Server.Client] = append(g.trace[e.Server.Client], i)
	case e.Resource != nil:
		f := g.facts
		f.Resource = append(f.Resource, Arrival{Index: i, T: e.T, Resource: e.Resource})
		if a := f.ByAcq[e.Resource.Acq]; a != nil && e.Resource.F == history.Write && a.ReleaseIndex < 0 {
			a.LastAct = e.T
		}
	}
}

// join notes which tokens an event added to a key that names several.
func (g *gatherer) join(i int, s *history.Server) {
	p := place{s.Node, s.Key}
	if strings.Contains(s.Owner, ",") {
		for _, token := range strings.Split(s.Owner, ",") {
			if !carries(g.owners[p], token) {
				g.joined[i] = append(g.joined[i], token)
			}
		}
	}
	g.owners[p] = s.Owner
}

func (g *gatherer) op(i int, t int64, op *history.Op) {
	switch {
	case op.Type == history.Note && op.F == history.Phase:
		f := g.facts
		if op.Error == "final" && f.Final < 0 {
			f.Final = len(f.Phases)
		}
		f.Phases = append(f.Phases, PhaseMark{Name: op.Error, Index: i, T: t})
	case op.Type == history.Note && op.F == history.Crash:
		for _, a := range g.clients[op.Client] {
			a.CrashIndex = i
			a.marks = append(a.marks, mark{t: t, index: i, end: EndCrash})
		}
		delete(g.clients, op.Client)
	case op.F == history.Acquire:
		g.acquire(i, t, op)
	default:
		if a := g.facts.ByAcq[op.Acq]; a != nil {
			g.under(a, i, t, op)
		}
	}
	switch op.Type {
	case history.Invoke:
		g.pending[op.Process] = i
	case history.OK, history.Fail, history.Info:
		delete(g.pending, op.Process)
	}
}

func (g *gatherer) acquire(i int, t int64, op *history.Op) {
	f := g.facts
	a := f.ByAcq[op.Acq]
	if op.Type == history.Invoke && a == nil {
		a = &Acquisition{Acq: op.Acq, Client: op.Client, Process: op.Process, Thread: op.Thread, Lock: op.Lock, Mode: op.Mode,
			Invoked: t, InvokeIndex: i, DoneIndex: -1, ReleaseIndex: -1, ReleaseDoneIndex: -1,
			CrashIndex: -1, AbandonIndex: -1, BeliefEndIndex: -1, noticed: -1, quiet: t, LastAct: t, gone: never}
		f.ByAcq[op.Acq] = a
		f.Acquisitions = append(f.Acquisitions, a)
		g.clients[op.Client] = append(g.clients[op.Client], a)
		if !g.locks[op.Lock] {
			g.locks[op.Lock] = true
			f.Locks = append(f.Locks, op.Lock)
		}
		return
	}
	if a == nil || op.Type == history.Invoke || op.Type == history.Note || !a.Pending() {
		return
	}
	a.Outcome, a.Code, a.Done, a.DoneIndex = op.Type, op.Code, t, i
	if op.Type == history.OK {
		a.Fence = op.Fence
		a.LastAct = t
		a.marks = append(a.marks, mark{t: t, index: i, until: op.Until})
		if op.Until != nil {
			a.told = append(a.told, i)
		}
	}
}

// under takes what is done under an acquisition.
func (g *gatherer) under(a *Acquisition, i int, t int64, op *history.Op) {
	if op.Type != history.Info && op.F != history.Lost && a.ReleaseIndex < 0 {
		a.LastAct = t
	}
	if op.Until != nil {
		a.marks = append(a.marks, mark{t: t, index: i, until: op.Until})
		a.told = append(a.told, i)
	}
	a.look(i, t, op)
	switch op.F {
	case history.Release:
		a.release(i, t, op)
	case history.Lost:
		a.gone = min(a.gone, t)
		a.marks = append(a.marks, mark{t: t, index: i, end: EndLost})
	case history.Abandon:
		a.AbandonIndex = i
		a.marks = append(a.marks, mark{t: t, index: i, end: EndAbandon})
	case history.Extend:
		in, ok := g.pending[op.Process]
		if !ok || op.Type == history.Invoke {
			return
		}
		invoked := g.facts.History.Events[in].T
		switch op.Type {
		case history.OK:
			a.extends = append(a.extends, extension{index: i, invoked: invoked, done: t})
		case history.Fail:
			if op.Code != unreachable && !slices.Contains(errorReplies, op.Code) {
				a.gone = min(a.gone, invoked)
			}
		}
	}
}

// look notes what shows whether the holder knew of a loss. It looks at its
// lease when it has worked and once more before it writes.
func (a *Acquisition) look(i int, t int64, op *history.Op) {
	switch {
	case a.noticed >= 0:
	case op.F == history.Lost || op.F == history.Abandon:
		a.noticed = i
	case op.F == history.Worked, op.F == history.Write && op.Type == history.Invoke, op.Until != nil && *op.Until > t:
		a.looks = append(a.looks, i)
	}
	if a.noticed < 0 {
		a.quiet = t
	}
}

// release keeps the first invoke, which ends belief, and the outcome that
// says most: a client may release again after an unknown outcome.
func (a *Acquisition) release(i int, t int64, op *history.Op) {
	if op.Type == history.Invoke {
		if a.ReleaseIndex < 0 {
			a.ReleaseIndex, a.ReleaseInvoked, a.ReleaseOutcome = i, t, history.Info
			a.marks = append(a.marks, mark{t: t, index: i, end: EndRelease})
		}
		return
	}
	if a.ReleaseIndex < 0 || a.ReleaseOutcome == history.OK || op.Type == history.Note {
		return
	}
	a.ReleaseOutcome, a.ReleaseCode, a.ReleaseDone, a.ReleaseDoneIndex = op.Type, op.Code, t, i
}
