// Package scenarios holds what is broken when, and what is expected of each
// lock then: YAML files, their loader with errors that name file, line and
// column, the published JSON Schema, and the rules that say which topology
// and which expectation belong to a lock.
//
// It runs nothing and judges nothing. Faults and triggers are package nemesis;
// a run is package harness. The fields of a file are the fields of [Scenario]
// and of the types below it.
package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

// Default is the word under which a map by locks keeps what belongs to all
// the others.
const Default = "default"

// The resources of a workload.
const (
	Plain   = "plain"   // takes every write
	Guarded = "guarded" // refuses a write whose fence is older than one it has seen
	Checked = "checked" // refuses a write whose writer has not read what is there
)

// The kinds of workload.
const (
	// Update reads a version under the lock and writes the next one, every
	// round; a round of a reader reads it twice.
	Update = "update"
	// Permits only works under the lock: what several may do at once leaves no
	// version to compare. It is for semaphores.
	Permits = "permits"
)

// The orders in which clients take several locks.
const (
	Same     = "same"     // all as the scenario lists them
	Opposite = "opposite" // c2, c4, ... the other way round
)

// LockName is the name of the lock in a run with one.
const LockName = "orders"

// Scenario is one story: who contends, what breaks, and what is expected.
type Scenario struct {
	// Name is in lower case with hyphens, and the name of the file.
	Name string
	// About tells the story in one sentence.
	About string
	// Source is where the story was told first.
	Source string
	// Topology of a lock by its name, with an entry "default"; see
	// [Scenario.TopologyOf].
	Topology map[string]cluster.Topology
	// Nodes of the topologies for which the scenario says so; see
	// [Scenario.NodesOf].
	Nodes map[cluster.Topology]int
	// Servers are settings of the Redis nodes that are not their defaults.
	Servers Servers
	// Clients contend for the lock: c1, c2, ...
	Clients int
	// Locks that the scenario is about. Its expectation under "default"
	// covers these and no others.
	Locks []string
	// Workload is what each client does over and over.
	Workload Workload
	// Length of the safety phase. A round that has begun is finished.
	Length nemesis.Span
	// Nemesis is all that breaks.
	Nemesis nemesis.Plan
	// Final is the liveness phase.
	Final Final
	// Expect is the expectation of a lock by its name; see
	// [Scenario.ExpectedOf].
	Expect Expect
	// Coverage is what a run must have exercised to prove anything.
	Coverage history.Coverage
}

// Servers are settings of Redis nodes that replicate. A primary refuses writes
// while fewer than MinReplicasToWrite replicas have acknowledged what they
// have heard within MinReplicasMaxLag seconds.
type Servers struct {
	// MinReplicasToWrite is Redis's min-replicas-to-write. Default 0: off.
	MinReplicasToWrite int `yaml:"min-replicas-to-write"`
	// MinReplicasMaxLag is Redis's min-replicas-max-lag, in whole seconds.
	// Default 1 here, where Redis has 10: leases in a run are short.
	MinReplicasMaxLag int `yaml:"min-replicas-max-lag"`
}

// Workload is what each client does: acquire (after a refusal wait for Retry
// and try again), read, work for Hold, extending the lease every Extend, check
// the lease, write, release, wait for Think, and again.
type Workload struct {
	// Kind of the workload: update, which is the default, or permits.
	Kind string `yaml:"kind" words:"update,permits"`
	// Readers are the clients whose rounds take the lock for reading. They
	// read, work for Hold, and read again. It needs a lock for readers and
	// writers, as ReadShare does.
	Readers []string `yaml:"readers"`
	// ReadShare is the share of the other clients' rounds that take the lock
	// for reading, drawn from the seed. Default 0.
	ReadShare float64 `yaml:"read-share"`
	// Depth is how often a round holds the lock at once: at 2 and 3 the holder
	// takes it again through the same lock object when its work is done, works,
	// gives it back, and works on under the outer hold. Default 1.
	Depth int `yaml:"depth"`
	// Threads of each client share its lock objects; each plays rounds of its
	// own. Thread n starts n times the stagger after the first. Default 1.
	Threads int `yaml:"threads"`
	// Locks are the names of the locks that each round takes, one inside the
	// other. A client that holds one works for Hold, then keeps asking for the
	// next until AcquireTimeout is over, and then gives back what it has.
	// Default [orders].
	Locks []string `yaml:"locks"`
	// Order in which clients take the locks: same, which is the default, or
	// opposite.
	Order string `yaml:"order" words:"same,opposite"`
	// Impatient clients give up an acquire after Patience. Default none, and
	// 0.2ttl.
	Impatient []string     `yaml:"impatient"`
	Patience  nemesis.Span `yaml:"patience"`
	// Hold is the work between the read and the write. Default 0.1ttl.
	Hold nemesis.Span `yaml:"hold"`
	// Extend is how often a holder extends its lease by hand, where the lock
	// can. Default 0: never.
	Extend nemesis.Span `yaml:"extend"`
	// Think is the pause between two rounds. Default 0.02ttl.
	Think nemesis.Span `yaml:"think"`
	// Retry is the pause after a refused acquire. Default 0.05ttl.
	Retry nemesis.Span `yaml:"retry"`
	// Stagger is between the starts of two clients: client i starts at
	// (i-1) times the stagger, so c1 is the first holder. Default 0.1ttl.
	Stagger nemesis.Span `yaml:"stagger"`
	// AcquireTimeout bounds one acquire. Default 4ttl.
	AcquireTimeout nemesis.Span `yaml:"acquire-timeout"`
	// CallTimeout bounds one release and one read. Default 1ttl.
	CallTimeout nemesis.Span `yaml:"call-timeout"`
	// WriteTimeout bounds one write. Default 4ttl, which is longer than the
	// usual faults: a client that gives up its write is a story of its own.
	WriteTimeout nemesis.Span `yaml:"write-timeout"`
	// Resource is plain (the default), guarded or checked.
	Resource string `yaml:"resource" words:"plain,guarded,checked"`
	// LockTTL is the TTL that the locks are built with, where it is not the
	// run's own: a TTL that a lock should refuse, such as 0 or -5s. All
	// lengths in TTLs are still the run's.
	LockTTL LockTTL `yaml:"lock-ttl"`
	// ExtendTTL is what holders extend their leases by, where the lock lets
	// them choose and it is not the lock's own TTL.
	ExtendTTL LockTTL `yaml:"extend-ttl"`
	// LockRetries is how often an acquire tries again, where the lock lets its
	// users choose: the number that its own option takes, such as 0 or -1.
	LockRetries LockRetries `yaml:"lock-retries"`
	// LockTokens are the values of the clients' keys, where the lock lets its
	// users choose: drawn by the lock, which is the default, or prefixes, of
	// which each is the beginning of the next client's.
	LockTokens string `yaml:"lock-tokens" words:"prefixes"`
}

// Prefixes are tokens as people write them who number their workers: worker-1
// for c1, worker-11 for c2, worker-111 for c3.
const Prefixes = "prefixes"

// TokenOf is the token of the client with an index from 0, or none.
func (w *Workload) TokenOf(index int) string {
	if w.LockTokens != Prefixes {
		return ""
	}
	return "worker-" + strings.Repeat("1", index+1)
}

// Names of the locks, in the order of the scenario.
func (w *Workload) Names() []string {
	if len(w.Locks) == 0 {
		return []string{LockName}
	}
	return w.Locks
}

// Deep is Depth, which may be left out.
func (w *Workload) Deep() int { return max(w.Depth, 1) }

// Wide is Threads, which may be left out.
func (w *Workload) Wide() int { return max(w.Threads, 1) }

// Reads says whether some rounds take the lock for reading.
func (w *Workload) Reads() bool { return len(w.Readers) > 0 || w.ReadShare > 0 }

// LockTTL is a TTL that may be given or not; zero is one to try.
type LockTTL struct {
	Given bool
	TTL   time.Duration
}

// Of is the TTL to build a lock with in a run with a TTL.
func (l LockTTL) Of(run time.Duration) time.Duration {
	if l.Given {
		return l.TTL
	}
	return run
}

// UnmarshalText reads a TTL from a scenario file.
func (l *LockTTL) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*l = LockTTL{}
		return nil
	}
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write -5s, 0s or 500us", b)
	}
	*l = LockTTL{Given: true, TTL: d}
	return nil
}

// MarshalText writes it back.
func (l LockTTL) MarshalText() ([]byte, error) {
	if !l.Given {
		return nil, nil
	}
	return []byte(l.TTL.String()), nil
}

// LockRetries is a number of retries that may be given or not; zero is one to
// try.
type LockRetries struct {
	Given bool
	N     int
}

// UnmarshalText reads it from a scenario file.
func (r *LockRetries) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = LockRetries{}
		return nil
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a number of retries: write -1, 0 or 3", b)
	}
	*r = LockRetries{Given: true, N: n}
	return nil
}

// MarshalText writes it back.
func (r LockRetries) MarshalText() ([]byte, error) {
	if !r.Given {
		return nil, nil
	}
	return []byte(strconv.Itoa(r.N)), nil
}

// Final is the phase after the faults, in which the lock must be live.
type Final struct {
	// Heal ends every fault first. Default true.
	Heal bool `yaml:"heal"`
	// Wait is the bound: a free lock is granted to a waiter within it.
	// Default 2ttl: one for a lease that nobody released, one to spare.
	Wait nemesis.Span `yaml:"wait"`
}

// Expect maps a lock's name, or "default", to its expectation: from the name
// of a check to a verdict or a kind of violation. A check that is not named is
// expected to pass.
type Expect map[string]map[string]string

// five are the locks of a scenario that names none.
var five = []string{"basic", "reentrant", "watchdog", "redlock", "service"}

// quorumLock is the lock whose topology other quorum locks inherit.
const quorumLock = "redlock"

// baseOf is the lock of which another is a variant: basic for basic+fence.
func baseOf(lock string) string {
	base, _, _ := strings.Cut(lock, "+")
	return base
}

// TopologyOf gives the topology on which a lock plays the scenario. A named
// lock wins, then the lock of which it is a variant (redlock+fence runs where
// redlock does), then, for any other lock that needs a quorum, redlock's
// entry, and last the default.
func (s *Scenario) TopologyOf(lock string, quorum bool) cluster.Topology {
	names := []string{lock, baseOf(lock)}
	if quorum {
		names = append(names, quorumLock)
	}
	for _, name := range append(names, Default) {
		if t, ok := s.Topology[name]; ok {
			return t
		}
	}
	return cluster.Single
}

// NodesOf gives the number of nodes of a topology.
func (s *Scenario) NodesOf(t cluster.Topology) int {
	if n, ok := s.Nodes[t]; ok {
		return n
	}
	return defaultNodes()[t]
}

// defaultNodes: Redlock's description wants five, a failover a replica.
func defaultNodes() map[cluster.Topology]int {
	return map[cluster.Topology]int{
		cluster.Single: 1, cluster.Replicated: 2, cluster.Independent: 5,
		cluster.Sentinel: 3, cluster.RedisCluster: 6, cluster.Etcd: 3, cluster.ZooKeeper: 3, cluster.Postgres: 1,
	}
}

// Names says whether the scenario names a lock itself, and not only the one of
// which it is a variant.
func (s *Scenario) Names(lock string) bool {
	_, expected := s.Expect[lock]
	return expected && lock != Default || slices.Contains(s.Locks, lock)
}

// Knows says whether the scenario is about a lock: it, or the lock of which it
// is a variant, is listed or has an expectation of its own.
func (s *Scenario) Knows(lock string) bool {
	for _, name := range []string{lock, baseOf(lock)} {
		if _, ok := s.Expect[name]; ok && name != Default || slices.Contains(s.Locks, name) {
			return true
		}
	}
	return false
}

// ExpectedOf gives what is expected of a lock: from the name of a check to a
// verdict or a kind. Its own entry wins, then that of the lock of which it is
// a variant. The default covers the scenario's own locks and their variants.
// Every other lock, a mutant or one brought by a user, has an empty
// expectation, and a check without an expected value is expected to pass: the
// scenario does not know the lock, so a violation is news.
//
// An entry is complete: it is not merged with the default.
func (s *Scenario) ExpectedOf(lock string) map[string]string {
	for _, name := range []string{lock, baseOf(lock)} {
		if name == Default {
			continue
		}
		if e, ok := s.Expect[name]; ok {
			return maps.Clone(e)
		}
	}
	if slices.Contains(s.Locks, lock) || slices.Contains(s.Locks, baseOf(lock)) {
		if e := s.Expect[Default]; e != nil {
			return maps.Clone(e)
		}
	}
	return map[string]string{}
}
