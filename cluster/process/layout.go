package process

import (
	"context"
	"slices"

	"github.com/holdfast-io/holdfast/cluster"
)

// layout is how the servers of a topology hang together.
type layout struct {
	// node is what n1, n2, ... run.
	node software
	// witness is what s1, s2, ... run, which keep no data; nil where there are
	// none.
	witness software
	// traced says that the nodes are Redis servers that tell what they do.
	traced bool
	// meshed says that the servers dial each other, at addresses that all of
	// them share: each is known to the others under its junctions.
	meshed bool
	// elects says that the nodes make another one the primary by themselves.
	elects bool
	// keeps says that a server does not come back without its data.
	keeps bool
	// boot starts all servers; nil starts them all at once.
	boot func(ctx context.Context, w *World) error
	// names of what a client's lock dials; nil means the nodes.
	dialed []string
}

// layout of a config.
func (c *Config) layout() (layout, bool) {
	if c.Existing == nil {
		return layoutOf(c.Topology)
	}
	return layout{node: existingServer{}}, slices.Contains(ExistingTopologies(), c.Topology)
}

// layoutOf is the table of topologies.
func layoutOf(t cluster.Topology) (layout, bool) {
	switch t {
	case cluster.Single, cluster.Independent:
		return layout{node: redisServer{}, traced: true}, true
	case cluster.Replicated:
		return layout{
			node: redisServer{}, traced: true, dialed: []string{cluster.Primary},
			boot: bootReplicated,
		}, true
	case cluster.RedisCluster:
		return layout{node: clusterServer{}, traced: true, meshed: true, boot: bootCluster}, true
	case cluster.Sentinel:
		return layout{
			node: watchedServer{}, witness: sentinelServer{}, traced: true, meshed: true, elects: true,
			dialed: []string{cluster.Primary}, boot: bootSentinel,
		}, true
	case cluster.Etcd:
		return layout{node: etcdServer(), meshed: true, keeps: true}, true
	case cluster.ZooKeeper:
		return layout{node: zookeeperServer(), meshed: true, keeps: true}, true
	case cluster.Postgres:
		return layout{node: postgresServer(), keeps: true}, true
	}
	return layout{}, false
}

// Topologies that this world knows, in the order of messages. Whether this
// machine has what they need says [AvailableFor].
func Topologies() []cluster.Topology {
	return []cluster.Topology{
		cluster.Single, cluster.Replicated, cluster.Independent, cluster.Sentinel, cluster.RedisCluster,
		cluster.Etcd, cluster.ZooKeeper, cluster.Postgres,
	}
}
