package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/holdfast-io/holdfast/history"
)

const orphansName = "orphans"

// Kinds of an orphans violation.
const (
	// Orphan: a key that nobody holds and that its client could have deleted.
	Orphan = "orphan"
	// KeptAlive: a key that nobody holds and that its client goes on renewing.
	KeptAlive = "kept-alive"
	// LeftForEver: a key that nobody holds and that will never end.
	LeftForEver = "left-for-ever"
)

// orphanGrace is the share of a TTL after which a key that nobody holds is an
// orphan: time for a clean-up in the background.
const orphanGrace = 4

// orphans looks for keys that outlive their acquisition. A key is bound to the
// acquire during which its client made it, and to every hold under the same
// token. When these are over (the acquire was refused or its outcome unknown,
// the release has returned), the key has to go, within a grace of a quarter of
// the TTL.
//
// What nobody could clean up is no violation, if it ends with its TTL: the
// client dead or paused, the link cut or slow, the node down at some moment
// between the call that should have cleaned up and the end of the grace (but see
// [leftovers.kept]); or a request that the network delivered when its acquire was over:
//
//	0    c1's SET leaves and is held up; c1 gives up at 3
//	5    it arrives and is granted, to nobody; the key ends at 15
//
// A lost reply is no such excuse: the next request gets through.
func orphans(f *Facts) Result {
	if why := f.mutual(); why != "" {
		return Result{Verdict: Unknown, Reason: why}
	}
	if why := f.untraced(); why != "" {
		return Result{Verdict: Unknown, Reason: why + ", so nobody knows what was left on the nodes"}
	}
	r := Result{Verdict: Pass, Applies: true}
	o := &leftovers{facts: f, grace: int64(f.History.Header.TTL) / orphanGrace, spans: map[string][]tenure{}}
	for _, a := range f.Acquisitions {
		o.spans[a.Client] = append(o.spans[a.Client], f.tenure(a))
	}
	for _, p := range f.keys.places {
		if f.keys.judged(p) {
			o.place(p)
		}
	}
	r.Figures = map[string]float64{"keys": float64(o.judged), "excused": float64(o.excused), "orphans": float64(len(o.found))}
	if o.judged == 0 {
		r.Verdict, r.Reason = Unknown, "no client made a lock's key"
	}
	return r.with(o.found, []string{LeftForEver, KeptAlive, Orphan})
}

// tenure is the time during which an acquisition answers for its key, and the
// moment at which its last call, which has to clean up, began.
type tenure struct {
	Interval
	a       *Acquisition
	cleanup int64
}

func (f *Facts) tenure(a *Acquisition) tenure {
	t := tenure{a: a, Interval: Interval{From: a.Invoked, To: a.Done}, cleanup: a.Invoked}
	if !a.Held() {
		return t
	}
	t.To = f.End
	if a.CrashIndex >= 0 {
		t.To = f.History.Events[a.CrashIndex].T
	}
	if a.ReleaseIndex >= 0 {
		t.cleanup = a.ReleaseInvoked
	}
	if a.ReleaseDoneIndex >= 0 {
		t.To = min(t.To, a.ReleaseDone)
	}
	return t
}

type leftovers struct {
	facts           *Facts
	grace           int64
	spans           map[string][]tenure // by client, in the order of invokes
	judged, excused int
	found           []Found
}

// life is a key under one token, from its making to its end.
type life struct {
	token, client string
	touches       []int
	Interval
	ended bool
	// inherited: a promoted replica had the key from its primary, or the key
	// came with its slot.
	inherited bool
}

// place cuts the story of a place into lives.
func (o *leftovers) place(p place) {
	f := o.facts
	var l *life
	unbound := "" // a token that came back by itself: from a disk, or unseen
	flush := func(end int64, ended bool) {
		if l != nil {
			l.To, l.ended = end, ended
			if at, ok := f.demoted(p, l.From); ok && at < end {
				l.To, l.ended = at, true
			}
			o.life(p, l)
		}
		l = nil
	}
	for _, i := range f.keys.byPlace[p] {
		s := &f.keys.touches[i]
		if l != nil && s.Owner != l.token {
			flush(s.t, true)
		}
		switch {
		case l != nil:
			l.touches = append(l.touches, i)
		case s.Owner == "" || !s.sure || s.Client == "" && !s.succeeds():
			unbound = s.Owner
		case s.Owner == unbound:
		default:
			l = &life{token: s.Owner, client: s.Client, touches: []int{i}, Interval: Interval{From: s.t}}
			if l.client == "" || s.before == s.Owner {
				l.client = ownerOf(s.Owner)
			}
			l.inherited = s.succeeds()
		}
	}
	flush(f.End, false)
}

// demoted is when a node ceased to be the primary, after a moment, or that
// moment where it was none then. Nobody can delete a key there any more, and what
// it becomes as a replica is its primary's doing.
func (f *Facts) demoted(p place, since int64) (int64, bool) {
	if f.sharded() {
		return f.succeeded(p, since)
	}
	deposed := false
	for _, x := range f.failovers() {
		switch {
		case x.On[0] == p.node && x.Start >= since:
			return x.Start, true
		case x.Start > since:
			return since, deposed
		}
		deposed = x.On[0] == p.node || deposed && x.On[1] != p.node
	}
	return since, deposed
}

// succeeds says whether the node began to serve the key with this event, and had
// it from the one before.
func (s *touch) succeeds() bool { return s.Cmd == history.Promoted || s.Cmd == history.Moved }

// life judges what is left of a key after each tenure that it belongs to.
func (o *leftovers) life(p place, l *life) {
	own := o.tenures(l)
	if len(own) == 0 {
		return
	}
	o.judged++
	last := own[0]
	for i, t := range own {
		if t.To >= last.To {
			last = t
		}
		free := Interval{From: max(last.To, l.From), To: l.To}
		if i+1 < len(own) {
			free.To = min(free.To, own[i+1].From)
		}
		if free.To > free.From && o.left(p, l, last, free, free.To == l.To && !l.ended) {
			return
		}
	}
}

// tenures are those that answer for a key: the holds under its token, and the
// acquire that made it. That is the last one that was invoked before, unless a
// hold under the token, perhaps another thread's, was under way.
func (o *leftovers) tenures(l *life) []tenure {
	all := o.spans[l.client]
	n := sort.Search(len(all), func(i int) bool { return all[i].From > l.From })
	var own []tenure
	for _, t := range all[max(0, n-mostThreads):] {
		if t.From >= l.To {
			break
		}
		if t.To > l.From && t.a.Held() && t.a.Alias == l.token {
			own = append(own, t)
		}
	}
	if n > 0 && (len(own) == 0 || own[0].From > l.From) {
		made := all[n-1]
		for i := n - 1; made.a.Held() && i >= max(0, n-mostThreads); i-- {
			if all[i].a.Held() && all[i].a.Alias == l.token { // an earlier hold's
				made = all[i]
				break
			}
		}
		own = append([]tenure{made}, own...)
	}
	return own
}

// late says whether the key may be the work of a request of an earlier call
// that the network, or a node that stood still, held up. Then nobody waited for
// it any more, and nobody could clean up. It is not, if it was made for a hold
// under its token. A replica that had not heard of the clean-up when it was
// promoted is late in the same way.
func (o *leftovers) late(p place, l *life, t tenure) bool {
	if l.inherited && t.cleanup <= l.From {
		return true // the clean-up was asked of the primary before
	}
	if t.a.Held() && t.a.Alias == l.token && t.To > l.From {
		return false
	}
	f, all := o.facts, o.spans[l.client]
	oldest := l.From - longestWay*int64(f.History.Header.TTL)
	n := sort.Search(len(all), func(i int) bool { return all[i].From > l.From })
	for i := n - 1; i >= 0 && all[i].To >= oldest; i-- {
		if e := all[i]; e.To < l.From && f.heldUpIn(l.client, p.node, max(e.From, oldest), e.To) {
			return true
		}
	}
	return false
}

// kept says whether a fault kept the client from cleaning up. A pause does not,
// if it began before the client can have been at it and was over before its
// acquire was refused:
//
//	0.9  c1 invokes acquire; it is paused at 1
//	1    its SET runs; the reply waits in its socket
//	12   it goes on, reads "yes", finds it used up and says no, all at once
//
// Begun later, the pause may have met the clean-up itself, and used up the time
// that was set for it.
func (o *leftovers) kept(p place, l *life, t tenure) bool {
	f := o.facts
	soonest := after(l.From, f.History.Header.TTL/ttlTolerance) // the first clean-up
	return slices.ContainsFunc(f.Faults, func(x Fault) bool {
		if x.Start > t.To+o.grace || x.ends() < t.cleanup || !x.hits(l.client, p.node) {
			return false
		}
		return x.Fault != "pause" || t.a.Outcome != history.Fail || x.Start > soonest || x.StopIndex < 0 || x.StopIndex > t.a.DoneIndex
	})
}

// left judges a stretch in which a key was there and nobody answered for it.
func (o *leftovers) left(p place, l *life, t tenure, free Interval, toTheEnd bool) bool {
	f := o.facts
	final := &f.keys.touches[l.touches[len(l.touches)-1]]
	hindered := o.kept(p, l, t) || o.late(p, l, t) || t.a.CrashIndex >= 0
	renewed := o.renewed(p, l, free)
	long := free.To-free.From > o.grace
	kind, what := "", ""
	switch {
	case toTheEnd && final.PTTL == -1:
		kind, what = LeftForEver, "has no expiry"
	case renewed != nil && t.a.CrashIndex < 0:
		kind, what = KeptAlive, fmt.Sprintf("was renewed by %s at %s", l.client, f.at(renewed.t))
	case long && !hindered:
		kind, what = Orphan, fmt.Sprintf("was there for %s more, although nothing kept %s from deleting it", f.long(free.To-free.From), l.client)
	case long:
		o.excused++
		return false
	default:
		return false
	}
	over, ops := "its acquire had failed", []int{t.a.InvokeIndex}
	if t.a.Held() {
		over = "its hold was over"
	}
	for _, i := range []int{t.a.DoneIndex, t.a.ReleaseIndex, t.a.ReleaseDoneIndex} {
		if i >= 0 {
			ops = append(ops, i)
		}
	}
	if renewed != nil {
		final = renewed
	}
	o.found = append(o.found, Found{Kind: kind, Ops: append(ops, final.index), suspects: f.blame(t.From, free.From),
		Summary: fmt.Sprintf("%s's key on %s %s after %s at %s.", l.client, p.node, what, over, f.at(t.To))})
	return true
}

// renewed finds a command of the client that lengthened a key which nobody
// held any more, and that the network cannot have held up.
func (o *leftovers) renewed(p place, l *life, free Interval) *touch {
	f := o.facts
	n, _ := slices.BinarySearchFunc(l.touches, free.From+o.grace, func(i int, t int64) int { return cmp.Compare(f.keys.touches[i].t, t) })
	for _, i := range l.touches[n:] {
		s := &f.keys.touches[i]
		if s.t >= free.To {
			break
		}
		if s.Client == l.client && s.moved > 0 && !f.heldUp(l.client, p.node, s.t) {
			return s
		}
	}
	return nil
}
