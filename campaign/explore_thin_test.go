package campaign

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-io/holdfast/scenarios"
)

// TestThin: no way to break a step is lost, and what stays is spread over the
// run and the same every time.
func TestThin(t *testing.T) {
	var plans []plan
	for i := range 1000 {
		p := plan{scenario: &scenarios.Scenario{Name: "explore-x"}, blows: []blow{{kind: fmt.Sprint("blow", i%3), at: point{at: i, struck: "EVAL in acquire", client: "c1"}}}}
		if i == 500 {
			p.blows[0].kind = "rare"
		}
		plans = append(plans, p)
	}
	if kept, left := thin(plans, mostWork/1000); len(kept) != 1000 || left != 0 {
		t.Errorf("%d kept and %d left out of what is allowed", len(kept), left)
	}
	kept, left := thin(plans, mostWork/100)
	if len(kept) != 100 || left != 900 {
		t.Fatalf("%d kept, %d left out, want 100 and 900", len(kept), left)
	}
	if !slices.ContainsFunc(kept, func(p plan) bool { return p.blows[0].kind == "rare" }) {
		t.Error("the one plan of its kind is left out")
	}
	gap, last := 0, 0
	for _, p := range kept {
		gap, last = max(gap, p.blows[0].at.at-last), p.blows[0].at.at
	}
	if gap > 60 {
		t.Errorf("nothing is broken in %d moments in a row", gap)
	}
	if kept, _ = thin(plans, 10*mostWork); len(kept) != 4 {
		t.Errorf("%d kept, want one of each way", len(kept))
	}
	var places []int
	for i := range 6 {
		places = append(places, spread(i, 6))
	}
	if want := []int{0, 4, 2, 1, 5, 3}; !slices.Equal(places, want) {
		t.Errorf("places %v, want %v", places, want)
	}
}
