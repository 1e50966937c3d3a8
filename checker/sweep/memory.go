package sweep

import "sync"

// memory is what a judge needs for the whole of a history. The next judge uses it
// again, since to ask for it and to clear it takes a quarter of the time of a
// check. Nobody reads what another one wrote: lists are taken empty.
type memory struct {
	holds  []hold
	busy   []busy
	solids []core
	table  []int32
}

var memories = sync.Pool{New: func() any { return &memory{} }}

// borrow takes memory for the history, and makes the index of its acquisitions.
func (j *judge) borrow() index {
	j.memory = memories.Get().(*memory)
	holds, refusals := shares(j.ops)
	j.holds, j.busy = room(j.memory.holds, holds), room(j.memory.busy, refusals)
	x := newIndex(j.ops, j.memory.table)
	j.memory.table = x.table
	return x
}

// giveBack lets the next judge have it. The judge is of no use any more.
func (j *judge) giveBack() {
	if j.memory == nil {
		return
	}
	j.memory.holds, j.memory.busy = j.holds, j.busy
	memories.Put(j.memory)
	j.memory, j.holds, j.busy, j.solids, j.blocks = nil, nil, nil, nil, nil
}

// room is an empty list with room for so many.
func room[T any](list []T, n int) []T {
	if cap(list) >= n {
		return list[:0]
	}
	return make([]T, 0, n)
}

// shares guesses how many calls are acquires that may have taken effect, and how
// many are refused ones, with some more to be safe.
func shares(ops []Op) (holds, refusals int) {
	stride := max(1, len(ops)/sampled)
	for i := 0; i < len(ops); i += stride {
		switch {
		case !ops[i].acquires():
		case ops[i].Outcome == Busy:
			refusals++
		default:
			holds++
		}
	}
	reserve := func(n int) int { return min(len(ops), n*stride+n*stride/8+stride) }
	return reserve(holds), reserve(refusals)
}
