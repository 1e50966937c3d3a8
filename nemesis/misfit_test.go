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
		{"a failover in a shard", Step{Fault: Failover{Mode: "takeover"}}, cluster.RedisCluster, 6, ""},
		{"a takeover without a cluster", Step{Fault: Failover{Mode: "takeover"}}, cluster.Replicated, 2, "no Redis Cluster"},
		{"a shard's primary that is left alive", Step{Fault: Failover{Alive: true}}, cluster.RedisCluster, 6, "force or takeover"},
		{"a slot that moves", Step{Fault: Migrate{To: "n2"}}, cluster.RedisCluster, 6, ""},
		{"a slot without a cluster", Step{Fault: Migrate{}}, cluster.Single, 1, "moves a slot"},
		{"a slot to nowhere", Step{Fault: Migrate{To: "n7"}}, cluster.RedisCluster, 6, "n7"},
		{"replicas of a shard", Step{Fault: Cut{From: []string{"primary"}, To: []string{"replicas"}}}, cluster.RedisCluster, 6, ""},
		{"a step of another topology", Step{Fault: Failover{}, Topologies: []cluster.Topology{cluster.Replicated}}, cluster.Single, 1, ""},
		{"an election", Step{Fault: Failover{}}, cluster.Sentinel, 3, ""},
		{"an election with a wish", Step{Fault: Failover{To: "n2"}}, cluster.Sentinel, 3, "nobody can say which node is elected"},
		{"sentinels", Step{Fault: Kill{Node: []string{"sentinels", "s3"}}}, cluster.Sentinel, 3, ""},
		{"sentinels that are not there", Step{Fault: Kill{Node: []string{"sentinels"}}}, cluster.Replicated, 2, "the plan hits sentinels, and the topology replicated has no such server"},
		{"a sentinel too many", Step{Fault: Cut{From: []string{"s4"}, To: []string{"n1"}}}, cluster.Sentinel, 3, "the plan hits s4"},
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
