package sweep

import (
	"cmp"
	"slices"
)

// Minimal cuts an illegal report down to calls that contradict each other, so
// few that without any one of them the others can be explained. It gives their
// IDs in the order of the calls. If the history is too large to be cut in good
// time, it gives the calls of the report, and false.
//
// A call that is left out must not make a contradiction of its own. So it counts
// as not known, and not as never made:
//
//   - Without its release, a hold may end at any time. (If it were held for ever,
//     leaving out a release would make every contradiction worse.)
//
//   - An acquire is left out together with its releases, since the lock is only
//     free more often then. But one that may have been in the way of a refusal
//     stays as long as the refusal does:
//
//     A [1 2]....[5 6]     without A, nobody would be in the way of the
//     no       [4 4]       refusal, and the refusal alone would be wrong
//
//   - Acquires without an answer stay, as explanations of refusals. Those that
//     might explain one that is listed are listed too.
func Minimal(rules Rules, ops []Op, report Report) ([]int, bool) {
	if report.Verdict != Illegal {
		return nil, true
	}
	// What contradicts each other without the refusals is easier to see.
	plain := rules
	plain.StrictBusy = false
	c := newCutter(plain, ops)
	c.start(report.Ops)
	if rules.StrictBusy && !c.illegal() {
		c = newCutter(rules, ops)
		c.start(report.Ops)
	}
	if !c.illegal() {
		for i := range c.acqs {
			c.acqs[i].kept = true
		}
		if len(ops) > cutCalls || !c.illegal() {
			return report.Ops, false
		}
	}
	c.cutAcquires()
	c.cutReleases()
	return c.listed(), true
}

// Bounds of cutting: a check of few calls is quick, many of many are not.
const (
	cutCalls  = 30_000
	cutBudget = 400_000
)

// acquisition is an acquire with its releases, as indices.
type acquisition struct {
	acquire  int32
	releases []int32
	cut      []int32 // those of its releases that count as not known
	// called and gone bound the time in which it may have held.
	called, gone int64
	kept         bool
	// lost: the acquire has no answer, and nothing shows that it took effect.
	lost bool
}

type cutter struct {
	rules Rules
	ops   []Op
	acqs  []acquisition
	of    index
}

func newCutter(rules Rules, ops []Op) *cutter {
	rules.Budget = cutBudget
	c := &cutter{rules: rules, ops: ops, of: newIndex(ops, nil)}
	for i := range ops {
		if op := &ops[i]; op.acquires() {
			c.of.set(op.Hold, int32(len(c.acqs)))
			c.acqs = append(c.acqs, acquisition{acquire: int32(i), called: op.Call, gone: Infinity, lost: op.Outcome == Unknown})
		}
	}
	for i := range ops {
		op := &ops[i]
		if op.acquires() {
			continue
		}
		a := &c.acqs[c.of.get(op.Hold)]
		a.releases = append(a.releases, int32(i))
		unsure := c.ops[a.acquire].Outcome == Unknown
		if op.Outcome == OK && !rules.LenientRelease || op.Outcome != Unknown && !unsure {
			a.gone = min(a.gone, op.Return)
			a.lost = false
		}
	}
	return c
}

// refusal says whether an acquisition is a refused acquire.
func (c *cutter) refusal(a *acquisition) bool { return c.ops[a.acquire].Outcome == Busy }

// start keeps what a report names, and what may be in the way of a refusal that
// it names.
func (c *cutter) start(ids []int) {
	named := map[int]bool{}
	for _, id := range ids {
		named[id] = true
	}
	var refused []*acquisition
	for i := range c.acqs {
		a := &c.acqs[i]
		a.kept = a.lost || named[c.ops[a.acquire].ID] ||
			slices.ContainsFunc(a.releases, func(r int32) bool { return named[c.ops[r].ID] })
		if a.kept && c.refusal(a) && c.rules.StrictBusy {
			refused = append(refused, a)
		}
	}
	if len(refused) == 0 {
		return
	}
	for i := range c.acqs {
		a := &c.acqs[i]
		a.kept = a.kept || slices.ContainsFunc(refused, func(r *acquisition) bool { return c.blocks(a, r) })
	}
}

// blocks says whether an acquisition may have been in the way of a refusal.
func (c *cutter) blocks(a, refused *acquisition) bool {
	x, y := &c.ops[a.acquire], &c.ops[refused.acquire]
	if a.called > y.Return || a.gone < y.Call || x.Outcome == Busy {
		return false
	}
	switch c.rules.Model {
	case Reentrant, ReentrantFenced:
		return x.Owner != y.Owner
	case ReadWrite:
		return x.Kind == Acquire || y.Kind == Acquire
	}
	return true
}

// part is the history of what is kept.
func (c *cutter) part() []Op {
	var part []Op
	for i := range c.acqs {
		a := &c.acqs[i]
		if !a.kept {
			continue
		}
		op := c.ops[a.acquire]
		if len(a.cut) > 0 {
			op.LeaseEnd = op.Call
			if op.LeaseEnd == 0 { // which would be none
				op.LeaseEnd = -1
			}
		}
		part = append(part, op)
		for _, r := range a.releases {
			if !slices.Contains(a.cut, r) {
				part = append(part, c.ops[r])
			}
		}
	}
	return part
}

func (c *cutter) illegal() bool {
	return (&judge{rules: c.rules, ops: c.part(), again: true}).check().Verdict == Illegal
}

// cutAcquires leaves out many at once as long as there are many, then one by
// one until none can be.
func (c *cutter) cutAcquires() {
	var kept []*acquisition
	for i := range c.acqs {
		if a := &c.acqs[i]; a.kept && !a.lost {
			kept = append(kept, a)
		}
	}
	// Refusals first: without them, nobody must stay for their sake.
	slices.SortStableFunc(kept, func(a, b *acquisition) int {
		return cmp.Or(-cmp.Compare(rank(c.refusal(a)), rank(c.refusal(b))), cmp.Compare(a.called, b.called))
	})
	for size := max(1, len(kept)/2); ; {
		before := len(kept)
		for from := 0; from < len(kept); {
			if c.without(kept[from:min(from+size, len(kept))]) {
				kept = slices.DeleteFunc(kept, func(a *acquisition) bool { return !a.kept })
			} else {
				from += size
			}
		}
		if size == 1 && len(kept) == before {
			return
		}
		size = max(1, size/2)
	}
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// without leaves out those of some that may be, if the rest is still illegal,
// and says whether it did.
func (c *cutter) without(some []*acquisition) bool {
	var out []*acquisition
	for _, a := range some {
		if c.refusal(a) || !c.needed(a) {
			a.kept = false
			out = append(out, a)
		}
	}
	if len(out) > 0 && c.illegal() {
		return true
	}
	for _, a := range out {
		a.kept = true
	}
	return false
}

// needed says whether an acquisition must stay for the sake of a refusal.
func (c *cutter) needed(a *acquisition) bool {
	if !c.rules.StrictBusy {
		return false
	}
	for i := range c.acqs {
		if r := &c.acqs[i]; r.kept && c.refusal(r) && c.blocks(a, r) {
			return true
		}
	}
	return false
}

func (c *cutter) cutReleases() {
	for i := range c.acqs {
		a := &c.acqs[i]
		for _, r := range a.releases {
			if !a.kept || a.lost {
				break
			}
			a.cut = append(a.cut, r)
			if !c.illegal() {
				a.cut = a.cut[:len(a.cut)-1]
			}
		}
	}
}

// listed are the calls that are kept.
func (c *cutter) listed() []int {
	var out []int32
	for i := range c.acqs {
		a := &c.acqs[i]
		if !a.kept || a.lost && !c.needed(a) {
			continue
		}
		out = append(out, a.acquire)
		for _, r := range a.releases {
			if !a.lost && !slices.Contains(a.cut, r) {
				out = append(out, r)
			}
		}
	}
	return (&judge{ops: c.ops}).ids(out)
}
