package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ids lists the IDs of calls in the order of their calls.
func (j *judge) ids(ops []int32) []int {
	sorted := slices.Clone(ops)
	slices.SortFunc(sorted, func(a, b int32) int {
		return cmp.Or(cmp.Compare(j.ops[a].Call, j.ops[b].Call), cmp.Compare(a, b))
	})
	var out []int
	for _, i := range slices.Compact(sorted) {
		out = append(out, j.ops[i].ID)
	}
	return out
}

// holdOps are the calls that say when a hold began and ended at the latest and
// at the earliest.
func (j *judge) holdOps(holds ...*hold) []int32 {
	var ops []int32
	for _, h := range holds {
		ops = append(ops, h.acquire)
		if by, ok := j.pulled[h.acquire]; ok {
			ops = append(ops, j.proof(&j.holds[by])...)
		}
		if h.ended >= 0 {
			ops = append(ops, h.ended)
		}
		if h.deadline >= 0 && h.deadline != h.ended {
			ops = append(ops, h.deadline)
		}
	}
	return ops
}

// proof are the calls that show that the hold was granted, and for a moment at
// which its caller had heard of it.
func (j *judge) proof(h *hold) []int32 {
	a := &j.ops[h.acquire]
	if _, pulled := j.pulled[h.acquire]; a.Outcome == OK && !pulled && (a.LeaseEnd == 0 || a.LeaseEnd > a.Return) {
		return []int32{h.acquire}
	}
	return j.holdOps(h)
}

// reduce drops acquisitions from a contradiction that does not need them.
func (j *judge) reduce(f *finding) {
	const most = 48 // acquisitions: reducing takes one small check for each
	of := map[int][]Op{}
	for _, o := range f.ops {
		of[j.ops[o].Hold] = nil
	}
	if len(of) <= 2 || len(of) > most {
		return
	}
	// With all their calls, since without its releases a hold would never end.
	for i := range j.ops {
		if calls, ok := of[j.ops[i].Hold]; ok {
			of[j.ops[i].Hold] = append(calls, j.ops[i])
		}
	}
	for _, hold := range slices.Sorted(maps.Keys(of)) {
		calls := of[hold]
		delete(of, hold)
		if !j.illegalAlone(of) {
			of[hold] = calls
		}
	}
	f.ops = slices.DeleteFunc(f.ops, func(o int32) bool { return of[j.ops[o].Hold] == nil })
}

// illegalAlone says whether acquisitions contradict each other.
func (j *judge) illegalAlone(acquisitions map[int][]Op) bool {
	rules := j.rules
	rules.StrictBusy = false
	var part []Op
	for _, calls := range acquisitions {
		part = append(part, calls...)
	}
	sub := &judge{rules: rules, ops: part}
	return sub.read() == "" && (sub.found != nil || sub.exclusion() != nil)
}

func (j *judge) id(op int32) int { return j.ops[op].ID }

// by is the moment by which a hold was granted, and how that is known.
func (j *judge) by(h *hold) string {
	by, pulled := j.pulled[h.acquire]
	switch {
	case pulled:
		o := &j.holds[by]
		return fmt.Sprintf("%d (before acquire %d, which got the higher fence %d)", h.granted, j.id(o.acquire), j.fence(o))
	case j.ops[h.acquire].Outcome == Unknown:
		return fmt.Sprintf("%d (as its release shows)", h.granted)
	}
	return fmt.Sprint(h.granted)
}

func (j *judge) since(h *hold) string {
	return fmt.Sprintf("acquire %d, granted by %s", j.id(h.acquire), j.by(h))
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
	return &finding{ops: append(append(j.proof(one), j.ending(one)...), j.proof(two)...),
		text: fmt.Sprintf("acquire %d was granted by %s although %s, %s",
			j.id(two.acquire), j.by(two), j.since(one), j.until(one))}
}

// ending is the call before which the hold cannot have ended.
func (j *judge) ending(h *hold) []int32 {
	if h.ended < 0 {
		return nil
	}
	return []int32{h.ended}
}

// crowd names the holds that take all permits of a semaphore.
func (j *judge) crowd(h *hold) *finding {
	f := &finding{ops: j.proof(h)}
	var names []string
	for _, s := range j.solids {
		o := &j.holds[s.hold]
		if o != h && o.granted <= h.granted && o.free > h.granted && len(names) < j.permits() {
			f.ops = append(f.ops, j.holdOps(o)...)
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
	f := &finding{ops: j.holdOps(h)}
	var names []string
	for _, o := range j.filling(h) {
		f.ops = append(f.ops, j.holdOps(o)...)
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
		o := &j.holds[s.hold]
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

// noPlace names a hold that finds no moment in the order of fences, and those
// that push it: the ones before it in the order, up to where none was pushed,
// and whoever surely held meanwhile.
func (j *judge) noPlace(h *hold, pushers []ticket) *finding {
	f := &finding{ops: j.holdOps(h)}
	from := h.called
	for _, p := range pushers {
		f.ops = append(f.ops, j.holdOps(&j.holds[p.hold])...)
		from = min(from, p.called)
	}
	for _, s := range j.solids {
		if o := &j.holds[s.hold]; o.granted <= h.granted && o.free >= from {
			f.ops = append(f.ops, j.holdOps(o)...)
		}
	}
	for i := range j.holds {
		// The return that pulled its deadline forward.
		if o := &j.holds[i]; !o.optional && j.fence(o) > j.fence(h) && o.granted == h.granted {
			f.ops = append(f.ops, j.holdOps(o)...)
			break
		}
	}
	f.text = fmt.Sprintf("acquire %d got fence %d, and the lock was free for it at no moment between %d and %d that is after the grants of all lower fences",
		j.id(h.acquire), j.fence(h), h.free, h.granted)
	return f
}

func (j *judge) backwards(lower, higher *hold) *finding {
	return &finding{ops: append(j.proof(higher), j.proof(lower)...),
		text: fmt.Sprintf("acquire %d got fence %d but was not called before %d, when acquire %d had been granted, by %d, with the higher fence %d",
			j.id(lower.acquire), j.fence(lower), lower.called, j.id(higher.acquire), j.ops[higher.acquire].Return, j.fence(higher))}
}

func (j *judge) twice(one, two *hold) *finding {
	return &finding{ops: append(j.proof(one), j.proof(two)...),
		text: fmt.Sprintf("acquires %d and %d both got fence %d", j.id(one.acquire), j.id(two.acquire), j.fence(one))}
}

// selfContradiction notes a hold that was gone before it can have ended.
func (j *judge) selfContradiction(h *hold) {
	gone := &j.ops[h.deadline]
	why := "whose return was"
	if gone.Outcome == Busy {
		why = "was told that it held nothing, by"
	}
	j.contradict(fmt.Sprintf("release %d %s %d, but acquire %d %s",
		gone.ID, why, gone.Return, j.id(h.acquire), j.until(h)), j.holdOps(h)...)
}

// unexplained names a refusal that nobody can have been in the way of.
func (j *judge) unexplained(b *busy, g gap, used int) *finding {
	f := &finding{ops: []int32{b.op}}
	text := fmt.Sprintf("acquire %d was refused between %d and %d although nobody can have held the lock",
		j.id(b.op), b.call, b.ret)
	if g.before >= 0 {
		h := &j.holds[g.before]
		f.ops = append(f.ops, j.holdOps(h)...)
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
	case leaves:
		found.text = "only an acquire without an answer explains the refusals, and it would still hold"
		for _, s := range j.solids {
			if h := &j.holds[s.hold]; h.granted == f.limit {
				found.ops = j.proof(h)
				found.text += fmt.Sprintf(" when acquire %d was granted, by %s", j.id(h.acquire), j.by(h))
				break
			}
		}
	case refused:
		b := j.open[e.index]
		found.ops = []int32{b.op}
		found.text = fmt.Sprintf("acquire %d was refused between %d and %d although no order of the other calls has anybody in its way then",
			j.id(b.op), b.call, b.ret)
	case grants:
		h := &j.holds[e.index]
		found.ops = j.holdOps(h)
		found.text = fmt.Sprintf("acquire %d was granted by %d, which no order of the calls allows that explains the refusals and fences before it",
			j.id(h.acquire), h.granted)
	case frees:
		h := &j.holds[f.cands[e.index].hold]
		found.ops = j.holdOps(h)
		found.text = fmt.Sprintf("acquire %d was freed by %d, which no order of the calls allows that explains the refusals and fences before it",
			j.id(h.acquire), f.cands[e.index].freed)
	}
	from := f.now
	for i, b := range j.open {
		if b.call <= f.now && (j.again || slices.Contains(f.waiting, int32(i))) {
			found.ops = append(found.ops, b.op)
			from = min(from, b.call)
		}
	}
	for i := range j.holds {
		h := &j.holds[i]
		if !h.optional && h.called <= f.now && h.free >= from && len(found.ops) < 64 {
			found.ops = append(found.ops, j.holdOps(h)...)
		}
	}
	return &found
}

// explained judges a history that the search was stuck in at a moment once
// more, with no refusals but those that it is stuck for: of the last few, and in
// a history that is quick to judge.
func (j *judge) explained(now int64) (Report, bool) {
	const most, quick = 16, 20_000
	var kept []busy
	for _, b := range j.open {
		if b.call <= now {
			kept = append(kept, b)
		}
	}
	slices.SortFunc(kept, func(a, b busy) int { return cmp.Compare(b.ret, a.ret) })
	kept = kept[:min(most, len(kept))]
	if j.again || len(j.ops) > quick || j.with(kept).Verdict != Illegal {
		return Report{}, false
	}
	for i := 0; i < len(kept); {
		less := slices.Delete(slices.Clone(kept), i, i+1)
		if j.with(less).Verdict == Illegal {
			kept = less
			continue
		}
		i++
	}
	return j.with(kept), true
}

// with judges the history with no refused acquires other than these.
func (j *judge) with(refusals []busy) Report {
	without := map[int]bool{}
	for _, b := range j.busy {
		without[j.ops[b.op].Hold] = true
	}
	for _, b := range refusals {
		delete(without, j.ops[b.op].Hold)
	}
	part := slices.DeleteFunc(slices.Clone(j.ops), func(o Op) bool { return without[o.Hold] })
	rules := j.rules
	rules.Budget = 400_000
	return (&judge{rules: rules, ops: part, again: true}).check()
}
