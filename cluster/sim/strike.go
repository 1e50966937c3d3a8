package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// LoseReply implements [cluster.Linker].
func (w *World) LoseReply(ctx context.Context, client, node, command string, nth int) error {
	return w.Strike(ctx, cluster.Blow{
		Client: client, Node: node, Command: command, Nth: nth, Deed: cluster.LoseReply,
	})
}

// Strike implements [cluster.Striker].
func (w *World) Strike(_ context.Context, b cluster.Blow) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.link(cluster.Link{From: b.Client, To: b.Node}); err != nil {
		return err
	}
	switch b.Deed {
	case cluster.LoseRequest, cluster.LoseReply:
	case cluster.DelayRequest, cluster.DelayReply:
		if b.By <= 0 {
			return fmt.Errorf("strike %s->%s: a delay of %v is none", b.Client, b.Node, b.By)
		}
	default:
		return fmt.Errorf("strike %s->%s: there is no deed %q", b.Client, b.Node, b.Deed)
	}
	b.Nth = max(b.Nth, 1)
	b.Command = strings.ToUpper(b.Command)
	w.blows = append(w.blows, &b)
	return nil
}

// Pending says in words which blows have hit nothing yet.
func (w *World) Pending() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, b := range w.blows {
		command := b.Command
		if command == "" {
			command = "command"
		}
		out = append(out, fmt.Sprintf("%s of a %s from %s to %s, %d more to come", b.Deed, command, b.Client, b.Node, b.Nth))
	}
	return out
}

// struck counts a command and gives the blow that falls on it, if any. The
// hand-shake of a connection is no command of the lock and is not counted.
func (w *World) struck(client, node, command string) *cluster.Blow {
	w.mu.Lock()
	defer w.mu.Unlock()
	if command == "HELLO" || command == "CLIENT" {
		return nil
	}
	var falls *cluster.Blow
	for _, b := range slices.Clone(w.blows) {
		if b.Client != client || b.Node != node || b.Command != "" && b.Command != command {
			continue
		}
		b.Nth--
		if b.Nth == 0 {
			w.blows = slices.DeleteFunc(w.blows, func(x *cluster.Blow) bool { return x == b })
			if falls == nil { // two blows on one command are one too many
				falls = b
			}
		}
	}
	return falls
}

// resume executes a request that a blow has held up, and what has come in on
// its connection meanwhile.
func (c *conn) resume(wait time.Duration) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	at := c.up.arrival(time.Now().Add(wait), c.rng, c.lastUp)
	c.lastUp = at
	w.afterLocked(at, func() {
		w.mu.Lock()
		c.up.arrived(at)
		w.mu.Unlock()
		c.sess.node.arrive(func() {
			c.sess.redis.blocked = false
			c.serve(nil)
		})
	})
}
