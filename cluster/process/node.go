package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Servers = (*World)(nil)

// software is what a node runs.
type software interface {
	// ports that a node listens on; the first is the one that clients dial.
	ports() []string
	// program is what to start, with the node's folder as it is now. It may
	// write files there.
	program(ctx context.Context, n *node) (Program, error)
	// probe asks the node once whether it serves.
	probe(n *node) error
	// started is called when the node serves, at every start.
	started(ctx context.Context, n *node) error
	// can says whether this software can do what a verb asks of it.
	can(a cluster.Ability) bool
}

// node is one server.
type node struct {
	w     *World
	name  string
	runs  software
	addr  string            // of the port that clients dial
	addrs map[string]string // of every port, by its name
	dir   string
	home  string // a folder elsewhere that has dir and more; empty for none
	clock *clock

	// Of a Redis node only.
	direct *redis.Client // bypasses the proxies
	// patient: a sentinel that could not be told to ping more often.
	patient bool
	own     sync.Map // local addresses (string) of direct's connections

	serving atomic.Pointer[Server] // nil until it answers, and while killed

	mu      sync.Mutex // orders the verbs on this node
	server  Server     // nil while killed
	stalled bool
	off     bool // the network
	closed  bool // the world is at its end: nothing may be started
}

// newNode makes a node whose ports start at a number.
func newNode(w *World, name string, k software, port int) (*node, error) {
	n := &node{w: w, name: name, runs: k, addrs: make(map[string]string), dir: filepath.Join(w.cfg.Dir, name)}
	for i, p := range k.ports() {
		n.addrs[p] = net.JoinHostPort(w.place.Host(name), strconv.Itoa(port+i*portsApart))
	}
	n.addr = n.addrs[k.ports()[0]]
	clockFile := filepath.Join(w.cfg.Dir, name+".clock")
	if s, ok := k.(storeServer); ok && userOf(s.user) != "" {
		if err := n.moveOut(); err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		clockFile = filepath.Join(n.home, "clock")
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	n.clock = newClock(clockFile)
	return n, nil
}

// port of one of the node's addresses.
func (n *node) port(name string) string {
	_, port, err := net.SplitHostPort(n.addrs[name])
	if err != nil {
		panic(err) // newNode has joined it
	}
	return port
}

// start runs the server and waits until it answers. The caller holds n.mu.
func (n *node) start(ctx context.Context) error {
	if n.closed {
		return fmt.Errorf("node %s: the world is closed", n.name)
	}
	if err := n.clock.beforeStart(time.Now()); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	p, err := n.runs.program(ctx, n)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	if n.runs.can(cluster.CanJumpClock) {
		p.Env = append(p.Env, n.clock.env(n.w.place.Preload())...)
	}
	if n.server, err = n.w.place.Start(ctx, p); err != nil {
		return err
	}
	n.stalled = false
	if err := n.awaitReady(ctx); err != nil {
		return err
	}
	n.serving.Store(new(n.server))
	if err := n.runs.started(ctx, n); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	return n.disconnectAgain(ctx)
}

func (n *node) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		err := n.runs.probe(n)
		if err == nil {
			return nil
		}
		if over(n.server) {
			return fmt.Errorf("node %s ended at its start (%w): %s", n.name, n.server.Err(), n.logTail())
		}
		if ctxErr := sleep(ctx, 2*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("node %s does not answer: %w (last: %w): %s", n.name, ctxErr, err, n.logTail())
		}
	}
}

// logFile is where every server writes what it has to say, in its folder.
const logFile = "server.log"

func (n *node) logTail() string {
	text, err := os.ReadFile(filepath.Join(n.dir, logFile))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// kill ends the server at once. The caller holds n.mu.
func (n *node) kill(ctx context.Context) error {
	if n.server == nil {
		return nil
	}
	n.serving.Store(nil)
	if err := n.server.End(ctx); err != nil {
		return err
	}
	n.server, n.stalled = nil, false
	return removeSharedMemory(n.dir)
}

func (n *node) close(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	err := n.kill(ctx)
	if n.direct != nil {
		err = errors.Join(err, n.direct.Close())
	}
	if n.home != "" {
		err = errors.Join(err, os.RemoveAll(n.home))
	}
	return err
}

// onNode runs a verb on one node, one at a time.
func (w *World) onNode(ctx context.Context, what, name string, f func(n *node) error) error {
	n, err := w.node(name)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s node %s: %w", what, name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := f(n); err != nil {
		return fmt.Errorf("%s node %s: %w", what, name, err)
	}
	return nil
}

var errDown = errors.New("the node is not running")

// Kill ends a node as SIGKILL does. Killing a dead node is an error.
func (w *World) Kill(ctx context.Context, name string) error {
	return w.onNode(ctx, "kill", name, func(n *node) error {
		if n.server == nil {
			return errDown
		}
		return n.kill(ctx)
	})
}

// Restart starts a node that was killed, with what it had acknowledged
// ([cluster.Keep]) or with nothing ([cluster.Lose]); a running one is killed
// first. [cluster.Fsynced] cannot be had here, and a member of an ensemble that
// has lost its data is one to be replaced, not restarted. A node that is not the primary
// of a replicated cluster comes back as a replica of the primary; Restart does
// not wait until it is in sync, since a cut may keep it from that.
func (w *World) Restart(ctx context.Context, name string, data cluster.Data) error {
	if data != cluster.Keep && (data != cluster.Lose || w.layout.keeps) {
		return fmt.Errorf("restart node %s with data %q: %w", name, data, cluster.ErrUnsupported)
	}
	return w.onNode(ctx, "restart", name, func(n *node) error {
		if err := n.kill(ctx); err != nil {
			return err
		}
		if data == cluster.Lose {
			if err := n.loseData(); err != nil {
				return err
			}
		}
		seen := w.traceConnections(name)
		if err := n.start(ctx); err != nil {
			return err
		}
		return w.awaitTrace(ctx, name, seen)
	})
}

// loseData deletes what the node has written, but for the files that its
// software keeps.
func (n *node) loseData() error {
	var kept []string
	if k, ok := n.runs.(interface{ keeps() []string }); ok {
		kept = k.keeps()
	}
	files, err := os.ReadDir(n.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		if !slices.Contains(kept, file.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(n.dir, file.Name())))
		}
	}
	return errors.Join(errs...)
}

// Stall stops a node's process, as SIGSTOP does.
func (w *World) Stall(ctx context.Context, name string) error {
	return w.onNode(ctx, "stall", name, func(n *node) error {
		if n.server == nil {
			return errDown
		}
		if err := n.server.Stop(ctx); err != nil {
			return err
		}
		n.stalled = true
		return nil
	})
}

// Unstall lets a stalled node go on.
func (w *World) Unstall(ctx context.Context, name string) error {
	return w.onNode(ctx, "unstall", name, func(n *node) error {
		if n.server == nil {
			return errDown
		}
		if err := n.server.Resume(ctx); err != nil {
			return err
		}
		n.stalled = false
		return nil
	})
}

// Flush deletes all keys of a node, or its script cache only, past all links.
func (w *World) Flush(ctx context.Context, name string, scriptsOnly bool) error {
	return w.onNode(ctx, "flush", name, func(n *node) error {
		if n.direct == nil {
			return cluster.ErrUnsupported
		}
		if n.server == nil || n.stalled || n.outOfReach() {
			return errDown
		}
		if scriptsOnly {
			return n.direct.ScriptFlush(ctx).Err()
		}
		return n.direct.FlushAll(ctx).Err()
	})
}
