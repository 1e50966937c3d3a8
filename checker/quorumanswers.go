package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
// another code, and judged by noButValid; but an attempt that was used up may be
// followed by one that split, which is what is told then. So the votes must have
// been given back, or the answer given, within half a TTL. Slow nodes before the
// first voter count as well, for a lock that waits for each: where a TTL is
// short, they may use it up. Only the simulator has no slowness but that of its
// faults.
func (f *Facts) noButQuorum(a *Acquisition) (Found, bool) {
	ttl := int64(f.History.Header.TTL)
	if f.quorum() < 2 || !f.complete() || a.Outcome != history.Fail || !slices.Contains([]string{noQuorum, saidNo}, a.Code) {
		return Found{}, false
	}
	if ttl < int64(time.Second) && len(f.active(a.Invoked, a.Done)) > 0 {
		return Found{}, false
	}
	b := &ballot{cast: map[place]*touch{}}
	for _, i := range f.keys.between(a.InvokeIndex, a.DoneIndex) {
		s := &f.keys.touches[i]
		if !f.keys.judged(s.place) {
			continue
		}
		if was := b.cast[s.place]; was != nil && was.Owner != s.Owner {
			if b.whole != nil && s.t-b.first <= ttl/2 {
				return f.hadQuorum(a, b), true
			}
			delete(b.cast, s.place)
			b.whole = nil
		}
		if s.Client == a.Client && s.made() && ownerOf(s.Owner) == a.Client && !f.disturbed(a.Client, s.Node, a.Invoked-ttl, a.Done) && !f.belated(a, s) {
			b.vote(s, f.quorum())
		}
	}
	if b.whole != nil && a.Done-b.first <= ttl/2 {
		return f.hadQuorum(a, b), true
	}
	return Found{}, false
}

func (f *Facts) hadQuorum(a *Acquisition, b *ballot) Found {
	return Found{Kind: NoButQuorum, Ops: []int{a.InvokeIndex, b.whole.index, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
		Summary: fmt.Sprintf("%s was told at %s that it did not get %s (%s), but at %s %d nodes carried its votes, which is a quorum, and nothing had kept their answers from it.",
			a.Client, f.at(a.Done), f.theLock(a.Lock), a.Code, f.at(b.whole.t), f.quorum())}
}

// ballot is the votes of an acquire that stand: the commands that cast them, the
// one that made them a quorum, and when the first of that quorum was cast.
type ballot struct {
	cast  map[place]*touch
	whole *touch
	first int64
}

func (b *ballot) vote(s *touch, quorum int) {
	b.cast[s.place] = s
	n, first := 0, s.t
	for p, x := range b.cast {
		if p.key == s.key && x.Owner == s.Owner {
			n, first = n+1, min(first, x.t)
		}
	}
	if n >= quorum && b.whole == nil {
		b.whole, b.first = s, first
	}
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
