package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const coverageName = "coverage"

// coverage says whether the run exercised what its scenario is about. A run in
// which nobody got the lock breaks no rule and proves nothing.
func coverage(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: true}
	want := f.History.Header.Coverage
	before, during, after := f.acquires()
	r.Figures = map[string]float64{
		"acquires_before": float64(before), "acquires_during": float64(during), "acquires_after": float64(after),
	}
	f.availability(r.Figures)
	var unmet []string
	miss := func(format string, args ...any) { unmet = append(unmet, fmt.Sprintf(format, args...)) }
	if !slices.ContainsFunc(f.Acquisitions, (*Acquisition).Held) {
		miss("no acquire succeeded")
	}
	if before < want.AcquiresBefore {
		miss("%d acquires before the first fault, want %d", before, want.AcquiresBefore)
	}
	if during < want.AcquiresDuring {
		miss("%d acquires during a fault, want %d", during, want.AcquiresDuring)
	}
	if after < want.AcquiresAfter {
		miss("%d acquires after the last fault, want %d", after, want.AcquiresAfter)
	}
	if want.Contention && !f.contended() {
		miss("no client asked for the lock while another held it")
	}
	if want.FaultOverlapsOp && !f.faultHit() {
		miss("no fault was active during a client's call or hold")
	}
	if want.Outlived && !slices.ContainsFunc(f.Acquisitions, f.outlived) {
		miss("no holder stayed inside for longer than the TTL")
	}
	if h := &f.History.Header; want.Redirects && (h.Moved == 0 || h.Asked == 0) {
		miss("clients were sent elsewhere %d times by MOVED and %d times by ASK, want both", h.Moved, h.Asked)
	}
	for _, fault := range f.Never {
		miss("a fault never struck: %s", fault)
	}
	if len(unmet) > 0 {
		r.Verdict, r.Reason = Unknown, "the run proves nothing: "+strings.Join(unmet, "; ")
	}
	return r
}

// acquires counts successful acquires before the first fault, while one is
// active, and after the last. Without faults all count as before.
func (f *Facts) acquires() (before, during, after int) {
	first, last := int64(never), int64(never)
	for _, fault := range f.Faults {
		first = min(first, fault.Start)
		if last == never || fault.Stop > last {
			last = fault.Stop
		}
	}
	for _, a := range f.Acquisitions {
		switch {
		case !a.Held():
		case a.Done < first:
			before++
		case a.Done > last:
			after++
		case slices.ContainsFunc(f.Faults, func(x Fault) bool { return x.Start <= a.Done && a.Done <= x.Stop }):
			during++
		}
	}
	return before, during, after
}

// contended says whether some acquire was refused, or had to wait, while a
// client other than its own believed in the lock. An acquire that no server
// heard of was not refused.
func (f *Facts) contended() bool {
	type edge struct {
		t      int64
		client string
		holds  int // of the client, by this much
		asks   int
	}
	edges := map[string][]edge{}
	for _, a := range f.Acquisitions {
		if a.Code != unreachable {
			edges[a.Lock] = append(edges[a.Lock], edge{t: a.Invoked, client: a.Client, asks: 1}, edge{t: a.Done, client: a.Client, asks: -1})
		}
		for _, b := range a.Belief {
			edges[a.Lock] = append(edges[a.Lock], edge{t: b.From, client: a.Client, holds: 1}, edge{t: b.To, client: a.Client, holds: -1})
		}
	}
	for _, lock := range f.Locks {
		// At one moment what ends comes first: to ask when a belief has just
		// ended is no contention.
		slices.SortStableFunc(edges[lock], func(x, y edge) int {
			return cmp.Or(cmp.Compare(x.t, y.t), cmp.Compare(x.holds+x.asks, y.holds+y.asks))
		})
		holds, asks := map[string]int{}, map[string]int{}
		allHolds, allAsks := 0, 0
		for _, e := range edges[lock] {
			holds[e.client] += e.holds
			asks[e.client] += e.asks
			allHolds += e.holds
			allAsks += e.asks
			if e.asks > 0 && allHolds > holds[e.client] || e.holds > 0 && allAsks > asks[e.client] {
				return true
			}
		}
	}
	return false
}

// faultHit says whether a fault was active during a call or a hold.
func (f *Facts) faultHit() bool {
	for _, fault := range f.Faults {
		for _, a := range f.Acquisitions {
			end := a.Done
			if a.Held() {
				end = max(end, a.LastAct, a.BeliefEnd, a.ReleaseDone)
			}
			if fault.Start <= end && a.Invoked <= fault.Stop {
				return true
			}
		}
	}
	return false
}

// outlived says whether a holder stayed inside for longer than one TTL after
// its lease had started. That its lease was renewed meanwhile does not matter:
// the scenario wanted a long critical section.
func (f *Facts) outlived(a *Acquisition) bool {
	return a.Held() && a.LastAct-a.LeaseStart > int64(f.History.Header.TTL)
}
