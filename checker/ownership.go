package checker

import (
	"fmt"
	"slices"
	"sort"
)

const ownershipName = "ownership"

// Kinds of an ownership violation.
const (
	ForeignDelete    = "foreign-delete"
	ForeignOverwrite = "foreign-overwrite"
	ForeignExtend    = "foreign-extend"
	StaleRelease     = "stale-release"
	SharedToken      = "shared-token"
)

var ownershipGravity = []string{ForeignDelete, ForeignOverwrite, StaleRelease, ForeignExtend, SharedToken}

// ownership judges every command that changed a lock's key: it may touch a key
// that carries the token of the acquisition it acts for, or, to acquire, an
// absent one. Ownership is per acquisition, and tokens often are not: a client
// whose acquisitions share a token can delete its own newer hold.
//
//	0    c2 sends a release; it is slow, and sent again
//	0.3  the second copy runs; c2's release is ok
//	0.4  c2 acquires anew, under the same token, and believes
//	0.5  the first copy arrives, finds the token, and deletes the new hold
//
// Nothing that happened by itself counts: expiry, loss, promotion. Nor does a
// command that changed nothing, such as a refused release.
func ownership(f *Facts) Result {
	if why := f.mutual(); why != "" {
		return Result{Verdict: Unknown, Reason: why}
	}
	if why := f.untraced(); why != "" {
		return Result{Verdict: Unknown, Reason: why + ", so nobody knows who changed what"}
	}
	r := Result{Verdict: Pass, Applies: true}
	o := &owning{facts: f, byToken: map[string][]*Acquisition{}, shared: map[string]bool{}}
	for _, a := range f.Acquisitions {
		if a.Held() && a.Alias != "" {
			o.byToken[a.Alias] = append(o.byToken[a.Alias], a)
		}
	}
	changes := 0
	for i := range f.keys.touches {
		s := &f.keys.touches[i]
		if s.Client == "" || !s.change() || !s.sure || isError(s.Reply) || slices.Contains(reading, s.Cmd) || !f.keys.judged(s.place) {
			continue
		}
		changes++
		o.judge(s)
	}
	r.Figures = map[string]float64{"changes": float64(changes), "violations": float64(len(o.found))}
	if changes == 0 {
		r.Verdict, r.Reason = Unknown, "no command of a client changed a lock's key"
	}
	return r.with(o.found, ownershipGravity)
}

// owning is what the check remembers from command to command.
type owning struct {
	facts   *Facts
	byToken map[string][]*Acquisition
	// shared are tokens that have been reported as such.
	shared map[string]bool
	found  []Found
}

func (o *owning) judge(s *touch) {
	switch {
	case s.before == "":
		o.fresh(s)
	case s.maker == "":
	case s.maker != s.Client:
		o.foreign(s)
	case s.Owner != s.before:
		o.own(s)
	}
}

// fresh takes a key that was made where there was none. A token that another
// client has written before tells nobody apart.
func (o *owning) fresh(s *touch) {
	if ownerOf(s.Owner) == s.Client || ownerOf(s.Owner) == "?" || o.shared[s.Owner] {
		return
	}
	o.shared[s.Owner] = true
	f := o.facts
	o.found = append(o.found, Found{Kind: SharedToken, Ops: []int{s.index}, suspects: f.active(s.t, s.t),
		Summary: fmt.Sprintf("%s put a token on %s at %s that %s had written before: the token names neither of them, so that each can delete the other's lock.",
			s.Client, s.Node, f.at(s.t), ownerOf(s.Owner))})
}

// foreign takes a change of a key that named another client.
func (o *owning) foreign(s *touch) {
	f := o.facts
	kind, how := ForeignDelete, "deleted"
	switch {
	case s.Owner == s.before:
		kind, how = ForeignExtend, "changed the time to live of"
	case s.Owner != "":
		kind, how = ForeignOverwrite, "wrote over"
	}
	ops := []int{s.index}
	victim := ""
	if a := o.holder(s.before, s.t); a != nil && a.Client != s.Client {
		ops = []int{a.DoneIndex, s.index}
		victim = fmt.Sprintf(", which %s believed it held since %s", a.Client, f.at(a.Done))
	}
	o.found = append(o.found, Found{Kind: kind, Ops: ops, suspects: f.blame(o.since(s), s.t),
		Summary: fmt.Sprintf("%s %s %s's key on %s with its %s at %s%s: it touched a lock that was not its own.",
			s.Client, how, s.maker, s.Node, s.Cmd, f.at(s.t), victim)})
}

// own takes a key of the client's own that was deleted or given another of its
// tokens. It is a violation while an acquisition with that token believes:
// whatever asked for this did not act for it. The key must be the hold's own
// and not one left over from an earlier hold: of five nodes, one may have stood
// still all the time, and now does what it was asked to do long ago.
func (o *owning) own(s *touch) {
	a := o.holder(s.before, s.t)
	if a == nil || s.written < a.Invoked {
		return
	}
	f := o.facts
	if b := f.otherThread(a, s); b != nil {
		what, ops := "acquire", []int{a.DoneIndex, b.InvokeIndex, s.index}
		if b.ReleaseIndex >= 0 && b.ReleaseIndex < s.index {
			what, ops[1] = "release", b.ReleaseIndex
		}
		slices.Sort(ops)
		o.found = append(o.found, Found{Kind: StaleRelease, Ops: ops, suspects: f.blame(o.since(s), s.t),
			Summary: fmt.Sprintf("the %s of thread %d of %s took away the token of thread %d on %s at %s, while thread %[4]d still believed in the hold granted at %[7]s and had not released it: one thread acted on another's hold.",
				what, b.Thread, s.Client, a.Thread, s.Node, f.at(s.t), f.at(a.Done))})
		return
	}
	o.found = append(o.found, Found{Kind: StaleRelease, Ops: []int{a.DoneIndex, s.index}, suspects: f.blame(o.since(s), s.t),
		Summary: fmt.Sprintf("a command of %s took away its own token on %s at %s, while it still believed in the hold granted at %s and had not released it: an old request acted on a newer hold.",
			s.Client, s.Node, f.at(s.t), f.at(a.Done))})
}

// otherThread finds the acquisition of another thread of the same client whose
// call was under way when a command took away an acquisition's token, and made
// it. It is not known where a fault may have held up an older request.
//
//	0    c1's thread 0 acquires, token c1#1
//	10   the key ends; thread 1 acquires, and the lock object writes c1#1 again
//	12   thread 0 releases, finds c1#1, and deletes thread 1's hold
func (f *Facts) otherThread(a *Acquisition, s *touch) *Acquisition {
	if f.heldUp(s.Client, s.Node, s.t) {
		return nil
	}
	for _, b := range f.Acquisitions {
		if b.InvokeIndex > s.index {
			break
		}
		if b.Client != s.Client || b.Lock != a.Lock || b.Thread == a.Thread {
			continue
		}
		acquiring := b.Pending() || s.index < b.DoneIndex
		releasing := b.ReleaseIndex >= 0 && b.ReleaseIndex < s.index && (b.ReleaseDoneIndex < 0 || s.index < f.soon(b.ReleaseDoneIndex))
		if acquiring || releasing {
			return b
		}
	}
	return nil
}

// mostThreads is how many acquisitions under one token may be under way at
// once: as many as a client has threads that share it.
const mostThreads = 16

// holder is the acquisition with a token that believes at a time. They are in
// the order of their invokes, so that the last ones before that time will do.
func (o *owning) holder(token string, t int64) *Acquisition {
	all, slack := o.byToken[token], o.facts.slack()
	n := sort.Search(len(all), func(i int) bool { return all[i].Invoked > t })
	for i := n - 1; i >= max(0, n-mostThreads); i-- {
		if slices.ContainsFunc(all[i].Belief, func(b Interval) bool { return b.From <= t && t < b.To-slack }) {
			return all[i]
		}
	}
	return nil
}

// since is when the command's client began what it is at: the fault that made
// a command late was active then. It looks back over the last few acquires.
func (o *owning) since(s *touch) int64 {
	const back = 64
	from, all := s.t, o.facts.Acquisitions
	n := sort.Search(len(all), func(i int) bool { return all[i].Invoked > s.t })
	recent := s.t - int64(o.facts.History.Header.TTL)
	for _, a := range all[max(0, n-back):n] {
		if a.Client == s.Client && a.Held() && (a.ReleaseDone == 0 || a.ReleaseDone > recent) {
			from = min(from, a.Invoked)
		}
	}
	return from
}
