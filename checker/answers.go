package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

const answersName = "answers"

// The kinds of a wrong answer.
const (
	// NoButKept: an acquire was told no, when its own token had been set and
	// stayed.
	NoButKept = "no-but-kept"
	// NoButValid: an acquire was told that its grant came too late, when hardly
	// any of it had passed.
	NoButValid = "no-but-valid"
	// YesButGone: a release was told yes, and had found nothing of its own.
	YesButGone = "yes-but-gone"
	// NoButDeleted: a release was told that nothing was held, when it had just
	// deleted its own key.
	NoButDeleted = "no-but-deleted"
	// NoButQuorum: an acquire was told no, when a quorum had voted for it.
	NoButQuorum = "no-but-quorum"
	// YesButKept: a release was told yes, and a quorum went on to carry its token.
	YesButKept = "yes-but-kept"
	// GaveUpEarly: a lock that promises to wait did not.
	GaveUpEarly = "gave-up-early"
)

// saidNo is the code of an acquire that somebody else's hold refused, tooLate
// that of one whose grant was used up, and notHeld that of a release without a
// hold.
const (
	saidNo  = "LOCK_TIMEOUT"
	notHeld = "UNLOCK_FAILED"
	tooLate = "CLOCK_DRIFT"
)

// noes are the codes with which an acquire says that it holds nothing, and has
// left nothing.
var noes = []string{saidNo, tooLate, unreachable}

// answers holds what a lock told its caller against what its own commands did.
// Linearizability cannot see these lies, since it must allow a no for many
// reasons. Only definite answers are judged; "it may have happened" is never a
// lie.
//
//	0.1  c1's SET NX is applied, its reply is lost
//	0.2  c1's library sends it again: refused, by c1's own key
//	0.2  c1 is told that somebody else holds the lock     <- no-but-kept
//
// What looks like a lie and is none:
//
//   - A refused release of a lease that is over: nothing of its own was there.
//   - A release that says yes after its first try, whose reply was lost, had
//     deleted the key: one of its commands did.
//   - A release that says no after it deleted a key which a delayed request had
//     brought back: the lease was interrupted before.
//   - A release that says no where a fault may have swallowed the reply of its
//     first try: it should say that it does not know, but the error is known.
//   - A refusal beside a request of an earlier call, which a fault had held up and
//     which takes the key now.
//   - A lock whose release has no answer to give (the header says so).
//
// Where a quorum decides, a vote that stays is a lie only if the lock did not even
// try to give it back. A release that says yes is one only if a quorum goes on to
// carry the token, and one that says no only if it has deleted a quorum of keys:
// that nothing is left of a lease is no reason for a no, since Redlock's release
// does not look. See quorumanswers.go.
func answers(f *Facts) Result {
	switch why := f.untraced(); {
	case why != "":
		return Result{Verdict: Unknown, Reason: why + ", so answers cannot be held against it"}
	case f.mutual() != "":
		return Result{Verdict: Unknown, Reason: f.mutual()}
	}
	looks := []func(*Acquisition) (Found, bool){f.noButKept, f.noButValid, f.gaveUpEarly}
	if f.quorum() == 1 {
		looks = append(looks, f.yesButGone, f.noButDeleted)
	} else {
		looks = append(looks, f.noButQuorum, f.yesButKept, f.noButDeleted)
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	judged := 0
	for _, a := range f.Acquisitions {
		if a.Pending() || f.ambiguous(a) {
			continue
		}
		judged++
		for _, look := range looks {
			if v, bad := look(a); bad {
				found = append(found, v)
			}
		}
	}
	r.Figures = map[string]float64{"judged": float64(judged), "violations": float64(len(found))}
	switch {
	case judged > 0:
	case len(f.Acquisitions) == 0 || f.Acquisitions[0].Pending():
		r.Verdict, r.Reason = Unknown, "no call was answered"
	default:
		return Result{Verdict: Unknown, Reason: "every client has several calls for the lock under way at once, so that nobody knows whose command was whose"}
	}
	return r.with(found, []string{NoButKept, NoButQuorum, NoButValid, YesButGone, YesButKept, NoButDeleted, GaveUpEarly})
}

// ambiguous says whether another acquisition of the lock by the same client was
// under way at the same time, so that nobody knows whose command was whose.
func (f *Facts) ambiguous(a *Acquisition) bool {
	mine := f.tenure(a)
	return slices.ContainsFunc(f.Acquisitions, func(b *Acquisition) bool {
		if b == a || b.Client != a.Client || b.Lock != a.Lock {
			return false
		}
		other := f.tenure(b)
		return max(mine.From, other.From) < min(mine.To, other.To)
	})
}

// noButKept judges a refused acquire: the last that its commands did to the
// lock's key was to make it, and there it stayed.
func (f *Facts) noButKept(a *Acquisition) (Found, bool) {
	if a.Outcome != history.Fail || !slices.Contains(noes, a.Code) {
		return Found{}, false
	}
	s := f.stayed(a)
	if s == nil || f.quorum() > 1 && f.disturbed(a.Client, s.Node, s.t, a.Done) {
		return Found{}, false
	}
	return Found{Kind: NoButKept, Ops: []int{a.InvokeIndex, s.index, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
		Summary: fmt.Sprintf("%s was told at %s that it does not hold %s (%s), but its own request had taken the key on %s at %s and the key was still there.",
			a.Client, f.at(a.Done), f.theLock(a.Lock), a.Code, s.Node, f.at(s.t))}, true
}

// stayed is the command of an acquire that made the lock's key on some node, if it
// is the last that its client did there and the key stayed until the answer.
func (f *Facts) stayed(a *Acquisition) *touch {
	last := map[place]*touch{}
	var order []place
	for _, i := range f.keys.of(a.Client, a.InvokeIndex, a.DoneIndex) {
		s := &f.keys.touches[i]
		if !s.sure || !f.keys.judged(s.place) {
			continue
		}
		made := s.made() && ownerOf(s.Owner) == a.Client && !f.belated(a, s)
		switch before := last[s.place]; {
		case made:
			last[s.place] = s
			order = append(order, s.place)
		case before != nil && (f.quorum() > 1 || s.Owner != before.Owner):
			last[s.place] = nil
		}
	}
	for _, p := range order {
		s := last[p]
		if s != nil && !slices.ContainsFunc(f.keys.byPlace[p], func(i int) bool {
			n := &f.keys.touches[i]
			return n.index > s.index && n.t <= a.Done+f.slack() && n.Owner != s.Owner
		}) {
			return s
		}
	}
	return nil
}

// belated says whether a command that ran during an acquire may be one of an
// earlier acquire of the same client, held up on its way.
func (f *Facts) belated(a *Acquisition, s *touch) bool {
	return f.heldUp(a.Client, s.Node, s.t) && slices.ContainsFunc(f.Acquisitions, func(b *Acquisition) bool {
		return b.Client == a.Client && b.InvokeIndex < a.InvokeIndex
	})
}

// noButValid judges a grant that was called used up. It was not, if the votes of
// the last attempt had all come within half a TTL, and nothing disturbed the
// call. Redlock counts each attempt by itself:
//
//	0.0   c1 asks, is refused, asks again, ...
//	9.0   all nodes say yes
//	9.1   c1 is told that its validity of 10 is used up      <- no-but-valid
func (f *Facts) noButValid(a *Acquisition) (Found, bool) {
	if a.Outcome != history.Fail || a.Code != tooLate {
		return Found{}, false
	}
	votes := map[place]*touch{}
	for _, i := range f.keys.of(a.Client, a.InvokeIndex, a.DoneIndex) {
		s := &f.keys.touches[i]
		if !s.sure || f.disturbed(a.Client, s.Node, a.Invoked, a.Done) {
			return Found{}, false
		}
		if f.keys.judged(s.place) && s.made() && ownerOf(s.Owner) == a.Client {
			votes[s.place] = s
		}
	}
	if len(votes) < f.quorum() {
		return Found{}, false
	}
	first := a.DoneIndex
	for _, s := range votes {
		first = min(first, s.index)
	}
	t := f.History.Events[first].T
	if a.Done-t > int64(f.History.Header.TTL)/2 {
		return Found{}, false
	}
	return Found{Kind: NoButValid, Ops: []int{a.InvokeIndex, first, a.DoneIndex},
		Summary: fmt.Sprintf("%s was told at %s that its grant of %s was used up, but the first of its votes was cast at %s, %s earlier.",
			a.Client, f.at(a.Done), f.theLock(a.Lock), f.at(t), f.long(a.Done-t))}, true
}

// disturbed says whether a fault touched a client, a node or the links between
// them in a stretch of time.
func (f *Facts) disturbed(client, node string, from, to int64) bool {
	return slices.ContainsFunc(f.Faults, func(x Fault) bool {
		near := x.Start <= to && x.ends() >= from
		return near && (len(x.On) == 0 || slices.ContainsFunc(x.On, func(on string) bool {
			return on == client || on == node || on == client+"->"+node || on == node+"->"+client
		}))
	})
}

// gaveUpEarly judges a refusal by a lock that promises to wait.
func (f *Facts) gaveUpEarly(a *Acquisition) (Found, bool) {
	promised := int64(f.History.Header.Waits)
	if promised == 0 || a.Outcome != history.Fail || a.Code != saidNo {
		return Found{}, false
	}
	if at := f.History.Events[a.InvokeIndex].Op.Deadline; at != nil {
		promised = min(promised, *at-a.Invoked)
	}
	if waited := a.Done - a.Invoked; waited >= promised*9/10-f.slack()-int64(100*time.Millisecond) {
		return Found{}, false
	}
	return Found{Kind: GaveUpEarly, Ops: []int{a.InvokeIndex, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
		Summary: fmt.Sprintf("%s was told at %s that it did not get %s, %s after it had asked: the lock promises to wait for %s.",
			a.Client, f.at(a.Done), f.theLock(a.Lock), f.long(a.Done-a.Invoked), f.long(promised))}, true
}

// releasing are the commands of a release to the key that its acquisition had
// taken.
func (f *Facts) releasing(a *Acquisition) (own []*touch, sure bool) {
	if !a.Held() || a.Alias == "" || a.ReleaseIndex < 0 || a.ReleaseDoneIndex < 0 {
		return nil, false
	}
	for _, i := range f.keys.of(a.Client, a.ReleaseIndex, f.soon(a.ReleaseDoneIndex)) {
		s := &f.keys.touches[i]
		if s.key != a.key {
			continue
		}
		if !s.sure {
			return nil, false
		}
		own = append(own, s)
	}
	return own, len(own) > 0
}

// yesButGone judges a release that said yes.
func (f *Facts) yesButGone(a *Acquisition) (Found, bool) {
	own, sure := f.releasing(a)
	if !sure || a.ReleaseOutcome != history.OK || f.History.Header.SilentRelease {
		return Found{}, false
	}
	if slices.ContainsFunc(own, func(s *touch) bool { return carries(s.before, a.Alias) || carries(s.Owner, a.Alias) }) {
		return Found{}, false
	}
	last := own[len(own)-1]
	whose := "nobody's"
	if last.before != "" {
		whose = ownerOf(last.before) + "'s"
	}
	return Found{Kind: YesButGone, Ops: []int{a.ReleaseIndex, last.index, a.ReleaseDoneIndex}, suspects: f.active(a.ReleaseInvoked, a.ReleaseDone),
		Summary: fmt.Sprintf("%s's release of %s said yes at %s, but the key was %s when it came: it had released nothing.",
			a.Client, f.theLock(a.Lock), f.at(a.ReleaseDone), whose)}, true
}

// noButDeleted judges a release that said that nothing was held.
func (f *Facts) noButDeleted(a *Acquisition) (Found, bool) {
	own, sure := f.releasing(a)
	if !sure || a.ReleaseOutcome != history.Fail || a.ReleaseCode != notHeld {
		return Found{}, false
	}
	deleted := map[string]bool{}
	var s *touch
	for _, x := range own {
		if carries(x.before, a.Alias) && !carries(x.Owner, a.Alias) && len(deleted) < f.quorum() {
			deleted[x.Node], s = true, x
		}
	}
	if len(deleted) < f.quorum() || len(f.active(a.ReleaseInvoked, a.ReleaseDone)) > 0 {
		return Found{}, false
	}
	if slices.ContainsFunc(a.lapses, func(l lapse) bool { return l.From < s.t }) {
		return Found{}, false
	}
	what := "its own key"
	if f.quorum() > 1 {
		what = fmt.Sprintf("its own keys on %d nodes, the last", len(deleted))
	}
	return Found{Kind: NoButDeleted, Ops: []int{a.ReleaseIndex, s.index, a.ReleaseDoneIndex},
		Summary: fmt.Sprintf("%s's release of %s said at %s that nothing was held, but it had deleted %s at %s.",
			a.Client, f.theLock(a.Lock), f.at(a.ReleaseDone), what, f.at(s.t))}, true
}
