package sweep

import "slices"

// block is a stretch of time, open at both ends, in which the solid holds let
// nobody of another class in: the union of overlapping cores or, for a
// semaphore, a stretch in which all permits are taken. Two cores that only
// touch are two blocks, because a hold of no length fits between them:
//
//	A [1 2]........[5 6]            core 2 to 5
//	B           [4 5].......[8 9]   core 5 to 8, and a moment at 5 for others
//
// Its hold means nothing.
type block = core

// exclusion decides the history without its refused acquires: it is
// linearizable if and only if
//
//   - the cores of two holds that exclude each other do not overlap, and no
//     moment is in more cores of a semaphore than it has permits;
//   - each hold that is not solid finds a moment outside all blocks;
//   - fences rise.
//
// Necessary, since a hold surely holds during its core. Sufficient, since
// nothing forces a hold beyond its core: grant each solid hold as late and free
// it as early as its calls allow, and let the others hold for a moment only.
// Holds for a moment never exclude each other. An acquire without an answer that
// nothing proves is left out, which only leaves the lock free more often.
//
// Placing an acquire anywhere earlier than its return would be wrong:
//
//	A [1 2]........[6 7]
//	B   [3           8]........[9 10]
//
// If B were taken to be granted at 3, it would overlap A; granted at 8, it does
// not. So would placing a release at its return: B granted in [5 6] is legal if
// A, released in [4 8], was freed before.
func (j *judge) exclusion() *finding {
	var chain []ticket
	if j.fenced() {
		var found *finding
		if chain, found = j.fences(); found != nil {
			return found
		}
	}
	if found := j.overlap(); found != nil {
		return found
	}
	for _, at := range j.brief {
		if h := &j.holds[at]; (j.timely() || j.fence(h) == 0) && j.room(h.free, h.class) > h.granted {
			return j.noRoom(h)
		}
	}
	return j.placeFenced(chain)
}

// overlap sweeps over the cores in the order of their starts. It lists the
// blocks if anybody will ask for them.
func (j *judge) overlap() *finding {
	if j.unsorted {
		arrange(j.solids, func(a, b core) bool { return a.from < b.from })
	}
	wanted := j.rules.StrictBusy || len(j.brief) > 0
	if j.rules.Model == Semaphore {
		return j.permitted(wanted)
	}
	longest := core{from: -Infinity, to: -Infinity} // of the holds in the current block
	nested := false
	for i := range j.solids {
		c := &j.solids[i]
		switch {
		case longest.to <= c.from:
			longest = *c
			continue
		case longest.class != c.class:
			return j.collision(&j.holds[longest.hold], &j.holds[c.hold])
		case c.to > longest.to:
			longest = *c
		}
		nested = true
	}
	switch {
	case !wanted:
	case nested:
		j.unite()
	default: // each is a block of its own
		j.solids = slices.Clip(j.solids) // whoever appends to it makes another list
		j.blocks = j.solids
	}
	return nil
}

// unite makes blocks of cores that overlap only where they are of one class.
func (j *judge) unite() {
	j.blocks = make([]block, 0, len(j.solids))
	for _, c := range j.solids {
		if n := len(j.blocks); n == 0 || j.blocks[n-1].to <= c.from {
			j.blocks = append(j.blocks, c)
		} else {
			j.blocks[n-1].to = max(j.blocks[n-1].to, c.to)
		}
	}
}

// permitted is overlap for a semaphore: it sweeps over the starts and ends of
// cores, ends first, since cores are open at both ends and a permit that is given
// back can be taken at that instant:
//
//	A [1 2]....[5 5]              one permit: starts first, there would be two
//	B      [4 5]....[8 9]         holds at 5
//
// Its blocks have no class: whoever asks finds all permits
// taken.
func (j *judge) permitted(wanted bool) *finding {
	ends := make([]int64, len(j.solids))
	for i := range j.solids {
		ends[i] = j.solids[i].to
	}
	arrange(ends, func(a, b int64) bool { return a < b })
	full := j.permits()
	if wanted {
		j.blocks = make([]block, 0, len(j.solids)/full+1)
	}
	active, next := 0, 0
	open := int64(0)
	leave := func() {
		if active == full && wanted {
			j.blocks = append(j.blocks, block{from: open, to: ends[next], class: -1})
		}
		active, next = active-1, next+1
	}
	for _, c := range j.solids {
		for ends[next] <= c.from {
			leave()
		}
		if active == full {
			return j.crowd(&j.holds[c.hold])
		}
		active++
		if active == full {
			open = c.from
		}
	}
	for active > 0 {
		leave()
	}
	return nil
}

// room is the first moment from t on at which a hold of the class can hold for
// a moment. The end of a block always is one.
func (j *judge) room(t int64, class int32) int64 {
	i := seek(len(j.blocks), j.near, func(i int) bool { return j.blocks[i].to > t })
	j.near = i
	if i < len(j.blocks) && j.blocks[i].from < t && j.blocks[i].class != class {
		return j.blocks[i].to
	}
	return t
}

// fences sorts the holds that carry one, and pulls deadlines forward: a hold
// was granted before every hold with a higher fence, so by the first of their
// returns. Within a nest this bites where a call overlaps an inner one:
//
//	outer [1        10]  fence 5     granted by 6, since the inner one came later
//	inner    [2   6]     fence 6
func (j *judge) fences() ([]ticket, *finding) {
	if j.timely() {
		return j.tied, nil
	}
	chain := j.tickets()
	if !j.mixed {
		return chain, nil // each was called by its own grant, so by all later ones
	}
	arrange(chain, func(a, b ticket) bool {
		return a.fence < b.fence || a.fence == b.fence && a.granted < b.granted
	})
	// by is the hold that the deadline of those with lower fences stems from.
	by := int32(-1)
	deadline := Infinity
	for end := len(chain); end > 0; {
		start := end - 1
		for start > 0 && chain[start-1].fence == chain[end-1].fence {
			start--
		}
		group := chain[start:end]
		if found := j.repeated(group); found != nil {
			return nil, found
		}
		first, least := by, deadline
		for _, g := range group {
			if g.called > deadline {
				return nil, j.backwards(&j.holds[g.hold], &j.holds[by])
			}
			if g.granted < least {
				first, least = g.hold, g.granted
			}
			if g.granted > deadline {
				j.pull(g.hold, deadline, by)
			}
		}
		by, deadline = first, least
		end = start
	}
	if j.pulled != nil {
		j.solids, j.brief, j.optional, j.unsorted = j.solids[:0], j.brief[:0], j.optional[:0], false
		for i := range j.holds {
			j.place(int32(i))
		}
	}
	return chain, nil
}

// ticket is a hold in the order of fences.
type ticket struct {
	fence           uint64
	called, granted int64 // before its deadline was pulled
	hold            int32
}

// disorder is told of an answered acquire with a fence that does not come after
// the one before, j.last, in every respect: fence, grant and return. Where all do,
// the fences say nothing that the times do not, and need not be sorted. Nothing
// makes the grant of an answered acquire earlier than its return, since no release
// of it was called before that.
func (j *judge) disorder(op *Op) {
	t := ticket{fence: op.Fence, called: op.Call, granted: op.Return, hold: int32(len(j.holds))}
	switch {
	case j.last.fence == 0: // there is none before
	case j.last.fence >= t.fence || j.last.granted > t.granted:
		j.mixed = true
	default:
		if n := len(j.tied); n == 0 || j.tied[n-1].hold != j.last.hold {
			j.tied = append(j.tied, j.last)
		}
		j.tied = append(j.tied, t)
	}
}

// timely says that the order of the times is that of the fences, except where two
// grants are at one instant: each hold that is not solid held at the instant of
// its return, each with a lower fence returned before that, and each with a higher
// one after. Of two at one instant, only the fences know which came first:
//
//	A [1 5].......[9 10]  fence 1    A held from before B on, and at 5, so B had no
//	B [4 5][5 6]          fence 2    place; by their times, B may have come first
//
// A hold that may have been granted at several moments need not have held at the
// instant of its return, and finds a place that its fence forbids:
//
//	A    [4 5]........[11 12]  fence 1      B has room at 3, but A came first,
//	B [1          10]          fence 2      and leaves none until B has returned
//	     lease ends at 3
func (j *judge) timely() bool { return !j.mixed && !j.loose }

// tickets lists the holds with fences as they stand in the history.
func (j *judge) tickets() []ticket {
	chain := make([]ticket, 0, len(j.holds))
	for i := range j.holds {
		if h := &j.holds[i]; !h.optional {
			if fence := j.fence(h); fence != 0 {
				chain = append(chain, ticket{fence: fence, called: h.called, granted: h.granted, hold: int32(i)})
			}
		}
	}
	return chain
}

// pull makes a hold granted by a deadline that another one set.
func (j *judge) pull(at int32, deadline int64, by int32) {
	if j.pulled == nil {
		j.pulled = map[int32]int32{}
	}
	h := &j.holds[at]
	h.granted = deadline
	j.pulled[h.acquire] = by
}

// repeated judges holds that carry one fence: only a nest may.
func (j *judge) repeated(group []ticket) *finding {
	if len(group) == 1 {
		return nil
	}
	one, two := &j.holds[group[0].hold], &j.holds[group[1].hold]
	if j.rules.Model == Fenced {
		return j.twice(one, two)
	}
	if j.repeats == nil {
		j.repeats = map[uint64]bool{}
	}
	j.repeats[group[0].fence] = true
	reach := one.free
	for _, g := range group[1:] {
		h := &j.holds[g.hold]
		if h.class != one.class {
			return j.twice(one, h)
		}
		// Each is granted while an earlier one surely holds, or else whether it
		// can have been depends on what the calls around them leave room for. If
		// it was granted at the very end of the one before, somebody else who
		// must have held at that instant breaks the nest:
		//
		//	A [5 5]  fence 2, lease ends at 9
		//	X      [9 9]  lease ended, held at 9    before X, C cannot be granted:
		//	C      [9 9]  fence 2, of A's owner     A holds; after X, it is no nest
		if h.granted >= reach || !h.solid() || !one.solid() {
			j.contested = true
		}
		reach = max(reach, h.free)
	}
	return nil
}

// placeFenced places the holds that are not solid in the order of their
// fences, each as early as it can be. Early is best: whoever comes later in the
// order only needs it to have been granted. At its return would be wrong:
//
//	A [1     5]          fence 1, lease ends at 2     A held at 2, and not at 5
//	X    [3 4]..[6 7]    no fence
//
// And so would be as early as its own call allows: one before it in the order may
// hold until later, though nothing but the fences says that it came before.
//
// Repeated fences that are contested are left to the search, which places all.
func (j *judge) placeFenced(chain []ticket) *finding {
	if j.contested || len(j.brief) == 0 {
		return nil
	}
	last, reach := -Infinity, -Infinity // the last grant, the end of the last class's cores
	class := int32(-1)
	run := 0 // since when each was pushed by the one before
	for i, c := range chain {
		h := &j.holds[c.hold]
		if h.solid() {
			if h.class != class {
				class, reach = h.class, -Infinity
			}
			last, reach = h.granted, max(reach, h.free)
			run = i
			continue
		}
		if last <= h.free && reach <= h.free {
			run = i
		}
		at := max(h.free, last)
		if h.class != class {
			at = max(at, reach)
		}
		at = j.room(at, h.class)
		if at > h.granted {
			return j.noPlace(h, chain[run:i])
		}
		last = max(last, at)
	}
	return nil
}
