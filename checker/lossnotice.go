package checker

import (
	"fmt"
)

const lossNoticeName = "loss-notice"

// Kinds of a loss-notice violation.
const (
	// NoNotice: the holder looked, long after the loss, and was told nothing.
	NoNotice = "no-notice"
	// LateNotice: it was told, but long after the loss.
	LateNotice = "late-notice"
	// FalseNotice: it was told of a loss after it had released cleanly.
	FalseNotice = "false-notice"
)

// lossNotice judges locks that tell their holder when the lease is lost: by a
// notice, or by a validity end. A loss is known within half a TTL, which is a
// renewal and a retry, and where a fault keeps the client from its nodes,
// within one TTL: then the last confirmed lease is over, whatever the servers
// hold. To be told early is fine.
//
//	0    c1 is granted the lock, TTL 10, and renews every 3.3
//	4    the node is flushed
//	6.7  the renewal is refused: c1 learns that it has lost the lock
//
// What a holder knew is seen where it looked: after its work and before its
// write. Pauses of the client are taken off.
func lossNotice(f *Facts) Result {
	h := &f.History.Header
	if !h.Has("lost") && !h.Has("until") {
		return Result{Verdict: Unknown, Reason: fmt.Sprintf("%s tells its holder of no loss", h.Lock)}
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	held, losses := 0, 0
	for _, a := range f.Acquisitions {
		if !a.Held() {
			continue
		}
		held++
		if v, ok := f.falseNotice(a); ok {
			found = append(found, v)
		}
		at, cause, ok := f.lossOf(a)
		if !ok {
			continue
		}
		losses++
		if v, ok := f.unnoticed(a, at, cause); ok {
			found = append(found, v)
		}
	}
	r.Figures = map[string]float64{"holds": float64(held), "losses": float64(losses), "violations": float64(len(found))}
	switch {
	case held == 0:
		r.Verdict, r.Reason = Unknown, "no acquire succeeded"
	case losses == 0:
		r.Reason = "no lease was lost while its holder worked"
	}
	return r.with(found, []string{NoNotice, LateNotice, FalseNotice})
}

// lossOf is when an acquisition lost the lock: the first moment at which the
// nodes did not carry its token, or, where that is not known, the next grant.
func (f *Facts) lossOf(a *Acquisition) (at int64, index int, ok bool) {
	if f.untraced() != "" {
		return f.takenOver(a)
	}
	for _, l := range a.lapses {
		if l.To-l.From > f.slack() {
			return l.From, l.index, true
		}
	}
	return 0, 0, false
}

// takenOver is when another client was granted the lock while a holder believed
// in it. Without a server trace that is all that is known of a loss: renewals are
// not seen, and a lease counts from the invoke of an acquire that may have waited
// longer than a TTL for its turn:
//
//	0     c2 invokes acquire, and waits in the store's own queue
//	25    it is c2's turn: a lease that began at 0 would be over
func (f *Facts) takenOver(a *Acquisition) (at int64, index int, ok bool) {
	if f.permits() > 0 {
		return 0, 0, false
	}
	for _, b := range f.Acquisitions {
		if !b.Held() || b == a || b.Lock != a.Lock || b.DoneIndex < a.DoneIndex || f.together(a, b) {
			continue
		}
		if b.Done < a.BeliefEnd && (!ok || b.Done < at) {
			at, index, ok = b.Done, b.DoneIndex, true
		}
	}
	return at, index, ok
}

func (f *Facts) unnoticed(a *Acquisition, at int64, cause int) (Found, bool) {
	ttl := int64(f.History.Header.TTL)
	bound := ttl / 2
	for i := range f.Faults {
		if x := &f.Faults[i]; x.Start <= at+bound && x.ends() >= a.LeaseStart && f.strikes(x, a.Client) {
			bound = ttl
		}
	}
	kind, seen := NoNotice, -1
	for _, i := range a.looks {
		if t := f.History.Events[i].T; t-f.paused(a.Client, at, t) > at+bound+f.slack() {
			seen = i
			break
		}
	}
	if seen < 0 && a.noticed >= 0 {
		// It may have been inside a call up to the event before the notice.
		t := f.History.Events[a.noticed].T
		if t-f.paused(a.Client, at, t) > max(at, a.quiet)+bound+f.slack() {
			kind, seen = LateNotice, a.noticed
		}
	}
	if seen < 0 {
		return Found{}, false
	}
	t := f.History.Events[seen].T
	ops := []int{a.DoneIndex, seen}
	if cause != a.DoneIndex {
		ops = []int{a.DoneIndex, cause, seen}
	}
	what := "still worked on, and had been told nothing,"
	if kind == LateNotice {
		what = "was told only"
	}
	return Found{Kind: kind, Ops: ops, suspects: f.active(a.LeaseStart, t),
		Summary: fmt.Sprintf("%s lost %s at %s and %s at %s, %s later (bound %s).",
			a.Client, f.theLock(a.Lock), f.at(at), what, f.at(t), f.long(t-at), f.at(bound))}, true
}

// strikes says whether a fault keeps a client from any node.
func (f *Facts) strikes(x *Fault, client string) bool {
	for _, p := range f.keys.places {
		if x.hits(client, p.node) {
			return true
		}
	}
	return len(f.keys.places) == 0
}

// falseNotice finds a loss notice after a release that was told ok, where there
// had been none before.
func (f *Facts) falseNotice(a *Acquisition) (Found, bool) {
	if a.noticed < 0 || a.ReleaseOutcome != "ok" || a.noticed < a.ReleaseDoneIndex || f.History.Events[a.noticed].Op.F != "lost" {
		return Found{}, false
	}
	t := f.History.Events[a.noticed].T
	return Found{Kind: FalseNotice, Ops: []int{a.ReleaseDoneIndex, a.noticed}, suspects: f.active(a.Done, t),
		Summary: fmt.Sprintf("%s released %s cleanly at %s and was told at %s that it had lost it.",
			a.Client, f.theLock(a.Lock), f.at(a.ReleaseDone), f.at(t))}, true
}
