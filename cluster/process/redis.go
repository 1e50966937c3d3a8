package process

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-io/holdfast/cluster"
)

// redisServer is a Redis node that knows of no others but the primary that it
// replicates.
type redisServer struct{}

var _ software = redisServer{}

// redisPort is the name of the port that speaks RESP.
const redisPort = "redis"

func (redisServer) ports() []string { return []string{redisPort} }

// connect gives a Redis node the connections of our own.
func (n *node) connect() {
	options := &redis.Options{
		Addr: n.addr, Dialer: n.dialDirect, PoolSize: 4, MaxRetries: 2,
		DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: time.Second,
		MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 5 * time.Millisecond,
		DialerRetries: 1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if n.w.clustered() {
		// Else a replica sends whoever asks for a key to its primary.
		options.OnConnect = func(ctx context.Context, c *redis.Conn) error { return c.ReadOnly(ctx).Err() }
	}
	n.direct = redis.NewClient(options)
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

// program has these settings: the append-only file is never synced, since a
// killed process loses nothing that it has written: the kernel keeps it, and
// redis writes before it replies. So every acknowledged write survives a kill,
// and no time is spent on the disk.
func (redisServer) program(_ context.Context, n *node) (Program, error) {
	args := redisArgs(n)
	if primary := n.w.masterOf(n.name); primary != "" {
		host, port, err := net.SplitHostPort(primary)
		if err != nil {
			return Program{}, err
		}
		args = append(args, "--replicaof", host+" "+port)
	}
	return Program{Server: n.name, Path: redisPath, Args: args, Dir: n.dir}, nil
}

// redisPath is the executable of every Redis node.
const redisPath = "redis-server"

// redisArgs are the settings of every Redis node that keeps data.
func redisArgs(n *node) []string {
	args := []string{
		"--port", n.port(redisPort), "--bind", n.w.place.Host(n.name), "--protected-mode", "no",
		"--daemonize", "no", "--dir", n.dir, "--logfile", filepath.Join(n.dir, logFile),
		"--pidfile", filepath.Join(n.dir, pidFile),
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0",
		"--notify-keyspace-events", "KEA", "--client-output-buffer-limit", "pubsub 0 0 0",
		// Through a file: a replica that has loaded a stream often says so
		// before its primary has noticed the stream's end, and is then sent
		// nothing for a second.
		"--repl-diskless-sync", "no", "--repl-ping-replica-period", "1",
	}
	if cfg := n.w.cfg; cfg.MinReplicas > 0 {
		args = append(args, "--min-replicas-to-write", strconv.Itoa(cfg.MinReplicas), "--min-replicas-max-lag", strconv.Itoa(cfg.MaxLag))
	}
	return args
}

// probe is a PING.
func (redisServer) probe(n *node) error { return n.ping() }

// started finds out how the clock runs.
func (redisServer) started(ctx context.Context, n *node) error {
	if n.w.place.Preload() == "" {
		return nil
	}
	return n.clock.calibrate(ctx, n.direct)
}

func (redisServer) can(cluster.Ability) bool { return true }

// knock is how long a server that is coming up may take to accept. One with an
// address of its own does not refuse before it is there: a dial that began a
// moment too early would wait for TCP to try again.
const knock = 100 * time.Millisecond

// ping asks over a raw connection: a pool remembers failed dials for a while
// and would see the server late.
func (n *node) ping() error {
	c, err := net.DialTimeout("tcp", n.addr, knock)
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

func (n *node) version(ctx context.Context) (string, error) {
	info, err := n.direct.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("node %s: %w", n.name, err)
	}
	if v := infoField(info, "valkey_version"); v != "" {
		return "valkey " + v, nil
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
