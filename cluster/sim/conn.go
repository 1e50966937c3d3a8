package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// conn is a client's connection to a node or to the protected resource, with
// the network in between. Both directions and the far end live in it.
type conn struct {
	w      *World
	client *client
	up     *link // requests
	down   *link // replies
	sess   session
	rng    *rand.Rand
	timer  *time.Timer // of a Read that waits; one Read at a time

	// Under the world's lock.
	lastUp, lastDown int64
	cutsUp, cutsDown int  // the links' counts when it was opened
	holed            bool // bytes were lost; only a reset can follow
	dead             bool // the far end is gone
	buf              []byte
	err              error // of the stream, after what is in buf
	closed           bool
	deadline         time.Time
	wake             chan struct{} // has room for one
}

// session is the far end: a node's or the resource's.
type session struct {
	node     *node // nil for the resource
	redis    *nodeSession
	resource *resourceSession
}

type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return addr(c.up.id.From) }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return addr(c.up.id.To) }

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "sim", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// dial opens a connection. It costs one round trip, like TCP's hand-shake.
func (w *World) dial(ctx context.Context, cl *client, target string) (net.Conn, error) {
	cl.gate.pass()
	c, wait, err := w.open(cl, target)
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: "sim", Source: addr(cl.name), Addr: addr(target), Err: err}
	}
	if err != nil {
		return nil, fail(err)
	}
	if c == nil { // SYN or SYN-ACK is lost: TCP tries again until somebody gives up
		<-ctx.Done()
		w.giveUp(cl, target)
		return nil, fail(ctx.Err())
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		w.giveUp(cl, target)
		c.shut(net.ErrClosed)
		return nil, fail(ctx.Err())
	}
	cl.gate.pass()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.err != nil {
		return nil, fail(c.err)
	}
	return c, nil
}

// giveUp lets a moment of its own pass before a dial says that it timed out.
// go-redis dials on another goroutine than the one that waits for the dial,
// and a lock may bound both by the same span: ended at the same instant, the
// two would race for which error the caller sees.
func (w *World) giveUp(cl *client, target string) {
	w.mu.Lock()
	if target == cluster.Primary {
		target = w.primary.name
	}
	moment := slots * time.Nanosecond
	if l, ok := w.links[cluster.Link{From: cl.name, To: target}]; ok {
		moment += time.Duration(l.slot)
	}
	w.mu.Unlock()
	time.Sleep(moment)
	cl.gate.pass()
}

// open makes the connection's state. It returns no connection where packets
// vanish, and an error where the other side refuses.
func (w *World) open(cl *client, target string) (*conn, time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cl.asked[target]++
	if w.closed || cl.dead {
		return nil, 0, net.ErrClosed
	}
	host := target
	if target == cluster.Primary {
		host = w.primary.name
	}
	up, ok := w.links[cluster.Link{From: cl.name, To: host}]
	if !ok {
		return nil, 0, fmt.Errorf("no such host %q", target)
	}
	down := w.links[up.id.Back()]
	switch {
	case up.cut == cluster.Reset || down.cut == cluster.Reset:
		return nil, 0, syscall.ECONNREFUSED
	case up.cut == cluster.Drop || down.cut == cluster.Drop:
		return nil, 0, nil
	}
	cl.dials[host]++
	c := &conn{
		w: w, client: cl, up: up, down: down, wake: make(chan struct{}, 1),
		rng:    w.stream(cl.name, host, cl.dials[host]),
		cutsUp: up.cuts, cutsDown: down.cuts,
	}
	if host == cluster.Resource {
		c.sess.resource = w.newResourceSession(cl.name)
	} else {
		c.sess.node = w.byName[host]
		if c.sess.node.down.Load() {
			return nil, 0, syscall.ECONNREFUSED
		}
		c.sess.redis = c.sess.node.newSession(cl.name)
	}
	now := time.Now()
	there := up.arrival(now, c.rng, 0)
	up.arrived(there)
	back := down.arrival(now, c.rng, there)
	w.afterLocked(back, func() { w.mu.Lock(); down.arrived(back); w.mu.Unlock() })
	w.conns = append(w.conns, c)
	return c, time.Duration(back-now.UnixNano()) + 1, nil
}

// Write sends a chunk on its way.
func (c *conn) Write(b []byte) (int, error) {
	c.client.gate.pass()
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.closed:
		return 0, c.fail("write", net.ErrClosed)
	case c.err != nil:
		return 0, c.fail("write", c.err)
	case c.up.cut != "" || c.holed:
		c.holed = true
		return len(b), nil
	}
	chunk := append([]byte(nil), b...)
	at := c.up.arrival(time.Now(), c.rng, c.lastUp)
	c.lastUp = at
	w.afterLocked(at, func() { c.arriveUp(at, chunk) })
	return len(b), nil
}

// arriveUp is the moment at which a request reaches the far end.
func (c *conn) arriveUp(at int64, chunk []byte) {
	w := c.w
	w.mu.Lock()
	c.up.arrived(at)
	lost := c.up.cut != "" || c.up.cuts != c.cutsUp || c.dead || w.closed
	if lost {
		c.holed = true
	}
	w.mu.Unlock()
	if lost {
		return
	}
	if c.sess.node == nil {
		c.reply(c.sess.resource.feed(chunk), false, 0)
		return
	}
	c.sess.node.arrive(func() { c.serve(chunk) })
}

// arrive runs f now, or when the stall is over.
func (n *node) arrive(f func()) {
	n.mu.Lock()
	if n.stalled && !n.down.Load() {
		n.backlog = append(n.backlog, f)
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	f()
}

// serve executes requests and sends the replies. The trace goes out first: a
// fault may strike between the command and its reply.
func (c *conn) serve(chunk []byte) {
	c.w.mu.Lock()
	dead := c.dead // killed; a client that closed is still served
	c.w.mu.Unlock()
	// What was under way on a connection that its client has closed meanwhile
	// is not reset when the node dies, and must not reach it either.
	dead = dead || c.sess.node.down.Load()
	if dead {
		return
	}
	f := c.sess.redis.feed(chunk)
	c.w.emit(f.trace)
	c.reply(f.reply, f.end, f.late)
	if f.again > 0 {
		c.resume(f.again)
	}
}

// reply sends bytes back, late if they are held up; end closes the connection
// after them.
func (c *conn) reply(b []byte, end bool, late time.Duration) {
	if len(b) == 0 && !end {
		return
	}
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.closed || c.dead || c.err != nil {
		return
	}
	if c.down.cut != "" || c.holed {
		c.holed = true
		return
	}
	at := c.down.arrival(time.Now().Add(late), c.rng, c.lastDown)
	c.lastDown = at
	w.afterLocked(at, func() { c.arriveDown(at, b, end) })
}

func (c *conn) arriveDown(at int64, b []byte, end bool) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	c.down.arrived(at)
	switch {
	case c.closed || c.err != nil:
		return
	case c.down.cut != "" || c.down.cuts != c.cutsDown:
		c.holed = true
		return
	}
	c.buf = append(c.buf, b...)
	if end {
		c.err = io.EOF
	}
	c.notify()
}

// notify wakes a Read that waits.
func (c *conn) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Read returns what has arrived. Data that has arrived wins over a deadline
// that has passed meanwhile, as for a process that was stopped: its socket
// buffer is full when it comes back, and the poller looks there first.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.client.gate.pass()
		n, wait, err := c.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		c.await(wait)
	}
}

// take gets what is there, or says how long to wait for it; a negative wait
// has no end.
func (c *conn) take(b []byte) (n int, wait time.Duration, err error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	wait = -1
	switch {
	case c.closed:
		return 0, 0, c.fail("read", net.ErrClosed)
	case len(c.buf) > 0:
		n = copy(b, c.buf)
		c.buf = c.buf[n:]
		if len(c.buf) == 0 {
			c.buf = nil
		}
		return n, 0, nil
	case c.err == io.EOF:
		return 0, 0, io.EOF
	case c.err != nil:
		return 0, 0, c.fail("read", c.err)
	}
	if !c.deadline.IsZero() {
		// A nanosecond late, so that a context which ends at the same instant
		// has ended: go-redis gives a connection the deadline of its context,
		// and the scheduler would decide which of the two a lock meets first.
		wait = time.Until(c.deadline) + 1
		if wait <= 0 {
			return 0, 0, c.fail("read", os.ErrDeadlineExceeded)
		}
	}
	return 0, wait, nil
}

func (c *conn) await(wait time.Duration) {
	if wait < 0 {
		<-c.wake
		return
	}
	if c.timer == nil {
		c.timer = time.NewTimer(wait)
	} else {
		c.timer.Reset(wait)
	}
	select {
	case <-c.wake:
		c.timer.Stop()
	case <-c.timer.C:
	}
}

// Close ends the connection from the client's side. What it has sent still
// arrives.
func (c *conn) Close() error {
	c.client.gate.pass()
	c.shut(nil)
	return nil
}

func (c *conn) shut(err error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.closed = true
	if err != nil {
		c.err = err
	}
	c.w.forget(c)
	c.notify()
}

// SetDeadline implements [net.Conn]. Writes never wait, so only reads have a
// deadline.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	c.deadline = t
	c.notify()
	return nil
}

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// forget takes a connection off the list.
func (w *World) forget(c *conn) {
	if i := slices.Index(w.conns, c); i >= 0 {
		w.conns = slices.Delete(w.conns, i, i+1)
	}
}

// resetConns ends connections from the far end. The client learns it from a
// packet, which takes its time like any other and gets lost on a cut link; so
// two clients never learn it at the same instant.
func (w *World) resetConns(which func(*conn) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resetConnsLocked(which)
}

func (w *World) resetConnsLocked(which func(*conn) bool) {
	for _, c := range slices.Clone(w.conns) {
		if which(c) {
			w.resetLocked(c)
		}
	}
}

func (w *World) resetLocked(c *conn) {
	c.dead = true
	if c.down.cut == cluster.Drop {
		c.holed = true // healing the link resets it
		return
	}
	w.forget(c)
	at := c.down.arrival(time.Now(), c.rng, c.lastDown)
	c.lastDown = at
	w.afterLocked(at, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.down.arrived(at)
		if c.err == nil {
			c.err = syscall.ECONNRESET
		}
		c.notify()
	})
}
