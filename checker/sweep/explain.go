package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ids lists the IDs of calls in the order of their calls.
func (j *judge) ids(ops []int32) []int {
	sorted := slices.Clone(ops)
	slices.SortStableFunc(sorted, func(a, b int32) int { return cmp.Compare(j.ops[a].Call, j.ops[b].Call) })
	var out []int
	for _, i := range slices.Compact(sorted) {
		out = append(out, j.ops[i].ID)
	}
	return out
}

// holdOps are the calls that say when a hold began and ended.
func holdOps(holds ...*hold) []int32 {
	var ops []int32
	for _, h := range holds {
		ops = append(ops, h.acquire)
		for _, r := range []int32{h.ended, h.deadline} {
			if r >= 0 && !slices.Contains(ops, r) {
				ops = append(ops, r)
			}
		}
	}
	return ops
}

func (j *judge) id(op int32) int { return j.ops[op].ID }

// since says when a hold was granted, in words.
func (j *judge) since(h *hold) string {
	if a := &j.ops[h.acquire]; a.Outcome == OK {
		return fmt.Sprintf("acquire %d, granted by %d", a.ID, a.Return)
	}
	return fmt.Sprintf("acquire %d, granted by %d as its release shows", j.id(h.acquire), h.granted)
}

// until says why a hold cannot have ended before it was free to.
func (j *judge) until(h *hold) string {
	switch {
	case h.ended >= 0 && h.free == h.called:
		return "was free to end at any time"
	case h.ended >= 0:
		return fmt.Sprintf("was released not before %d (release %d)", h.free, j.id(h.ended))
	case h.free == Infinity:
		return "was never released"
	default:
		return fmt.Sprintf("was not released and had a lease until %d", h.free)
	}
}

func (j *judge) collision(one, two *hold) *finding {
	return &finding{ops: append(holdOps(one), two.acquire),
		text: fmt.Sprintf("acquire %d was granted by %d although %s, %s",
			j.id(two.acquire), two.granted, j.since(one), j.until(one))}
}

// crowd names the holds that take all permits of a semaphore.
func (j *judge) crowd(h *hold) *finding {
	f := &finding{ops: []int32{h.acquire}}
	var names []string
	for _, s := range j.solids {
		o := &j.holds[s]
		if o != h && o.granted <= h.granted && o.free > h.granted && len(names) < j.permits() {
			f.ops = append(f.ops, holdOps(o)...)
			names = append(names, fmt.Sprintf("%s, %s", j.since(o), j.until(o)))
		}
	}
	f.text = fmt.Sprintf("acquire %d was granted by %d although all %d permits were taken: %s",
		j.id(h.acquire), h.granted, j.permits(), strings.Join(names, "; "))
	return f
}

// noRoom names a hold that can only have held for moments at which others
// surely held, and as few of those as fill its time.
func (j *judge) noRoom(h *hold) *finding {
	f := &finding{ops: holdOps(h)}
	var names []string
	for _, o := range j.filling(h) {
		f.ops = append(f.ops, holdOps(o)...)
		names = append(names, fmt.Sprintf("%s, %s", j.since(o), j.until(o)))
	}
	f.text = fmt.Sprintf("acquire %d held the lock at some moment between %d and %d, but others held it all that time: %s",
		j.id(h.acquire), h.free, h.granted, strings.Join(names, "; "))
	return f
}

// filling picks holds whose cores leave h no room: of those that start first,
// the one that reaches furthest, and so on, for a semaphore once per permit.
func (j *judge) filling(h *hold) []*hold {
	var out []*hold
	reach := []int64{-Infinity}
	if j.rules.Model == Semaphore {
		reach = slices.Repeat(reach, j.permits())
	}
	var best *hold
	for _, s := range j.solids {
		o := &j.holds[s]
		if o.granted > h.granted || o.free <= h.free {
			continue
		}
		slices.Sort(reach)
		if best != nil && o.granted >= max(reach[0], h.free) {
			out, reach[0], best = append(out, best), best.free, nil
			slices.Sort(reach)
		}
		switch {
		case j.rules.Model == Semaphore:
			out, reach[0] = append(out, o), o.free
		case reach[0] <= h.granted && (best == nil || o.free > best.free) && o.free > reach[0]:
			best = o
		}
	}
	if best != nil && reach[0] <= h.granted {
		out = append(out, best)
	}
	return out
}

// noPlace names a hold that finds no moment in the order of fences.
func (j *judge) noPlace(h *hold) *finding {
	f := &finding{ops: holdOps(h)}
	below, above := -1, -1
	for i := range j.holds {
		o := &j.holds[i]
		switch {
		case o.optional || o.fence == 0 || o.fence == h.fence:
		case o.fence < h.fence && (below < 0 || o.fence > j.holds[below].fence):
			below = i
		case o.fence > h.fence && (above < 0 || o.fence < j.holds[above].fence):
			above = i
		}
	}
	var around []string
	for _, i := range []int{below, above} {
		if i >= 0 {
			o := &j.holds[i]
			f.ops = append(f.ops, holdOps(o)...)
			around = append(around, fmt.Sprintf("fence %d (%s)", o.fence, j.since(o)))
		}
	}
	f.text = fmt.Sprintf("acquire %d got fence %d, and the lock was never free for it in the order of fences, between %s",
		j.id(h.acquire), h.fence, strings.Join(around, " and "))
	return f
}

func (j *judge) backwards(lower, higher *hold) *finding {
	return &finding{ops: []int32{higher.acquire, lower.acquire},
		text: fmt.Sprintf("acquire %d got fence %d but was not called before %d, when acquire %d had been granted, by %d, with the higher fence %d",
			j.id(lower.acquire), lower.fence, lower.called, j.id(higher.acquire), j.ops[higher.acquire].Return, higher.fence)}
}

func (j *judge) twice(one, two *hold) *finding {
	return &finding{ops: []int32{one.acquire, two.acquire},
		text: fmt.Sprintf("acquires %d and %d both got fence %d", j.id(one.acquire), j.id(two.acquire), one.fence)}
}

// selfContradiction notes a hold that was gone before it can have ended.
func (j *judge) selfContradiction(h *hold) {
	gone := &j.ops[h.deadline]
	why := "whose return was"
	if gone.Outcome == Busy {
		why = "was told that it held nothing, by"
	}
	j.contradict(fmt.Sprintf("release %d %s %d, but acquire %d %s",
		gone.ID, why, gone.Return, j.id(h.acquire), j.until(h)), holdOps(h)...)
}

// unexplained names a refusal that nobody can have been in the way of.
func (j *judge) unexplained(b *busy, g gap, used int) *finding {
	f := &finding{ops: []int32{b.op}}
	text := fmt.Sprintf("acquire %d was refused between %d and %d although nobody can have held the lock",
		j.id(b.op), b.call, b.ret)
	if g.before >= 0 {
		h := &j.holds[g.before]
		f.ops = append(f.ops, holdOps(h)...)
		text += fmt.Sprintf("; acquire %d was freed by %d", j.id(h.acquire), h.freed)
	}
	if g.after >= 0 {
		h := &j.holds[g.after]
		f.ops = append(f.ops, h.acquire)
		text += fmt.Sprintf("; acquire %d was not called before %d", j.id(h.acquire), h.called)
	}
	if used > 0 {
		text += fmt.Sprintf("; %d acquires without an answer explain earlier refusals", used)
	}
	f.text = text
	return f
}

// stuck names what the search could not fit in. It lists the call itself and
// the calls around it that had not returned or still held.
func (j *judge) stuck(f *frontier, e event) *finding {
	var found finding
	switch e.kind {
	case refused:
		b := j.open[e.index]
		found.ops = []int32{b.op}
		found.text = fmt.Sprintf("acquire %d was refused between %d and %d although no order of the other calls has anybody in its way then",
			j.id(b.op), b.call, b.ret)
	case grants:
		h := &j.holds[e.index]
		found.ops = holdOps(h)
		found.text = fmt.Sprintf("acquire %d was granted by %d, which no order of the calls allows that explains the refusals and fences before it",
			j.id(h.acquire), h.granted)
	case frees:
		h := &j.holds[f.cands[e.index].hold]
		found.ops = holdOps(h)
		found.text = fmt.Sprintf("acquire %d was freed by %d, which no order of the calls allows that explains the refusals and fences before it",
			j.id(h.acquire), f.cands[e.index].freed)
	}
	for _, b := range f.waiting {
		found.ops = append(found.ops, j.open[b].op)
	}
	for i := range j.holds {
		h := &j.holds[i]
		if !h.optional && h.called <= f.now && h.free >= f.now && len(found.ops) < 64 {
			found.ops = append(found.ops, holdOps(h)...)
		}
	}
	return &found
}
