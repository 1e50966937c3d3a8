package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Servers = (*World)(nil)

// node is one redis-server.
type node struct {
	w      *World
	name   string
	addr   string
	port   int
	dir    string
	clock  *clock
	direct *redis.Client // bypasses the proxies
	own    sync.Map      // local addresses (string) of direct's connections

	mu      sync.Mutex // orders the verbs on this node
	child   *child     // nil while killed
	stalled bool
	closed  bool // the world is at its end: nothing may be started
}

func newNode(w *World, name string, port int) (*node, error) {
	n := &node{
		w: w, name: name, port: port, addr: net.JoinHostPort(w.host, strconv.Itoa(port)),
		dir: filepath.Join(w.cfg.Dir, name),
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	n.clock = newClock(filepath.Join(w.cfg.Dir, name+".clock"))
	n.direct = redis.NewClient(&redis.Options{
		Addr: n.addr, Dialer: n.dialDirect, PoolSize: 4, MaxRetries: 2,
		DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: time.Second,
		MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 5 * time.Millisecond,
		DialerRetries: 1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return n, nil
}

// dialDirect notes the addresses of the world's own connections, whose commands
// are not part of the trace.
func (n *node) dialDirect(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.own.Store(c.LocalAddr().String(), nil)
	return ownConn{Conn: c, own: &n.own}, nil
}

// ownConn forgets its address when it is closed: a client may get it next.
type ownConn struct {
	net.Conn
	own *sync.Map
}

func (c ownConn) Close() error {
	c.own.Delete(c.LocalAddr().String())
	return c.Conn.Close()
}

// args are the server's settings. The append-only file is never synced: a
// killed process loses nothing that it has written, since the kernel keeps it,
// and redis writes before it replies. So every acknowledged write survives a
// kill, and no time is spent on the disk.
func (n *node) args(replicaOf string) ([]string, error) {
	args := []string{
		"--port", strconv.Itoa(n.port), "--bind", n.w.host, "--protected-mode", "no",
		"--daemonize", "no", "--dir", n.dir, "--logfile", filepath.Join(n.dir, "redis.log"),
		"--pidfile", filepath.Join(n.dir, pidFile),
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0",
		"--notify-keyspace-events", "KEA", "--client-output-buffer-limit", "pubsub 0 0 0",
		// Through a file: a replica that has loaded a stream often says so
		// before its primary has noticed the stream's end, and is then sent
		// nothing for a second.
		"--repl-diskless-sync", "no", "--repl-ping-replica-period", "1",
	}
	if replicaOf == "" {
		return args, nil
	}
	host, port, err := net.SplitHostPort(replicaOf)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.name, err)
	}
	return append(args, "--replicaof", host+" "+port), nil
}

// start runs the server and waits until it answers. The caller holds n.mu.
func (n *node) start(ctx context.Context, replicaOf string) error {
	if n.closed {
		return fmt.Errorf("node %s: the world is closed", n.name)
	}
	args, err := n.args(replicaOf)
	if err != nil {
		return err
	}
	if err := n.clock.beforeStart(time.Now()); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	cmd := exec.Command(n.w.tools.server, args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(),
		// The C library behind libfaketime: without it the server's
		// allocator asks for the time before libfaketime is ready, and hangs.
		"LD_PRELOAD="+n.w.tools.faketime+":"+n.w.tools.libc,
		"FAKETIME_TIMESTAMP_FILE="+n.clock.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	n.child, err = n.w.spawn.start("node "+n.name, cmd, func(f func()) { n.w.wg.Go(f) })
	if err != nil {
		return err
	}
	n.stalled = false
	if err := n.awaitReady(ctx); err != nil {
		return err
	}
	if err := n.clock.calibrate(ctx, n.direct); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	return nil
}

func (n *node) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for {
		err := n.ping()
		if err == nil {
			return nil
		}
		if n.child.gone() {
			return fmt.Errorf("node %s ended at its start (%w): %s", n.name, n.child.err, n.logTail())
		}
		if ctxErr := sleep(ctx, 2*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("node %s does not answer: %w (last: %w): %s", n.name, ctxErr, err, n.logTail())
		}
	}
}

// ping asks over a raw connection: a pool remembers failed dials for a while
// and would see the server late.
func (n *node) ping() error {
	c, err := net.DialTimeout("tcp", n.addr, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read from
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 64)
	size, err := c.Read(reply)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(reply[:size], []byte("+PONG")) {
		return fmt.Errorf("ping: %s", bytes.TrimSpace(reply[:size]))
	}
	return nil
}

func (n *node) logTail() string {
	text, err := os.ReadFile(filepath.Join(n.dir, "redis.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// kill ends the server at once. The caller holds n.mu.
func (n *node) kill(ctx context.Context) error {
	if n.child == nil {
		return nil
	}
	if err := n.child.end(ctx); err != nil {
		return err
	}
	err := removeFaketimeFiles(n.child.pid)
	n.child, n.stalled = nil, false
	return err
}

// pidFile of a server, in its folder. The server deletes it when it ends in good
// order, so one that is still there tells of a kill.
const pidFile = "redis.pid"

// RemoveRemains deletes what the servers of a world left outside its folder,
// when the world was killed and could not clean up. The folder itself is the
// caller's, and nothing of that world may be alive.
func RemoveRemains(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", pidFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue // killed while it wrote the file
		}
		errs = append(errs, removeFaketimeFiles(pid))
	}
	return errors.Join(errs...)
}

// removeFaketimeFiles deletes what libfaketime leaves behind when its process
// is killed.
func removeFaketimeFiles(pid int) error {
	var errs []error
	for _, name := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
		if err := os.Remove(fmt.Sprintf(name, pid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (n *node) close(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return errors.Join(n.kill(ctx), n.direct.Close())
}

func (n *node) version(ctx context.Context) (string, error) {
	info, err := n.direct.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("node %s: %w", n.name, err)
	}
	return infoField(info, "redis_version"), nil
}

func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
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
		if n.child == nil {
			return errDown
		}
		return n.kill(ctx)
	})
}

// Restart starts a node that was killed, with what it had acknowledged
// ([cluster.Keep]) or with nothing ([cluster.Lose]); a running one is killed
// first. [cluster.Fsynced] cannot be had here. A node that is not the primary
// of a replicated cluster comes back as a replica of the primary; Restart does
// not wait until it is in sync, since a cut may keep it from that.
func (w *World) Restart(ctx context.Context, name string, data cluster.Data) error {
	if data != cluster.Keep && data != cluster.Lose {
		return fmt.Errorf("restart node %s with data %q: %w", name, data, cluster.ErrUnsupported)
	}
	return w.onNode(ctx, "restart", name, func(n *node) error {
		if err := n.kill(ctx); err != nil {
			return err
		}
		if data == cluster.Lose {
			if err := errors.Join(os.RemoveAll(n.dir), os.MkdirAll(n.dir, 0o755)); err != nil {
				return err
			}
		}
		seen := w.traceConnections(name)
		if err := n.start(ctx, w.masterOf(name)); err != nil {
			return err
		}
		return w.awaitTrace(ctx, name, seen)
	})
}

// Stall stops a node's process, as SIGSTOP does.
func (w *World) Stall(ctx context.Context, name string) error {
	return w.onNode(ctx, "stall", name, func(n *node) error {
		if n.child == nil {
			return errDown
		}
		if err := n.child.stop(ctx); err != nil {
			return err
		}
		n.stalled = true
		return nil
	})
}

// Unstall lets a stalled node go on.
func (w *World) Unstall(ctx context.Context, name string) error {
	return w.onNode(ctx, "unstall", name, func(n *node) error {
		if n.child == nil {
			return errDown
		}
		if err := n.child.resume(ctx); err != nil {
			return err
		}
		n.stalled = false
		return nil
	})
}

// Flush deletes all keys of a node, or its script cache only, past all links.
func (w *World) Flush(ctx context.Context, name string, scriptsOnly bool) error {
	return w.onNode(ctx, "flush", name, func(n *node) error {
		if n.child == nil || n.stalled {
			return errDown
		}
		if scriptsOnly {
			return n.direct.ScriptFlush(ctx).Err()
		}
		return n.direct.FlushAll(ctx).Err()
	})
}
