package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Promoter = (*World)(nil)

// bootReplicated starts all servers at once. Replicas keep dialing until their
// primary is there.
func bootReplicated(ctx context.Context, w *World) error {
	err := each(w.nodeNames, func(name string) error {
		if name != w.primary {
			// A replica that finds nobody waits a whole second before it
			// dials again.
			if err := w.nodes[w.primary].awaitPort(ctx); err != nil {
				return err
			}
		}
		return w.onNode(ctx, "start", name, func(n *node) error { return n.start(ctx) })
	})
	if err != nil {
		return err
	}
	return w.awaitReplicas(ctx)
}

func (n *node) awaitPort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		err := n.ping()
		if err == nil {
			return nil
		}
		if ctxErr := sleep(ctx, 2*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("node %s does not answer: %w (last: %w)", n.name, ctxErr, err)
		}
	}
}

// awaitReplicas waits until every replica has its primary's data, and the
// primary sends it every command as it comes.
func (w *World) awaitReplicas(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	primary := w.nodes[w.primary]
	for {
		info, err := primary.direct.Info(ctx, "replication").Result()
		if err == nil && strings.Count(info, "state=online") == len(w.nodeNames)-1 {
			break
		}
		if ctxErr := sleep(ctx, 5*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("the replicas of %s are not in sync: %w: %s",
				primary.name, errors.Join(ctxErr, err), primary.logTail())
		}
	}
	return each(w.nodeNames[1:], func(name string) error { return w.nodes[name].awaitLink(ctx) })
}

func (n *node) awaitLink(ctx context.Context) error {
	for {
		info, err := n.direct.Info(ctx, "replication").Result()
		if err == nil && infoField(info, "master_link_status") == "up" {
			return nil
		}
		if ctxErr := sleep(ctx, 5*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("replica %s is not in sync: %w: %s", n.name, errors.Join(ctxErr, err), n.logTail())
		}
	}
}

// masterOf is the address at which a node finds its primary: its own proxy to
// it. It is empty for a primary.
func (w *World) masterOf(name string) string {
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	if w.cfg.Topology != cluster.Replicated || name == w.primary {
		return ""
	}
	return w.proxies[cluster.Link{From: name, To: w.primary}].addr
}

// PrimaryNode is the node that clients reach as "primary"; where the cluster is
// not replicated it is the first.
func (w *World) PrimaryNode() string {
	if !w.cfg.Topology.Replicates() {
		return w.nodeNames[0]
	}
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	return w.primary
}

// Promote makes a node the primary with the data it has, and leads the clients
// to it: their connections to the old primary end. The other replicas follow
// the new primary. The old primary is left as it is, as when a failover cannot
// reach it: it still takes itself for the primary until it is restarted.
func (w *World) Promote(ctx context.Context, name string) error {
	if w.cfg.Topology != cluster.Replicated {
		return fmt.Errorf("promote node %s of a %s cluster: %w", name, w.cfg.Topology, cluster.ErrUnsupported)
	}
	var old string
	err := w.onNode(ctx, "promote", name, func(n *node) error {
		if n.server == nil || n.stalled || n.outOfReach() {
			return errDown
		}
		if err := n.direct.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
			return err
		}
		w.tracePromoted(ctx, name)
		w.linkMu.Lock()
		defer w.linkMu.Unlock()
		old, w.primary = w.primary, name
		var errs []error
		for _, client := range w.clientNames {
			p := w.proxies[cluster.Link{From: client, To: cluster.Primary}]
			errs = append(errs, p.retarget(name, w.way(n, redisPort), !w.isReset(client, name)))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, other := range w.nodeNames {
		if other != name && other != old {
			errs = append(errs, w.follow(ctx, other))
		}
	}
	return errors.Join(errs...)
}

// follow turns a replica to the primary of now. One that is down finds it when
// it is restarted, and one that is stalled or out of reach stays with the old one.
func (w *World) follow(ctx context.Context, name string) error {
	return w.onNode(ctx, "turn to the new primary", name, func(n *node) error {
		if n.server == nil || n.stalled || n.outOfReach() {
			return nil
		}
		host, port, err := net.SplitHostPort(w.masterOf(name))
		if err != nil {
			return err
		}
		return n.direct.ReplicaOf(ctx, host, port).Err()
	})
}
