package sweep

import "slices"

// meets says whether a refused acquire finds somebody in its way.
func (f *frontier) meets(s *state, open int32) bool {
	if f.j.rules.Model == Semaphore {
		return len(s.active) >= f.j.permits()
	}
	class := f.j.open[open].class
	return slices.ContainsFunc(s.active, func(a int32) bool { return excludes(f.cands[a].class, class) })
}

// explain notes a refusal that is explained. The state is changed: nobody else
// may have it yet, or still.
func (f *frontier) explain(s *state, open int32) {
	if !has(s.explained, open) && f.meets(s, open) {
		s.explained = with(s.explained, open)
	}
}

// helps says whether a hold of the class would help to explain a refusal.
func (f *frontier) helps(s *state, class int32) bool {
	return slices.ContainsFunc(f.waiting, func(b int32) bool {
		return !has(s.explained, b) && (f.j.rules.Model == Semaphore || excludes(class, f.j.open[b].class))
	})
}

// demand replaces the ways so far by all those that end with what the event
// demands.
func (f *frontier) demand(e event) error {
	if len(f.ways) == 1 && f.obvious(e) {
		return nil
	}
	var out collection
	for _, s := range f.ways {
		if f.steps+out.steps > f.budget {
			return errBudget
		}
		if f.met(s, e) {
			f.put(&out, s)
			continue
		}
		kept := e.kind == lasts && out.add(s)
		if err := f.explore(s, e, &out); err != nil {
			return err
		}
		if !kept {
			f.spare = append(f.spare, s)
		}
	}
	f.spare = append(f.spare, out.dropped...)
	f.steps += out.steps
	f.ways = out.all
	return nil
}

// explore finds all states that a state can be in once the demand is met.
func (f *frontier) explore(s *state, e event, out *collection) error {
	var seen collection
	stack := []*state{s}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if f.steps+seen.steps+out.steps > f.budget {
			return errBudget
		}
		seen.steps += perState
		f.finish(s, e, out)
		for _, c := range f.choices(s, e) {
			n := f.grant(s, c)
			if n == nil {
				continue
			}
			if e.kind == refused && f.met(n, e) {
				f.put(out, n)
			} else if f.put(&seen, n) {
				stack = append(stack, n)
			}
		}
	}
	f.steps += seen.steps
	f.spare = append(append(f.spare, seen.all...), seen.dropped...) // what went on is a copy
	return nil
}

// put adds a state that nobody else has. If another one covers it, nobody has it
// any more.
func (f *frontier) put(c *collection, s *state) bool {
	if c.add(s) {
		return true
	}
	f.spare = append(f.spare, s)
	return false
}

// copy makes a state of its own of another one, in the place of one that nobody
// has any more.
func (f *frontier) copy(s *state) *state {
	if last := len(f.spare) - 1; last >= 0 {
		n := f.spare[last]
		f.spare = f.spare[:last]
		*n = *s
		return n
	}
	n := *s
	return &n
}

// obvious takes the step if there is one state and one step, as nearly always.
func (f *frontier) obvious(e event) bool {
	s := f.ways[0]
	if f.met(s, e) {
		return true
	}
	if e.kind != grants || f.j.holds[e.index].forked || len(f.choices(s, e)) > 0 {
		return false
	}
	f.steps += perState
	n := f.grant(s, f.first[e.index])
	if n == nil {
		f.ways = nil
		return true
	}
	n.early = without(n.early, e.index)
	f.ways[0] = n
	f.spare = append(f.spare, s)
	return true
}

// met says whether a demand is met already, and if so notes it in the state,
// which nobody else may have.
func (f *frontier) met(s *state, e event) bool {
	switch e.kind {
	case refused:
		if !has(s.explained, e.index) {
			return false
		}
		s.explained = without(s.explained, e.index)
	case lasts:
		hold := f.cands[e.index].hold
		return has(s.early, hold) || has(s.spent, hold)
	case grants:
		if !has(s.early, e.index) {
			return false
		}
		s.early = without(s.early, e.index)
	case frees:
		return !has(s.active, e.index)
	}
	return true
}

// finish takes the step that the event demands.
func (f *frontier) finish(s *state, e event, out *collection) {
	switch e.kind {
	case lasts:
		hold := f.cands[e.index].hold
		if has(s.early, hold) || has(s.spent, hold) {
			return // it went its other way
		}
		if n := f.grant(s, e.index); n != nil {
			f.put(out, n)
		}
	case grants:
		for _, c := range f.candidates(e.index) {
			if n := f.grant(s, c); n != nil {
				n.early = without(n.early, e.index)
				f.put(out, n)
			}
		}
	case frees:
		if f.cands[e.index].free <= f.now {
			n := f.copy(s)
			n.active = without(s.active, e.index)
			n.open = s.open && len(n.active) > 0
			f.put(out, n)
		}
	}
}

func (f *frontier) candidates(hold int32) []int32 {
	if !f.j.holds[hold].forked {
		return f.first[hold : hold+1]
	}
	return f.of[hold]
}

// choices are the grants that may have come before the demand is met.
//
// Of the solid holds that a semaphore may grant early, the one that returns first
// is the best: were another one granted in its stead, the two could change
// places, since both can be granted now, both by the first return, and both hold
// beyond it:
//
//	A [1        9]..[20 21]        for the refusal, grant A at 6 and B at 9, and
//	B    [3          12]..[15 16]  not B at 6 and A at 9: from 9 on it is all one
//	no        [5 6]
//
// Before a hold is freed, only those matter that need it to hold: of a
// semaphore, to have all permits taken for a refusal; of a nest whose fence is
// repeated, to keep the nest going.
func (f *frontier) choices(s *state, e event) []int32 {
	var out []int32
	first := int32(-1)
	semaphore := f.j.rules.Model == Semaphore
	for _, c := range f.pending {
		cand := &f.cands[c]
		if e.kind == grants && cand.hold == e.index || e.kind == lasts && c == e.index ||
			has(s.early, cand.hold) || has(s.spent, cand.hold) {
			continue
		}
		helps, nest := f.helps(s, cand.class), f.nest(s, e, cand.class)
		switch {
		case e.kind == frees && !(semaphore && helps) && !nest:
		case (cand.optional || cand.solid()) && !helps && !nest:
		case cand.solid() && !semaphore && f.shut(cand):
		case semaphore && cand.solid() && !cand.optional && !f.j.holds[cand.hold].forked:
			if first < 0 || cand.granted < f.cands[first].granted {
				first = c
			}
		default:
			out = append(out, c)
		}
	}
	if first >= 0 {
		out = append(out, first)
	}
	for p := range f.pools {
		c := f.pick(s, int32(p))
		if c < 0 {
			continue
		}
		helps := (e.kind != frees || semaphore) && f.helps(s, f.cands[c].class)
		if helps || f.nest(s, e, f.cands[c].class) {
			out = append(out, c)
		}
	}
	return out
}

// nest says that a grant to the class would keep a nest going in which the
// last fence may be repeated, which a hold is about to leave. Granted at its own
// deadline, it would come too late:
//
//	A [1 2]..[4 5]          fence 7
//	B    [3          9]     fence 7, of the same owner: granted by 5, while A held
func (f *frontier) nest(s *state, e event, class int32) bool {
	return e.kind == frees && f.j.repeats[s.fence] && f.cands[e.index].class == class
}

// shut says that a solid hold cannot be granted yet, because one that excludes
// it is to be granted before its own caller hears of it. For one that is not solid
// this would be wrong, since it may come and go before:
//
//	no      [4 5]                 refused by B, gone by 6, although A is to hold
//	A            [6 7]..[8 9]     before B's caller hears of it
//	B [1               12]        lease ends at 5
func (f *frontier) shut(c *candidate) bool {
	for i := f.next; i < len(f.j.solids); i++ {
		h := &f.j.solids[i]
		if h.hold == c.hold {
			return false
		}
		if h.from > f.now {
			return h.from < c.granted && excludes(h.class, c.class)
		}
	}
	return false
}

// pick is the best acquire without an answer to use of a pool, or -1.
func (f *frontier) pick(s *state, p int32) int32 {
	pool := &f.pools[p]
	used := int32(0)
	if int(p) < len(s.used) {
		used = s.used[p]
	}
	if used < pool.ripe {
		return pool.any
	}
	for _, c := range pool.unripe {
		if !has(s.spent, f.cands[c].hold) {
			return c
		}
	}
	return -1
}

// grant is the state after a grant at this moment, or nil.
func (f *frontier) grant(s *state, c int32) *state {
	cand := &f.cands[c]
	if cand.called > f.now || cand.granted < f.now {
		return nil
	}
	active := f.makeRoom(s, cand)
	if active == nil {
		return nil
	}
	open := s.open && len(active) > 0
	if cand.fence != 0 && (cand.fence < s.fence || cand.fence == s.fence && !open) {
		return nil
	}
	n := f.copy(s)
	n.active, n.open = active, open
	if cand.fence != 0 {
		n.fence, n.open = cand.fence, true
	}
	at, _ := slices.BinarySearch(n.active, c)
	n.active = slices.Insert(n.active, at, c) // a list of its own
	switch {
	case cand.hold < 0:
		n.use(cand.pool)
	case cand.optional:
		n.spent = with(s.spent, cand.hold)
	default:
		n.early = with(s.early, cand.hold)
	}
	for _, b := range f.waiting {
		f.explain(n, b)
	}
	return n
}

// makeRoom frees what a grant excludes, or returns nil if it cannot be freed.
func (f *frontier) makeRoom(s *state, cand *candidate) []int32 {
	kept := make([]int32, 0, len(s.active)+1)
	if f.j.rules.Model == Semaphore {
		if len(s.active) < f.j.permits() {
			return append(kept, s.active...)
		}
		least := int32(-1)
		for i, a := range s.active {
			if f.cands[a].free <= f.now && (least < 0 || f.cands[a].freed < f.cands[s.active[least]].freed) {
				least = int32(i)
			}
		}
		if least < 0 {
			return nil
		}
		return append(append(kept, s.active[:least]...), s.active[least+1:]...)
	}
	for _, a := range s.active {
		switch {
		case !excludes(f.cands[a].class, cand.class):
			kept = append(kept, a)
		case f.cands[a].free > f.now:
			return nil
		}
	}
	return kept
}
