package process

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// Roles of a node, in the words of its INFO.
const (
	roleMaster = "master"
	roleSlave  = "slave"
)

// turn notes the role that a node has from now on. A replica that becomes a
// primary has the keys that it reports now, and nothing else; a primary that
// becomes a replica gives up what it has for the data of another. The caller
// holds tr.mu.
//
// A sentinel ends the connections of a node that it turns, the trace's own
// among them, so that the trace mostly learns of it when it connects again,
// some milliseconds later. No client knows of the new primary by then: the
// sentinels tell of it when the node has confirmed its role, up to a second
// later.
func (tr *tracer) turn(role string, shown time.Time) {
	was := tr.role
	tr.role = role
	switch {
	case was == roleSlave && role == roleMaster:
		at := tr.trace.stamp(tr, history.Server{}, shown).at
		tr.out = append(tr.out, event{promoted: true, at: at})
		for _, name := range sortedKeys(tr.keys) {
			if k := tr.keys[name]; k.expire == 0 || k.expire > shown.UnixMilli() {
				tr.emit(command{name: history.Promoted, shown: shown}, "", name, k, "")
			}
		}
	case was == roleMaster && role == roleSlave:
		for _, name := range sortedKeys(tr.keys) {
			delete(tr.keys, name)
			tr.emit(command{name: history.Lostkeys, shown: shown}, "", name, nil, "")
		}
	}
}

// takeTurn takes a REPLICAOF, if that is what a command is.
func (tr *tracer) takeTurn(c command) {
	const args = 3
	if (c.name != "REPLICAOF" && c.name != "SLAVEOF") || len(c.args) != args || !tr.trace.w.layout.elects {
		return
	}
	role := roleSlave
	if strings.EqualFold(c.args[1], "NO") && strings.EqualFold(c.args[2], "ONE") {
		role = roleMaster
	}
	tr.turn(role, c.shown)
}

// askRole asks the node for its role, where that changes by itself.
func (tr *tracer) askRole(ctx context.Context) (string, error) {
	if !tr.trace.w.layout.elects {
		return "", nil
	}
	info, err := tr.node.direct.Info(ctx, "replication").Result()
	if err != nil {
		return "", err
	}
	return infoField(info, "role"), nil
}

// roleNow is the role that the trace knows of.
func (tr *tracer) roleNow() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.role
}

// confirmEvery is the time between two questions to the sentinels.
const confirmEvery = 10 * time.Millisecond

// confirm waits until a sentinel calls a node the primary, and makes it known
// then with the time of its promotion. A promotion that the sentinels give up,
// and never tell anybody of, is none: no client is ever led to it.
func (w *World) confirm(name string, at int64) {
	for {
		if err := sleep(w.trace.ctx, confirmEvery); err != nil || w.trace.tracers[name].roleNow() != roleMaster {
			return
		}
		for _, s := range w.witnessNames {
			ctx, cancel := context.WithTimeout(w.trace.ctx, waitBound)
			found, err := w.askSentinelIfUp(ctx, s)
			cancel()
			if err != nil || found != name {
				continue
			}
			w.linkMu.Lock()
			old := w.primary
			w.primary = name
			w.linkMu.Unlock()
			if old != name {
				w.cfg.OnPromoted(old, name, at, Monotonic())
			}
			return
		}
	}
}

// askSentinelIfUp asks a sentinel that is neither dead nor frozen.
func (w *World) askSentinelIfUp(ctx context.Context, name string) (string, error) {
	n := w.nodes[name]
	if !n.mu.TryLock() {
		return "", errDown // a verb is at work on it
	}
	up := n.server != nil && !n.stalled && !over(n.server)
	n.mu.Unlock()
	if !up {
		return "", errDown
	}
	return w.askSentinel(ctx, name)
}
