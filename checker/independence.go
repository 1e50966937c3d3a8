package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

const independenceName = "independence"

// Kinds of an independence violation.
const (
	// OneCluster: the nodes are those of one Redis Cluster.
	OneCluster = "one-cluster"
	// Copies: one of the nodes copies another.
	Copies = "copies"
)

// independence is whether the nodes of a lock that needs a quorum of independent
// ones are that. It is a mistake of whoever set the lock up, and it is there
// before the first acquire:
//
//	n1, n2, n3 and their replicas n4, n5, n6 are one cluster
//	a key has one slot, so one node takes it, and five send the lock there
//	no quorum ever; and had the lock followed them, five votes of one node
//
// A node that copies another is no vote of its own either: it has what the other
// had, later, and refuses writes until it is promoted.
func independence(f *Facts) Result {
	h := &f.History.Header
	switch {
	case len(h.Given) == 0 && f.quorum() < 2:
		return Result{Verdict: Unknown, Reason: "the lock does not ask for several independent nodes"}
	case len(h.Given) == 0:
		return Result{Verdict: Unknown, Reason: "nobody has asked the nodes how they stand to each other"}
	}
	r := Result{Verdict: Pass, Applies: true, Figures: map[string]float64{"nodes": float64(len(h.Given))}}
	var found []Found
	members := map[string][]history.Given{}
	var clusters []string
	for _, g := range h.Given {
		switch {
		case g.Cluster != "":
			if members[g.Cluster] == nil {
				clusters = append(clusters, g.Cluster)
			}
			members[g.Cluster] = append(members[g.Cluster], g)
		case g.Copies != "":
			found = append(found, Found{Kind: Copies, Ops: []int{}, Summary: fmt.Sprintf(
				"%s was given to the lock as a node of its own, and it copies %s: it has no vote, since it holds what the other held.", g.Node, g.Copies)})
		}
	}
	for _, c := range clusters {
		if len(members[c]) > 1 {
			found = append(found, Found{Kind: OneCluster, Ops: []int{}, Summary: oneCluster(members[c])})
		}
	}
	return r.with(found, []string{OneCluster, Copies})
}

// oneCluster says of nodes that they belong together.
func oneCluster(all []history.Given) string {
	var names, copies []string
	for _, g := range all {
		names = append(names, g.Node)
		if g.Copies != "" {
			copies = append(copies, fmt.Sprintf("%s copies %s", g.Node, g.Copies))
		}
	}
	slices.Sort(names)
	what := ""
	if len(copies) > 0 {
		what = " (" + strings.Join(copies, ", ") + ")"
	}
	return fmt.Sprintf("the nodes that the lock was given as independent ones are one cluster: %s%s. A key has one slot and so one node: no two of them can vote.",
		strings.Join(names, ", "), what)
}
