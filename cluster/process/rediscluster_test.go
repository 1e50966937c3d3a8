package process

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// The lock of these tests has its slot, 105, on n1, which n4 copies.
const clusterLock = "lock:{orders}"

func startCluster(t *testing.T, adapt ...func(*Config)) *World {
	t.Helper()
	named := func(c *Config) { c.LockNames, c.LockKeys = []string{"{orders}"}, []string{clusterLock} }
	return start(t, cluster.RedisCluster, 6, 2, append([]func(*Config){named}, adapt...)...)
}

// clusterClient is go-redis's own client for clusters, told of all nodes as a
// client reaches them.
func clusterClient(t *testing.T, w *World, client string) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for _, name := range w.Nodes() {
		addrs = append(addrs, w.Endpoints(client)[name])
	}
	known, own := w.Announced(), w.Endpoints(client)
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, ClientName: client, DialTimeout: time.Second, ReadTimeout: readTimeout,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if name, ok := known[addr]; ok {
				addr = own[name]
			}
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		},
	})
	t.Cleanup(func() { _ = c.Close() }) // nothing depends on it
	return c
}

func TestClusterServesAndMigrates(t *testing.T) {
	var seen record
	w := startCluster(t, func(c *Config) { c.OnServer = seen.add })
	ctx := t.Context()
	primary, replicas, err := w.Shard(ctx)
	must(t, err)
	if primary != "n1" || !slices.Equal(replicas, []string{"n4"}) {
		t.Fatalf("the lock's shard is %s with %v, want n1 with n4", primary, replicas)
	}
	c := clusterClient(t, w, "c1")
	must(t, c.SetNX(ctx, clusterLock, "token-of-c1", time.Minute).Err())
	must(t, w.OpenSlot(ctx, "n1", "n2"))
	must(t, w.MoveKeys(ctx, "n1", "n2"))
	if got := c.Get(ctx, clusterLock).Val(); got != "token-of-c1" {
		t.Errorf("while its slot is on its way the key holds %q", got)
	}
	must(t, w.CloseSlot(ctx, "n1", "n2"))
	must(t, c.Del(ctx, clusterLock).Err())
	must(t, w.SyncTrace(ctx))
	if primary, _, err = w.Shard(ctx); err != nil || primary != "n2" {
		t.Errorf("the slot is with %s (%v), want n2", primary, err)
	}
	for node, want := range map[string][]string{
		"n1": {"c1 SET lock:{orders} c1#1", "MIGRATE lock:{orders} gone"},
		"n2": {history.Moved + " lock:{orders} c1#1", "c1 GET lock:{orders} c1#1", "c1 DEL lock:{orders} gone"},
	} {
		if got := shortly(&seen, node); !slices.Equal(got, want) {
			t.Errorf("%s: the trace has %q, want %q", node, got, want)
		}
	}
}

// shortly is the trace of a node: who, what, which key, and whose it is then.
func shortly(r *record, node string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, ev := range r.events {
		if ev.Node != node {
			continue
		}
		owner := ev.Owner
		if ev.PTTL == -2 {
			owner = "gone"
		}
		out = append(out, strings.TrimSpace(strings.Join([]string{ev.Client, ev.Cmd, ev.Key, owner}, " ")))
	}
	return out
}
