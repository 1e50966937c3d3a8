package sweep

import (
	"cmp"
	"fmt"
	"slices"
)

// hold is one acquisition that took effect, or may have. It is granted at some
// moment of [called, granted] and freed at some moment of [free, freed], not
// before it was granted. Between granted and free it surely held: its core.
//
// A release that says yes frees its hold within its own interval. A release
// that says no must find the hold gone, so it was freed by its return. A
// release without an answer, and the end of the lease, let the hold be freed at
// any later time or never. So the freedom of a hold is one interval:
//
//	acquire   [1 2]
//	release A       [4  5] no answer      may free from 4 on
//	release B               [6  7] no     freed by 7, so granted in [1 2], freed in [4 7]
type hold struct {
	called, granted, free, freed int64
	// class: holds of one class never exclude each other, see class.
	class int32
	// acquire is an index into the ops, and so are ended, the call that set
	// free (or -1 for the lease), and deadline, the one that set freed (or -1).
	acquire, ended, deadline int32
	// yes is the release that surely freed it, or -1.
	yes int32
	// optional: the acquire has no answer and nothing shows that it took effect.
	optional bool
	// forked: the hold cannot use all of its two intervals at once, but can have
	// gone in one of several ways. One that is granted and freed at once, at any
	// moment at which it may, always is one of them.
	forked bool
}

// way is one way for an acquisition to have gone.
type way struct{ called, granted, free, freed int64 }

// solid says that there is a moment at which it surely held. A hold that may
// end before its caller hears of it is not:
//
//	acquire [1          9]     lease ends at 5: it held at some moment of
//	               5           [1 9], and nobody knows which
func (h *hold) solid() bool { return h.free > h.granted }

// core is what most rules need of a solid hold. It is a third as long, and a
// million of them are walked through as often as the rules need.
type core struct {
	from, to    int64 // granted and free of the hold
	class, hold int32
}

func (h *hold) core(at int32) core {
	return core{from: h.granted, to: h.free, class: h.class, hold: at}
}

// fence of a hold, 0 for none.
func (j *judge) fence(h *hold) uint64 {
	if op := &j.ops[h.acquire]; j.fenced() && op.Outcome == OK {
		return op.Fence
	}
	return 0
}

// busy is a refused acquire.
type busy struct {
	call, ret int64
	class     int32
	op        int32
}

// read turns calls into holds. It returns why the calls are no history.
func (j *judge) read() string {
	if reason := j.rules.validate(); reason != "" {
		return reason
	}
	index := j.borrow()
	var early []int32 // releases that stand before their acquires, in the list
	fenced := j.fenced()
	for i := range j.ops {
		op := &j.ops[i]
		if op.Outcome != Unknown && op.Return < op.Call {
			return fmt.Sprintf("call %d returned before it was made", op.ID)
		}
		known := index.get(op.Hold)
		if !op.acquires() {
			if known == 0 {
				early = append(early, int32(i))
			} else if reason := j.release(known, int32(i)); reason != "" {
				return reason
			}
			continue
		}
		if known != 0 {
			return fmt.Sprintf("two acquires name the acquisition %d", op.Hold)
		}
		if op.Outcome == Busy {
			index.set(op.Hold, -1-int32(i))
			j.busy = append(j.busy, busy{call: op.Call, ret: op.Return, class: j.class(int32(i)), op: int32(i)})
			continue
		}
		index.set(op.Hold, int32(len(j.holds))+1)
		if fenced && op.Outcome == OK && op.Fence != 0 {
			if op.Fence <= j.last.fence || op.Return <= j.last.granted {
				j.disorder(op)
			}
			j.last.fence, j.last.called, j.last.granted, j.last.hold = op.Fence, op.Call, op.Return, int32(len(j.holds))
		}
		h := hold{called: op.Call, granted: op.Return, free: op.LeaseEnd, freed: Infinity,
			class: j.class(int32(i)), acquire: int32(i), ended: -1, deadline: -1, yes: -1, optional: op.Outcome == Unknown}
		if h.free == 0 {
			h.free = Infinity
		}
		j.holds = append(j.holds, h)
	}
	for _, r := range early {
		if reason := j.release(index.get(j.ops[r].Hold), r); reason != "" {
			return reason
		}
	}
	j.memory.solids = room(j.memory.solids, len(j.holds))
	j.solids = j.memory.solids
	for i := range j.holds {
		// Of a solid hold with answers all is known, and so of most.
		if h := &j.holds[i]; h.optional || h.free <= h.granted || h.free > h.freed {
			j.settle(int32(i))
		}
		j.place(int32(i))
	}
	return ""
}

func (op *Op) acquires() bool { return op.Kind == Acquire || op.Kind == RAcquire }

// place lists a hold with the solid ones, with those that are not, or with those
// that need not have been.
func (j *judge) place(at int32) {
	switch h := &j.holds[at]; {
	case h.optional:
		j.optional = append(j.optional, at)
	case h.solid():
		if n := len(j.solids); n > 0 && j.solids[n-1].from > h.granted {
			j.unsorted = true
		}
		j.solids = append(j.solids, h.core(at))
	default:
		j.loose = j.loose || h.free < h.granted
		j.brief = append(j.brief, at)
	}
}

// class numbers holds so that two exclude each other exactly if their classes
// differ: each acquisition is a class of its own in a mutex, so is each writer,
// all readers are one class, and so are all holds of a re-entrant owner. A
// semaphore does not read it.
func (j *judge) class(op int32) int32 {
	switch j.rules.Model {
	case Reentrant, ReentrantFenced:
		if j.owners.sparse == nil {
			j.owners = index{table: make([]int32, sampled), sparse: map[int]int32{}}
		}
		owner := j.ops[op].Owner
		c := j.owners.get(owner)
		if c == 0 {
			j.known++
			c = j.known
			j.owners.set(owner, c)
		}
		return c - 1
	case ReadWrite:
		if j.ops[op].Kind == RAcquire {
			return readers
		}
	case Semaphore:
		return readers
	}
	return op + 1
}

// readers is the class of every reader.
const readers = 0

// release adds a release to its acquisition, which is known to the index. Until all of them are known, free
// is when the hold may end by itself, by a lost release or, if its acquire had
// an answer, by a lenient yes, and freed when an answer shows it gone.
func (j *judge) release(known, r int32) string {
	op := &j.ops[r]
	at := known - 1
	if at == -1 {
		return fmt.Sprintf("release %d names the acquisition %d, which no acquire does", op.ID, op.Hold)
	}
	if at < 0 {
		if op.Outcome == OK && !j.rules.LenientRelease {
			j.contradict(fmt.Sprintf("release %d said yes, although acquire %d had been refused",
				op.ID, j.ops[-2-at].ID), -2-at, r)
		}
		return ""
	}
	h := &j.holds[at]
	if !h.optional && op.Call < h.granted {
		return fmt.Sprintf("release %d was called before acquire %d had returned", op.ID, j.ops[h.acquire].ID)
	}
	switch {
	case op.Outcome == OK && !j.rules.LenientRelease:
		if h.yes >= 0 {
			j.contradict(fmt.Sprintf("releases %d and %d both said yes, but acquire %d can be released only once",
				j.ops[h.yes].ID, op.ID, j.ops[h.acquire].ID), h.acquire, h.yes, r)
		}
		h.yes = r
		j.freedBy(h, op)
		return ""
	case op.Outcome != Unknown && h.optional:
		if j.answered == nil {
			j.answered = map[int32][]int32{}
		}
		j.answered[at] = append(j.answered[at], r)
		return ""
	}
	if op.Outcome != Busy && op.Call < h.free && h.yes < 0 {
		h.free, h.ended = op.Call, r
	}
	if op.Outcome != Unknown && op.Return < h.freed {
		h.freed, h.deadline = op.Return, r
	}
	return ""
}

// settle works out the interval in which a hold was freed.
func (j *judge) settle(at int32) {
	h := &j.holds[at]
	switch {
	case !h.optional:
	case h.yes >= 0:
		j.released(at)
	default:
		j.lost(at)
	}
	if h.free < h.called {
		h.free = h.called
	}
	if h.free > h.freed {
		j.selfContradiction(h)
	}
	if !h.optional && h.granted > h.freed {
		h.granted = h.freed
	}
}

// released settles a hold whose acquire had no answer, and that a release surely
// freed. This is the proof that it took effect, by the release's return.
//
// Another release of it, that was told no, came after that, or, for an acquire
// without an answer, before it took effect:
//
//	acquire [1 ...  no answer
//	release A  [2 3] no        either granted after 2 ...
//	release B      [3 5] yes   ... or freed by 3
func (j *judge) released(at int32) {
	h := &j.holds[at]
	yes := &j.ops[h.yes]
	h.optional, h.granted = false, yes.Return
	if answers := j.answered[at]; answers != nil {
		j.fork(at, j.possible(answers, way{called: h.called, granted: yes.Return, free: yes.Call, freed: yes.Return}))
	}
}

// freedBy takes the release that surely freed the hold: neither the lease nor a
// release without an answer says more about when it may have been freed.
//
//	acquire [1 2]     lease ends at 5
//	release A     [3 ...   no answer
//	release B          [8 9] yes     it held until 8, or B would have been told no
func (j *judge) freedBy(h *hold, yes *Op) {
	h.free, h.ended = yes.Call, h.yes
	if yes.Return <= h.freed {
		h.freed, h.deadline = yes.Return, h.yes
	}
}

// lost settles an acquire without an answer that nothing shows to have taken
// effect. It can be left out of any explanation of the other holds, since the
// lock is only free more often without it; it matters to a refused acquire.
//
// A release of it that was answered, by a no or a lenient yes, may have come
// first. The hold may then be granted after the release, and stay:
//
//	acquire [1 ...  no answer, its request is still on the way
//	release   [2 3] no
//	                   4   the acquire takes effect
func (j *judge) lost(at int32) {
	h := &j.holds[at]
	h.granted = Infinity
	if answers := j.answered[at]; answers != nil {
		ways := j.possible(answers, way{called: h.called, granted: Infinity, free: h.free, freed: Infinity})
		h.called = ways[0].called // it was granted after all of them, which is always possible
		if len(ways) > 1 {
			j.fork(at, ways)
		}
	}
}

func (j *judge) fork(at int32, ways []way) {
	if j.ways == nil {
		j.ways = map[int32][]way{}
	}
	j.holds[at].forked, j.ways[at] = true, ways
}

// possible are the ways in which an acquire without an answer can have gone,
// given what releases of it were told. Of the moments from which it may have
// been granted, it is enough to look at the calls of these releases. Those
// called by then may have come first and found nothing, and those called later
// found it gone, or freed it with a lenient yes. One called by then may have
// freed it, too:
//
//	acquire [1 ...         no answer
//	release A  [2     6]   yes    freed it, when it had been granted after 4
//	release B     [3 4]    yes    came before it was granted
//
// The way in which all releases came first is the first of them.
func (j *judge) possible(answers []int32, whole way) []way {
	slices.SortFunc(answers, func(a, b int32) int { return cmp.Compare(j.ops[a].Call, j.ops[b].Call) })
	var ways []way
	add := func(w way) {
		w.free = max(w.free, w.called)
		w.granted = min(w.granted, w.freed)
		if w.free <= w.freed && w.called <= w.granted {
			ways = append(ways, w)
		}
	}
	for first := len(answers); first >= 0; first-- {
		w := whole
		if first > 0 {
			w.called = max(w.called, j.ops[answers[first-1]].Call)
		}
		for _, a := range answers[first:] {
			w.endBy(&j.ops[a])
		}
		add(w)
		for _, a := range answers[:first] {
			if op := &j.ops[a]; op.Outcome == OK {
				freed := w
				freed.endBy(op)
				add(freed)
			}
		}
	}
	return ways
}

// endBy takes a release that found the hold gone, or freed it.
func (w *way) endBy(op *Op) {
	w.freed = min(w.freed, op.Return)
	if op.Outcome == OK {
		w.free = min(w.free, op.Call)
	}
}

// contradict notes the first contradiction of an acquisition with itself.
func (j *judge) contradict(text string, ops ...int32) {
	if j.found == nil {
		j.found = &finding{ops: ops, text: text}
	}
}
