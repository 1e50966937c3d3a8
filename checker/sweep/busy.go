package sweep

import "slices"

// answers decides, after exclusion has found nothing, whether each refused
// acquire had somebody in its way at some moment of its call. It reports a
// contradiction, or leaves it to the search by setting contested.
//
// One that meets a core (touching is enough: at the instant of a grant the lock
// can be found held after it) is explained in every order of the calls. What is
// left lies between two cores and touches neither.
func (j *judge) answers() *finding {
	differs := j.nextOfOtherClass()
	at := 0
	for _, b := range j.busy {
		at = seek(len(j.blocks), at, func(i int) bool { return j.blocks[i].to >= b.call })
		if !j.surelyHeld(b, at, differs) {
			j.open = append(j.open, b)
		}
	}
	if len(j.open) == 0 {
		return nil
	}
	if j.rules.Model != Mutex && j.rules.Model != Fenced {
		j.contested = true
		return nil
	}
	if !j.settled() {
		j.contested = true
		return nil
	}
	return j.gaps()
}

// settled says that the cores of a mutex have one order, and lists them in it.
// A core may be an instant: a release called at the instant at which its
// acquire returned. It comes before a core that starts then, but two of those
// at one instant may come either way:
//
//	A [1  5][5        20]    if A comes first, B is held from 5 up to 20,
//	B    [3 5][5   9]        if B comes first, A is
func (j *judge) settled() bool {
	for at := range j.ways {
		if !j.holds[at].optional {
			return false
		}
	}
	instants := make([]core, 0, len(j.brief))
	for _, at := range j.brief {
		h := &j.holds[at]
		if h.free < h.granted {
			return false
		}
		instants = append(instants, h.core(at))
	}
	j.solids = merge(j.solids, instants, func(a, b core) bool {
		return a.from < b.from || a.from == b.from && a.to < b.to
	})
	if len(instants) == 0 {
		return true
	}
	for i := 1; i < len(j.solids); i++ {
		if j.solids[i-1].from == j.solids[i].to {
			return false
		}
	}
	// A refusal during such an instant is explained.
	at := 0
	j.open = slices.DeleteFunc(j.open, func(b busy) bool {
		at = j.after(b, at)
		return at > 0 && j.solids[at-1].to >= b.call
	})
	return true
}

// nextOfOtherClass maps a block to the next one of another class.
func (j *judge) nextOfOtherClass() []int32 {
	next := make([]int32, len(j.blocks))
	for i := len(j.blocks) - 1; i >= 0; i-- {
		switch {
		case i == len(j.blocks)-1 || j.blocks[i+1].class != j.blocks[i].class:
			next[i] = int32(i) + 1
		default:
			next[i] = next[i+1]
		}
	}
	return next
}

// surelyHeld says whether a refusal meets a core, where i is the first block that
// ends after its call. Whoever is of its own class is not in its way, but the next
// block may be of another one, and start before it returned:
//
//	A [1 2]........[9 10]            a reader
//	no       [4          13]         a reader: refused by B at 12, not by A
//	B                 [11 12]        a writer
func (j *judge) surelyHeld(b busy, i int, differs []int32) bool {
	if i < len(j.blocks) && j.rules.Model != Semaphore && j.blocks[i].class == b.class {
		i = int(differs[i])
	}
	return i < len(j.blocks) && j.blocks[i].from <= b.ret
}

// gaps decides the open refusals of a mutex all of whose holds are solid. In
// the gap between the core of hold A and that of hold B, a refusal is explained
//
//   - by A freed late, if it was called by the last moment A can be freed at;
//   - by B granted early, if it returned after B was called;
//   - by an acquire without an answer, that took effect in the gap.
//
// The first two can always be had together. If a refusal needs A to be held up
// to a moment at which another one needs B to hold already, then the first lies
// wholly after the second and before B's core, so B explains both:
//
//	A [1 2]....[5             20]   may be freed as late as 20
//	B       [4                20]   may be granted as early as 5
//	no            [7 8]             B granted at 8 ...
//	no                 [12 13]      ... and not A held until 12
//
// An acquire without an answer explains every refusal of a gap that returned
// after it was called, and by itself, since it takes effect as late as needed
// and stays as long as needed. It must find room: it was called by the first
// return in need, and may end by the start of B's core, or B has no place:
//
//	A [1 2]..[3 4]
//	U     [2 ...             no answer, lease until 9
//	no           [5 6]       U would have to hold from 6 at the latest to 9,
//	B               [7 8]..[12 13]    but B surely holds from 8 on
//
// It serves one gap only:
//
//	U [1 ...             no answer, may end from 2 on
//	no   [3 4]           U held at 3 ...
//	A        [5 6]..[7 8]
//	no                  [9 10]     ... and was gone before A held, so not here
//	B                         [11 12]
//
// An acquire that may serve this gap may serve every later one as
// well: gaps come in order, and so do their first returns and their ends. So any
// will do.
func (j *judge) gaps() *finding {
	arrange(j.open, func(a, b busy) bool { return a.ret < b.ret })
	byCall := j.optional
	twoWays := len(j.ways) > 0
	arrange(byCall, func(a, b int32) bool { return j.holds[a].called < j.holds[b].called })
	called, free, place := 0, waiting{}, 0
	used := 0
	for at := 0; at < len(j.open); {
		var g gap
		g, place = j.gapOf(j.open[at], place)
		var first *busy
		for ; at < len(j.open) && j.open[at].call < g.end; at++ {
			b := &j.open[at]
			if first == nil && b.call > g.late && b.ret < g.early {
				first = b
			}
		}
		if first == nil {
			continue
		}
		for called < len(byCall) && j.holds[byCall[called]].called <= first.ret {
			free.add(j.holds[byCall[called]].free)
			called++
		}
		if free.by(g.end) <= used && twoWays {
			j.contested = true
			return nil
		}
		if free.by(g.end) <= used {
			return j.unexplained(first, g, used)
		}
		used++
	}
	return nil
}

// gap is what lies between two cores.
type gap struct {
	start, end int64
	// late is when the hold before can still be held, early the call of the
	// next. before and after are the holds, or -1.
	late, early   int64
	before, after int32
}

// after is the first core that starts after a refusal.
func (j *judge) after(b busy, near int) int {
	return seek(len(j.solids), near, func(i int) bool { return j.solids[i].from > b.ret })
}

// gapOf finds the gap that a refusal returned in, near the place of another.
func (j *judge) gapOf(b busy, near int) (gap, int) {
	g := gap{start: -Infinity, end: Infinity, late: -Infinity, early: Infinity, before: -1, after: -1}
	i := j.after(b, near)
	if i < len(j.solids) {
		h := &j.holds[j.solids[i].hold]
		g.after, g.end, g.early = j.solids[i].hold, h.granted, h.called
	}
	if i > 0 {
		h := &j.holds[j.solids[i-1].hold]
		g.before, g.start, g.late = j.solids[i-1].hold, h.free, h.freed
	}
	return g, i
}

// waiting counts acquires by the moment from which they may end.
type waiting struct {
	later heap
	ready int
}

func (w *waiting) add(free int64) { w.later.push(free) }

// by counts those that may end by t. It is asked with rising t.
func (w *waiting) by(t int64) int {
	for len(w.later) > 0 && w.later[0] <= t {
		w.later.pop()
		w.ready++
	}
	return w.ready
}

// heap of times, the smallest first.
type heap []int64

func (h *heap) push(t int64) {
	*h = append(*h, t)
	s := *h
	for i := len(s) - 1; i > 0 && s[i] < s[(i-1)/2]; i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

func (h *heap) pop() {
	s := *h
	s[0] = s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	for i := 0; 2*i+1 < len(s); {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if s[i] <= s[child] {
			return
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
