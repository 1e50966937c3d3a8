package campaign

import (
	"fmt"
	"slices"
)

// mostWork bounds what the plans of one base run on one node may cost, in
// events: a lock that polls 20 times a second makes a run of thousands, and each
// of them is a moment that could be broken, in a run as long. Nearly all are
// alike. Locks on several nodes are not thinned: their nodes are not alike.
const mostWork = 1_000_000

// thin keeps as many plans as a base run of so many events allows, and counts
// those that are left out. Of plans that break the same step in the same way
// some stay, spread over the run; none of the ways is lost.
func thin(plans []plan, events int) (kept []plan, left int) {
	most := mostWork / max(events, 1)
	if len(plans) <= most {
		return plans, 0
	}
	groups := map[string][]int{}
	var order []string
	for i, p := range plans {
		b := p.blows[0]
		key := fmt.Sprintf("%s %v %s %s %s", b.kind, b.size, b.at.struck, b.at.client, p.scenario.Name)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	var chosen []int
	for round := 1; len(chosen) < most || round == 1; round++ {
		before := len(chosen)
		for _, key := range order {
			g := groups[key]
			if round <= len(g) && (len(chosen) < most || round == 1) {
				chosen = append(chosen, g[spread(round-1, len(g))])
			}
		}
		if len(chosen) == before {
			break
		}
	}
	slices.Sort(chosen)
	for _, i := range slices.Compact(chosen) {
		kept = append(kept, plans[i])
	}
	return kept, len(plans) - len(kept)
}

// spread gives the i-th place of n in an order in which the first few lie far
// apart, and each place comes once: the places in the order of their bits
// reversed.
func spread(i, n int) int {
	bits := 0
	for 1<<bits < n {
		bits++
	}
	for j, seen := 0, 0; ; j++ {
		at := 0
		for b := range bits {
			if j>>b&1 == 1 {
				at |= 1 << (bits - 1 - b)
			}
		}
		if at < n {
			if seen == i {
				return at
			}
			seen++
		}
	}
}
