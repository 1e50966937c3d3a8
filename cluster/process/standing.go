package process

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

// Standing asks every node how it stands to the others: whom it copies, and of
// which cluster it is. Nodes tell it to whoever asks, so a lock could know as
// well before it counts them as independent.
func (w *World) Standing(ctx context.Context) ([]history.Given, error) {
	at := make(map[string]string) // nodes by all their addresses
	for addr, name := range w.Announced() {
		at[addr] = name
	}
	for _, name := range w.nodeNames {
		at[w.nodes[name].addr] = name
	}
	for link, p := range w.proxies {
		if w.nodes[link.From] != nil && w.nodes[link.To] != nil {
			at[p.addr] = link.To
		}
	}
	all := make([]history.Given, 0, len(w.nodeNames))
	for _, name := range w.nodeNames {
		n := w.nodes[name]
		if n.direct == nil {
			return nil, nil
		}
		info, err := n.direct.Info(ctx).Result()
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		g := history.Given{Node: name}
		if infoField(info, "role") == "slave" {
			primary := net.JoinHostPort(infoField(info, "master_host"), infoField(info, "master_port"))
			if g.Copies = at[primary]; g.Copies == "" {
				g.Copies = primary
			}
		}
		if infoField(info, "cluster_enabled") == "1" {
			if g.Cluster, err = n.clusterName(ctx); err != nil {
				return nil, err
			}
		}
		all = append(all, g)
	}
	return all, nil
}

// clusterName is the same for all nodes of a cluster and no others: the least of
// the ids that its members know.
func (n *node) clusterName(ctx context.Context) (string, error) {
	members, err := n.members(ctx)
	if err != nil {
		return "", err
	}
	least := slices.MinFunc(members, func(a, b member) int { return strings.Compare(a.id, b.id) })
	return least.id, nil
}

// Redirects are how often the nodes that answer have sent somebody to another
// node since they were started: for good, with MOVED, and for one command, with
// ASK.
func (w *World) Redirects(ctx context.Context) (moved, asked int, err error) {
	for _, name := range w.nodeNames {
		if !w.clustered() || !w.answering(name) {
			continue
		}
		info, err := w.nodes[name].direct.Info(ctx, "errorstats").Result()
		if err != nil {
			return 0, 0, fmt.Errorf("node %s: %w", name, err)
		}
		for field, sum := range map[string]*int{"errorstat_MOVED": &moved, "errorstat_ASK": &asked} {
			count, ok := strings.CutPrefix(infoField(info, field), "count=")
			if !ok {
				continue // there was none
			}
			n, err := strconv.Atoi(count)
			if err != nil {
				return 0, 0, fmt.Errorf("node %s: %s of %q: %w", name, field, count, err)
			}
			*sum += n
		}
	}
	return moved, asked, nil
}
