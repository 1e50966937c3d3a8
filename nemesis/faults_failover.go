package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// Failover kills the primary and promotes a replica, whatever that replica
// has received so far. The old primary stays down.
//
// Where sentinels elect another primary, it only takes the old one away from
// them, and its end gives that back: killed, or with Alive out of reach of all
// servers, while clients still reach it.
//
// In a Redis Cluster nobody is promoted from outside either: the primary of the lock's
// slot is killed, and the nodes elect a replica when they have noticed. With
// [cluster.Force] or [cluster.Takeover] it runs on, and its replica takes its
// place at once.
type Failover struct {
	To string `yaml:"to"` // the default is the first replica
	// Alive leaves the old primary running: two primaries, as in a split
	// brain; clients follow the new one. Not in a Redis Cluster.
	Alive bool `yaml:"alive"`
	// Mode in a Redis Cluster: kill, which is the default, force or takeover.
	Mode string `yaml:"mode" words:"kill,force,takeover"`
}

// modeKill is the word for an election after the primary's death.
const modeKill = "kill"

// deposes says that the old primary runs on, in a Redis Cluster.
func (f Failover) deposes() bool { return f.Mode != "" && f.Mode != modeKill }

// Kind implements [Fault].
func (Failover) Kind() string { return "failover" }

// Needs implements [Fault].
func (Failover) Needs() []cluster.Ability {
	return []cluster.Ability{cluster.CanKill, cluster.CanPromote}
}

// Inject implements [Fault].
func (f Failover) Inject(ctx context.Context, s Scene) (Effect, error) {
	if s.Cluster.Topology() == cluster.RedisCluster {
		return f.inShard(ctx, s)
	}
	v, err := verbs[cluster.Servers](s)
	if err != nil {
		return Effect{}, err
	}
	p, err := verbs[cluster.Promoter](s)
	if err != nil {
		return Effect{}, err
	}
	if e, ok := s.Cluster.(cluster.Elector); ok && e.Elects() {
		return f.elected(ctx, s, v)
	}
	old := p.PrimaryNode()
	replicas, err := s.resolve([]string{wordReplicas})
	if err != nil {
		return Effect{}, err
	}
	to, err := s.one(f.To, replicas[0])
	if err != nil {
		return Effect{}, err
	}
	what := fmt.Sprintf("%s promoted while %s runs on", to, old)
	if !f.Alive {
		what = fmt.Sprintf("%s killed, %s promoted", old, to)
		if err := v.Kill(ctx, old); err != nil {
			return Effect{}, fmt.Errorf("kill %s: %w", old, err)
		}
	}
	if err := p.Promote(ctx, to); err != nil {
		err = fmt.Errorf("promote %s: %w", to, err)
		if !f.Alive {
			err = errors.Join(err, v.Restart(ctx, old, cluster.Keep))
		}
		return Effect{}, err
	}
	return Effect{On: []string{old, to}, What: what}, nil
}

// elected takes the primary away and leaves the rest to the sentinels.
func (f Failover) elected(ctx context.Context, s Scene, v cluster.Servers) (Effect, error) {
	if f.To != "" {
		return Effect{}, fmt.Errorf("failover to %s: here nobody can say which node is elected", f.To)
	}
	old := s.primary()
	if !f.Alive {
		back := func(ctx context.Context, node string) error { return v.Restart(ctx, node, cluster.Keep) }
		return onNodes(ctx, s, []string{old}, "killed, the others elect a primary", v.Kill, back)
	}
	var links []cluster.Link
	for _, other := range append(s.witnesses(), s.Cluster.Nodes()...) {
		if l := (cluster.Link{From: other, To: old}); other != old {
			links = append(links, l, l.Back())
		}
	}
	e, err := cutAll(ctx, s, links, cluster.Drop)
	if err != nil {
		return Effect{}, err
	}
	e.On, e.What = []string{old}, fmt.Sprintf("%s is out of reach of all servers and runs on, the others elect a primary", old)
	return e, nil
}

// inShard is a failover of the shard that has the lock's slot. It does not wait
// for an election: that takes the nodes a second or two, in which clients go on.
func (f Failover) inShard(ctx context.Context, s Scene) (Effect, error) {
	e, err := verbs[cluster.Sharded](s)
	if err != nil {
		return Effect{}, err
	}
	old, replicas, err := e.Shard(ctx)
	if err != nil {
		return Effect{}, err
	}
	to := f.To
	switch {
	case len(replicas) == 0:
		return Effect{}, fmt.Errorf("%s has no replica that could take its place", old)
	case to == "":
		to = replicas[0]
	case !slices.Contains(replicas, to):
		return Effect{}, fmt.Errorf("%s does not copy %s, which has the lock's slot: %v do", to, old, replicas)
	}
	if f.deposes() {
		if err := e.Depose(ctx, to, cluster.Deposition(f.Mode)); err != nil {
			return Effect{}, err
		}
		how := map[cluster.Deposition]string{
			cluster.Force: "is elected in its place", cluster.Takeover: "takes over without asking",
		}[cluster.Deposition(f.Mode)]
		return Effect{On: []string{old, to}, What: fmt.Sprintf("%s runs on, %s %s", old, to, how)}, nil
	}
	v, err := verbs[cluster.Servers](s)
	if err != nil {
		return Effect{}, err
	}
	if err := v.Kill(ctx, old); err != nil {
		return Effect{}, fmt.Errorf("kill %s: %w", old, err)
	}
	return Effect{On: []string{old, to}, What: fmt.Sprintf("%s killed, the cluster elects %s", old, to)}, nil
}

// Migrate moves the slot of the lock to another primary of a Redis Cluster, as
// a resharding does. Its keys move after Pause; until the heal, which ends the
// move, both nodes know that it is under way:
//
//	start   n1 has the slot, and sends who wants a key that it has not to n2
//	pause   the lock's key moves: n1 answers ASK to all who want it
//	heal    n2 has the slot: n1 answers MOVED
type Migrate struct {
	To    string `yaml:"to"` // the default is the next primary
	Pause Span   `yaml:"pause"`
}

// Kind implements [Fault].
func (Migrate) Kind() string { return "migrate" }

// Needs implements [Fault].
func (Migrate) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanMigrate} }

// Inject implements [Fault].
func (f Migrate) Inject(ctx context.Context, s Scene) (Effect, error) {
	e, err := verbs[cluster.Sharded](s)
	if err != nil {
		return Effect{}, err
	}
	m, err := verbs[cluster.Migrator](s)
	if err != nil {
		return Effect{}, err
	}
	from, _, err := e.Shard(ctx)
	if err != nil {
		return Effect{}, err
	}
	to, err := f.target(ctx, m, from)
	if err != nil {
		return Effect{}, err
	}
	if err := m.OpenSlot(ctx, from, to); err != nil {
		return Effect{}, err
	}
	mover := newMover(s, f.Pause, func(ctx context.Context) error { return m.MoveKeys(ctx, from, to) })
	return Effect{
		On: []string{from, to}, What: fmt.Sprintf("the lock's slot moves from %s to %s", from, to),
		Heal: func(ctx context.Context) error {
			// What was written to the old node after the first move moves now.
			return errors.Join(mover.end(), m.MoveKeys(ctx, from, to), m.CloseSlot(ctx, from, to))
		},
	}, nil
}

// target is the primary that gets the slot.
func (f Migrate) target(ctx context.Context, m cluster.Migrator, from string) (string, error) {
	primaries, err := m.Shards(ctx)
	if err != nil {
		return "", err
	}
	others := slices.DeleteFunc(slices.Clone(primaries), func(n string) bool { return n == from })
	switch {
	case f.To == "" && len(others) > 0:
		return others[0], nil
	case slices.Contains(others, f.To):
		return f.To, nil
	}
	return "", fmt.Errorf("the slot is with %s and cannot move to %q: the other primaries are %v", from, f.To, others)
}

// mover moves keys once, after a while, unless it is ended before.
type mover struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error
}

func newMover(s Scene, pause Span, move func(context.Context) error) *mover {
	ctx, cancel := context.WithTimeout(context.Background(), healTimeout)
	m := &mover{cancel: cancel}
	after := pause.Of(s.TTL)
	if after <= 0 {
		m.err = move(ctx) // before the client that set it off goes on
		return m
	}
	m.done.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			m.err = move(ctx)
		case <-ctx.Done():
		}
	})
	return m
}

// end waits for a move that is under way; one that has not begun is left to
// whoever ends it.
func (m *mover) end() error {
	m.cancel()
	m.done.Wait()
	if errors.Is(m.err, context.Canceled) {
		return nil // the heal moves what is left
	}
	return m.err
}
