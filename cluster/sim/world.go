// Package sim is the default world: virtual time, a simulated network and
// simulated Redis nodes in one process. Lock code runs in it unmodified, since
// it sees an ordinary clock, ordinary connections and an ordinary Redis.
//
// A world lives inside a [Bubble]. Everything in it is decided by the seed:
// the same seed gives the same history, byte by byte, on any machine and with
// any number of cores. Three things make it so: latencies come from a random
// stream per connection, no two deliveries share an instant (see link.go), and
// a node executes a command where its bytes arrive (see node.go).
//
// It does not simulate disks that lie, Sentinel, Redis Cluster, blocking
// commands or pub/sub. Package process is the same on real servers.
package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
)

// Config of a world.
type Config struct {
	Topology cluster.Topology
	Nodes    int
	Clients  int
	Seed     uint64
	// LockNames select the keys that the server trace shows: those that
	// contain it.
	LockNames []string
	// LockKeys are the locks' own keys, where they are known: what one holds is a
	// token, even if it is a number.
	LockKeys []string
	// ReplicationLag is added to the latency between primary and replicas.
	ReplicationLag time.Duration
	// Fsync keeps what restarts as of the last fsync need, at some cost.
	Fsync bool
	// OnServer gets the server trace, in order, outside all locks.
	OnServer func(history.Server)
	// Resource opens a session of the protected resource for a client: a
	// function from request line to reply line.
	Resource func(client string) func(line []byte) []byte

	_ struct{} // named fields only
}

// World implements [cluster.Cluster] and every verb of package cluster.
type World struct {
	cfg     Config
	start   time.Time
	nodes   []*node
	byName  map[string]*node
	clients map[string]*client
	names   []string // of the clients, in order
	network *schedule

	mu      sync.Mutex
	links   map[cluster.Link]*link
	streams map[cluster.Link]*stream
	conns   []*conn // in the order in which they were opened
	primary *node
	blows   []*cluster.Blow
	aliases map[string]string
	tokens  map[string]int
	closed  bool
}

// client is one client's place in the network.
type client struct {
	name  string
	gate  gate
	dials map[string]int
	asked map[string]int // dials of each target, those that failed too
	dead  bool
	// cancel ends the context of the client's current call.
	cancel func()
}

// New makes a world. It must be called inside a [Bubble].
func New(cfg Config) (*World, error) {
	if cfg.Nodes < 1 || cfg.Clients < 1 || cfg.Nodes > 15 || cfg.Clients > 30 {
		return nil, fmt.Errorf("a world wants 1 to 15 nodes and 1 to 30 clients, not %d and %d", cfg.Nodes, cfg.Clients)
	}
	w := &World{
		cfg: cfg, start: time.Now(), byName: map[string]*node{}, clients: map[string]*client{},
		links: map[cluster.Link]*link{}, streams: map[cluster.Link]*stream{},
		aliases: map[string]string{}, tokens: map[string]int{},
	}
	for i := range cfg.Nodes {
		n := newNode(w, cluster.NodeName(i+1), i)
		n.replica = cfg.Topology == cluster.Replicated && i > 0
		if cfg.Fsync {
			n.disk = &disk{synced: map[string]keyState{}, pending: map[string]keyState{}, at: w.start}
		}
		w.nodes = append(w.nodes, n)
		w.byName[n.name] = n
	}
	w.primary = w.nodes[0]
	w.network = newSchedule()
	for i := range cfg.Clients {
		name := cluster.ClientName(i + 1)
		w.names = append(w.names, name)
		w.clients[name] = &client{name: name, dials: map[string]int{}, asked: map[string]int{}}
		for _, n := range w.nodes {
			w.addLinks(name, n.name)
		}
		w.addLinks(name, cluster.Resource)
	}
	w.connectNodes()
	return w, nil
}

// connectNodes makes the links between nodes.
func (w *World) connectNodes() {
	for i, a := range w.nodes {
		for _, b := range w.nodes[i+1:] {
			w.addLinks(a.name, b.name)
			for _, id := range []cluster.Link{{From: a.name, To: b.name}, {From: b.name, To: a.name}} {
				w.streams[id] = &stream{rng: w.stream(id.From, id.To, 0)}
			}
		}
	}
}

// stream is a random stream of its own for a connection, so that what one does
// never shifts another's.
func (w *World) stream(from, to string, number int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s>%s>%d", from, to, number)
	return rand.New(rand.NewPCG(w.cfg.Seed, h.Sum64()))
}

// afterLocked runs f at an instant.
func (w *World) afterLocked(at int64, f func()) {
	w.network.at(at, f)
}

func (w *World) node(name string) (*node, error) {
	if n, ok := w.byName[name]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("there is no node %q", name)
}

// World implements [cluster.Cluster].
func (w *World) World() cluster.World { return cluster.Sim }

// Topology implements [cluster.Cluster].
func (w *World) Topology() cluster.Topology { return w.cfg.Topology }

// Nodes implements [cluster.Cluster].
func (w *World) Nodes() []string {
	out := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		out[i] = n.name
	}
	return out
}

// Clients implements [cluster.Cluster].
func (w *World) Clients() []string { return slices.Clone(w.names) }

// Abilities implements [cluster.Cluster]: the simulator can do everything.
func (w *World) Abilities() []cluster.Ability { return Abilities() }

// Abilities of the simulator, known without running one.
func Abilities() []cluster.Ability {
	return []cluster.Ability{
		cluster.CanPauseClient, cluster.CanPauseAtStep, cluster.CanStallNode, cluster.CanCut, cluster.CanDisconnect, cluster.CanDelay,
		cluster.CanLoseReply, cluster.CanJumpClock, cluster.CanRateClock, cluster.CanKill, cluster.CanRestartKept,
		cluster.CanRestartSync, cluster.CanPromote, cluster.CanCrashClient, cluster.CanFlush, cluster.CanErrorReply,
		cluster.CanCancel, cluster.CanStrike,
	}
}

// Endpoints gives a client its nodes: one that follows the primary in a
// replicated topology, all of them otherwise.
func (w *World) Endpoints(name string) []impl.Node {
	cl := w.clients[name]
	if w.cfg.Topology == cluster.Replicated {
		return []impl.Node{w.endpoint(cl, cluster.Primary, 0)}
	}
	var out []impl.Node
	for i, n := range w.nodes {
		out = append(out, w.endpoint(cl, n.name, i+1))
	}
	return out
}

// poolSize is how many connections a client of go-redis has at most, unless the
// lock's author says otherwise.
const poolSize = 10

// Crowded says whether a caller may have waited for a connection: as many were
// dialled by one client to one node as a pool has. With fewer there is always
// room for one more.
func (w *World) Crowded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cl := range w.clients {
		for target, n := range cl.asked {
			if target != cluster.Resource && n >= poolSize {
				return true
			}
		}
	}
	return false
}

func (w *World) endpoint(cl *client, target string, index int) impl.Node {
	dial := func(ctx context.Context) (net.Conn, error) { return w.dial(ctx, cl, target) }
	return impl.Node{
		Name: target,
		Dial: dial,
		Options: func() *redis.Options {
			return &redis.Options{
				// An IP literal: go-redis resolves names, which no bubble can.
				Addr:   fmt.Sprintf("10.0.0.%d:6379", index),
				Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
				// go-redis takes ten connections per core; a history must not
				// depend on the machine.
				PoolSize: poolSize,
				// go-redis holds a mutex across the round trip in which it asks
				// for maintenance notifications, which no Redis 7 has. A second
				// connection that waits for that mutex stops virtual time.
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			}
		},
	}
}

// DialResource connects a client to the protected resource.
func (w *World) DialResource(ctx context.Context, name string) (net.Conn, error) {
	return w.dial(ctx, w.clients[name], cluster.Resource)
}

// Step is where a client's workload stands still while it is paused.
func (w *World) Step(name string) { w.clients[name].gate.pass() }

// Close ends all connections and lets paused and dead clients run to their
// end. Timers of the nodes stop.
func (w *World) Close() error {
	w.mu.Lock()
	w.closed = true
	for _, c := range w.conns {
		c.err = net.ErrClosed
		c.notify()
	}
	w.conns = nil
	w.mu.Unlock()
	w.network.close()
	for _, name := range w.names { // not the map: its order differs from run to run
		w.clients[name].gate.open()
	}
	for _, n := range w.nodes {
		n.mu.Lock()
		n.down.Store(true)
		if n.timer != nil {
			n.timer.Stop()
		}
		n.m.Close()
		n.mu.Unlock()
	}
	return nil
}

// Topologies that this world knows, in the order of messages.
func Topologies() []cluster.Topology {
	return []cluster.Topology{cluster.Single, cluster.Replicated, cluster.Independent}
}
