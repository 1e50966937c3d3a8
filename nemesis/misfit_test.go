package nemesis

import (
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
)

func TestMisfit(t *testing.T) {
	for _, tt := range []struct {
		name     string
		step     Step
		topology cluster.Topology
		nodes    int
		want     string // empty: it fits
	}{
		{"a node that is there", Step{Fault: Kill{Node: []string{"n1"}}}, cluster.Single, 1, ""},
		{"a node too many", Step{Fault: Kill{Node: []string{"n3"}}}, cluster.Single, 1, "the plan hits n3, and the topology single has one node here"},
		{"in a link", Step{Fault: Cut{From: []string{"c1"}, To: []string{"n4"}}}, cluster.Replicated, 2, "the plan hits n4, and the topology replicated has 2 nodes here"},
		{"in a group", Step{Fault: Partition{Groups: [][]string{{"c1"}, {"minority"}}}}, cluster.Single, 1, "a minority of the nodes"},
		{"a failover without a replica", Step{Fault: Failover{}}, cluster.Independent, 5, "no replica"},
		{"a failover", Step{Fault: Failover{To: "n2"}}, cluster.Replicated, 2, ""},
		{"a step of another topology", Step{Fault: Failover{}, Topologies: []cluster.Topology{cluster.Replicated}}, cluster.Single, 1, ""},
		{"a store that would forget", Step{Fault: Kill{Node: []string{"n1"}, Data: cluster.Lose}}, cluster.Etcd, 3, "without its data"},
		{"a store that keeps", Step{Fault: Kill{Node: []string{"n1"}}}, cluster.Etcd, 3, ""},
		{"clients are not nodes", Step{Fault: Cut{From: []string{"c9"}, To: []string{"nodes"}}}, cluster.Single, 1, ""},
	} {
		got := Plan{tt.step}.Misfit(tt.topology, tt.nodes)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
