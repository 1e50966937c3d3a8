package sweep

import (
	"cmp"
	"errors"
	"slices"
	"sort"
)

// The exact search. It walks through time once and keeps every way in which the
// calls so far can have gone, as far as it makes a difference later: usually
// one. A step is taken only when a return demands it: an acquire that returned
// must have been granted, a refused one must have met somebody, a release that
// returned must have freed. Until then, waiting loses nothing:
//
//   - A hold is freed when a grant needs its place, or by its deadline. Held
//     longer, it only explains more refusals.
//   - A solid hold, or an acquire without an answer, is granted at its deadline
//     (or never), or at the moment at which it explains its first refusal.
//     Granted later, it only leaves the lock free for longer.
//   - One of several ways for a hold to have gone may have to be taken earlier,
//     or not at all. Then the states go on with and without it.
//   - A hold that is not solid may also be granted just before a grant that
//     shuts it out.
//   - A refusal that meets somebody in its way is explained for good.
//   - Acquires without an answer are interchangeable once they may end, and
//     before that the one that may end first is the best to use: whatever the
//     other would have done later, it can do in its stead, for by then it may
//     end as well. Where both hold at once, of a semaphore, they swap ends.
//   - A semaphore frees the hold whose deadline comes first.
//
// Taking the acquire without an answer that was called first would be wrong:
//
//	U [1 ...             may end from 30 on
//	V    [3 ...          may end from 6 on
//	no      [4 5]        U would shut B out
//	B            [7 8]
//
// So would granting whatever can be granted at once:
//
//	A [1                      20]..[21 22]    if A were granted at 1, B could not be;
//	B    [3 4]..[5 6]                         nor could the second refusal be explained
//	no                 [8 9]                  if A were granted only at 20
//
// And so would freeing a semaphore's hold that came first, of two permits:
//
//	A [1 2]..[3        30]    A stays until 30 and B goes at the latest at 7:
//	B [1 2]..[3   7]          free B for C, since A explains the refusal
//	C         [4 5]
//	no                 [8 9]
//
// What grows without bound is the number of holds that are not solid and wait
// at one moment, with the ways to order them between refusals and fences, and
// the choice of an owner, if refusals are explained by acquires without an
// answer of several owners of a re-entrant lock: which owner's to spend now is
// only told by the refusals that come later. The budget bounds it.

// candidate is one way for a hold to be granted.
type candidate struct {
	way
	fence uint64
	hold  int32 // -1: any acquire without an answer that may end by now
	class int32
	// optional holds need not be granted, and pool numbers those of them that
	// are interchangeable, or is -1.
	optional bool
	pool     int32
}

func (c *candidate) solid() bool { return c.free > c.granted }

// lone is the class of anybody in a pool of mutex holds or writers.
const lone = -2

// excludes says whether holds of two classes exclude each other.
func excludes(a, b int32) bool { return a != b || a == lone }

// What may happen at an instant, in the order in which it is looked at. Calls
// come first, since a call and a return at one instant are concurrent. A hold must
// be granted before it must end, and a refusal explained before the hold is gone
// that explains it:
//
//	A  [1    5][5 5]        A held at 5 and only then: freed before the refusal is
//	no    [3 5]             asked for, it would not explain it; freed before it is
//	no              [7 8]   granted, it would hold on, and explain this one, too
//
// Of two that return at one instant, the one with the lower fence is asked for first.
const (
	enters  uint8 = iota // a window starts
	opens                // a candidate can be granted
	asks                 // a refused acquire is called
	ripens               // an acquire without an answer may end
	lasts                // a candidate of two can be granted for the last time
	refused              // a refused acquire returns
	grants               // an acquire returns
	frees                // a hold must end
	leaves               // a window ends
)

type event struct {
	at    int64
	index int32 // of a candidate, an open refusal or a hold
	kind  uint8
}

// pool holds interchangeable acquires without an answer.
type pool struct {
	unripe []int32 // candidates that may not end yet, the first to end first
	ripe   int32   // how many may end
	any    int32   // the candidate that stands for each of those
	class  int32
}

type frontier struct {
	j       *judge
	cands   []candidate
	of      map[int32][]int32 // the candidates of a hold with two ways
	first   []int32           // the first candidate of a hold
	pools   []pool
	pending []int32 // candidates that can be granted and need not have been
	waiting []int32 // open refusals, called and not returned
	next    int     // into the solid holds: the first not returned yet
	passed  int     // into the solid holds, and of those passed, the ones that hold
	inside  []core
	now     int64
	limit   int64 // of the last window
	ways    []*state
	spare   []*state // that nobody has any more
	steps   int
	budget  int
}

var errBudget = errors.New("budget")

// search decides by walking through all events.
func (j *judge) search() Report {
	f := &frontier{j: j, budget: j.rules.Budget, of: map[int32][]int32{}, ways: []*state{{}}}
	if f.budget <= 0 {
		f.budget = 4_000_000 + 64*len(j.ops)
	}
	f.prepare()
	r := Report{Searched: true}
	found, err := f.walk()
	r.Steps = f.steps
	switch {
	case err != nil:
		r.Verdict, r.Reason = Undecided, "there are too many ways to explain the refusals by acquires without an answer, or by holds that may have ended before their callers heard of them"
	case found != nil:
		r.Verdict, r.Ops, r.Text = Illegal, j.ids(found.ops), found.text
		if less, ok := j.explained(f.now); ok {
			r.Ops, r.Text = less.Ops, less.Text
		}
	}
	return r
}

// prepare makes candidates of holds.
func (f *frontier) prepare() {
	j := f.j
	f.first = make([]int32, len(j.holds))
	f.cands = make([]candidate, 0, len(j.holds)+16)
	numbers := map[int32]int32{}
	for i := range j.holds {
		h := &j.holds[i]
		c := candidate{way: way{h.called, h.granted, h.free, h.freed}, fence: j.fence(h),
			hold: int32(i), class: h.class, optional: h.optional, pool: -1}
		f.first[i] = int32(len(f.cands))
		if !h.forked {
			if h.optional {
				c.pool = f.pool(numbers, h)
			}
			f.cands = append(f.cands, c)
			continue
		}
		for _, w := range j.ways[int32(i)] {
			c.way = w
			c.granted = min(w.granted, h.granted)
			f.of[int32(i)] = append(f.of[int32(i)], int32(len(f.cands)))
			f.cands = append(f.cands, c)
		}
	}
	for p := range f.pools {
		c := f.cands[f.pools[p].any]
		c.hold, c.free, c.called, c.class = -1, -Infinity, -Infinity, f.pools[p].class
		f.pools[p].any = int32(len(f.cands))
		f.cands = append(f.cands, c)
	}
}

// pool numbers the pool of a hold.
func (f *frontier) pool(numbers map[int32]int32, h *hold) int32 {
	class := h.class
	switch f.j.rules.Model {
	case Mutex, Fenced:
		class = lone
	case ReadWrite:
		if class != readers {
			class = lone
		}
	}
	p, ok := numbers[class]
	if !ok {
		p = int32(len(f.pools))
		numbers[class] = p
		f.pools = append(f.pools, pool{any: int32(len(f.cands)), class: class})
	}
	return p
}

// events lists what happens in the windows, and everything about acquires
// without an answer, since these serve one window or another.
func (f *frontier) events(windows []window) []event {
	events := make([]event, 0, 3*len(f.cands)+2*(len(windows)+len(f.j.open)))
	add := func(at int64, kind uint8, index int32) {
		if at != Infinity {
			events = append(events, event{at: at, kind: kind, index: index})
		}
	}
	for i, w := range windows {
		if w.from != -Infinity {
			add(w.from, enters, int32(i))
		}
		add(w.to, leaves, int32(i))
	}
	// in finds the first window that ends at t or later, and whether t is in it.
	in := func(t int64) (window, bool) {
		i := sort.Search(len(windows), func(i int) bool { return windows[i].to >= t })
		if i == len(windows) {
			return window{from: Infinity}, false
		}
		return windows[i], windows[i].from <= t
	}
	for i := range f.cands {
		c := &f.cands[i]
		switch {
		case c.hold < 0:
		case c.pool >= 0:
			add(c.called, opens, int32(i))
			add(c.free, ripens, int32(i))
		default:
			if w, _ := in(c.called); c.optional {
				add(c.called, opens, int32(i))
			} else if f.j.holds[c.hold].granted >= w.from {
				add(max(c.called, w.from), opens, int32(i))
			}
			if _, ok := in(c.freed); ok || c.optional {
				add(c.freed, frees, int32(i))
			}
			_, ok := in(c.granted)
			if c.optional || ok && f.j.holds[c.hold].forked && c.granted < f.j.holds[c.hold].granted {
				add(c.granted, lasts, int32(i))
			}
		}
	}
	for i := range f.j.holds {
		h := &f.j.holds[i]
		if _, ok := in(h.granted); ok && !h.optional {
			events = append(events, event{at: h.granted, kind: grants, index: int32(i)})
		}
	}
	for i, b := range f.j.open {
		add(b.call, asks, int32(i))
		add(b.ret, refused, int32(i))
	}
	slices.SortFunc(events, func(a, b event) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.kind != b.kind || a.kind != grants:
			return cmp.Compare(a.kind, b.kind)
		}
		return cmp.Compare(f.j.fence(&f.j.holds[a.index]), f.j.fence(&f.j.holds[b.index]))
	})
	return events
}

func (f *frontier) walk() (*finding, error) {
	windows := f.windows()
	for _, e := range f.events(windows) {
		f.now = e.at
		switch e.kind {
		case enters:
			f.enter(&windows[e.index])
		case leaves:
			f.leave(&windows[e.index])
			if len(f.ways) == 0 {
				return f.j.stuck(f, e), nil
			}
		case opens:
			f.open(e.index)
		case asks:
			f.waiting = append(f.waiting, e.index)
			for _, s := range f.ways {
				f.explain(s, e.index)
			}
		case ripens:
			f.ripen(e.index)
		case lasts, refused, grants, frees:
			if e.kind != frees || f.anyActive(e.index) {
				if err := f.demand(e); err != nil {
					return nil, err
				}
			}
			if len(f.ways) == 0 {
				return f.j.stuck(f, e), nil
			}
			f.close(e)
		}
	}
	return nil, nil
}

func (f *frontier) anyActive(cand int32) bool {
	return slices.ContainsFunc(f.ways, func(s *state) bool { return slices.Contains(s.active, cand) })
}

func (f *frontier) open(cand int32) {
	c := &f.cands[cand]
	if c.pool < 0 {
		f.pending = append(f.pending, cand)
		return
	}
	p := &f.pools[c.pool]
	at := sort.Search(len(p.unripe), func(i int) bool { return f.cands[p.unripe[i]].free > c.free })
	p.unripe = slices.Insert(p.unripe, at, cand)
}

// ripen moves an acquire without an answer to those that may end.
func (f *frontier) ripen(cand int32) {
	p := &f.pools[f.cands[cand].pool]
	p.unripe = slices.DeleteFunc(p.unripe, func(c int32) bool { return c == cand })
	p.ripe++
	for i, s := range f.ways {
		if slices.Contains(s.spent, f.cands[cand].hold) {
			f.ways[i] = s.ripen(f, cand, p.any)
		}
	}
}

// close forgets what no later event asks about.
func (f *frontier) close(e event) {
	switch e.kind {
	case refused:
		f.waiting = slices.DeleteFunc(f.waiting, func(b int32) bool { return b == e.index })
	case grants:
		f.pending = slices.DeleteFunc(f.pending, func(c int32) bool { return f.cands[c].hold == e.index })
		for f.next < len(f.j.solids) && f.j.solids[f.next].from <= e.at {
			f.next++
		}
	case frees:
		f.pending = slices.DeleteFunc(f.pending, func(c int32) bool { return c == e.index })
	}
}
