package sweep

import (
	"slices"
	"sort"
)

// window is a stretch of time that the search has to walk through: around open
// refusals, up to the next instants at which it is known who holds.
//
// Such an instant is the start of a block whose class differs from that of the
// block before, with no acquire under way that is not solid. There, everybody
// of another class is gone, and those of the block's own class who are granted
// early or late make no difference: they hold beside each other.
//
//	A [1 2]..[5 6]               B [8 9]..[12 13]         C [20 21]..[25 26]
//	no              [7 7]                                     no      [27 27]
//	          ^-- known at 2          ^-- known at 9        ^-- known at 21
//
// The search walks from 2 to 9, and from 21 on. A window starts before the
// call of its refusals, not with it: at the instant of the grant, the holder
// before can still explain a refusal.
type window struct {
	from, to int64
	// limit is the start of the first block after the window of another class
	// than the one that it ends in. Who joined that one must be gone by then:
	//
	//	U [1 ...                                       a reader, no answer, lease until 50
	//	no           [6 7]                             a writer, by U only
	//	A                 [9 10]..[12 13]              a reader, beside U
	//	B                                 [20 21]      a writer, whom U would be in the way of
	//
	// The window ends at 10, where A holds, and U may hold as well; its limit is 21.
	limit int64
	// fence is the highest given before the window.
	fence uint64
}

// Of a semaphore it is known who holds when a block starts: whose cores are in it
// hold all permits, so nobody else does. (With the last permit untaken, one more
// might.)
//
//	A [1 2]..............[9 10]      two permits: known at 4, and at 8, but not
//	B [3 4]..[5 6]                   at 2, when somebody may hold beside A
//	C           [7 8]....[11 12]
//
// windows returns the windows in order. Without a rule for known instants, as
// for repeated fences, there is one window for all time.
func (f *frontier) windows() []window {
	j := f.j
	all := []window{{from: -Infinity, to: Infinity, limit: Infinity}}
	if j.whole || len(j.repeats) > 0 {
		return all
	}
	known := f.known()
	arrange(j.open, func(a, b busy) bool { return a.call < b.call })
	var out []window
	for _, b := range j.open {
		w := window{from: -Infinity, to: Infinity, limit: Infinity}
		if i := sort.Search(len(known), func(i int) bool { return known[i] >= b.call }); i > 0 {
			w.from = known[i-1]
		}
		if i := sort.Search(len(known), func(i int) bool { return known[i] >= b.ret }); i < len(known) {
			w.to = known[i]
		}
		if n := len(out); n > 0 && w.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, w.to)
			continue
		}
		out = append(out, w)
	}
	f.limits(out)
	return out
}

// known lists the instants at which it is known who holds. A hold that is not
// solid spoils those from its call to the first start of a block that it must
// have come before: not only while it may still be granted, but also after, for
// nothing else shows that a reader stayed:
//
//	A [1 2]..[3 4]                    C [9 9]..[12 13]     writer A, reader C
//	B          [4 7], free from 6 on                       a reader, may stay
//	no                                        [14 14]      a writer, by B
func (f *frontier) known() []int64 {
	j := f.j
	// spoilt counts, as differences, holds that are not solid.
	spoilt := make([]int32, len(j.blocks)+2)
	for _, at := range j.unsure() {
		h := &j.holds[at]
		from := sort.Search(len(j.blocks), func(i int) bool { return j.blocks[i].from >= h.called })
		end := h.granted
		if h.forked && j.rules.Model == Semaphore { // it holds in one of several ways
			end = max(end, h.freed)
		}
		to := 1 + sort.Search(len(j.blocks), func(i int) bool { return j.blocks[i].to > end })
		if from < to {
			spoilt[from]++
			spoilt[to]--
		}
	}
	var out []int64
	n := int32(0)
	for i, b := range j.blocks {
		n += spoilt[i]
		if n == 0 && (j.rules.Model == Semaphore || i > 0 && j.blocks[i-1].class != b.class) {
			out = append(out, b.from)
		}
	}
	return out
}

// unsure lists the holds that took effect at moments that nobody knows.
func (j *judge) unsure() []int32 {
	out := slices.Clone(j.brief)
	for at := range j.ways {
		if h := &j.holds[at]; !h.optional && h.solid() {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

// limits completes the windows with what lies between them.
func (f *frontier) limits(windows []window) {
	j := f.j
	differs := j.nextOfOtherClass()
	var order []int32
	for i := 0; j.fenced() && i < len(j.holds); i++ {
		if h := &j.holds[i]; !h.optional && j.fence(h) != 0 {
			order = append(order, int32(i))
		}
	}
	arrange(order, func(a, b int32) bool { return j.holds[a].granted < j.holds[b].granted })
	fence := uint64(0)
	for i := range windows {
		w := &windows[i]
		for len(order) > 0 && j.holds[order[0]].granted < w.from {
			fence = max(fence, j.fence(&j.holds[order[0]]))
			order = order[1:]
		}
		w.fence = fence
		if w.to == Infinity || j.rules.Model == Semaphore { // nobody else holds at its end
			continue
		}
		k := sort.Search(len(j.blocks), func(k int) bool { return j.blocks[k].from >= w.to })
		if k < len(j.blocks) && int(differs[k]) < len(j.blocks) {
			w.limit = j.blocks[differs[k]].from
		}
	}
}

// enter starts a window: everybody who held before has gone or is of the class
// of the first block. Of a semaphore, those in the first block hold, and the last
// of them is granted now.
func (f *frontier) enter(w *window) {
	active := f.within(w.from)
	var fresh collection
	for _, s := range f.ways {
		f.put(&fresh, f.copy(&state{active: active, spent: s.spent, used: s.used, fence: w.fence}))
	}
	f.spare = append(append(f.spare, f.ways...), fresh.dropped...)
	f.ways = fresh.all
	f.pending = slices.DeleteFunc(f.pending, func(c int32) bool {
		return !f.cands[c].optional && f.j.holds[f.cands[c].hold].granted < w.from
	})
	for f.next < len(f.j.solids) && f.j.solids[f.next].from < w.from {
		f.next++
	}
}

// within lists the holds of a semaphore that were granted before an instant and
// surely hold at it. It is asked with rising instants.
func (f *frontier) within(t int64) []int32 {
	j := f.j
	if j.rules.Model != Semaphore {
		return nil
	}
	for ; f.passed < len(j.solids) && j.solids[f.passed].from < t; f.passed++ {
		f.inside = append(f.inside, j.solids[f.passed])
	}
	f.inside = slices.DeleteFunc(f.inside, func(c core) bool { return c.to <= t })
	active := make([]int32, 0, len(f.inside))
	for _, c := range f.inside {
		active = append(active, f.first[c.hold])
	}
	slices.Sort(active)
	return active
}

// leave ends a window: an acquire without an answer that still holds must be
// able to go before somebody of another class holds.
func (f *frontier) leave(w *window) {
	f.limit = w.limit
	f.ways = slices.DeleteFunc(f.ways, func(s *state) bool {
		return slices.ContainsFunc(s.active, func(a int32) bool {
			return f.cands[a].optional && f.cands[a].free > w.limit
		})
	})
}
