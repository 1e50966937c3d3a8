// Package cluster names what a world offers: nodes, links, clocks and clients,
// and the verbs with which a fault breaks and heals them. The worlds
// themselves are the folders below; faults are package nemesis.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// World is where a run happens.
type World string

// The worlds.
const (
	Sim     World = "sim"
	Process World = "process"
	// Container is the world of containers, with clients on this machine.
	Container World = "container"
	// External is the world of servers that run already.
	External World = "external"
)

// Real says that a world has real servers and client processes, and the time of
// the wall clock.
func (w World) Real() bool { return w != Sim && w != "" }

// Topology is how the nodes of a world hang together.
type Topology string

// The topologies. A replicated cluster offers its clients one endpoint,
// [Primary], which follows promotions.
const (
	Single      Topology = "single"
	Replicated  Topology = "replicated"
	Independent Topology = "independent"
	// Sentinel is a primary with replicas and three sentinels that promote one
	// of them when the primary is gone.
	Sentinel Topology = "sentinel"
	// RedisCluster is three primaries that share the keys, each with a replica.
	RedisCluster Topology = "cluster"
	// Etcd, ZooKeeper and Postgres are what locks other than Redis's run on: an
	// ensemble of three, of three, and one server.
	Etcd      Topology = "etcd"
	ZooKeeper Topology = "zookeeper"
	Postgres  Topology = "postgres"
)

// Topologies are all there are, in the order of messages. No world has them
// all.
func Topologies() []Topology {
	return []Topology{Single, Replicated, Independent, Sentinel, RedisCluster, Etcd, ZooKeeper, Postgres}
}

// Replicates says whether one node of a topology has the say and the others
// follow it.
func (t Topology) Replicates() bool { return t == Replicated || t == Sentinel }

// Store says whether the nodes of a topology are no Redis servers but those of
// another store. The locks that are kept there run nowhere else.
func (t Topology) Store() bool { return t == Etcd || t == ZooKeeper || t == Postgres }

// Names of endpoints that are not nodes.
const (
	// Primary is the endpoint that clients of a replicated cluster dial.
	Primary = "primary"
	// Resource is the protected resource.
	Resource = "resource"
)

// Simulated says whether the simulator has a topology. The others need programs
// that it does not imitate.
func (t Topology) Simulated() bool { return t == Single || t == Replicated || t == Independent }

// Witnesses is how many servers without data a topology has beside its nodes.
func (t Topology) Witnesses() int {
	if t == Sentinel {
		return 3 // the least of which a majority survives the loss of one
	}
	return 0
}

// NodeName gives the name of the i-th node, counted from 1.
func NodeName(i int) string { return fmt.Sprintf("n%d", i) }

// WitnessName gives the name of the i-th server without data, counted from 1: a
// sentinel.
func WitnessName(i int) string { return fmt.Sprintf("s%d", i) }

// ClientName gives the name of the i-th client, counted from 1.
func ClientName(i int) string { return fmt.Sprintf("c%d", i) }

// Link is one direction between two parties: a client and a node, a client
// and the resource, or two nodes. Requests travel on client to node, replies
// on node to client.
type Link struct{ From, To string }

func (l Link) String() string { return l.From + "->" + l.To }

// Back is the other direction.
func (l Link) Back() Link { return Link{From: l.To, To: l.From} }

// CutMode is how a cut link behaves.
type CutMode string

// The modes. Dropped bytes are lost for good: a connection that lost some is
// reset when the link heals, since TCP never delivers a stream with a hole.
const (
	Drop  CutMode = "drop"  // bytes vanish; the sender notices by time-out only
	Reset CutMode = "reset" // connections are reset and new ones refused at once
)

// Data is what a node has when it comes back.
type Data string

// What is left after a restart.
const (
	Keep    Data = "keep"  // everything
	Lose    Data = "lose"  // nothing
	Fsynced Data = "fsync" // what had reached the disk at the last fsync (every second)
)

// Ability is something a world can do. A scenario that needs one that its
// world lacks is unknown, with the reason, and never a pass.
type Ability string

// The abilities.
const (
	CanPauseClient Ability = "pause-client"
	CanPauseAtStep Ability = "pause-inside-acquire" // at a command, before its reply is read
	CanStallNode   Ability = "stall-node"
	CanCut         Ability = "cut"
	CanDisconnect  Ability = "disconnect"
	CanDelay       Ability = "delay"
	CanLoseReply   Ability = "lose-reply"
	CanJumpClock   Ability = "clock-jump"
	CanRateClock   Ability = "clock-rate"
	CanKill        Ability = "kill"
	CanRestartKept Ability = "restart-keep"
	CanRestartSync Ability = "restart-fsync"
	CanPromote     Ability = "promote"
	CanCrashClient Ability = "crash-client"
	CanFlush       Ability = "flush"
	CanErrorReply  Ability = "error-reply"
	CanCancel      Ability = "cancel"
	CanStrike      Ability = "strike"
	CanTrack       Ability = "client-tracking" // what some client libraries cache with
	CanMigrate     Ability = "migrate-slot"
	// CanCountReplicas: a primary knows what its replicas have acknowledged, as
	// WAIT and min-replicas-to-write need.
	CanCountReplicas Ability = "replica-acks"
)

// ErrUnsupported says that this world cannot do a fault.
var ErrUnsupported = errors.New("this world cannot do that")

// Cluster is a world that runs. Its verbs are in the interfaces below; a
// world has those that its abilities name.
type Cluster interface {
	World() World
	Topology() Topology
	// Nodes in order n1..nN. In a replicated cluster n1 is the first primary.
	Nodes() []string
	Clients() []string
	Abilities() []Ability
}

// Pauser stops and continues clients, as SIGSTOP and SIGCONT do.
type Pauser interface {
	PauseClient(ctx context.Context, client string) error
	ResumeClient(ctx context.Context, client string) error
	// CrashClient ends a client for good.
	CrashClient(ctx context.Context, client string) error
}

// Linker breaks single directions of single pairs.
type Linker interface {
	Cut(ctx context.Context, l Link, mode CutMode) error
	Mend(ctx context.Context, l Link) error
	// Delay adds to the link's latency; zero takes it away.
	Delay(ctx context.Context, l Link, by time.Duration) error
	// LoseReply drops the reply of the nth command (counted from 1, from now
	// on) that client sends to node and whose name matches (empty matches
	// all), then closes the connection. The command itself is executed.
	LoseReply(ctx context.Context, client, node, command string, nth int) error
}

// Deed is what a strike does to one command.
type Deed string

// The deeds. After a lost request or reply the connection is closed.
const (
	LoseRequest  Deed = "lose-request"  // never executed
	LoseReply    Deed = "lose-reply"    // executed; its sender does not hear
	DelayRequest Deed = "delay-request" // executed late, even if its sender has gone
	DelayReply   Deed = "delay-reply"   // executed at once, heard of late
)

// Blow strikes the nth command (counted from 1, from now on) that a client
// sends to a node and whose name matches; an empty name matches all.
type Blow struct {
	Client, Node, Command string
	Nth                   int
	Deed                  Deed
	By                    time.Duration // of a delay
}

// Striker strikes single commands.
type Striker interface {
	Strike(ctx context.Context, b Blow) error
}

// Clocks moves a node's wall clock. Its monotonic clock is never touched.
type Clocks interface {
	JumpClock(ctx context.Context, node string, by time.Duration) error
	// RateClock makes the clock run at a multiple of real time from now on.
	RateClock(ctx context.Context, node string, rate float64) error
	// ResetClock puts the clock back to real time and rate.
	ResetClock(ctx context.Context, node string) error
}

// Servers kills, restarts and stalls nodes.
type Servers interface {
	Kill(ctx context.Context, node string) error
	Restart(ctx context.Context, node string, data Data) error
	// Stall makes a node answer nothing until Unstall; its clock runs on and
	// requests queue up, as under SIGSTOP.
	Stall(ctx context.Context, node string) error
	Unstall(ctx context.Context, node string) error
	// Flush deletes all keys of a node, or its script cache only.
	Flush(ctx context.Context, node string, scriptsOnly bool) error
}

// Disconnector takes nodes off the network.
type Disconnector interface {
	// Disconnect loses whatever is sent to a node and by it, and tells nobody.
	// The node itself runs on, and so does its clock. Cuts of single links are
	// another matter: neither verb touches them.
	Disconnect(ctx context.Context, node string) error
	// Reconnect puts the node back. Where whole servers are taken off a network
	// of their own, requests of connections that have survived may still be
	// executed then, late; where links are cut, they are lost.
	Reconnect(ctx context.Context, node string) error
}

// Canceller cancels the context of the call that a client has under way.
type Canceller interface {
	CancelCall(ctx context.Context, client string) error
}

// Erring makes a node answer commands with an error, as a server does that is
// out of memory, loading, busy or unable to persist.
type Erring interface {
	// ErrorReply answers every command on a key with the reply, such as
	// "OOM command not allowed when used memory > 'maxmemory'."; an empty
	// reply ends it.
	ErrorReply(ctx context.Context, node, reply string) error
}

// Promoter makes a replica the primary, for replicated clusters.
type Promoter interface {
	// Primary is the node that clients reach now.
	PrimaryNode() string
	Promote(ctx context.Context, node string) error
}

// Deposition is how a replica of a Redis Cluster takes the place of a primary
// that runs.
type Deposition string

// The depositions.
const (
	Force    Deposition = "force"    // the other primaries vote; the old one is not asked
	Takeover Deposition = "takeover" // nobody is asked
)

// Sharded is a Redis Cluster, whose keys are shared by several primaries.
type Sharded interface {
	// Shard is the node that serves the slot of the lock, and its replicas.
	Shard(ctx context.Context) (primary string, replicas []string, err error)
	// Depose makes a replica the primary of its shard and returns when it
	// serves.
	Depose(ctx context.Context, replica string, how Deposition) error
}

// Migrator moves the slot of the lock from one primary of a Redis Cluster to
// another, a step at a time: open, move as often as needed, close.
type Migrator interface {
	// Shards are the nodes that serve slots, in order.
	Shards(ctx context.Context) ([]string, error)
	OpenSlot(ctx context.Context, from, to string) error
	MoveKeys(ctx context.Context, from, to string) error
	CloseSlot(ctx context.Context, from, to string) error
}

// Elector is a cluster whose nodes may make another one the primary by
// themselves. Nobody can tell them which.
type Elector interface {
	// Elects says whether they do in this cluster's topology.
	Elects() bool
}

// Witnessed is a cluster that may have servers without data.
type Witnessed interface {
	// Witnesses in order s1..sN; none in most topologies.
	Witnesses() []string
}
