// Package harness plays one run: it builds the world, starts the clients and
// the nemesis driver, plays the safety phase, heals everything, plays the
// liveness phase, and gives back the history. It judges nothing.
//
// The workload in client.go is the same in every world. sim.go runs clients as
// goroutines in virtual time; process.go runs them as processes of their own
// against real servers, with worker.go on the other side of the pipe.
package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
)

// Config is one run.
type Config struct {
	Scenario *scenarios.Scenario
	Lock     catalogue.Entry
	World    cluster.World
	Seed     uint64
	// TTL of the leases; zero takes the world's default.
	TTL time.Duration
	// Topology replaces the scenario's own for the lock; empty keeps it.
	Topology cluster.Topology
	// Resource is where the protected resource lives; zero is this process.
	Resource resource.Place
	// Dir is for what a world of real servers writes while it runs.
	Dir string
	// Image is what the servers of the container world are made of; empty takes
	// the one that make image builds.
	Image string
	// Existing are the servers of the external world.
	Existing []process.Existing
	// WallLimit is how long a simulated run may take on the wall clock before
	// it is given up; zero takes a limit that no run reaches unless the lock
	// hangs.
	WallLimit time.Duration

	_ struct{} // named fields only
}

// Default TTLs: virtual time is free, real time is not.
const (
	DefaultSimTTL     = 10 * time.Second
	DefaultProcessTTL = time.Second
	// DefaultElectionTTL outlasts an election in a Redis Cluster, of two to three
	// seconds: a second grant after the lease is over proves nothing.
	DefaultElectionTTL = 5 * time.Second
	// DefaultSentinelTTL: sentinels need about two seconds to agree that a
	// primary is gone, to elect another and to tell clients of it, on a busy
	// machine three. A second grant proves something only inside the first
	// lease, so the lease has to be twice as long as that.
	DefaultSentinelTTL = 6 * time.Second
	// DefaultStoreTTL is for locks on other stores. etcd counts leases in whole
	// seconds, of which one is the least, and its client looks once a second
	// whether a lease is over; and an ensemble that has lost its leader wants
	// up to a second for another one, which a lease should outlast.
	DefaultStoreTTL = 2 * time.Second
)

// WithDefaults fills in what was left open.
func (c Config) WithDefaults() Config {
	if c.World == "" {
		c.World = cluster.Sim
	}
	switch {
	case c.Topology != "":
	case c.Lock.Store != "":
		c.Topology = cluster.Topology(c.Lock.Store) // whatever the scenario says of others
	default:
		c.Topology = c.Scenario.TopologyOf(c.Lock.Name, c.Lock.Quorum)
	}
	if c.TTL == 0 {
		c.TTL = defaultTTL(c.World, c.Topology)
	}
	if c.Topology == cluster.RedisCluster && len(c.Scenario.Workload.Locks) == 0 {
		tagged := *c.Scenario
		tagged.Workload.Locks = []string{TaggedName}
		c.Scenario = &tagged
	}
	return c
}

func defaultTTL(w cluster.World, t cluster.Topology) time.Duration {
	switch {
	case !w.Real():
		return DefaultSimTTL
	case t.Store():
		return DefaultStoreTTL
	case t == cluster.RedisCluster:
		return DefaultElectionTTL
	case t == cluster.Sentinel:
		return DefaultSentinelTTL
	}
	return DefaultProcessTTL
}

// TaggedName is the name of the lock in a Redis Cluster, unless the scenario
// names its locks itself. Only what stands in braces decides about the slot, so
// that all keys of one lock have the same: a script that counts a fence beside
// the lock's key is refused otherwise, with CROSSSLOT.
const TaggedName = "{" + LockName + "}"

// Result is what a run leaves.
type Result struct {
	History *history.History
	// Virtual is how long the run lasted on its own clock, Wall on ours.
	Virtual, Wall time.Duration
	// Leaks are what the lock left running.
	Leaks []string
	// Err is a failure of the run itself: a fault that could not be injected
	// or healed, a world that broke. The history up to then is kept.
	Err error
	// Skipped says why the world could not play the scenario at all.
	Skipped string
}

// ErrInterrupted says that the run was ended from outside, by Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// LockName is the name of the lock in a run with one.
const LockName = scenarios.LockName

// header describes the run in its history.
func (c Config) header(nodes int, store Store) history.Header {
	s := c.Scenario
	ttl := s.Workload.LockTTL.Of(c.TTL)
	if ttl <= 0 { // nobody can promise it, and a history has a TTL
		ttl = c.TTL
	}
	deep := s.Workload.Deep() > 1 || s.Workload.Wide() > 1
	return history.Header{
		Kind: string(c.Lock.Kind), Permits: c.Lock.Permits, Reentrant: deep && c.Lock.Promises.Reentrant == "yes",
		Schema: history.Schema, Scenario: s.Name, Lock: c.Lock.Name, Resource: s.Workload.Resource, ResourceStore: c.Resource.String(),
		World: string(c.World), Topology: string(c.Topology), Nodes: nodes, Quorum: c.quorum(), Clients: s.Clients,
		Seed: c.Seed, TTL: ttl, Drift: c.Lock.Drift, Waits: c.Lock.Waits, SilentRelease: c.Lock.SilentRelease, Abilities: c.abilities(),
		LivenessBound: s.Final.Wait.Of(c.TTL), Coverage: s.Coverage, Versions: versions(store),
		MinReplicas: c.servers().MinReplicasToWrite, MaxLag: c.servers().MinReplicasMaxLag,
	}
}

// servers are the settings of nodes that have replicas; others have none.
func (c Config) servers() scenarios.Servers {
	if !c.Topology.Replicates() {
		return scenarios.Servers{}
	}
	return c.Scenario.Servers
}

// nodes is how many there are: as many as the scenario says, or as there are
// servers that run already.
func (c Config) nodes() int {
	if c.World == cluster.External && c.Topology == cluster.Independent {
		return len(c.Existing)
	}
	return c.Scenario.NodesOf(c.Topology)
}

// quorum is 1 for a lock on one node that has independent ones to choose from, a
// majority for one that takes the nodes of a Redis Cluster for independent, and
// 0, what the topology says, otherwise.
func (c Config) quorum() int {
	switch {
	case c.Topology == cluster.Independent && !c.Lock.Quorum:
		return 1
	case c.Topology == cluster.RedisCluster && c.Lock.Quorum:
		return c.Scenario.NodesOf(c.Topology)/2 + 1
	}
	return 0
}

// lockKeys are the keys of the locks; none where the catalogue does not say.
func (c Config) lockKeys() []string {
	if c.Lock.KeyPrefix == "" {
		return nil
	}
	var keys []string
	for _, name := range c.Scenario.Workload.Names() {
		keys = append(keys, c.Lock.KeyPrefix+name)
	}
	return keys
}

// abilities are those of the lock's leases and what the lock itself promises,
// as the checks ask for them.
func (c Config) abilities() []string {
	out := append([]string{}, c.Lock.Abilities...)
	if c.Lock.Fair {
		out = append(out, "fair")
	}
	return out
}

// versions of what decides the outcome.
func versions(store Store) map[string]string {
	out := map[string]string{}
	if v := store.Version(); v != "" {
		out["resource_store"] = v
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/redis/go-redis/v9", "github.com/alicebob/miniredis/v2":
			out[m.Path] = m.Version
		}
	}
	return out
}

// plan is the part of the scenario's nemesis that fits the run.
func (c Config) plan() nemesis.Plan { return c.Scenario.Nemesis.For(c.Topology) }

// missing says in words what a world lacks for the scenario.
func (c Config) missing(topologies []cluster.Topology, have []cluster.Ability) string {
	switch own := c.Topology.Store(); {
	case c.Lock.Store != "" && c.Lock.Store != string(c.Topology):
		return fmt.Sprintf("the lock %s is kept in the topology %s, not in %s", c.Lock.Name, c.Lock.Store, c.Topology)
	case c.Lock.Store == "" && own:
		return fmt.Sprintf("the lock %s is kept in Redis, and the topology %s has none", c.Lock.Name, c.Topology)
	}
	if store := c.Lock.Store; store != "" && !slices.Contains(have, cluster.Ability(store)) {
		return fmt.Sprintf("the %s world has no %s", c.World, store)
	}
	if !slices.Contains(topologies, c.Topology) {
		return fmt.Sprintf("the %s world has no topology %s", c.World, c.Topology)
	}
	var words []string
	for _, a := range c.plan().Missing(have) {
		words = append(words, string(a))
	}
	for _, need := range c.Lock.Needs {
		if !slices.Contains(have, cluster.Ability(need)) {
			words = append(words, need+", which the lock needs")
		}
	}
	if c.servers().MinReplicasToWrite > 0 && !slices.Contains(have, cluster.CanCountReplicas) {
		words = append(words, string(cluster.CanCountReplicas)+", which the servers' settings need")
	}
	switch {
	case len(words) > 0:
		return fmt.Sprintf("the %s world cannot do: %s", c.World, strings.Join(words, ", "))
	}
	if why := c.plan().Misfit(c.Topology, c.nodes()); why != "" {
		return why
	}
	return c.unfit()
}

// unfit says why the workload is nothing for the lock. It is no pass: what a
// lock does not offer has not been shown to work.
func (c Config) unfit() string {
	w := c.Scenario.Workload
	switch semaphore := c.Lock.Kind == catalogue.Semaphore; {
	case semaphore && w.Kind != scenarios.Permits:
		return "the workload takes a mutex, and the lock lets several in at once"
	case !semaphore && w.Kind == scenarios.Permits:
		return "the workload takes permits, and the lock is no semaphore"
	case w.Reads() && c.Lock.Kind != catalogue.RW:
		return "the workload has readers, and the lock knows none"
	case w.Deep() > 1 && c.Lock.Promises.Reentrant != "yes":
		return "the workload takes the lock again while it holds it, and the lock does not promise to be re-entrant"
	}
	return ""
}

// grace is how long after the stop clients may take to finish their round.
func (c Config) grace() time.Duration {
	w := c.Scenario.Workload
	one := w.AcquireTimeout.Of(c.TTL) + w.Hold.Of(c.TTL) + 2*w.CallTimeout.Of(c.TTL) + w.WriteTimeout.Of(c.TTL) + c.TTL
	more := time.Duration(len(w.Names()) - 1 + 2*(w.Deep()-1)) // further acquires, and work around inner sections
	return one + more*(w.AcquireTimeout.Of(c.TTL)+w.Hold.Of(c.TTL)+w.CallTimeout.Of(c.TTL))
}

// Run plays the run in its world.
func Run(ctx context.Context, cfg Config) *Result {
	cfg = cfg.WithDefaults()
	silence.Do(func() { redis.SetLogger(quiet{}) })
	began := time.Now()
	var r *Result
	switch cfg.World {
	case cluster.Sim:
		r = runSim(ctx, cfg)
	case cluster.Process, cluster.Container, cluster.External:
		r = runProcess(ctx, cfg)
	default:
		r = &Result{Err: fmt.Errorf("there is no world %q", cfg.World)}
	}
	r.Wall = time.Since(began)
	return r
}

// unfired records faults that never happened: a run whose fault did not
// strike proves nothing, and the coverage check says so.
func unfired(faults []string, rec *history.Recorder) {
	for _, what := range faults {
		rec.Record(history.Event{Nemesis: &history.Nemesis{Fault: what, Phase: history.Never}})
	}
}

// quiet keeps go-redis from logging every refused dial to stderr: refused
// dials are what a nemesis is for, and the history has them.
type quiet struct{}

// Printf implements go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

var silence sync.Once // go-redis's logger is one for the process
