package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-io/holdfast/history"
)

// noQuorum is the code of an acquire that got too few votes.
const noQuorum = "QUORUM_NOT_REACHED"

// noButQuorum judges a refused acquire where a quorum decides: its votes were
// cast on a quorum of nodes, which carried them at one moment, and nothing had
// disturbed the client, these nodes or the links between them.
//
//	0      c1 asks; n1, n2 and n3 say yes, n4 and n5 cannot be reached
//	0.1    c1 gives the votes back and is told that there was no quorum
//
// Votes that split never are a quorum. A grant that came too late is told with
// another code, and judged by noButValid. Only the simulator has no slowness but
// that of its faults.
func (f *Facts) noButQuorum(a *Acquisition) (Found, bool) {
	if f.quorum() < 2 || !f.complete() || a.Outcome != history.Fail || !slices.Contains([]string{noQuorum, saidNo}, a.Code) {
		return Found{}, false
	}
	since := a.Invoked - int64(f.History.Header.TTL)
	votes := map[place]string{}
	for _, i := range f.keys.between(a.InvokeIndex, a.DoneIndex) {
		s := &f.keys.touches[i]
		if !f.keys.judged(s.place) {
			continue
		}
		mine := s.Client == a.Client && s.made() && ownerOf(s.Owner) == a.Client &&
			!f.disturbed(a.Client, s.Node, since, a.Done) && !f.belated(a, s)
		switch {
		case mine:
			votes[s.place] = s.Owner
		case votes[s.place] != s.Owner:
			delete(votes, s.place)
		}
		n := 0
		for p, token := range votes {
			if p.key == s.key && token == s.Owner {
				n++
			}
		}
		if mine && n >= f.quorum() {
			return Found{Kind: NoButQuorum, Ops: []int{a.InvokeIndex, s.index, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
				Summary: fmt.Sprintf("%s was told at %s that it did not get %s (%s), but at %s %d nodes carried its votes, which is a quorum, and nothing had kept their answers from it.",
					a.Client, f.at(a.Done), f.theLock(a.Lock), a.Code, f.at(s.t), n)}, true
		}
	}
	return Found{}, false
}

// between are the steps between two events.
func (k *keys) between(from, to int) []int {
	var out []int
	for i := k.first(from); i < len(k.touches) && k.touches[i].index < to; i++ {
		out = append(out, i)
	}
	return out
}

// yesButKept judges a release that said yes, where a quorum decides: for a
// quarter of a TTL more a quorum of nodes carried its token, although nothing
// disturbed the client, these nodes or the links between them.
func (f *Facts) yesButKept(a *Acquisition) (Found, bool) {
	grace := int64(f.History.Header.TTL) / orphanGrace
	if !a.Held() || a.Alias == "" || a.ReleaseOutcome != history.OK || f.History.Header.SilentRelease || a.ReleaseDone+grace > f.End {
		return Found{}, false
	}
	kept := 0
	for _, p := range f.keys.places {
		if p.key == a.key && f.carriesFrom(p, a.Alias, a.ReleaseDone, a.ReleaseDone+grace) && !f.disturbed(a.Client, p.node, a.Invoked, a.ReleaseDone+grace) {
			kept++
		}
	}
	if kept < f.quorum() {
		return Found{}, false
	}
	return Found{Kind: YesButKept, Ops: []int{a.ReleaseIndex, a.ReleaseDoneIndex}, suspects: f.active(a.ReleaseInvoked, a.ReleaseDone),
		Summary: fmt.Sprintf("%s's release of %s said yes at %s, but %d nodes, which are a quorum, carried its token until %s at least, although nothing had kept it from deleting it.",
			a.Client, f.theLock(a.Lock), f.at(a.ReleaseDone), kept, f.at(a.ReleaseDone+grace))}, true
}

// carriesFrom says whether a place carried a token for the whole of a stretch of
// time.
func (f *Facts) carriesFrom(p place, token string, from, to int64) bool {
	steps := f.keys.byPlace[p]
	n, _ := slices.BinarySearchFunc(steps, from+1, func(i int, t int64) int { return cmp.Compare(f.keys.touches[i].t, t) })
	if n == 0 || !carries(f.keys.touches[steps[n-1]].Owner, token) {
		return false
	}
	for _, i := range steps[n:] {
		s := &f.keys.touches[i]
		if s.t > to {
			break
		}
		if !carries(s.Owner, token) || !s.sure {
			return false
		}
	}
	return true
}
