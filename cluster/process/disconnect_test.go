package process

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// A node off the network is silent to everybody but us, and a cut that somebody
// made meanwhile outlives its return.
func TestDisconnect(t *testing.T) {
	w := start(t, cluster.Independent, 2, 2)
	ctx := t.Context()
	first, second, other := dial(t, w, "c1", "n1"), dial(t, w, "c2", "n1"), dial(t, w, "c1", "n2")
	must(t, w.Disconnect(ctx, "n1"))
	if err := w.Disconnect(ctx, "n1"); !errors.Is(err, errOff) {
		t.Errorf("disconnected twice: %v", err)
	}
	if err := first.Set(ctx, "lost", "v", 0).Err(); !timedOut(err) {
		t.Errorf("a node off the network says %v", err)
	}
	if err := second.Get(ctx, "k").Err(); !timedOut(err) {
		t.Errorf("a node off the network says %v to another client", err)
	}
	must(t, other.Set(ctx, "k", "v", 0).Err())
	must(t, w.Cut(ctx, cluster.Link{From: "c2", To: "n1"}, cluster.Drop))
	must(t, w.Reconnect(ctx, "n1"))
	must(t, w.Reconnect(ctx, "n1")) // is nothing
	must(t, dial(t, w, "c1", "n1").Set(ctx, "k", "v", 0).Err())
	if got := stored(t, w, "n1", "lost"); got != "" {
		t.Errorf("what was sent to a node off the network is there: %q", got)
	}
	if err := second.Get(ctx, "k").Err(); !timedOut(err) {
		t.Errorf("the node's return has mended a cut of a client's link: %v", err)
	}
}

// Replicas miss what happened while the primary was off the network, and get it
// when it is back.
func TestDisconnectedPrimary(t *testing.T) {
	w := start(t, cluster.Replicated, 2, 1)
	ctx := t.Context()
	must(t, w.Disconnect(ctx, "n1"))
	must(t, w.nodes["n1"].direct.Set(ctx, "k", "v", 0).Err())
	time.Sleep(50 * time.Millisecond)
	if got := stored(t, w, "n2", "k"); got != "" {
		t.Errorf("the replica has heard of %q from a primary off the network", got)
	}
	must(t, w.Reconnect(ctx, "n1"))
	eventually(t, "the replica catches up", func() bool { return stored(t, w, "n2", "k") == "v" })
}
