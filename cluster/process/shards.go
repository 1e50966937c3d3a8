package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

var (
	_ cluster.Sharded  = (*World)(nil)
	_ cluster.Migrator = (*World)(nil)
)

// lockSlot is the slot of the first lock's key.
func (w *World) lockSlot() int {
	switch {
	case len(w.cfg.LockKeys) > 0:
		return slotOf(w.cfg.LockKeys[0])
	case len(w.cfg.LockNames) > 0:
		return slotOf(w.cfg.LockNames[0])
	}
	return 0
}

// Shard is the node that serves the slot of the lock, and those that copy it.
// Where two claim the slot it is the one with the higher epoch, to whom the
// other will yield.
func (w *World) Shard(ctx context.Context) (primary string, replicas []string, err error) {
	if !w.clustered() {
		return "", nil, fmt.Errorf("the shard of the lock in topology %s: %w", w.cfg.Topology, cluster.ErrUnsupported)
	}
	slot := w.lockSlot()
	names, copies := make(map[string]string), make(map[string]string) // names by id; ids of primaries by name
	best := member{epoch: -1}
	var errs []error
	for _, name := range w.nodeNames {
		if !w.answering(name) {
			continue
		}
		members, err := w.nodes[name].members(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, m := range members {
			if !m.myself {
				continue
			}
			names[m.id], copies[name] = name, m.copies
			if m.primary && m.has(slot) && m.epoch > best.epoch {
				best = m
			}
		}
	}
	if best.epoch < 0 {
		return "", nil, fmt.Errorf("no node that answers serves slot %d: %w", slot, errors.Join(errs...))
	}
	for _, name := range w.nodeNames {
		if copies[name] == best.id {
			replicas = append(replicas, name)
		}
	}
	return names[best.id], replicas, nil
}

// answering says whether a node can be asked something.
func (w *World) answering(name string) bool {
	n := w.nodes[name]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server != nil && !n.stalled && !over(n.server)
}

// Depose makes a replica the primary of its shard while the old one runs. With
// [cluster.Force] the other primaries vote for it, with [cluster.Takeover] it
// asks nobody. Depose returns when the replica serves.
func (w *World) Depose(ctx context.Context, replica string, how cluster.Deposition) error {
	if !w.clustered() {
		return fmt.Errorf("depose the primary in topology %s: %w", w.cfg.Topology, cluster.ErrUnsupported)
	}
	word := map[cluster.Deposition]string{cluster.Force: "FORCE", cluster.Takeover: "TAKEOVER"}[how]
	if word == "" {
		return fmt.Errorf("depose the primary by %q: %w", how, cluster.ErrUnsupported)
	}
	return w.onNode(ctx, "depose the primary of", replica, func(n *node) error {
		if n.server == nil || n.stalled {
			return errDown
		}
		if err := n.direct.Do(ctx, "CLUSTER", "FAILOVER", word).Err(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, waitBound)
		defer cancel()
		for {
			role, err := n.role(ctx)
			if err == nil && role == rolePrimary {
				return nil
			}
			if ctxErr := sleep(ctx, 5*time.Millisecond); ctxErr != nil {
				return fmt.Errorf("it was not made the primary: %w: %s", errors.Join(ctxErr, err), n.logTail())
			}
		}
	})
}

// rolePrimary is the word of ROLE for a node that copies nobody.
const rolePrimary = "master"

func (n *node) role(ctx context.Context) (string, error) {
	reply, err := n.direct.Do(ctx, "ROLE").Slice()
	if err != nil {
		return "", err
	}
	if len(reply) == 0 {
		return "", errors.New("an empty answer to ROLE")
	}
	role, ok := reply[0].(string)
	if !ok {
		return "", fmt.Errorf("ROLE says %v", reply[0])
	}
	return role, nil
}

// OpenSlot begins to move the lock's slot: from now on its node sends to the
// other, by ASK, whoever wants a key that it does not have.
func (w *World) OpenSlot(ctx context.Context, from, to string) error {
	source, target, err := w.pairOf(from, to)
	if err != nil {
		return err
	}
	ids, err := idsOf(ctx, source, target)
	if err != nil {
		return err
	}
	slot := w.lockSlot()
	if err := target.direct.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0]).Err(); err != nil {
		return fmt.Errorf("node %s: import slot %d: %w", to, slot, err)
	}
	if err := source.direct.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1]).Err(); err != nil {
		return fmt.Errorf("node %s: give slot %d away: %w", from, slot, err)
	}
	return nil
}

// MoveKeys moves every key of the lock's slot that is there.
func (w *World) MoveKeys(ctx context.Context, from, to string) error {
	source, _, err := w.pairOf(from, to)
	if err != nil {
		return err
	}
	host, port, err := w.announced(to, 0)
	if err != nil {
		return err
	}
	slot := w.lockSlot()
	for {
		const batch = 100
		keys, err := source.direct.ClusterGetKeysInSlot(ctx, slot, batch).Result()
		if err != nil {
			return fmt.Errorf("node %s: the keys of slot %d: %w", from, slot, err)
		}
		if len(keys) == 0 {
			return nil
		}
		args := []any{"MIGRATE", host, port, "", 0, waitBound.Milliseconds(), "KEYS"}
		for _, key := range keys {
			args = append(args, key)
		}
		// NOKEY is a fine answer: they have expired meanwhile.
		if err := source.direct.Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("node %s: move the keys of slot %d to %s: %w", from, slot, to, err)
		}
	}
}

// CloseSlot ends the move: the other node has the slot, and all nodes that
// answer are told so, the new one first: it must have the slot before the old
// one sends anybody there.
func (w *World) CloseSlot(ctx context.Context, from, to string) error {
	_, target, err := w.pairOf(from, to)
	if err != nil {
		return err
	}
	id, err := target.id(ctx)
	if err != nil {
		return err
	}
	slot, order := w.lockSlot(), []string{to, from}
	for _, name := range w.nodeNames {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, name := range order {
		if !w.answering(name) {
			continue
		}
		role, err := w.nodes[name].role(ctx)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		if role != rolePrimary {
			continue // it hears of it from its primary
		}
		if err := w.nodes[name].direct.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id).Err(); err != nil {
			return fmt.Errorf("node %s: slot %d belongs to %s: %w", name, slot, to, err)
		}
	}
	return nil
}

// pairOf finds the two nodes of a move.
func (w *World) pairOf(from, to string) (source, target *node, err error) {
	if !w.clustered() {
		return nil, nil, fmt.Errorf("move a slot in topology %s: %w", w.cfg.Topology, cluster.ErrUnsupported)
	}
	if from == to {
		return nil, nil, fmt.Errorf("move a slot from %s to itself", from)
	}
	if source, err = w.node(from); err != nil {
		return nil, nil, err
	}
	if target, err = w.node(to); err != nil {
		return nil, nil, err
	}
	return source, target, nil
}

func idsOf(ctx context.Context, nodes ...*node) ([]string, error) {
	var ids []string
	for _, n := range nodes {
		id, err := n.id(ctx)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Shards are the nodes that serve slots now, in order.
func (w *World) Shards(ctx context.Context) ([]string, error) {
	var found []string
	for _, name := range w.nodeNames {
		if !w.answering(name) {
			continue
		}
		role, err := w.nodes[name].role(ctx)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		if role == rolePrimary {
			found = append(found, name)
		}
	}
	return found, nil
}
