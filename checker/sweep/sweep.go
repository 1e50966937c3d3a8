// Package sweep judges the history of one lock: is there an order of its calls
// in which a correct lock would have given these answers? It sorts and sweeps
// where a general linearizability checker searches, because a hold is a pair of
// calls that name each other, and the pair says nearly everything.
//
// It is no general checker, knows nothing of recorded histories or clients, and
// never guesses: what it cannot decide within its budget is Unknown.
//
// Read holds.go (what one acquisition says about itself), cores.go (which
// acquisitions exclude each other), busy.go (who was in the way of a refused
// acquire) and frontier.go (the exact search for the few places where these
// rules leave a choice; windows.go says where), in that order.
package sweep

import (
	"fmt"
	"math"
)

// Infinity is the time of what never happens, or is not known to have.
const Infinity = int64(math.MaxInt64)

// Kind is what a call asked for.
type Kind uint8

// Acquire and Release serve every model; with ReadWrite they are the writer's.
const (
	Acquire Kind = iota
	Release
	RAcquire
	RRelease
)

// Outcome is what the caller was told.
type Outcome uint8

const (
	// OK is a yes.
	OK Outcome = iota
	// Busy is a no: an acquire was refused because somebody else holds the
	// lock, a release because its acquisition does not.
	Busy
	// Unknown is no answer, or one that does not say what happened. The call
	// took effect or not, at any moment since it was made: Return is not read.
	Unknown
)

// Op is one call. Calls whose intervals [Call, Return] share an instant are
// concurrent, as in porcupine, with one exception: a release never comes before
// the acquire that it names.
//
// An acquire without an answer that is known to have succeeded by time t, by a
// write in its name for example, is an OK acquire with Return t.
type Op struct {
	_ struct{}
	// ID names the call in a violation.
	ID int
	// Owner is who a re-entrant lock counts holds for. Other models do not read
	// it: there ownership is per acquisition.
	Owner int
	// Hold is the acquisition: the same in an acquire and in its releases, and
	// in no other acquire.
	Hold int
	Kind Kind
	// Outcome and the times, in any unit.
	Outcome      Outcome
	Call, Return int64
	// Fence of an OK acquire, 0 for none. An acquire without one is not bound
	// by the order of fences. Only fenced models read it.
	Fence uint64
	// LeaseEnd of an acquire is the moment from which the hold may end without
	// a release. Infinity and 0 both mean that it may not.
	LeaseEnd int64
}

// Model is the sequential lock.
type Model uint8

const (
	// Mutex is held by one acquisition at a time.
	Mutex Model = iota
	// Fenced is a mutex whose fences rise along the order of grants.
	Fenced
	// Reentrant is held by one owner at a time, through any number of
	// acquisitions. Each ends by its own release or by its own lease.
	Reentrant
	// ReentrantFenced is Reentrant with fences that rise along the order of
	// grants. One granted while its owner holds may repeat the last fence, if
	// that was given during the same unbroken hold.
	ReentrantFenced
	// ReadWrite is held by one writer or by any number of readers.
	ReadWrite
	// Semaphore is held by at most Rules.Permits acquisitions.
	Semaphore
)

// Rules say what a correct lock is. The zero value is a mutex.
type Rules struct {
	Model Model
	// Permits of a semaphore, 1 if not set.
	Permits int
	// StrictBusy demands for every refused acquire a moment of its call at which
	// the lock could not be granted to it. Without, a refusal may be spurious.
	StrictBusy bool
	// LenientRelease takes a release that says yes although its acquisition
	// holds nothing (any more).
	LenientRelease bool
	// Budget bounds the steps of the exact search. A step is a comparison of two
	// states, some 50 ns. 0 is 4,000,000, and 64 for each call of the history.
	Budget int
	_      struct{}
}

// Verdict on a history.
type Verdict uint8

const (
	// Linearizable: some order of the calls explains every answer.
	Linearizable Verdict = iota
	// Illegal: no order does.
	Illegal
	// Undecided, with the reason.
	Undecided
)

func (v Verdict) String() string {
	return [...]string{"linearizable", "illegal", "undecided"}[v]
}

// Report is the outcome of Check.
type Report struct {
	Verdict Verdict
	// Reason for an undecided verdict.
	Reason string
	// Ops of an illegal history are the IDs of the calls that contradict each
	// other, in order of their calls, and Text says how, in one sentence.
	Ops  []int
	Text string
	// Searched says that the exact search was needed, and Steps how far it went.
	Searched bool
	Steps    int
	_        struct{}
}

// Check judges all calls on one lock, in any order. It needs O(n log n) time,
// plus the exact search where the rules leave a choice.
func Check(rules Rules, ops []Op) Report {
	return (&judge{rules: rules, ops: ops}).check()
}

func (j *judge) check() Report {
	defer j.giveBack()
	return j.decide()
}

func (j *judge) decide() Report {
	if reason := j.read(); reason != "" {
		return Report{Verdict: Undecided, Reason: reason}
	}
	found := j.found
	if found == nil {
		found = j.exclusion()
	}
	if found != nil {
		j.reduce(found)
		return j.illegal(found)
	}
	if j.rules.StrictBusy {
		if found = j.answers(); found != nil {
			return j.illegal(found)
		}
	}
	if j.contested {
		return j.search()
	}
	return Report{Verdict: Linearizable}
}

// judge carries one Check.
type judge struct {
	rules Rules
	ops   []Op
	holds []hold
	busy  []busy
	// found is the first contradiction of an acquisition with itself.
	found *finding
	// answered lists the answered releases of acquires without an answer, other
	// than the one that surely freed the hold.
	answered map[int32][]int32
	// ways of the forked holds.
	ways map[int32][]way
	// owners numbers the owners of a re-entrant lock, from 1 to known.
	owners index
	known  int32
	// mixed says that the holds with fences do not stand in the order of these,
	// or that their returns do not rise with them; last is the one read last.
	mixed bool
	last  ticket
	// tied are those of them whose returns are equal to another one's.
	tied []ticket
	// repeats are the fences that more than one hold carries.
	repeats map[uint64]bool
	blocks  []block
	near    int // the place in blocks that was looked at last
	// solids are the cores of the solid holds, in order of their grants once
	// exclusion has sorted them, if need be. The other holds are brief, or
	// optional.
	solids          []core
	unsorted        bool
	brief, optional []int32
	// loose says that some brief hold may have been granted at several moments.
	loose bool
	// pulled maps the acquire of a hold to the hold with a higher fence that it
	// must have come before, if that says more about granted than its own calls.
	pulled map[int32]int32
	// whole makes the search walk through all time, to test that it need not.
	whole  bool
	memory *memory
	// again is set for a part of a history that is judged to explain the whole.
	again bool
	// contested is set if the rules leave a choice.
	contested bool
	// open are the refused acquires that nobody was surely in the way of.
	open []busy
}

// finding is a contradiction: indices of calls, and a sentence.
type finding struct {
	ops  []int32
	text string
}

func (j *judge) illegal(f *finding) Report {
	return Report{Verdict: Illegal, Ops: j.ids(f.ops), Text: f.text}
}

func (j *judge) permits() int { return max(1, j.rules.Permits) }

func (j *judge) fenced() bool {
	return j.rules.Model == Fenced || j.rules.Model == ReentrantFenced
}

func (r Rules) validate() string {
	if r.Model > Semaphore {
		return fmt.Sprintf("no model %d", r.Model)
	}
	return ""
}
