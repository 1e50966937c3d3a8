package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestIndependence(t *testing.T) {
	given := func(all ...history.Given) *history.History {
		return with(story(grant(1, "c1", 1)...), func(h *history.Header) { h.Nodes, h.Given = len(all), all })
	}
	node := func(name, copies, cluster string) history.Given {
		return history.Given{Node: name, Copies: copies, Cluster: cluster}
	}
	try(t, independenceName, []trial{
		{name: "primaries that know nobody", want: Pass, history: given(node("n1", "", ""), node("n2", "", ""), node("n3", "", ""))},
		{name: "one node of each of three clusters", want: Pass, history: given(node("n1", "", "a"), node("n2", "", "b"), node("n3", "", "c"))},
		{name: "the nodes of one cluster", want: Violation, kind: OneCluster, count: 1, summary: []string{"are one cluster: n1, n2, n3 (n3 copies n1)"},
			history: given(node("n1", "", "a"), node("n2", "", "a"), node("n3", "n1", "a"))},
		{name: "a primary and its replicas", want: Violation, kind: Copies, count: 2, summary: []string{"n2 was given to the lock as a node of its own, and it copies n1"},
			history: given(node("n1", "", ""), node("n2", "n1", ""), node("n3", "n1", ""))},
		{name: "two of a cluster among others", want: Violation, kind: OneCluster, summary: []string{"one cluster: n1, n3."},
			history: given(node("n1", "", "a"), node("n2", "", ""), node("n3", "", "a"))},
		{name: "nobody has asked", want: Unknown, skipped: true, reason: "nobody has asked the nodes",
			history: with(story(grant(1, "c1", 1)...), func(h *history.Header) { h.Topology, h.Nodes = "independent", 5 })},
		{name: "a lock on one node", want: Unknown, skipped: true, reason: "does not ask for several", history: story(grant(1, "c1", 1)...)},
	})
}
