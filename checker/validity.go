package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const validityName = "validity"

// Kinds of a validity violation.
const (
	// TooLate: the holder was told a validity end after the server's expiry.
	TooLate = "too-late"
	// OverAtGrant: the grant was over when it was told.
	OverAtGrant = "over-at-grant"
)

// mostEarly is how much later than the server's expiry a validity end may be
// told: the server counts whole milliseconds, and a key is there until its
// last one has passed.
const mostEarly = 2 * time.Millisecond

// validity holds what a holder was told of its lease against what the server
// keeps. The server's expiry is that of the last command that set it for the
// acquisition; of several nodes, the moment up to which a quorum keeps the
// token. It is judged as it was set: what a fault does to it later, such as a
// clock that jumps, is for the lease check.
//
// A grant that is over when the holder hears of it is judged for every lock,
// since a lock that tells no end has to look at the time itself:
//
//	0     c1's SET runs, TTL 10; the reply is slow
//	12    c1 hears "yes", and believes in a key that is gone
//
// A pause of the client is no excuse of the lock's, but it may have come
// between the lock's last look and the record of its answer, where no lock can
// help: the length of such a pause is taken off.
func validity(f *Facts) Result {
	if why := f.untraced(); why != "" {
		return Result{Verdict: Unknown, Reason: why + ", so the server's expiry is not known"}
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	judged := 0
	worst := int64(-never)
	for _, a := range f.Acquisitions {
		if !a.Held() || a.Alias == "" {
			continue
		}
		judged++
		if v, ok := f.over(a); ok {
			found = append(found, v)
		}
		for _, i := range a.told {
			end, ok := f.serverEnd(a, i)
			if !ok {
				continue
			}
			until := *f.History.Events[i].Op.Until
			worst = max(worst, until-end)
			if until-end > int64(mostEarly)+f.slack() {
				found = append(found, Found{Kind: TooLate, Ops: []int{a.DoneIndex, i}, suspects: f.active(a.Invoked, f.History.Events[i].T),
					Summary: fmt.Sprintf("%s was told at %s that its lease lasts until %s, but the server keeps its token until %s only: %s too long.",
						a.Client, f.at(f.History.Events[i].T), f.at(until), f.at(end), f.long(until-end))})
				break // a lock that is wrong once is wrong every time
			}
		}
	}
	r.Figures = map[string]float64{"judged": float64(judged), "violations": float64(len(found))}
	if worst > -never {
		r.Figures["told_beyond_expiry_seconds"] = float64(worst) / 1e9
	}
	if judged == 0 {
		r.Verdict, r.Reason = Unknown, "no granted acquisition's token was seen on a node"
	}
	return r.with(found, []string{TooLate, OverAtGrant})
}

// over judges a grant that was over when it was told.
func (f *Facts) over(a *Acquisition) (Found, bool) {
	end, ok := f.serverEnd(a, a.DoneIndex)
	if !ok {
		return Found{}, false
	}
	what := "the server's key had ended"
	if until := f.History.Events[a.DoneIndex].Op.Until; until != nil && *until < end {
		end, what = *until, "the validity that it was told had ended"
	}
	heard := a.Done - f.paused(a.Client, a.Invoked, a.Done)
	if heard <= after(end, mostEarly+time.Duration(f.slack())) {
		return Found{}, false
	}
	return Found{Kind: OverAtGrant, Ops: []int{a.InvokeIndex, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
		Summary: fmt.Sprintf("%s was told at %s that it holds %s (asked at %s), when %s at %s, %s earlier: the grant was over before it began.",
			a.Client, f.at(a.Done), f.theLock(a.Lock), f.at(a.Invoked), what, f.at(end), f.long(a.Done-end))}, true
}

// renewedToTheSame says whether a command set an expiry anew that it found there
// already. A clock that has been put back makes that possible, and the lease is
// longer in real time all the same:
//
//	0   SET PX 10; the node's clock, which is 5 ahead, reads 5: the key ends at 15
//	3   the clock is put right and reads 3
//	5   PEXPIRE 10: the key ends at 15, as it did before
func (f *Facts) renewedToTheSame(s *touch) bool {
	return s.Owner == s.before && s.Owner != "" && !isError(s.Reply) && !slices.Contains(reading, s.Cmd) &&
		s.PTTL >= f.History.Header.TTL.Milliseconds()-f.keys.noise
}

// serverEnd is the moment up to which a quorum of nodes keeps an acquisition's
// token, as its client's commands before an event have set it.
func (f *Facts) serverEnd(a *Acquisition, before int) (int64, bool) {
	ends := map[string]int64{}
	for _, i := range f.keys.of(a.Client, a.InvokeIndex, f.soon(max(before, a.DoneIndex))) {
		s := &f.keys.touches[i]
		if s.key != a.key || !s.wrote() && !f.renewedToTheSame(s) || !carries(s.Owner, a.Alias) {
			continue
		}
		ends[s.Node] = never
		if s.PTTL >= 0 {
			ends[s.Node] = after(s.t, time.Duration(s.PTTL)*time.Millisecond)
		}
	}
	if len(ends) < f.quorum() {
		return 0, false
	}
	all := make([]int64, 0, len(ends))
	for _, end := range ends {
		all = append(all, end)
	}
	slices.SortFunc(all, func(x, y int64) int { return cmp.Compare(y, x) })
	return all[f.quorum()-1], true
}
