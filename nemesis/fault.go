// Package nemesis breaks things on a plan: faults as data, the triggers that
// start them, and the driver that injects and heals them.
//
// A fault is one value. Its Inject returns an Effect that carries the heal, so
// that what is undone is exactly what was done, whoever "the holder" was at
// that moment. Faults use only the verbs of package cluster and run in every
// world that has them. To add one see docs/nemesis.md.
package nemesis

import (
	"context"
	"fmt"
	"slices"

	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// Fault is one kind of failure with its parameters.
type Fault interface {
	// Kind is the fault's word in scenarios, histories and reports.
	Kind() string
	// Needs lists the abilities that the world must have.
	Needs() []cluster.Ability
	// Inject breaks something. On an error it leaves nothing broken.
	Inject(ctx context.Context, s Scene) (Effect, error)
}

// Scene is what a fault sees when it is injected.
type Scene struct {
	Cluster cluster.Cluster
	TTL     time.Duration
	// Caller is the client whose event fired the trigger; empty for times.
	Caller string
	// Holder is the client that believes it holds the lock: the caller where
	// it is one, else the newest holder; empty when there is none.
	Holder string
	// Node on which the triggering command ran; empty otherwise.
	Node string
}

// Effect is what an injection did and how to undo it.
type Effect struct {
	// On names what was hit, for the history.
	On []string
	// What says it in words.
	What string
	// Heal undoes it. It is called once, on a context that outlives the
	// run's own; nil where there is nothing to undo.
	Heal func(ctx context.Context) error
	// Over says that the fault has come and gone: a flush, a cancelled call.
	Over bool
	// Died names clients that the fault ended, for their last note.
	Died []string
}

// Kinds is the table of faults, in the order of the documentation.
func Kinds() []Fault {
	return []Fault{
		Pause{}, Stall{}, Disconnect{}, Cut{}, Partition{}, Delay{}, LoseReply{}, Strike{}, Clock{},
		Kill{}, Failover{}, Migrate{}, Crash{}, Cancel{}, Flush{}, ErrorReply{},
	}
}

// verbs finds the interface with a fault's verbs in a world.
func verbs[T any](s Scene) (T, error) {
	v, ok := s.Cluster.(T)
	if !ok {
		return v, fmt.Errorf("%s: %w", s.Cluster.World(), cluster.ErrUnsupported)
	}
	return v, nil
}

// Words for targets that are resolved when the fault is injected.
const (
	wordHolder   = "holder"
	wordCaller   = "caller"
	wordOthers   = "others" // all clients but the holder
	wordClients  = "clients"
	wordNodes    = "nodes"
	wordPrimary  = "primary"
	wordReplicas = "replicas"
	wordMinority = "minority" // the largest set of nodes that is no quorum, from the last on
	wordMajority = "majority" // the smallest quorum, from the last node on
	// wordSentinels are the servers without data that watch the nodes.
	wordSentinels = "sentinels"
)

// Words are the target words that a scenario may use beside plain names.
func Words() []string {
	return []string{wordHolder, wordCaller, wordOthers, wordClients, wordNodes, wordPrimary,
		wordReplicas, wordMinority, wordMajority, wordSentinels, cluster.Resource}
}

// resolve turns target words and names into names.
func (s Scene) resolve(targets []string) ([]string, error) {
	var out []string
	for _, t := range targets {
		names, err := s.resolveOne(t)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no target: name a node, a client or one of %v", Words())
	}
	return out, nil
}

func (s Scene) resolveOne(target string) ([]string, error) {
	nodes, clients := s.Cluster.Nodes(), s.Cluster.Clients()
	minority := (len(nodes) - 1) / 2
	switch target {
	case wordHolder:
		if s.Holder == "" {
			return nil, fmt.Errorf("no client holds the lock at this moment, so there is no %q to hit", target)
		}
		return []string{s.Holder}, nil
	case wordCaller:
		if s.Caller == "" {
			return nil, fmt.Errorf("this trigger has no client, so there is no %q to hit", target)
		}
		return []string{s.Caller}, nil
	case wordOthers:
		return slices.DeleteFunc(slices.Clone(clients), func(c string) bool { return c == s.Holder }), nil
	case wordClients:
		return clients, nil
	case wordNodes:
		return nodes, nil
	case wordMinority:
		return nodes[len(nodes)-minority:], nil
	case wordMajority:
		return nodes[minority:], nil
	case wordPrimary:
		if s.Cluster.Topology() == cluster.RedisCluster {
			primary, _, err := s.shard()
			return []string{primary}, err
		}
		return []string{s.primary()}, nil
	case wordReplicas:
		if s.Cluster.Topology() == cluster.RedisCluster {
			_, replicas, err := s.shard()
			return replicas, err
		}
		primary := s.primary()
		return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == primary }), nil
	case wordSentinels:
		return s.witnesses(), nil
	case cluster.Resource:
		return []string{cluster.Resource}, nil
	}
	if slices.Contains(slices.Concat(nodes, clients, s.witnesses()), target) {
		return []string{target}, nil
	}
	return nil, fmt.Errorf("there is no %q here: nodes are %v, clients %v, words %v", target, nodes, clients, Words())
}

// shardTimeout bounds the question who serves the lock's slot.
const shardTimeout = 5 * time.Second

// shard is the node of a Redis Cluster that serves the lock's slot, and its
// replicas.
func (s Scene) shard() (primary string, replicas []string, err error) {
	e, err := verbs[cluster.Sharded](s)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), shardTimeout)
	defer cancel()
	return e.Shard(ctx)
}

// witnesses are the servers without data; none in most clusters.
func (s Scene) witnesses() []string {
	if w, ok := s.Cluster.(cluster.Witnessed); ok {
		return w.Witnesses()
	}
	return nil
}

// primary is the node that clients of a replicated cluster reach, and the
// first node elsewhere.
func (s Scene) primary() string {
	if p, ok := s.Cluster.(cluster.Promoter); ok {
		return p.PrimaryNode()
	}
	return s.Cluster.Nodes()[0]
}

// one resolves a target that must be a single name.
func (s Scene) one(target, fallback string) (string, error) {
	if target == "" {
		target = fallback
	}
	names, err := s.resolve([]string{target})
	if err != nil {
		return "", err
	}
	if len(names) != 1 {
		return "", fmt.Errorf("%q names %v, but this fault hits exactly one", target, names)
	}
	return names[0], nil
}

// start makes the history event of an injection.
func (e Effect) start(id int, kind, why string) history.Event {
	return history.Event{Nemesis: &history.Nemesis{
		ID: id, Fault: kind, Phase: history.Start, On: e.On, What: e.What, Why: why,
	}}
}
