package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-io/holdfast/history"
)

const fencingName = "fencing"

// Kinds of a fencing violation.
const (
	FenceNotMonotonic = "fence-not-monotonic"
	FenceRepeated     = "fence-repeated"
	StaleWrite        = "stale-write"
	NewestRefused     = "newest-refused"
	// UnfencedWrite: a guard applied a write that carried no token at all.
	UnfencedWrite = "unfenced-write"
	// FenceMissing: the lock declares tokens and did not give one.
	FenceMissing = "fence-missing"
	// FenceUndeclared: the lock gave a token that it does not declare.
	FenceUndeclared = "fence-undeclared"
)

// fenceGravity orders the kinds: damage done first, then tokens that went
// backwards, of which a repeated one is the mildest case.
var fenceGravity = []string{StaleWrite, UnfencedWrite, FenceNotMonotonic, FenceRepeated, FenceMissing, NewestRefused, FenceUndeclared}

// fencing judges the tokens that a lock hands out and the resource that is
// meant to honour them.
func fencing(f *Facts) Result {
	h := &f.History.Header
	if !h.Has("fence") {
		return f.unfenced()
	}
	r := Result{Verdict: Pass, Applies: true}
	fenced := map[string][]*Acquisition{}
	n := 0
	var found []Found
	for _, a := range f.Acquisitions {
		switch {
		case !a.Held():
		case a.Fence != nil:
			fenced[a.Lock] = append(fenced[a.Lock], a)
			n++
		default:
			found = append(found, Found{Kind: FenceMissing, Ops: []int{a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
				Summary: fmt.Sprintf("%s declares fencing tokens, but the grant to %s at %s came with none.", h.Lock, a.Client, f.at(a.Done))})
		}
	}
	if n == 0 && len(found) == 0 {
		r.Verdict, r.Reason = Unknown, "no acquire handed out a fencing token"
		return r
	}
	for _, lock := range f.Locks {
		found = append(found, f.repeated(fenced[lock])...)
		found = append(found, f.backwards(fenced[lock])...)
	}
	if h.Resource == "guarded" {
		found = append(found, f.guard()...)
	} else {
		// Any other resource looks at no token, so a stale write that it takes
		// is no failure of the fence: the updates check counts the damage.
		r.Reason = fmt.Sprintf("only the tokens were judged: the resource is %s and checks none", cmp.Or(h.Resource, "plain"))
	}
	r.Figures = map[string]float64{"tokens": float64(n), "violations": float64(len(found))}
	slices.SortStableFunc(found, func(a, b Found) int {
		return slices.Index(fenceGravity, a.Kind) - slices.Index(fenceGravity, b.Kind)
	})
	if len(found) > 0 {
		r.Verdict, r.Kind = Violation, found[0].Kind
		r.Violations = found[:min(len(found), mostListed)]
	}
	return r
}

// unfenced is about a lock that declares no tokens. It cannot be fenced, also
// where the resource would look at a token; if it hands out tokens all the same,
// what is known of the lock is wrong.
func (f *Facts) unfenced() Result {
	h := &f.History.Header
	for _, a := range f.Acquisitions {
		if a.Held() && a.Fence != nil {
			found := Found{Kind: FenceUndeclared, Ops: []int{a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
				Summary: fmt.Sprintf("%s was given fencing token %d at %s, but %s declares none.", a.Client, *a.Fence, f.at(a.Done), h.Lock)}
			return Result{Verdict: Violation, Applies: true, Kind: FenceUndeclared, Violations: []Found{found}}
		}
	}
	r := Result{Verdict: Unknown, Reason: fmt.Sprintf("%s hands out no fencing tokens: it cannot be fenced", h.Lock)}
	let := 0
	for _, w := range f.Resource {
		if w.F == history.Write && w.Applied {
			let++
		}
	}
	if h.Resource == "guarded" && let > 0 {
		r.Reason += fmt.Sprintf(", and the guard let %s without a token through", count(let, "write"))
	}
	return r
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// repeated finds tokens that two acquisitions share.
func (f *Facts) repeated(acqs []*Acquisition) []Found {
	var found []Found
	first := map[uint64]*Acquisition{}
	for _, a := range acqs {
		b := first[*a.Fence]
		if b == nil {
			first[*a.Fence] = a
			continue
		}
		if a.DoneIndex < b.DoneIndex {
			a, b = b, a
		}
		one, two := names(b, a)
		found = append(found, Found{Kind: FenceRepeated, Ops: []int{b.DoneIndex, a.DoneIndex},
			suspects: f.blameSince(a.Done, b),
			Summary: fmt.Sprintf("%s was given fencing token %d at %s and %s the same one at %s: the resource cannot tell them apart.",
				one, *b.Fence, f.at(b.Done), two, f.at(a.Done))})
	}
	return found
}

// backwards finds tokens that are smaller than one handed out before. Before
// means in real time, one acquire over when the other began. The order of the
// replies says nothing:
//
//	0  A invokes; its script runs and draws token 1; the reply is slow
//	1  B invokes (A's lease has ended), draws token 2
//	2  B's ok, token 2
//	3  A's ok, token 1        <- later, smaller, and lawful
//
// The acquires are taken by invoke and those completed before by completion,
// so that one running maximum is enough.
func (f *Facts) backwards(acqs []*Acquisition) []Found {
	byInvoke, byDone := slices.Clone(acqs), slices.Clone(acqs)
	slices.SortStableFunc(byInvoke, func(a, b *Acquisition) int { return cmp.Compare(a.Invoked, b.Invoked) })
	slices.SortStableFunc(byDone, func(a, b *Acquisition) int { return cmp.Compare(a.Done, b.Done) })
	var found []Found
	var newest *Acquisition
	for _, a := range byInvoke {
		for len(byDone) > 0 && byDone[0].Done < a.Invoked {
			if newest == nil || *byDone[0].Fence > *newest.Fence {
				newest = byDone[0]
			}
			byDone = byDone[1:]
		}
		// Equal tokens are reported as repeated.
		if newest == nil || *newest.Fence <= *a.Fence {
			continue
		}
		one, two := names(newest, a)
		found = append(found, Found{Kind: FenceNotMonotonic, Ops: []int{newest.DoneIndex, a.DoneIndex},
			suspects: f.blameSince(a.Done, newest),
			Summary: fmt.Sprintf("%s was given fencing token %d at %s, after %s had been given %d at %s: tokens went backwards.",
				two, *a.Fence, f.at(a.Done), one, *newest.Fence, f.at(newest.Done))})
	}
	return found
}

// guard judges the resource that is meant to refuse older tokens, and only
// those.
func (f *Facts) guard() []Found {
	var found []Found
	var seen, applied *Arrival // with the newest token that arrived, that was applied
	for k := range f.Resource {
		w := &f.Resource[k]
		if w.Fence == nil {
			if w.F == history.Write && w.Applied {
				found = append(found, Found{Kind: UnfencedWrite, Ops: []int{w.Index}, suspects: f.active(w.T, w.T),
					Summary: fmt.Sprintf("the write of %s at %s carried no fencing token and was applied: the guard lets anybody through.", w.Client, f.at(w.T))})
			}
			continue
		}
		newest := seen == nil || *w.Fence >= *seen.Fence
		if newest {
			seen = w
		}
		if w.F != history.Write {
			continue
		}
		switch {
		case !w.Applied && newest:
			found = append(found, Found{Kind: NewestRefused, Ops: []int{w.Index}, suspects: f.active(w.T, w.T),
				Summary: fmt.Sprintf("the resource refused the write of %s at %s although its fencing token %d is the newest it has seen.",
					w.Client, f.at(w.T), *w.Fence)})
		case w.Applied && !newest:
			newer := seen
			if applied != nil && *w.Fence < *applied.Fence {
				newer = applied // the damage shows there
			}
			found = append(found, Found{Kind: StaleWrite, Ops: []int{newer.Index, w.Index}, suspects: f.active(newer.T, w.T),
				Summary: fmt.Sprintf("the write of %s with fencing token %d was applied at %s, after the %s of %s with token %d at %s: the guard let a stale write through.",
					w.Client, *w.Fence, f.at(w.T), newer.F, newer.Client, *newer.Fence, f.at(newer.T))})
		case w.Applied:
			applied = w
		}
	}
	return found
}
