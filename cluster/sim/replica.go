package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// keyState is all of one key: enough to put it on another node or back after
// a crash. Replication sends states and not commands, which is what Redis does
// for scripts and for everything with an expiry: effects, with absolute times.
type keyState struct {
	kind     string
	str      string
	hash     map[string]string
	zset     map[string]float64
	list     []string
	set      []string
	deadline int64 // wall clock in ms; 0 without expiry
}

// stateOf copies a key; its kind is empty when the key is absent.
func (n *node) stateOf(key string) keyState {
	s := keyState{kind: n.db.Type(key), deadline: n.deadlines[key]}
	// The kind was read under the node's lock, so the errors (wrong type, no
	// such key) cannot happen.
	switch s.kind {
	case "string":
		s.str, _ = n.db.Get(key)
	case "hash":
		s.hash = map[string]string{}
		fields, _ := n.db.HKeys(key)
		for _, f := range fields {
			s.hash[f] = n.db.HGet(key, f)
		}
	case "zset":
		s.zset, _ = n.db.SortedSet(key)
	case "list":
		s.list, _ = n.db.List(key)
	case "set":
		s.set, _ = n.db.Members(key)
	}
	return s
}

// put makes a key what a state says.
func (n *node) put(key string, s keyState) {
	n.db.Del(key)
	delete(n.deadlines, key)
	switch s.kind {
	case "":
		return
	case "string":
		_ = n.db.Set(key, s.str) // cannot fail: the key is absent
	case "hash":
		for f, v := range s.hash {
			n.db.HSet(key, f, v)
		}
	case "zset":
		for m, score := range s.zset {
			_, _ = n.db.ZAdd(key, score, m)
		}
	case "list":
		_, _ = n.db.Push(key, s.list...)
	case "set":
		_, _ = n.db.SetAdd(key, s.set...)
	}
	if s.deadline != 0 {
		n.deadlines[key] = s.deadline
	}
}

func (n *node) snapshot() map[string]keyState {
	all := map[string]keyState{}
	for _, k := range n.db.Keys() {
		all[k] = n.stateOf(k)
	}
	return all
}

func (n *node) restore(all map[string]keyState) {
	for _, k := range n.db.Keys() {
		n.put(k, keyState{})
	}
	for k, s := range all {
		n.put(k, s)
	}
}

// disk remembers what had reached the disk at the last fsync, which happens
// every second of the run, as appendfsync everysec does.
type disk struct {
	synced  map[string]keyState
	pending map[string]keyState // written since
	at      time.Time           // of the last fsync
}

const fsyncEvery = time.Second

// write notes a key's new state; sync moves what is old enough to the disk.
func (d *disk) write(now time.Time, key string, s keyState) {
	d.sync(now)
	d.pending[key] = s
}

func (d *disk) sync(now time.Time) {
	if now.Sub(d.at) < fsyncEvery {
		return
	}
	for k, s := range d.pending {
		d.synced[k] = s
	}
	clear(d.pending)
	d.at = d.at.Add(now.Sub(d.at).Truncate(fsyncEvery))
}

// propagate carries what a command wrote to the disk and to the replicas.
func (n *node) propagate() {
	if len(n.written) == 0 {
		return
	}
	slices.Sort(n.written)
	for _, k := range slices.Compact(n.written) {
		s := n.stateOf(k)
		if n.disk != nil {
			n.disk.write(time.Now(), k, s)
		}
		if n.world.cfg.Topology == cluster.Replicated && !n.replica {
			n.world.replicate(n, k, s)
		}
	}
	n.written = n.written[:0]
}

// stream is the replication link from one node to another.
type stream struct {
	rng  *rand.Rand
	last int64
	// torn: something was lost on the way; nothing more is sent until a full
	// resynchronisation after the link has healed.
	torn bool
}

// replicate sends a key's state to every replica, with the link's latency and
// the configured lag.
func (w *World) replicate(from *node, key string, s keyState) {
	for _, to := range w.nodes {
		if to != from {
			w.send(from, to, func() { to.put(key, s) })
		}
	}
}

// send delivers an effect over a replication link. It holds the sender's lock
// and takes only the world's.
func (w *World) send(from, to *node, apply func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := cluster.Link{From: from.name, To: to.name}
	l, st := w.links[id], w.streams[id]
	if st.torn || w.primary != from {
		return
	}
	if l.cut != "" {
		st.torn = true
		return
	}
	at := l.arrival(time.Now().Add(w.cfg.ReplicationLag), st.rng, st.last)
	st.last = at
	cuts := l.cuts
	w.afterLocked(at, func() {
		w.mu.Lock()
		l.arrived(at)
		lost := l.cut != "" || l.cuts != cuts || w.primary != from
		if lost {
			st.torn = true
		}
		w.mu.Unlock()
		if lost {
			return
		}
		to.mu.Lock()
		defer to.mu.Unlock()
		if !to.down.Load() && to.replica {
			apply()
		}
	})
}

// resync gives a replica everything its primary has, once the link is whole.
func (w *World) resync(from, to *node) {
	if from == to {
		return
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	if from.down.Load() {
		return
	}
	all := from.snapshot()
	w.mu.Lock()
	w.streams[cluster.Link{From: from.name, To: to.name}].torn = false
	w.mu.Unlock()
	w.send(from, to, func() { to.restore(all) })
}

// PrimaryNode implements [cluster.Promoter].
func (w *World) PrimaryNode() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.primary.name
}

// Promote makes a replica the primary, with whatever it has received. Clients
// are cut off from the old primary and find the new one when they dial again.
func (w *World) Promote(_ context.Context, name string) error {
	n, err := w.node(name)
	if err != nil {
		return err
	}
	if w.cfg.Topology != cluster.Replicated {
		return fmt.Errorf("promote %s: topology %s: %w", name, w.cfg.Topology, cluster.ErrUnsupported)
	}
	n.mu.Lock()
	if n.down.Load() {
		n.mu.Unlock()
		return fmt.Errorf("promote %s: the node is down", name)
	}
	n.replica = false
	n.arm()
	trace := n.everyLocked(history.Promoted)
	n.mu.Unlock()

	w.mu.Lock()
	old := w.primary
	w.primary = n
	w.mu.Unlock()
	if old != n {
		w.resetConns(func(c *conn) bool { return c.sess.node == old })
		for _, other := range w.nodes {
			if other != n && other != old {
				w.resync(n, other)
			}
		}
	}
	w.emit(trace)
	return nil
}
