package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// TestAttribute: a fault that was over before the first op of a violation is not
// active, and is named only if it may have held up a request.
func TestAttribute(t *testing.T) {
	over := func(kind string, on ...string) []history.Event {
		return []history.Event{hit(0.5, 1, history.Start, kind, on...), hit(20.5, 1, history.Stop, kind, on...)}
	}
	outlived := join(grant(31, "c1", 1), grant(42, "c2", 2), note(45, "c1", history.Worked, 1), invoke(46, "c1", history.Release, 1), invoke(47, "c2", history.Release, 2))
	try(t, exclusionName, []trial{
		{name: "an overrun long after a partition", want: Violation, kind: Overrun, ops: []int{3, 5, 7, 8},
			history: story(join(over("partition", "c1->n1", "n1->c1"), outlived)...)},
		{name: "an overrun with the partition inside", want: Violation, kind: Overrun, ops: []int{1, 5, 7, 8}, fault: "partition (c1->n1",
			history: story(join(grant(0.4, "c1", 1), over("partition", "c1->n1", "n1->c1"), grant(21, "c2", 2), note(22, "c1", history.Worked, 1), invoke(23, "c1", history.Release, 1), invoke(24, "c2", history.Release, 2))...)},
	})
	deleted := func(at float64) []history.Event {
		return join(taken(at, "c1", 1, "c1#1"), gone(at+1, "n1", "c2", "DEL"), note(at+2, "c1", history.Worked, 1))
	}
	try(t, ownershipName, []trial{
		{name: "a delete that the link may have held up", want: Violation, kind: ForeignDelete, ops: []int{4, 5}, earlier: "delay (c2->n1",
			history: story(join(over("delay", "c2->n1"), deleted(25))...)},
		{name: "another client's link", want: Violation, kind: ForeignDelete, ops: []int{4, 5},
			history: story(join(over("delay", "c3->n1"), deleted(25))...)},
		{name: "a node's clock holds nothing up", want: Violation, kind: ForeignDelete, ops: []int{4, 5},
			history: story(join(over("clock", "n1"), deleted(25))...)},
		{name: "a cut link that was whole again for a while", want: Violation, kind: ForeignDelete, ops: []int{4, 5},
			history: story(join(over("cut", "c2->n1"), deleted(25))...)},
		{name: "a cut link that was whole again just before", want: Violation, kind: ForeignDelete, ops: []int{4, 5}, earlier: "cut (c2->n1",
			history: story(join(over("cut", "c2->n1"), deleted(21))...)},
		{name: "too long ago", want: Violation, kind: ForeignDelete, ops: []int{4, 5},
			history: story(join(over("delay", "c2->n1"), deleted(51))...)},
	})
}
