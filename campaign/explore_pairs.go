package campaign

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

// batch is how many pairs are drawn at a time: enough for the start of child
// processes to cost little, and few enough to keep to the budget.
const batch = 400

// pairs plays pairs of faults of which the lock survives each alone. The
// stream of pairs is the seed's; how far it goes is the budget's.
func (x *expedition) pairs(ctx context.Context, clean []plan) {
	u := newUrn(clean, x.Seed)
	if x.Budget == 0 && x.MostPairs == 0 {
		return
	}
	whole := ctx
	if x.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.Budget)
		defer cancel()
		if x.Lasts != nil {
			x.Lasts(x.Budget)
		}
	}
	played := 0
	for ctx.Err() == nil {
		n := batch
		if x.MostPairs > 0 {
			n = min(n, x.MostPairs-played)
		}
		some := u.draw(n)
		if len(some) == 0 {
			return
		}
		played += len(some)
		x.playAll(ctx, some)
	}
	if whole.Err() == nil {
		x.findings.Plans = x.findings.Played // the budget was the plan
	}
}

// family is the base run that a plan changes.
func (p plan) family() string { return strings.TrimRight(p.scenario.Name, "-0123456789") }

// urn is where pairs are drawn from. Two faults do together what neither does
// alone if the second meets what the first has left: the same hold, a moment
// later, and most often another node. So pairs that are near each other in
// time and on different nodes are drawn more often. Each kind of fault is as
// likely as any other, however many plans it has:
//
//	c1 cut off from n3 as it asks      it holds n1 and n2, a bare quorum
//	n2 restarts without its data       n1 alone is left
//	c2 asks                            and is granted n2 and n3
type urn struct {
	rng      *rand.Rand
	families []brood
	total    int
	seen     map[string]bool
}

// brood is the plans of one base run, by kind and in the order of time.
type brood struct {
	size   int
	kinds  []string
	byKind map[string][]plan
}

func newUrn(clean []plan, seed uint64) *urn {
	u := &urn{rng: rand.New(rand.NewPCG(seed, 0x6a09e667f3bcc909)), seen: map[string]bool{}}
	broods := map[string]*brood{}
	for _, p := range clean {
		name := p.family()
		if strings.HasSuffix(name, "-impatient") || len(p.blows) != 1 {
			continue
		}
		if broods[name] == nil {
			broods[name] = &brood{byKind: map[string][]plan{}}
		}
		b, kind := broods[name], p.blows[0].kind
		b.size++
		b.byKind[kind] = append(b.byKind[kind], p)
	}
	for _, name := range slices.Sorted(maps.Keys(broods)) {
		b := broods[name]
		b.kinds = slices.Sorted(maps.Keys(b.byKind))
		for _, kind := range b.kinds {
			slices.SortStableFunc(b.byKind[kind], func(a, b plan) int { return cmp.Compare(a.place(), b.place()) })
		}
		u.families = append(u.families, *b)
		u.total += b.size
	}
	return u
}

// tries is how often a pair is drawn anew before the urn counts as empty.
const tries = 50

// draw makes up to n new pairs.
func (u *urn) draw(n int) []plan {
	var out []plan
	for i := 0; len(out) < n && i < tries*n && u.total > 1; i++ {
		if p, ok := u.pair(); ok {
			out = append(out, p)
		}
	}
	return out
}

// sameNode is the share of pairs on one node that are played.
const sameNode = 0.3

// pair draws one pair, or none if it was seen before or is no pair.
func (u *urn) pair() (plan, bool) {
	b := u.family()
	some := b.byKind[b.kinds[u.rng.IntN(len(b.kinds))]]
	a := some[u.rng.IntN(len(some))]
	c := u.near(a, b.byKind[b.kinds[u.rng.IntN(len(b.kinds))]])
	first, second := a.blows[0], c.blows[0]
	if first.at.at > second.at.at {
		first, second = second, first
	}
	key := a.family() + " " + first.words() + ", " + second.words()
	switch {
	case first.at.at == second.at.at, u.seen[key]:
		return plan{}, false
	case first.at.node != "" && first.at.node == second.at.node && u.rng.Float64() > sameNode:
		return plan{}, false
	}
	u.seen[key] = true
	base := *a.scenario
	base.Name = a.family() + "-pair"
	p := with(&base, first, second)
	p.ttl = a.ttl
	return p, true
}

func (u *urn) family() brood {
	n := u.rng.IntN(u.total)
	for _, b := range u.families {
		if n -= b.size; n < 0 {
			return b
		}
	}
	return u.families[len(u.families)-1]
}

// nearness is the share of a kind's plans within which the partner of a plan
// mostly lies: a base run has four holds or so.
const nearness = 8

// near draws a plan that is rather near another in time.
func (u *urn) near(to plan, from []plan) plan {
	at := sort.Search(len(from), func(i int) bool { return from[i].place() >= to.place() })
	step := int(u.rng.ExpFloat64() * max(2, float64(len(from))/nearness))
	if u.rng.IntN(2) == 0 {
		step = -step
	}
	return from[min(max(at+step, 0), len(from)-1)]
}
