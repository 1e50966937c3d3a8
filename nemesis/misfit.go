package nemesis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-io/holdfast/cluster"
)

// Misfit says why a plan cannot be played on a topology with a number of nodes:
// it was made for another. Empty where it can.
func (p Plan) Misfit(t cluster.Topology, nodes int) string {
	for _, s := range p.For(t) {
		if why := shardMisfit(s.Fault, t); why != "" {
			return why
		}
		if k, ok := s.Fault.(Kill); ok && t.Store() && k.Data == cluster.Lose {
			return fmt.Sprintf("the plan restarts a node without its data, and a server of the topology %s is replaced then, not restarted", t)
		}
		for _, name := range nodesOf(s.Fault) {
			digits, isNode := strings.CutPrefix(name, "n")
			number, err := strconv.Atoi(digits)
			switch {
			case name == wordSentinels && t.Witnesses() == 0, isSentinel(name) && !isSentinelOf(t, name):
				return fmt.Sprintf("the plan hits %s, and the topology %s has no such server", name, t)
			case isNode && err == nil && number > nodes:
				return fmt.Sprintf("the plan hits %s, and the topology %s has %s here", name, t, count(nodes))
			case name == wordReplicas && !hasReplicas(t):
				return fmt.Sprintf("the plan hits replicas, and the topology %s has none", t)
			case name == wordMinority && nodes < 3:
				return fmt.Sprintf("the plan hits a minority of the nodes, and the topology %s has %s here", t, count(nodes))
			}
		}
	}
	return ""
}

// hasReplicas says whether some nodes of a topology copy others.
func hasReplicas(t cluster.Topology) bool { return t.Replicates() || t == cluster.RedisCluster }

// shardMisfit says why a fault of primaries and replicas cannot be played on a
// topology.
func shardMisfit(f Fault, t cluster.Topology) string {
	switch f := f.(type) {
	case Failover:
		switch {
		case !hasReplicas(t):
			return fmt.Sprintf("the plan has a failover, and the topology %s has no replica", t)
		case f.To != "" && t == cluster.Sentinel:
			return fmt.Sprintf("the plan has a failover to %s, and in the topology %s nobody can say which node is elected", f.To, t)
		case f.deposes() && t != cluster.RedisCluster:
			return fmt.Sprintf("the plan has a failover by %s, and the topology %s is no Redis Cluster", f.Mode, t)
		case f.Alive && t == cluster.RedisCluster:
			return "the plan has a failover that leaves the primary alive, and in the topology cluster that is mode: force or takeover"
		}
	case Migrate:
		if t != cluster.RedisCluster {
			return fmt.Sprintf("the plan moves a slot, and the topology %s has none", t)
		}
	}
	return ""
}

// isSentinel says whether a name is that of a sentinel, and isSentinelOf
// whether a topology has it.
func isSentinel(name string) bool {
	digits, ok := strings.CutPrefix(name, "s")
	_, err := strconv.Atoi(digits)
	return ok && err == nil
}

func isSentinelOf(t cluster.Topology, name string) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "s"))
	return err == nil && number <= t.Witnesses()
}

func count(nodes int) string {
	if nodes == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// nodesOf are the names and words that a fault gives where nodes may stand.
func nodesOf(f Fault) []string {
	switch f := f.(type) {
	case Stall:
		return f.Node
	case Disconnect:
		return f.Node
	case Clock:
		return f.Node
	case Kill:
		return f.Node
	case Flush:
		return f.Node
	case ErrorReply:
		return f.Node
	case Cut:
		return append(append([]string{}, f.From...), f.To...)
	case Delay:
		return append(append([]string{}, f.From...), f.To...)
	case Partition:
		var all []string
		for _, g := range f.Groups {
			all = append(all, g...)
		}
		return all
	case LoseReply:
		return []string{f.Node}
	case Strike:
		return []string{f.Node}
	case Failover:
		return []string{f.To}
	case Migrate:
		return []string{f.To}
	}
	return nil
}
