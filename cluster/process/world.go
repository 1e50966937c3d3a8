package process

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"github.com/holdfast-io/holdfast/cluster"
)

// World is a running cluster of real servers. Its methods may be called from
// several goroutines.
type World struct {
	cfg    Config
	layout layout
	place  Place
	host   string // the loopback address of this world
	guard  net.Listener
	toxi   *toxiproxy.ApiServer
	spawn  *spawner

	nodeNames    []string
	witnessNames []string
	clientNames  []string
	nodes        map[string]*node           // and witnesses
	resource     map[string]*resourceServer // by client

	// linkMu orders changes to links and to who the primary is.
	linkMu  sync.Mutex
	dirs    map[cluster.Link]*direction
	proxies map[cluster.Link]*proxy // by dialer and the endpoint it dials
	primary string

	junctions map[string]*junction // by endpoint
	doors     map[string]*relay    // by server and port

	clientMu sync.Mutex
	clients  map[string]*child
	closing  bool

	trace *trace // nil without OnServer

	booted atomic.Bool // all servers have served once

	wg     sync.WaitGroup // all goroutines of the world
	ctx    context.Context
	cancel context.CancelFunc

	closeOnce sync.Once
	closeErr  error
}

var _ cluster.Cluster = (*World)(nil)

// Start makes a world and returns when every node answers, replicas are in
// sync, and the trace runs. The context bounds the start only: the world lives
// until [World.Close]. Errors name the node.
func Start(ctx context.Context, cfg Config) (*World, error) {
	if err := cfg.check(); err != nil {
		err = fmt.Errorf("start the %s world: %w", cfg.world(), err)
		if cfg.Place != nil {
			err = errors.Join(err, cfg.Place.Close())
		}
		return nil, err
	}
	w := &World{
		cfg: cfg, place: cfg.Place, toxi: newToxiServer(), spawn: newSpawner(),
		nodes: make(map[string]*node), resource: make(map[string]*resourceServer),
		proxies: make(map[cluster.Link]*proxy), clients: make(map[string]*child),
		junctions: make(map[string]*junction), doors: make(map[string]*relay), primary: cluster.NodeName(1),
	}
	w.layout, _ = cfg.layout() // check has found it
	w.ctx, w.cancel = context.WithCancel(context.Background())
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the %s world: %w", cfg.world(), err), w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) error {
	for i := range w.cfg.Clients {
		w.clientNames = append(w.clientNames, cluster.ClientName(i+1))
	}
	for i := range w.cfg.Nodes {
		w.nodeNames = append(w.nodeNames, cluster.NodeName(i+1))
	}
	for i := range w.cfg.Witnesses {
		w.witnessNames = append(w.witnessNames, cluster.WitnessName(i+1))
	}
	if err := w.makeDir(); err != nil {
		return err
	}
	if err := w.takeHost(); err != nil {
		return err
	}
	if err := w.takePlace(); err != nil {
		return err
	}
	if err := w.makeNodes(); err != nil {
		return err
	}
	if err := w.makeResources(); err != nil {
		return err
	}
	if err := w.buildLinks(); err != nil {
		return err
	}
	if err := w.boot(ctx); err != nil {
		return err
	}
	w.booted.Store(true)
	if err := w.startTrace(ctx); err != nil {
		return err
	}
	return w.arm(ctx)
}

// takePlace is this machine unless the config names another.
func (w *World) takePlace() error {
	switch {
	case w.place != nil:
		return nil
	case w.cfg.Existing != nil:
		w.place = elsewhere{gateway: w.host}
		return nil
	}
	if err := AvailableFor(w.cfg.Topology); err != nil {
		return err
	}
	found, err := findTools()
	if err != nil && !w.cfg.Topology.Store() {
		return err
	}
	w.place = newLocal(found, w.host, w.spawn, func(f func()) { w.wg.Go(f) })
	return nil
}

// servers are the names of all nodes and witnesses.
func (w *World) servers() []string { return slices.Concat(w.nodeNames, w.witnessNames) }

func (w *World) makeNodes() error {
	for i, name := range w.servers() {
		k := w.layout.node
		if i >= len(w.nodeNames) {
			k = w.layout.witness
		}
		n, err := newNode(w, name, k, nodePort+i)
		if err != nil {
			return err
		}
		if w.cfg.Existing != nil {
			n.addr = w.cfg.Existing[i].Addr
			n.addrs[redisPort] = n.addr
		}
		if w.layout.traced && i < len(w.nodeNames) {
			n.connect()
		}
		w.nodes[name] = n
	}
	return nil
}

func (w *World) makeResources() error {
	if w.cfg.ResourceHandler == nil {
		return nil
	}
	for _, client := range w.clientNames {
		r, err := newResourceServer(w.host, client, w.cfg.ResourceHandler)
		if err != nil {
			return err
		}
		w.resource[client] = r
	}
	return nil
}

// boot starts all servers.
func (w *World) boot(ctx context.Context) error {
	if w.layout.boot != nil {
		return w.layout.boot(ctx, w)
	}
	return w.startAll(ctx, w.servers())
}

// startAll starts servers at once and waits until all of them answer.
func (w *World) startAll(ctx context.Context, names []string) error {
	return each(names, func(name string) error {
		return w.onNode(ctx, "start", name, func(n *node) error { return n.start(ctx) })
	})
}

func (w *World) makeDir() error {
	if w.cfg.Dir == "" {
		dir, err := os.MkdirTemp("", "holdfast-")
		if err != nil {
			return fmt.Errorf("scratch folder: %w", err)
		}
		w.cfg.Dir = dir
		return nil
	}
	dir, err := filepath.Abs(w.cfg.Dir)
	if err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	w.cfg.Dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	return nil
}

const (
	guardPort = 17700 // held by the world as long as it lives: the address is taken
	nodePort  = 17701 // of n1, and so on

	// portsApart is between the ports of one node.
	portsApart = 100
)

var hostsTried atomic.Uint32

// takeHost finds an address 127.77.x.y that no other world has, in this process
// or another. Worlds start their search at different places, so that they
// seldom meet.
func (w *World) takeHost() error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strconv.Itoa(os.Getpid()))) // a hash never fails
	first := h.Sum32()
	var last error
	for range 1000 {
		at := (first + hostsTried.Add(1)) % (254 * 254)
		host := fmt.Sprintf("127.77.%d.%d", 1+at/254, 1+at%254)
		guard, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(guardPort)))
		if err != nil {
			last = err
			continue
		}
		w.host, w.guard = host, guard
		return nil
	}
	return fmt.Errorf("no free loopback address: %w", last)
}

// each runs f for all names at once and waits.
func each(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = f(name) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// World is that of the place where the servers run.
func (w *World) World() cluster.World { return w.place.World() }

// Topology is the one of the config.
func (w *World) Topology() cluster.Topology { return w.cfg.Topology }

// Nodes are n1 and so on.
func (w *World) Nodes() []string { return append([]string(nil), w.nodeNames...) }

// Witnesses are s1 and so on.
func (w *World) Witnesses() []string { return append([]string(nil), w.witnessNames...) }

// Dialed are the endpoints that a client's lock gets as its nodes.
func (w *World) Dialed() []string {
	if w.layout.dialed != nil {
		return slices.Clone(w.layout.dialed)
	}
	return w.Nodes()
}

// Clients are c1 and so on, started or not.
func (w *World) Clients() []string { return append([]string(nil), w.clientNames...) }

// Abilities are what works here; see the package comment for what does not.
func (w *World) Abilities() []cluster.Ability {
	if w.cfg.Existing != nil {
		return ExistingAbilities()
	}
	can := Abilities(w.cfg.Topology)
	if w.place.Preload() == "" {
		can = WithoutClocks(can)
	}
	return can
}

// WithoutClocks are the abilities of a place whose servers see the machine's
// clock and no other.
func WithoutClocks(can []cluster.Ability) []cluster.Ability {
	return slices.DeleteFunc(slices.Clone(can), func(a cluster.Ability) bool {
		return a == cluster.CanJumpClock || a == cluster.CanRateClock
	})
}

// Abilities of a topology's world, known without starting one.
func Abilities(t cluster.Topology) []cluster.Ability {
	l, known := layoutOf(t)
	if !known {
		return nil
	}
	can := []cluster.Ability{
		cluster.CanPauseClient, cluster.CanCrashClient, cluster.CanStallNode, cluster.CanCut, cluster.CanDisconnect, cluster.CanDelay,
		cluster.CanKill,
	}
	for _, a := range []cluster.Ability{
		cluster.CanLoseReply, cluster.CanJumpClock, cluster.CanRateClock, cluster.CanRestartKept, cluster.CanFlush, cluster.CanTrack,
	} {
		if l.node.can(a) {
			can = append(can, a)
		}
	}
	switch {
	case t.Replicates():
		can = append(can, cluster.CanPromote, cluster.CanCountReplicas)
	case t == cluster.RedisCluster:
		can = append(can, cluster.CanPromote, cluster.CanMigrate)
	}
	if t.Store() {
		can = append(can, cluster.Ability(t)) // as locks ask for it
	}
	return can
}

// Endpoints are the addresses that a client dials: "primary" in a replicated
// cluster, every node by its name in any, and "resource" where there is one.
// They stay the same for the life of the world. It is nil for an unknown
// client.
func (w *World) Endpoints(client string) map[string]string {
	var found map[string]string
	for link, p := range w.proxies {
		if link.From != client {
			continue
		}
		if found == nil {
			found = make(map[string]string)
		}
		found[link.To] = p.addr
	}
	return found
}

// Version is that of the redis-server in use; empty where none is.
func (w *World) Version(ctx context.Context) (string, error) {
	if !w.layout.traced {
		return "", nil
	}
	return w.nodes[w.nodeNames[0]].version(ctx)
}

func (w *World) node(name string) (*node, error) {
	n := w.nodes[name]
	if n == nil {
		return nil, fmt.Errorf("node %q: there is no such node", name)
	}
	return n, nil
}

// Close heals all links, ends all children, waits for everything and deletes
// the scratch folder. It always does all of it, whatever fails on the way. A
// trace that still runs is ended as with [World.EndTrace]. Further calls return
// the same error.
func (w *World) Close() error {
	w.closeOnce.Do(func() { w.closeErr = w.close() })
	return w.closeErr
}

func (w *World) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitBound)
	defer cancel()
	w.clientMu.Lock()
	w.closing = true
	w.clientMu.Unlock()
	errs := []error{w.endClients(ctx)}
	if w.trace != nil {
		if err := w.EndTrace(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, w.healLinks())
	for _, j := range w.junctions {
		errs = append(errs, j.close())
	}
	for _, p := range w.proxies {
		errs = append(errs, p.close())
	}
	for _, d := range w.doors {
		errs = append(errs, d.close())
	}
	for _, r := range w.resource {
		errs = append(errs, r.close())
	}
	// Not before the proxies are shut: what they still hold could arrive later.
	errs = append(errs, w.removeKeys(ctx))
	w.cancel()
	errs = append(errs, each(slices.Collect(maps.Keys(w.nodes)), func(name string) error { return w.nodes[name].close(ctx) }))
	if w.place != nil {
		errs = append(errs, w.place.Close())
	}
	// With its thread the last children die, should one have outlived the
	// attempts above.
	w.spawn.close()
	w.wg.Wait()
	if w.guard != nil {
		errs = append(errs, w.guard.Close())
	}
	if w.cfg.Dir != "" {
		errs = append(errs, os.RemoveAll(w.cfg.Dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the %s world: %w", w.cfg.world(), err)
	}
	return nil
}
