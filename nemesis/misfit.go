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
		if _, ok := s.Fault.(Failover); ok && !t.Replicates() {
			return fmt.Sprintf("the plan has a failover, and the topology %s has no replica", t)
		}
		if k, ok := s.Fault.(Kill); ok && t.Store() && k.Data == cluster.Lose {
			return fmt.Sprintf("the plan restarts a node without its data, and a server of the topology %s is replaced then, not restarted", t)
		}
		for _, name := range nodesOf(s.Fault) {
			digits, isNode := strings.CutPrefix(name, "n")
			number, err := strconv.Atoi(digits)
			switch {
			case isNode && err == nil && number > nodes:
				return fmt.Sprintf("the plan hits %s, and the topology %s has %s here", name, t, count(nodes))
			case name == wordReplicas && !t.Replicates():
				return fmt.Sprintf("the plan hits replicas, and the topology %s has none", t)
			case name == wordMinority && nodes < 3:
				return fmt.Sprintf("the plan hits a minority of the nodes, and the topology %s has %s here", t, count(nodes))
			}
		}
	}
	return ""
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
	}
	return nil
}
