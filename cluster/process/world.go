package process

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"github.com/holdfast-io/holdfast/cluster"
)

// World is a running cluster of real servers. Its methods may be called from
// several goroutines.
type World struct {
	cfg   Config
	tools tools
	host  string // the loopback address of this world
	guard net.Listener
	toxi  *toxiproxy.ApiServer
	spawn *spawner

	nodeNames   []string
	clientNames []string
	nodes       map[string]*node
	resource    map[string]*resourceServer // by client

	// linkMu orders changes to links and to who the primary is.
	linkMu  sync.Mutex
	dirs    map[cluster.Link]*direction
	proxies map[cluster.Link]*proxy // by dialer and the endpoint it dials
	primary string

	clientMu sync.Mutex
	clients  map[string]*child
	closing  bool

	trace *trace // nil without OnServer

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
		return nil, fmt.Errorf("start the process world: %w", err)
	}
	found, err := findTools()
	if err != nil {
		return nil, fmt.Errorf("start the process world: %w", err)
	}
	w := &World{
		cfg: cfg, tools: found, toxi: newToxiServer(), spawn: newSpawner(),
		nodes: make(map[string]*node), resource: make(map[string]*resourceServer),
		proxies: make(map[cluster.Link]*proxy), clients: make(map[string]*child),
		primary: cluster.NodeName(1),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process world: %w", err), w.Close())
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
	if err := w.makeDir(); err != nil {
		return err
	}
	if err := w.takeHost(); err != nil {
		return err
	}
	for i, name := range w.nodeNames {
		n, err := newNode(w, name, nodePort+i)
		if err != nil {
			return err
		}
		w.nodes[name] = n
	}
	if w.cfg.ResourceHandler != nil {
		for _, client := range w.clientNames {
			r, err := newResourceServer(w.host, client, w.cfg.ResourceHandler)
			if err != nil {
				return err
			}
			w.resource[client] = r
		}
	}
	if err := w.buildLinks(); err != nil {
		return err
	}
	if err := w.startNodes(ctx); err != nil {
		return err
	}
	return w.startTrace(ctx)
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

// World is [cluster.Process].
func (w *World) World() cluster.World { return cluster.Process }

// Topology is the one of the config.
func (w *World) Topology() cluster.Topology { return w.cfg.Topology }

// Nodes are n1 and so on.
func (w *World) Nodes() []string { return append([]string(nil), w.nodeNames...) }

// Clients are c1 and so on, started or not.
func (w *World) Clients() []string { return append([]string(nil), w.clientNames...) }

// Abilities are what works here; see the package comment for what does not.
func (w *World) Abilities() []cluster.Ability { return Abilities(w.cfg.Topology) }

// Abilities of a topology's world, known without starting one.
func Abilities(t cluster.Topology) []cluster.Ability {
	can := []cluster.Ability{
		cluster.CanPauseClient, cluster.CanCrashClient, cluster.CanStallNode, cluster.CanCut,
		cluster.CanDelay, cluster.CanLoseReply, cluster.CanJumpClock, cluster.CanRateClock,
		cluster.CanKill, cluster.CanRestartKept, cluster.CanFlush, cluster.CanTrack,
	}
	if t == cluster.Replicated {
		can = append(can, cluster.CanPromote)
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

// Version is the version line of the redis-server in use.
func (w *World) Version(ctx context.Context) (string, error) {
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
	for _, p := range w.proxies {
		errs = append(errs, p.close())
	}
	for _, r := range w.resource {
		errs = append(errs, r.close())
	}
	w.cancel()
	for _, n := range w.nodes {
		errs = append(errs, n.close(ctx))
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
		return fmt.Errorf("close the process world: %w", err)
	}
	return nil
}
