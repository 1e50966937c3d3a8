package sweep

import (
	"cmp"
	"slices"
	"sort"
)

// block is a stretch of time, open at both ends, in which the solid holds let
// nobody of another class in: the union of overlapping cores or, for a
// semaphore, a stretch in which all permits are taken. Two cores that only
// touch are two blocks, because a hold of no length fits between them:
//
//	A [1 2]........[5 6]            core 2 to 5
//	B           [4 5].......[8 9]   core 5 to 8, and a moment at 5 for others
type block struct {
	from, to int64
	class    int32
}

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
	var chain []int32
	if j.fenced() {
		var found *finding
		if chain, found = j.fences(); found != nil {
			return found
		}
	}
	if found := j.overlap(); found != nil {
		return found
	}
	for i := range j.holds {
		h := &j.holds[i]
		if h.optional || h.solid() || h.fence != 0 {
			continue
		}
		if j.room(h.free, h.class) > h.granted {
			return j.noRoom(h)
		}
	}
	return j.placeFenced(chain)
}

// overlap sweeps over the starts and ends of cores, ends first.
func (j *judge) overlap() *finding {
	starts := make([]int32, 0, len(j.holds))
	wanted := j.rules.StrictBusy // whether anybody will ask for the blocks
	for i := range j.holds {
		switch h := &j.holds[i]; {
		case h.optional:
		case h.solid():
			starts = append(starts, int32(i))
		default:
			wanted = true
		}
	}
	slices.SortFunc(starts, func(a, b int32) int { return cmp.Compare(j.holds[a].granted, j.holds[b].granted) })
	ends := make([]int64, len(starts))
	for i, s := range starts {
		ends[i] = j.holds[s].free
	}
	slices.Sort(ends)
	j.solids = starts
	if wanted {
		j.blocks = make([]block, 0, len(starts))
	}

	full := 1
	semaphore := j.rules.Model == Semaphore
	if semaphore {
		full = j.permits()
	}
	active, next := 0, 0
	var longest int32 // of the holds in the current block
	var open int64
	for _, s := range starts {
		h := &j.holds[s]
		for ends[next] <= h.granted {
			if active == full && wanted {
				j.blocks = append(j.blocks, block{from: open, to: ends[next], class: j.blockClass(longest)})
			}
			active--
			next++
		}
		switch {
		case semaphore && active == full:
			return j.crowd(h)
		case !semaphore && active > 0 && j.holds[longest].class != h.class:
			return j.collision(&j.holds[longest], h)
		}
		if active == 0 || h.free > j.holds[longest].free {
			longest = s
		}
		active++
		if active == full {
			open = h.granted
		}
	}
	for ; active > 0; active, next = active-1, next+1 {
		if active == full && wanted {
			j.blocks = append(j.blocks, block{from: open, to: ends[next], class: j.blockClass(longest)})
		}
	}
	return nil
}

// blockClass is none for a semaphore: whoever asks finds its permits taken.
func (j *judge) blockClass(h int32) int32 {
	if j.rules.Model == Semaphore {
		return -1
	}
	return j.holds[h].class
}

// room is the first moment from t on at which a hold of the class can hold for
// a moment. The end of a block always is one.
func (j *judge) room(t int64, class int32) int64 {
	i := sort.Search(len(j.blocks), func(i int) bool { return j.blocks[i].to > t })
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
func (j *judge) fences() ([]int32, *finding) {
	var chain []int32
	for i := range j.holds {
		if h := &j.holds[i]; !h.optional && h.fence != 0 {
			chain = append(chain, int32(i))
		}
	}
	slices.SortFunc(chain, func(a, b int32) int {
		return cmp.Or(cmp.Compare(j.holds[a].fence, j.holds[b].fence), cmp.Compare(j.holds[a].granted, j.holds[b].granted))
	})
	// by is the hold that the deadline of those with lower fences stems from.
	by := int32(-1)
	deadline := Infinity
	for end := len(chain); end > 0; {
		start := end - 1
		fence := j.holds[chain[start]].fence
		for start > 0 && j.holds[chain[start-1]].fence == fence {
			start--
		}
		group := chain[start:end]
		if found := j.repeated(group); found != nil {
			return nil, found
		}
		first, least := by, deadline
		for _, g := range group {
			h := &j.holds[g]
			if h.called > deadline {
				return nil, j.backwards(h, &j.holds[by])
			}
			if h.granted < least {
				first, least = g, h.granted
			}
			if h.granted > deadline {
				h.granted, h.pulled = deadline, by+1
			}
		}
		by, deadline = first, least
		end = start
	}
	return chain, nil
}

// repeated judges holds that carry one fence: only a nest may.
func (j *judge) repeated(group []int32) *finding {
	if len(group) == 1 {
		return nil
	}
	one, two := &j.holds[group[0]], &j.holds[group[1]]
	if j.rules.Model == Fenced {
		return j.twice(one, two)
	}
	reach := one.free
	for _, g := range group[1:] {
		h := &j.holds[g]
		if h.class != one.class {
			return j.twice(one, h)
		}
		// Each is granted while an earlier one surely holds, or else whether it
		// can have been depends on what the calls around them leave room for. If
		// it was granted at the very end of the one before, somebody else who
		// must have held at that instant breaks the nest.
		if h.granted >= reach || !h.solid() || !one.solid() {
			j.contested = true
		}
		reach = max(reach, h.free)
	}
	return nil
}

// placeFenced places the holds that are not solid in the order of their
// fences, each as early as it can be. Early is best: whoever comes later in the
// order only needs it to have been granted.
//
// Repeated fences that are contested are left to the search, which places all.
func (j *judge) placeFenced(chain []int32) *finding {
	if j.contested {
		return nil
	}
	last, reach := -Infinity, -Infinity // the last grant, the end of the last class's cores
	class := int32(-1)
	run := 0 // since when each was pushed by the one before
	for i, c := range chain {
		h := &j.holds[c]
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
