// Package redistest gives the locks' own tests Redis nodes in memory, inside a
// testing/synctest bubble, with the few faults a unit test of a lock needs:
// refused dials, a black hole, lost replies.
//
// It is not the simulator. Links, pauses, clocks and failovers live in
// cluster/sim; a lock's test only asks whether the lock does what its package
// comment says.
package redistest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// go-redis logs every failed dial, and failing dials are what the tests are
// about.
func init() { redis.SetLogger(silence{}) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Node is one Redis server in memory.
type Node struct {
	*miniredis.Miniredis
	name, addr string

	refuse      atomic.Bool  // dials and writes fail at once
	blackHole   atomic.Bool  // nothing passes and nothing fails
	loseReplies atomic.Int64 // as many reads are swallowed
	delay       atomic.Int64 // each read returns this much later
}

// Start starts n nodes, n1 to nN. They end with the test.
func Start(t testing.TB, n int) []*Node {
	t.Helper()
	nodes := make([]*Node, n)
	for i := range nodes {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		t.Cleanup(m.Close)
		number := strconv.Itoa(i + 1)
		nodes[i] = &Node{Miniredis: m, name: "n" + number, addr: "10.0.0." + number + ":6379"}
	}
	return nodes
}

// Link is another way to the same server, with faults of its own.
func (n *Node) Link() *Node {
	return &Node{Miniredis: n.Miniredis, name: n.name, addr: n.addr}
}

// Acquire takes a lock that must be free.
func Acquire(t testing.TB, lock impl.Lock) impl.Lease {
	t.Helper()
	lease, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

// Env is the environment of one client with all the nodes.
func Env(ttl time.Duration, nodes ...*Node) impl.Env {
	env := impl.Env{Client: "c1", Name: "job", TTL: ttl}
	for _, n := range nodes {
		env.Nodes = append(env.Nodes, impl.Node{
			Name: n.name,
			Options: func() *redis.Options {
				return &redis.Options{
					Addr: n.addr,
					Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
						return n.dial(ctx)
					},
				}
			},
			Dial: n.dial,
		})
	}
	return env
}

// Refuse makes every new connection and every open one fail (or not, any
// more), as when the process has ended.
func (n *Node) Refuse(on bool) { n.refuse.Store(on) }

// BlackHole makes everything in either direction vanish (or not, any more).
func (n *Node) BlackHole(on bool) { n.blackHole.Store(on) }

// LoseReplies swallows the next k replies, after the node has applied the
// requests.
func (n *Node) LoseReplies(k int64) { n.loseReplies.Store(k) }

// Delay makes each reply arrive this much later.
func (n *Node) Delay(d time.Duration) { n.delay.Store(int64(d)) }

func (n *Node) dial(ctx context.Context) (net.Conn, error) {
	if n.blackHole.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if n.refuse.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	c, err := n.Miniredis.Dial()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, node: n}, nil
}

type conn struct {
	net.Conn
	node *Node
}

// Write lets a black hole swallow the bytes: like a cut cable, it does not
// tell.
func (c *conn) Write(p []byte) (int, error) {
	if c.node.blackHole.Load() {
		return len(p), nil
	}
	if c.node.refuse.Load() {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: errors.New("connection reset")}
	}
	return c.Conn.Write(p)
}

// Read swallows what is to be lost and goes on reading, so that the reader
// sees its own deadline and nothing else.
func (c *conn) Read(p []byte) (int, error) {
	for {
		k, err := c.Conn.Read(p)
		if err != nil {
			return k, err
		}
		if c.node.blackHole.Load() {
			continue
		}
		if left := c.node.loseReplies.Load(); left > 0 {
			c.node.loseReplies.Store(left - 1)
			continue
		}
		if d := time.Duration(c.node.delay.Load()); d > 0 {
			time.Sleep(d)
		}
		return k, nil
	}
}
