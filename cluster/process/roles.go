package process

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// watchRoles learns which nodes of a Redis Cluster are primaries, and goes on
// looking: they change places by themselves. It ends with the trace.
func (t *trace) watchRoles(ctx context.Context) error {
	for _, name := range t.w.nodeNames {
		role, err := t.w.nodes[name].role(ctx)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		t.tracers[name].setPrimary(role == rolePrimary)
	}
	for _, tr := range t.tracers {
		t.wg.Go(tr.watchRole)
	}
	return nil
}

// roleEvery is how often a node is asked what it is.
const roleEvery = 50 * time.Millisecond

func (tr *tracer) watchRole() {
	ctx := tr.trace.ctx
	for sleep(ctx, roleEvery) == nil {
		if !tr.trace.w.answering(tr.node.name) {
			continue
		}
		role, err := tr.node.role(ctx)
		if err != nil {
			continue // it was killed or stopped just now
		}
		switch now, before := role == rolePrimary, tr.isPrimary(); {
		case now && !before:
			tr.promoted(ctx)
		case !now && before:
			tr.deposed(ctx)
		}
	}
}

func (tr *tracer) isPrimary() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.primary
}

func (tr *tracer) setPrimary(is bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.primary = is
}

// promoted reports what a new primary has of the keys that it serves now, and
// what it has not: a key that was lost with the old primary is lost whether or
// not anybody asks for it.
func (tr *tracer) promoted(ctx context.Context) {
	members, err := tr.node.members(ctx)
	if err != nil {
		return // it will be looked at again
	}
	// Without this the last replicated commands could come after the report.
	if err := tr.sync(ctx); err != nil {
		tr.trace.w.cfg.Log.Warn("the trace lags behind a promotion", "node", tr.node.name, "err", err)
	}
	known := tr.trace.knownKeys()
	tr.mu.Lock()
	defer tr.unlock()
	tr.primary = true
	now := time.Now().Add(tr.node.clock.offset())
	for _, name := range known {
		serves := slices.ContainsFunc(members, func(m member) bool { return m.myself && m.has(slotOf(name)) })
		if !serves {
			continue
		}
		k := tr.keys[name]
		if k != nil && k.expire != 0 && k.expire <= now.UnixMilli() {
			k = nil // nobody has looked at it since
		}
		tr.emit(command{name: history.Promoted, shown: now}, "", name, k, "")
	}
}

// deposed looks at a node anew once it copies its new primary: what it had is
// replaced by what the other has, and no command says so.
func (tr *tracer) deposed(ctx context.Context) {
	info, err := tr.node.direct.Info(ctx, "replication").Result()
	if err != nil || infoField(info, "master_link_status") != "up" {
		return // not yet
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.primary = false
	if tr.conn != nil {
		_ = tr.conn.Close() // the session begins anew, and looks
	}
}

// knownKeys are all lock keys that any node was seen with.
func (t *trace) knownKeys() []string {
	known := make(map[string]bool)
	for _, name := range t.w.cfg.LockKeys {
		known[name] = true
	}
	for _, tr := range t.tracers {
		tr.mu.Lock()
		for name := range tr.keys {
			known[name] = true
		}
		tr.mu.Unlock()
	}
	return slices.Sorted(maps.Keys(known))
}

// takeMoved takes a key that comes with its slot. On a replica it is what its
// primary was sent, and no news of who serves the key.
func (tr *tracer) takeMoved(c command) {
	const keyAt, ttlAt, payloadAt = 1, 2, 3
	if len(c.args) <= payloadAt || !tr.isLock(c.args[keyAt]) {
		return
	}
	name := c.args[keyAt]
	restored := slices.Contains(tr.events[name], "restore")
	clear(tr.events)
	if !restored {
		return // it was refused
	}
	k, err := undump(c.args[payloadAt])
	if err != nil {
		tr.trace.w.cfg.Log.Warn("the trace cannot read a key that was moved", "node", tr.node.name, "key", name, "err", err)
		k = &key{kind: other}
	}
	if k.kind == text && isNumber(k.value) && !slices.Contains(tr.trace.w.cfg.LockKeys, name) {
		k.kind = counter
	}
	if c.args[ttlAt] != "0" {
		option := "PX"
		if slices.Contains(c.args[payloadAt+1:], "ABSTTL") {
			option = "PXAT"
		}
		k.expire = expiry(option, c.args[ttlAt], c.shown)
	}
	tr.keys[name] = k
	if tr.primary {
		c.name = history.Moved
	}
	tr.emit(c, "", name, k, "")
}

// takeAway takes the keys that a node has given to another.
func (tr *tracer) takeAway(c command) {
	for name, events := range tr.events {
		if slices.Contains(events, "del") {
			delete(tr.keys, name)
			tr.emit(c, "", name, nil, "")
		}
	}
	clear(tr.events)
}
