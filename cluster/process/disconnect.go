package process

import (
	"context"
	"errors"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Disconnector = (*World)(nil)

// networked is a server with a network of its own, from which it can be taken.
type networked interface {
	Disconnect(ctx context.Context) error
	Connect(ctx context.Context) error
}

var errOff = errors.New("the node is off the network")

// Disconnect takes a node off the network: really so where the place has one,
// and otherwise by dropping what passes on any of its links.
func (w *World) Disconnect(ctx context.Context, name string) error {
	return w.onNode(ctx, "disconnect", name, func(n *node) error {
		if n.server == nil {
			return errDown
		}
		if n.off {
			return errOff
		}
		if s, ok := n.server.(networked); ok {
			if err := s.Disconnect(ctx); err != nil {
				return err
			}
		} else {
			w.switchLinks(name, 1)
		}
		n.off = true
		return nil
	})
}

// Reconnect undoes Disconnect. A node that has been started again meanwhile is
// put back too.
func (w *World) Reconnect(ctx context.Context, name string) error {
	return w.onNode(ctx, "reconnect", name, func(n *node) error {
		if !n.off {
			return nil
		}
		if s, ok := n.server.(networked); ok {
			if err := s.Connect(ctx); err != nil {
				return err
			}
		} else {
			w.switchLinks(name, -1)
		}
		n.off = false
		return nil
	})
}

// switchLinks counts the ends of a node's links that are off the network up or
// down.
func (w *World) switchLinks(name string, by int) {
	w.linkMu.Lock()
	defer w.linkMu.Unlock()
	for l, d := range w.dirs {
		if l.From == name || l.To == name {
			d.change(func(d *direction) { d.off += by })
		}
	}
}

// disconnectAgain takes a server that was started off the network, if its node
// is. It was on it until it was ready: nobody could see otherwise that it is.
// The caller holds n.mu.
func (n *node) disconnectAgain(ctx context.Context) error {
	s, ok := n.server.(networked)
	if !n.off || !ok {
		return nil
	}
	return s.Disconnect(ctx)
}

// outOfReach says that not even we reach the node. The caller holds n.mu.
func (n *node) outOfReach() bool {
	_, ok := n.server.(networked)
	return n.off && ok
}
