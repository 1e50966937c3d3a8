package checker

import (
	"fmt"
	"slices"
)

const renewalName = "renewal"

// Stopped: a lease ran out for want of a renewal that nothing prevented.
const Stopped = "stopped"

// renewal looks for leases that ran out although their lock renews itself and
// nothing kept it from doing so. A renewer that gives up at its first error
// shows here, also where it harms nobody since the holder is told in time:
//
//	 0     c1 is granted the lock, TTL 10
//	 3.3   its renewal meets a broken link
//	 4     the link is whole again
//	10     the lease is over; no renewal was tried since 4
//
// Whether a lock renews itself is seen in the trace: some holder's key was
// lengthened while no call of the holder was under way. A renewer that works
// tries at least once in the second half of a lease, so the lease counts as
// neglected if for the whole of that half
//
//   - the holder stayed, alive, and its key was there;
//   - no fault touched the client, the node or the links between them, or enough
//     nodes for a quorum were so;
//   - the client sent nothing for the key, to any node, but looks at it that
//     found its token there, see [looked].
//
// A lease that ended because the key was gone, or because a renewal was
// refused, is another matter. So is one that a fault disturbed in its second
// half: there may have been one try, and it failed.
func renewal(f *Facts) Result {
	switch why := f.untraced(); {
	case why != "":
		return Result{Verdict: Unknown, Reason: why + ", so renewals are not seen"}
	case f.mutual() != "":
		return Result{Verdict: Unknown, Reason: f.mutual()}
	case !f.renewsItself():
		return Result{Verdict: Unknown, Reason: "no lease was renewed in the background"}
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	judged := 0
	for _, a := range f.Acquisitions {
		end, ok := f.ranOut(a)
		if !a.Held() || a.Alias == "" || !ok {
			continue
		}
		judged++
		if v, bad := f.neglected(a, end); bad {
			found = append(found, v)
		}
	}
	r.Figures = map[string]float64{"ran_out": float64(judged), "violations": float64(len(found))}
	return r.with(found, []string{Stopped})
}

// renewsItself says whether the trace shows a renewal outside all calls, on a
// quorum of nodes within one round: a call that returns with its quorum leaves the
// requests to a minority on their way, which are no renewal of their own.
func (f *Facts) renewsItself() bool {
	for _, a := range f.Acquisitions {
		round := map[string]int64{}
		for _, i := range a.Renewals {
			t := f.History.Events[i].T
			s := &f.keys.touches[f.keys.first(i)]
			if s.index != i || s.before != a.Alias || s.moved <= 0 {
				continue // a late vote of the acquire, on one more node
			}
			byHand := slices.ContainsFunc(a.extends, func(x extension) bool {
				return x.invoked <= t && t <= x.done+f.slack()
			})
			if t <= a.Done || a.ReleaseIndex >= 0 && t >= a.ReleaseInvoked || byHand {
				continue
			}
			round[s.Node] = t
			for node, at := range round {
				if t-at > int64(f.History.Header.TTL)/roundGap {
					delete(round, node)
				}
			}
			if len(round) >= f.quorum() {
				return true
			}
		}
	}
	return false
}

// ranOut is when a lease was over that its holder had not given back.
func (f *Facts) ranOut(a *Acquisition) (end int64, ok bool) {
	switch a.BeliefWhy {
	case EndLost, EndUntil, EndAbandon:
		return min(a.BeliefEnd, a.LeaseEnd), true
	case EndRelease:
		return a.LeaseEnd, a.ReleaseInvoked > a.LeaseEnd
	case EndHistory:
		return a.LeaseEnd, f.End > a.LeaseEnd
	}
	return 0, false
}

// neglected says that nobody renewed a lease in its second half, and that
// nothing prevented it.
func (f *Facts) neglected(a *Acquisition, end int64) (Found, bool) {
	half := int64(f.History.Header.TTL) / 2
	from := end - half - half/10
	if from <= a.Done || end < a.LeaseEnd-half/5 {
		return Found{}, false // a lease that was cut short
	}
	if slices.ContainsFunc(a.lapses, func(l lapse) bool { return l.From < end-half/5 }) {
		return Found{}, false
	}
	nodes := map[string]bool{}
	for _, i := range f.keys.of(a.Client, a.InvokeIndex, len(f.History.Events)) {
		s := &f.keys.touches[i]
		if s.key != a.key {
			continue
		}
		nodes[s.Node] = true
		if s.t > from && s.t < end+f.slack() && !looked(s, a) {
			return Found{}, false
		}
	}
	reached := 0
	for node := range nodes {
		if !f.disturbed(a.Client, node, from, end) {
			reached++
		}
	}
	if reached < f.quorum() {
		return Found{}, false
	}
	last := a.DoneIndex
	if n := len(a.Renewals); n > 0 {
		last = a.Renewals[n-1]
	}
	return Found{Kind: Stopped, Ops: []int{a.DoneIndex, last}, suspects: f.active(a.Done, end),
		Summary: fmt.Sprintf("%s's lease on %s, last confirmed at %s, ran out at %s while %s held it: nothing had kept %s from renewing it since %s, and it sent no renewal.",
			a.Client, f.theLock(a.Lock), f.at(f.History.Events[last].T), f.at(end), a.Client, a.Client, f.at(from))}, true
}

// looked says whether a command only read the key and found the holder's token
// there, after which a renewal had nothing to wait for:
//
//	 3    PEXPIRE, the lease ends at 13
//	 6    GET: its own token
//	 9    GET: its own token
//	13    the lease is over
//
// A read that met an error, or found no token, may be a try that was turned
// away. A WATCH begins a transaction, which leaves no trace if it is called off.
func looked(s *touch, a *Acquisition) bool {
	return slices.Contains(reading, s.Cmd) && s.Cmd != "WATCH" && s.Owner == a.Alias && !isError(s.Reply)
}
