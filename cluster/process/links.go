package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Linker = (*World)(nil)

// pair is a dialer and what it dials by which name, at which port.
type pair struct{ dialer, endpoint, target, port string }

// pairs are all that need a proxy.
func (w *World) pairs() []pair {
	var all []pair
	for _, client := range w.clientNames {
		for _, name := range w.servers() {
			all = append(all, pair{dialer: client, endpoint: name, target: name, port: w.nodes[name].runs.ports()[0]})
		}
		if w.cfg.Topology == cluster.Replicated {
			all = append(all, pair{dialer: client, endpoint: cluster.Primary, target: w.primary, port: redisPort})
		}
		if w.resource[client] != nil {
			all = append(all, pair{dialer: client, endpoint: cluster.Resource, target: cluster.Resource})
		}
	}
	if w.cfg.Topology != cluster.Replicated && !w.layout.meshed {
		return all
	}
	for _, from := range w.servers() {
		for _, to := range w.servers() {
			if from == to {
				continue
			}
			for i, port := range w.nodes[to].runs.ports() {
				endpoint := to
				if i > 0 {
					endpoint = endpointOf(to, port)
				}
				all = append(all, pair{dialer: from, endpoint: endpoint, target: to, port: port})
			}
		}
	}
	return all
}

// endpointOf is the name of a further port of a server.
func endpointOf(server, port string) string { return server + ":" + port }

// buildLinks makes the state of every link, and then the proxies on them: from
// then on the map of links is read by their connections. The nodes need not
// run yet.
func (w *World) buildLinks() error {
	if err := w.buildDoors(); err != nil {
		return err
	}
	w.dirs = make(map[cluster.Link]*direction)
	all := w.pairs()
	for _, p := range all {
		link := cluster.Link{From: p.dialer, To: p.target}
		for _, l := range []cluster.Link{link, link.Back()} {
			if w.dirs[l] == nil {
				w.dirs[l] = newDirection()
			}
		}
	}
	for _, p := range all {
		made := &proxy{
			dialer: p.dialer, target: p.target,
			// Replication and the resource do not speak in requests and
			// replies of Redis.
			resp: p.port == redisPort && w.nodes[p.dialer] == nil,
			dirs: func(l cluster.Link) *direction { return w.dirs[l] },
		}
		upstream := ""
		if n := w.nodes[p.target]; n != nil {
			upstream = w.way(n, p.port)
		} else {
			upstream = w.resource[p.dialer].addr()
		}
		host := w.host
		if w.nodes[p.dialer] != nil && !w.layout.meshed {
			host = w.place.Gateway() // the server itself dials it
		}
		if err := newProxy(w.toxi, made, host, upstream); err != nil {
			return err
		}
		w.proxies[cluster.Link{From: p.dialer, To: p.endpoint}] = made
	}
	return w.buildJunctions()
}

// resolve gives the directions that a link names. "primary" stands for the
// node that is the primary at the time of the call; to heal, it stands for all
// nodes, since the primary may have changed in between.
func (w *World) resolve(l cluster.Link, heal bool) ([]*direction, error) {
	if l.From != cluster.Primary && l.To != cluster.Primary {
		d := w.dirs[l]
		if d == nil {
			return nil, fmt.Errorf("link %s: there is no such link", l)
		}
		return []*direction{d}, nil
	}
	if w.cfg.Topology != cluster.Replicated {
		return nil, fmt.Errorf("link %s: a %s cluster has no primary", l, w.cfg.Topology)
	}
	nodes := []string{w.primary}
	if heal {
		nodes = w.nodeNames
	}
	var found []*direction
	for _, node := range nodes {
		named := l
		if named.From == cluster.Primary {
			named.From = node
		}
		if named.To == cluster.Primary {
			named.To = node
		}
		d := w.dirs[named]
		if d == nil {
			return nil, fmt.Errorf("link %s: there is no such link", l)
		}
		found = append(found, d)
	}
	return found, nil
}

// Cut breaks one direction. Dropped bytes vanish; [cluster.Reset] ends the
// connections of the pair at once and refuses new ones, which is felt in both
// directions, as a TCP reset is.
func (w *World) Cut(ctx context.Context, l cluster.Link, mode cluster.CutMode) error {
	if mode != cluster.Drop && mode != cluster.Reset {
		return fmt.Errorf("cut %s: mode %q: %w", l, mode, cluster.ErrUnsupported)
	}
	return w.changeLink(ctx, "cut", l, false, func(d *direction) { d.cut = mode })
}

// Mend undoes Cut. Connections that have lost bytes end.
func (w *World) Mend(ctx context.Context, l cluster.Link) error {
	return w.changeLink(ctx, "mend", l, true, func(d *direction) { d.cut = "" })
}

// Delay adds to the latency of one direction, for what is sent from now on.
// What is on its way arrives when it would have.
func (w *World) Delay(ctx context.Context, l cluster.Link, by time.Duration) error {
	if by < 0 {
		return fmt.Errorf("delay %s by %s: a delay cannot be negative", l, by)
	}
	return w.changeLink(ctx, "delay", l, by == 0, func(d *direction) { d.delay = by })
}

// LoseReply loses the reply of one command and ends its connection. With an
// empty command, those with which a library sets up a connection count too:
// go-redis sends four, and for a pipeline it may open a connection of its own.
func (w *World) LoseReply(ctx context.Context, client, node, command string, nth int) error {
	l := cluster.Link{From: client, To: node}
	if p := w.proxies[l]; p == nil || !p.resp {
		return fmt.Errorf("lose a reply on %s: no client reaches a node there", l)
	}
	if nth < 1 {
		return fmt.Errorf("lose reply %d on %s: replies are counted from 1", nth, l)
	}
	return w.changeLink(ctx, "lose a reply on", l, false, func(d *direction) {
		d.losses = append(d.losses, &loss{command: command, left: nth})
	})
}

func (w *World) changeLink(
	ctx context.Context, what string, l cluster.Link, heal bool, f func(*direction),
) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", what, l, err)
	}
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	found, err := w.resolve(l, heal)
	if err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	for _, d := range found {
		d.change(f)
	}
	if err := w.openProxies(); err != nil {
		return fmt.Errorf("%s %s: %w", what, l, err)
	}
	return nil
}

// isReset says whether a pair's proxy must be shut.
func (w *World) isReset(a, b string) bool {
	link := cluster.Link{From: a, To: b}
	for _, l := range []cluster.Link{link, link.Back()} {
		if cut, _, _ := w.dirs[l].state(); cut == cluster.Reset {
			return true
		}
	}
	return false
}

// openProxies shuts and opens proxies as the links say.
func (w *World) openProxies() error {
	var errs []error
	for _, p := range w.proxies {
		errs = append(errs, p.pass(!w.isReset(p.dialer, p.target)))
	}
	return errors.Join(errs...)
}

// healLinks makes all links whole.
func (w *World) healLinks() error {
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	for _, d := range w.dirs {
		d.change(func(d *direction) { d.cut, d.off, d.delay, d.losses = "", 0, 0, nil })
	}
	return w.openProxies()
}
