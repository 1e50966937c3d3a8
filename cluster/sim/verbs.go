package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

func (w *World) client(name string) (*client, error) {
	if c, ok := w.clients[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("there is no client %q", name)
}

// PauseClient implements [cluster.Pauser] with a gate: see [gate].
func (w *World) PauseClient(_ context.Context, name string) error {
	c, err := w.client(name)
	if err != nil {
		return err
	}
	if !c.gate.close() {
		return fmt.Errorf("client %s is paused already", name)
	}
	return nil
}

// ResumeClient implements [cluster.Pauser].
func (w *World) ResumeClient(_ context.Context, name string) error {
	c, err := w.client(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	dead := c.dead
	w.mu.Unlock()
	if dead {
		return nil // it died while it was paused; its gate stays shut
	}
	c.gate.open()
	return nil
}

// CrashClient implements [cluster.Pauser]: the client's connections end and
// nothing it does reaches anybody any more.
func (w *World) CrashClient(_ context.Context, name string) error {
	c, err := w.client(name)
	if err != nil {
		return err
	}
	c.gate.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	c.dead = true
	w.resetConnsLocked(func(cn *conn) bool { return cn.client == c })
	return nil
}

// OnCancel says how to cancel the call that a client has under way.
func (w *World) OnCancel(name string, cancel func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[name].cancel = cancel
}

// CancelCall implements [cluster.Canceller].
func (w *World) CancelCall(_ context.Context, name string) error {
	c, err := w.client(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	cancel := c.cancel
	w.mu.Unlock()
	if cancel == nil {
		return fmt.Errorf("client %s has no call to cancel", name)
	}
	cancel()
	return nil
}

// Cut implements [cluster.Linker].
func (w *World) Cut(_ context.Context, id cluster.Link, mode cluster.CutMode) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := w.link(id)
	if err != nil {
		return err
	}
	l.asked = mode
	l.settle()
	l.cuts++
	if mode == cluster.Reset {
		w.resetConnsLocked(func(c *conn) bool { return c.up == l || c.down == l })
	}
	return nil
}

// Mend implements [cluster.Linker]. Connections that lost bytes are reset, and
// replicas that missed something are resynchronised.
func (w *World) Mend(_ context.Context, id cluster.Link) error {
	w.mu.Lock()
	l, err := w.link(id)
	if err != nil {
		w.mu.Unlock()
		return err
	}
	l.asked = ""
	w.mu.Unlock()
	w.mended(l)
	return nil
}

// mended follows a change that may have made a link whole again.
func (w *World) mended(l *link) {
	w.mu.Lock()
	l.settle()
	if l.cut != "" {
		w.mu.Unlock()
		return
	}
	w.resetConnsLocked(func(c *conn) bool {
		return (c.up == l || c.down == l) && (c.holed || c.up.cuts != c.cutsUp || c.down.cuts != c.cutsDown)
	})
	from, to := w.byName[l.id.From], w.byName[l.id.To]
	torn := from != nil && to != nil && from == w.primary && w.streams[l.id].torn
	w.mu.Unlock()
	if torn {
		w.resync(from, to)
	}
}

// Disconnect implements [cluster.Disconnector]: every link of the node drops
// what passes.
func (w *World) Disconnect(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.off {
		return fmt.Errorf("node %s is off the network already", name)
	}
	n.off = true
	for _, l := range w.linksOf(name) {
		l.off++
		l.cuts++
		l.settle()
	}
	return nil
}

// Reconnect implements [cluster.Disconnector].
func (w *World) Reconnect(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	if !n.off {
		w.mu.Unlock()
		return nil
	}
	n.off = false
	links := w.linksOf(name)
	for _, l := range links {
		l.off--
	}
	w.mu.Unlock()
	for _, l := range links {
		w.mended(l)
	}
	return nil
}

// linksOf are the links of a party in an order of their own: what follows from
// a change to them must not depend on the order of a map.
func (w *World) linksOf(name string) []*link {
	var out []*link
	for id, l := range w.links {
		if id.From == name || id.To == name {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *link) int { return cmp.Compare(a.slot, b.slot) })
	return out
}

// Delay implements [cluster.Linker].
func (w *World) Delay(_ context.Context, id cluster.Link, by time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := w.link(id)
	if err != nil {
		return err
	}
	if by < 0 {
		return fmt.Errorf("delay %v: a link cannot be faster than it is (%v)", id, by)
	}
	l.delay = by
	return nil
}

// JumpClock implements [cluster.Clocks].
func (w *World) JumpClock(_ context.Context, name string, by time.Duration) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.moveClock(func(c *clock, t time.Time) { c.jump(t, by) })
	return nil
}

// RateClock implements [cluster.Clocks].
func (w *World) RateClock(_ context.Context, name string, rate float64) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	if !(rate > 0) { // not a number is not above 0 either
		return fmt.Errorf("clock of %s: rate %g is not above 0", name, rate)
	}
	n.moveClock(func(c *clock, t time.Time) { c.setRate(t, rate) })
	return nil
}

// ResetClock implements [cluster.Clocks].
func (w *World) ResetClock(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.moveClock(func(c *clock, t time.Time) { *c = newClock(t, c.skew) })
	return nil
}

// Kill implements [cluster.Servers]. What was in the node stays there until
// Restart says what is left of it.
func (w *World) Kill(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.down.Load() {
		n.mu.Unlock()
		return fmt.Errorf("node %s is down already", name)
	}
	n.down.Store(true)
	n.stalled = false
	n.backlog = nil
	if n.disk != nil {
		n.disk.sync(time.Now())
	}
	n.arm()
	n.mu.Unlock()
	w.resetConns(func(c *conn) bool { return c.sess.node == n })
	return nil
}

// Restart implements [cluster.Servers]. The server comes back with its clock
// as it is; keys whose time was up meanwhile expire.
func (w *World) Restart(_ context.Context, name string, data cluster.Data) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if !n.down.Load() {
		n.mu.Unlock()
		return fmt.Errorf("node %s is running", name)
	}
	var lost []history.Server
	before := n.everyLocked(history.Lostkeys)
	switch data {
	case cluster.Lose:
		n.wipe()
	case cluster.Fsynced:
		if n.disk == nil {
			n.mu.Unlock()
			return fmt.Errorf("restart %s as of its last fsync: the world was made without disks", name)
		}
		n.restore(n.disk.synced)
	}
	n.scripts = map[string]string{} // no server keeps its script cache
	had := map[string]bool{}
	for _, ev := range before {
		had[ev.Key] = true
		if now := n.describe("", ev.Key); now.Owner != ev.Owner || now.PTTL == -2 {
			now.Cmd = history.Lostkeys
			lost = append(lost, now)
		}
	}
	for _, now := range n.everyLocked(history.Lostkeys) { // a deletion can be lost too
		if !had[now.Key] {
			lost = append(lost, now)
		}
	}
	n.down.Store(false)
	n.mu.Unlock()
	w.emit(lost)
	n.expire()
	if w.cfg.Topology == cluster.Replicated {
		w.rejoin(n)
	}
	return nil
}

// rejoin makes a node that comes back a replica of the primary, unless it is
// the primary.
func (w *World) rejoin(n *node) {
	w.mu.Lock()
	primary := w.primary
	w.mu.Unlock()
	if n == primary {
		return
	}
	n.mu.Lock()
	n.replica = true
	n.arm()
	n.mu.Unlock()
	w.resync(primary, n)
}

// Stall implements [cluster.Servers].
func (w *World) Stall(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down.Load() || n.stalled {
		return fmt.Errorf("node %s is down or stalled already", name)
	}
	n.stalled = true
	return nil
}

// Unstall implements [cluster.Servers]. What has queued up runs at once, in
// the order of its arrival, after what expired meanwhile.
func (w *World) Unstall(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.stalled = false
	backlog := n.backlog
	n.backlog = nil
	n.mu.Unlock()
	n.expire()
	for _, f := range backlog {
		f()
	}
	return nil
}

// Flush implements [cluster.Servers].
func (w *World) Flush(_ context.Context, name string, scriptsOnly bool) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if scriptsOnly {
		n.scripts = map[string]string{}
		n.mu.Unlock()
		return nil
	}
	lost := n.everyLocked(history.Lostkeys)
	for _, k := range n.db.Keys() {
		n.put(k, keyState{})
		n.written = append(n.written, k)
	}
	for i := range lost {
		lost[i].Owner, lost[i].Value, lost[i].PTTL = "", "", -2
	}
	n.propagate()
	n.arm()
	n.mu.Unlock()
	w.emit(lost)
	return nil
}

// ErrorReply implements [cluster.Erring].
func (w *World) ErrorReply(_ context.Context, name, reply string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errReply = reply
	return nil
}
