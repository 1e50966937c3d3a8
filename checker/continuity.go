package checker

import (
	"cmp"
	"fmt"
	"slices"
)

const continuityName = "continuity"

// Kinds of a continuity violation.
const (
	// OwnerBetween: somebody else held the lock since the last success.
	OwnerBetween = "owner-between"
	// Gap: the lock was nobody's for a while.
	Gap = "gap"
)

// continuity judges what says that a lease goes on: an extend that succeeded, a
// later validity end that the holder was told, a renewal in the server trace.
// Each implies that the acquisition held the lock all the time since the last
// one.
//
//	0    c1 is granted the lock, TTL 10
//	10   its key expires
//	11   c2 acquires, works, releases
//	12   c1 extends: the key is absent, so it is set anew; "yes, until 22"
//
// A renewal in the trace counts when it lengthens what is there. That the key
// is made anew does not count by itself: a granting request that the network
// delayed does the same, and says nothing to anybody.
func continuity(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: true}
	c := &lasting{facts: f}
	granted := map[string][]*Acquisition{}
	for _, a := range f.Acquisitions {
		if a.Held() {
			granted[a.Lock] = append(granted[a.Lock], a)
		}
	}
	for _, lock := range f.Locks {
		slices.SortStableFunc(granted[lock], func(x, y *Acquisition) int { return cmp.Compare(x.Invoked, y.Invoked) })
	}
	for _, a := range f.Acquisitions {
		if !a.Held() {
			continue
		}
		switch {
		case f.untraced() == "" && a.Alias != "":
			c.onRecord(a)
		default:
			c.byOps(a, granted[a.Lock])
		}
	}
	r.Figures = map[string]float64{"confirmations": float64(c.judged), "violations": float64(len(c.found))}
	if c.judged == 0 {
		// Nothing to judge: most locks renew nothing, and a renewal is due only
		// when a hold is long.
		r.Verdict, r.Applies, r.Reason = Unknown, false, "no lease was extended or renewed"
	}
	return r.with(c.found, []string{OwnerBetween, Gap})
}

type lasting struct {
	facts  *Facts
	judged int
	found  []Found
}

// confirmed is one thing that says that a lease goes on.
type confirmed struct {
	index int
	t     int64
	// since is the latest moment at which the server can have known better: a
	// lapse that began before it and was known of makes the answer a lie.
	since int64
	what  string
}

// onRecord holds an acquisition's confirmations against what the nodes
// carried. The first lie is enough.
func (c *lasting) onRecord(a *Acquisition) {
	confirmations := c.confirmations(a)
	c.judged += len(confirmations)
	for _, x := range confirmations {
		for _, l := range a.lapses {
			if l.From >= x.since || l.cause == lapseNever || l.cause == lapseDeposed || l.To-l.From <= c.facts.slack() {
				continue
			}
			c.found = append(c.found, c.facts.lie(a, x, l))
			return
		}
	}
}

// confirmations of an acquisition in the order of the history.
func (c *lasting) confirmations(a *Acquisition) []confirmed {
	f := c.facts
	var out []confirmed
	for _, x := range a.extends {
		out = append(out, confirmed{index: x.index, t: x.done, since: x.invoked, what: "was told that its extend had succeeded"})
	}
	told := int64(0)
	for n, i := range a.told {
		until := *f.History.Events[i].Op.Until
		if n > 0 && until > told {
			// The answer is as old as the confirmation that it stems from,
			// which is one TTL before it at the most.
			since := until - int64(f.History.Header.TTL)
			out = append(out, confirmed{index: i, t: f.History.Events[i].T, since: since, what: "was told that its lease lasts until " + f.at(until)})
		}
		told = max(told, until)
	}
	for _, i := range f.keys.of(a.Client, a.DoneIndex, f.watchEnd(a)) {
		s := &f.keys.touches[i]
		if s.Owner == a.Alias && s.before == a.Alias && s.moved > 0 && !isError(s.Reply) && !slices.Contains(reading, s.Cmd) && f.quorum() == 1 {
			out = append(out, confirmed{index: s.index, t: s.t, since: s.t, what: "renewed it"})
		}
	}
	slices.SortStableFunc(out, func(x, y confirmed) int { return cmp.Compare(x.index, y.index) })
	return out
}

// lie describes a confirmation across a lapse.
func (f *Facts) lie(a *Acquisition, x confirmed, l lapse) Found {
	ops := []int{a.DoneIndex, l.index, x.index}
	kind, between := Gap, "nobody's"
	if s := f.takeover(a, l.index, x.index); s != nil {
		kind, between = OwnerBetween, ownerOf(s.Owner)+"'s"
		ops = []int{a.DoneIndex, l.index, s.index, x.index}
	}
	return Found{Kind: kind, Ops: ops, suspects: f.active(a.Done, x.t),
		Summary: fmt.Sprintf("%s %s at %s, but %s, granted at %s, had been %s since %s: its hold was not continuous.",
			a.Client, x.what, f.at(x.t), f.theLock(a.Lock), f.at(a.Done), between, f.at(l.From))}
}

// takeover finds the command with which another client got an acquisition's lock
// between two events: the one that put its token on the last node of a quorum, or
// one that a grant followed, whatever it rested on. Votes that were too few, and
// were given back, made nobody the owner:
//
//	0    c1 holds the lock with the keys of n1 and n2; n3 has none
//	10   its key on n1 expires
//	11   c2 gets n1, is refused by n2, and deletes its key on n1
//	12   c1 extends: "yes"
func (f *Facts) takeover(a *Acquisition, from, to int) *touch {
	all := f.keys.touches
	first := f.keys.first(from)
	owners := map[string]string{}
	for _, p := range f.keys.places {
		steps := f.keys.byPlace[p]
		if n, _ := slices.BinarySearch(steps, first); n > 0 && p.key == a.key {
			owners[p.node] = all[steps[n-1]].Owner
		}
	}
	for i := first; i < len(all) && all[i].index < to; i++ {
		s := &all[i]
		if s.key != a.key {
			continue
		}
		owners[s.Node] = s.Owner
		if !s.made() || ownerOf(s.Owner) == a.Client {
			continue
		}
		votes := 0
		for _, owner := range owners {
			if owner == s.Owner {
				votes++
			}
		}
		granted := func(b *Acquisition) bool {
			return b.Held() && b.Alias == s.Owner && b.Lock == a.Lock && s.index < b.DoneIndex && b.DoneIndex < to
		}
		if votes >= f.quorum() || slices.ContainsFunc(f.Acquisitions, granted) {
			return s
		}
	}
	return nil
}

// byOps does without a server trace: an acquire of another acquisition that
// was invoked after the last success and granted before the extend's invoke
// had the lock in between.
func (c *lasting) byOps(a *Acquisition, granted []*Acquisition) {
	last := a.Done
	for _, x := range a.extends {
		c.judged++
		n, _ := slices.BinarySearchFunc(granted, last, func(b *Acquisition, t int64) int { return cmp.Compare(b.Invoked, t) })
		for _, b := range granted[n:] {
			if b.Invoked >= x.invoked {
				break
			}
			if b == a || b.Invoked <= last || b.Done >= x.invoked {
				continue
			}
			f := c.facts
			one, two := names(a, b)
			c.found = append(c.found, Found{Kind: OwnerBetween, Ops: []int{a.DoneIndex, b.DoneIndex, x.index}, suspects: f.active(last, x.done),
				Summary: fmt.Sprintf("%s was told at %s that its extend had succeeded, but %s had been granted %s at %s, after %s's last success at %s.",
					one, f.at(x.done), two, f.theLock(a.Lock), f.at(b.Done), one, f.at(last))})
			return
		}
		last = x.done
	}
}
