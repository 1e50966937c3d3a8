package study

import (
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// system is what a team could keep its lock in.
type system struct {
	Name, About string
	Lock        string
	Topology    cluster.Topology
	// Instead replaces the scenario of a fault; an empty one says that the fault
	// makes no sense here, for the reason in Absent.
	Instead map[string]string
	Absent  map[string]string
}

// trouble is a fault, and the scenario that plays it.
type trouble struct {
	Name, About string
	Scenario    string
	// Own TTL of the topology: an election must fit into the lease, or a second
	// grant proves nothing.
	OwnTTL bool
}

// The faults, in the words of the tables.
const (
	holderPaused   = "holder paused"
	pausedGuarded  = "holder paused, guarded"
	writeLate      = "late write"
	holderCut      = "holder cut off"
	serverStalls   = "server stalls"
	serverDies     = "server dies"
	serverForgets  = "server forgets"
	serverClock    = "server's clock jumps"
	speedOf        = "speed"
	speedScenario  = "speed"
	comparisonTTL  = 3 * time.Second
	speedTTL       = 100 * time.Second
	speedSeeds     = 3
	parallelOnReal = 3
)

func troubles() []trouble {
	return []trouble{
		{Name: holderPaused, Scenario: "kleppmann-gc-pause", About: "the holder stands still for 1.5 TTL just before it writes (SIGSTOP)"},
		{Name: writeLate, Scenario: "delayed-write", About: "the holder's write is on its way for 1.2 TTL, while the holder gives up and releases"},
		{Name: holderCut, Scenario: "partition-holder", About: "the holder is cut off from all servers for 2 TTL, and works for 1.5"},
		{Name: serverStalls, Scenario: "node-stall", About: "the first server stands still for half a TTL (SIGSTOP)"},
		{Name: serverDies, Scenario: "server-killed", About: "the server that answers for the lock is killed, and comes back after a TTL with its data"},
		{Name: serverForgets, Scenario: "crash-restart-amnesia", OwnTTL: true,
			About: "an acknowledged grant is lost with its server: it restarts empty, or dies before its replica has heard of the grant"},
		{Name: serverClock, Scenario: "server-clock-jump", About: "the clock of the server that answers for the lock jumps ahead by two TTLs"},
	}
}

// durable is why an acknowledged grant cannot be lost with one server.
const durable = "a grant is acknowledged when it is on the disks of a majority"

// frozen is why a clock was not moved.
const frozen = "holdfast cannot move the clock of this server"

// systems are the rows. Their locks hand out fences, but for the last.
func systems() []system {
	return []system{
		{Name: "one Redis", Lock: "basic+fence", Topology: cluster.Single, About: "SET NX PX with a random token, a script that deletes if equal, a counter as fence"},
		{Name: "Redis with Sentinel", Lock: "basic+fence", Topology: cluster.Sentinel, About: "the same lock on a primary with two replicas and three sentinels",
			Instead: map[string]string{serverForgets: "sentinel-failover"}},
		{Name: "Redis Cluster", Lock: "basic+fence", Topology: cluster.RedisCluster, About: "the same lock on three primaries with a replica each",
			Instead: map[string]string{serverForgets: "cluster-failover"}},
		{Name: "Redlock", Lock: "redlock+fence", Topology: cluster.Independent, About: "Redlock on five Redis that do not know each other; the fence is the highest counter of the nodes that said yes",
			Instead: map[string]string{serverClock: "kleppmann-clock-jump"}},
		{Name: "etcd", Lock: "etcd", About: "client v3's concurrency.Mutex on three servers; the fence is the revision",
			Instead: map[string]string{serverForgets: "", serverClock: ""}, Absent: map[string]string{serverForgets: durable, serverClock: frozen}},
		{Name: "ZooKeeper", Lock: "zookeeper", About: "the sequential ephemeral recipe on three servers; the fence is the czxid",
			Instead: map[string]string{serverForgets: "", serverClock: ""}, Absent: map[string]string{serverForgets: durable, serverClock: frozen}},
		{Name: "PostgreSQL row", Lock: "postgres", About: "a row with an expiry, taken by one conditional UPDATE; the fence is counted in the row",
			Instead: map[string]string{serverForgets: ""}, Absent: map[string]string{serverForgets: "a grant is acknowledged when it is on the disk"}},
		{Name: "PostgreSQL advisory lock", Lock: "postgres-advisory", About: "pg_advisory_lock: held by a connection, without a TTL and without a fence",
			Instead: map[string]string{serverForgets: "", serverClock: "", pausedGuarded: ""},
			Absent:  map[string]string{serverForgets: "the lock lives in the server's memory and ends with its connections", serverClock: "the lock has no TTL", pausedGuarded: "the lock has no fence"}},
	}
}

// guarded is the pause over a resource that refuses older fences.
var guarded = trouble{Name: pausedGuarded, Scenario: "kleppmann-fencing"}

// speed is a client alone.
var speed = trouble{Name: speedOf, Scenario: speedScenario}

// plays is the case of a fault, or why there is none.
func (s system) plays(t trouble) (Case, string) {
	c := Case{World: cluster.Process, Lock: s.Lock, Topology: s.Topology, Scenario: t.Scenario, TTL: comparisonTTL}
	if name, ok := s.Instead[t.Name]; ok {
		if name == "" {
			return Case{}, s.Absent[t.Name]
		}
		c.Scenario = name
	}
	switch {
	case t.Name == speedOf:
		c.TTL = speedTTL
	case t.OwnTTL && c.Scenario != t.Scenario:
		c.TTL = 0
	}
	return c, ""
}
