package study

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// Costs are what the clients of one run paid.
type Costs struct {
	// Waited is how long each acquire took that was asked for while a fault
	// lasted and was granted in the end, as its caller saw it: with the waiting
	// for other holders inside the lock. In a run without faults it has all.
	Waited []time.Duration
	// Grants while a fault lasted, and for how many TTLs that was; in a run
	// without faults the whole run.
	Grants int
	Faulty float64
	// LongestGap, in TTLs, is the longest time from one grant to the next, or
	// from the start of the run to the first.
	LongestGap float64
}

// CostsOf measures a run.
func CostsOf(h *history.History) Costs {
	var c Costs
	var grants []int64
	facts := checker.Gather(h)
	from, to := int64(0), facts.End
	for i, f := range facts.Faults {
		if i == 0 {
			from, to = f.Start, f.Stop
		}
		from, to = min(from, f.Start), max(to, f.Stop)
	}
	for _, a := range facts.Acquisitions {
		if !a.Held() {
			continue
		}
		grants = append(grants, a.Done)
		if a.Invoked >= from && a.Invoked < to {
			c.Waited = append(c.Waited, time.Duration(a.Done-a.Invoked))
		}
		if a.Done >= from && a.Done < to {
			c.Grants++
		}
	}
	slices.Sort(grants)
	longest, last := int64(0), int64(0)
	for _, at := range grants {
		longest, last = max(longest, at-last), at
	}
	if len(grants) == 0 {
		longest = facts.End
	}
	ttl := float64(max(int64(h.Header.TTL), 1))
	c.LongestGap, c.Faulty = float64(longest)/ttl, float64(to-from)/ttl
	return c
}

// Quantile of the waiting in all runs, by the nearest rank; 0 without a grant.
func (e *Evidence) Quantile(q float64) time.Duration {
	var all []time.Duration
	for _, c := range e.Costs {
		all = append(all, c.Waited...)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	rank := int(math.Ceil(q * float64(len(all))))
	return all[min(max(rank, 1), len(all))-1]
}

// GrantsPerTTL is how many grants there were in a TTL while a fault lasted, in
// all runs.
func (e *Evidence) GrantsPerTTL() float64 {
	grants, ttls := 0, 0.0
	for _, c := range e.Costs {
		grants, ttls = grants+c.Grants, ttls+c.Faulty
	}
	if ttls == 0 {
		return 0
	}
	return float64(grants) / ttls
}

// LongestGap is the median over the runs of the longest time without a grant,
// in TTLs.
func (e *Evidence) LongestGap() float64 {
	var all []float64
	for _, c := range e.Costs {
		all = append(all, c.LongestGap)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
