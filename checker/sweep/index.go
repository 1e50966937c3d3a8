package sweep

import "slices"

// index finds an acquisition: its hold's place plus 1, or the place of its
// refused acquire as -1 minus it, or 0.
//
// Most callers number most acquisitions without large holes, and a table is then
// many times as fast as a map. Those far from the others are in a map.
type index struct {
	table  []int32
	first  int
	sparse map[int]int32
}

// sampled is how many calls are looked at to see where numbers lie, and how many
// calls there are of a kind. A wrong guess costs time only.
const sampled = 1024

// newIndex is an index for the acquisitions of calls, in the place of a table
// that nobody needs any more.
func newIndex(ops []Op, table []int32) index {
	x := index{sparse: map[int]int32{}}
	if len(ops) == 0 {
		return x
	}
	stride := (len(ops) + sampled - 1) / sampled
	sample := make([]int, 0, sampled)
	for i := 0; i < len(ops); i += stride {
		sample = append(sample, ops[i].Hold)
	}
	slices.Sort(sample)
	middle, reach := sample[len(sample)/2], uint64(2*len(ops))
	near := slices.DeleteFunc(sample, func(n int) bool {
		return uint64(max(n, middle))-uint64(min(n, middle)) > reach
	})
	span := near[len(near)-1] - near[0]
	margin := span/16 + 4*stride + 64
	x.first = near[0] - margin
	x.table = room(table, span+2*margin)[:span+2*margin]
	clear(x.table)
	return x
}

func (x *index) get(hold int) int32 {
	if at := uint(hold) - uint(x.first); at < uint(len(x.table)) {
		return x.table[at]
	}
	return x.sparse[hold]
}

func (x *index) set(hold int, to int32) {
	if at := uint(hold) - uint(x.first); at < uint(len(x.table)) {
		x.table[at] = to
		return
	}
	x.sparse[hold] = to
}
