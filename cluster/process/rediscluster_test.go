package process

import (
	"context"
	"net"
	"reflect"
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
		Addrs: addrs, ClientName: client, DialTimeout: time.Second, ReadTimeout: readTimeout, DialerRetries: 1,
		ClusterStateReloadInterval: readTimeout, // a dead primary sends nobody anywhere
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

// TestClusterMigrationSendsClientsElsewhere: ASK while the key has gone and the
// slot has not, MOVED when both have.
func TestClusterMigrationSendsClientsElsewhere(t *testing.T) {
	w := startCluster(t)
	ctx := t.Context()
	plain := dial(t, w, "c1", "n1")
	answer := func(want string) {
		t.Helper()
		err := plain.Get(ctx, clusterLock).Err()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("n1 answers %v, want %s", err, want)
		}
	}
	must(t, plain.Set(ctx, clusterLock, "token", time.Minute).Err())
	must(t, w.OpenSlot(ctx, "n1", "n3"))
	if got := plain.Get(ctx, clusterLock).Val(); got != "token" {
		t.Errorf("before its key has moved n1 answers %q", got)
	}
	must(t, w.MoveKeys(ctx, "n1", "n3"))
	answer("ASK 105 ")
	must(t, w.CloseSlot(ctx, "n1", "n3"))
	answer("MOVED 105 ")
	moved, asked, err := w.Redirects(ctx)
	if err != nil || moved != 1 || asked != 1 {
		t.Errorf("%d MOVED and %d ASK were counted (%v), want one of each", moved, asked, err)
	}
	if err := w.OpenSlot(ctx, "n1", "n1"); err == nil {
		t.Error("a slot moved from a node to itself")
	}
}

// TestClusterElects: the primary dies with a lock that its replica has not heard
// of, is replaced, and comes back as a replica.
func TestClusterElects(t *testing.T) {
	var seen record
	w := startCluster(t, func(c *Config) { c.OnServer = seen.add })
	ctx := t.Context()
	c := clusterClient(t, w, "c1")
	must(t, w.Cut(ctx, cluster.Link{From: "n1", To: "n4"}, cluster.Drop))
	must(t, c.SetNX(ctx, clusterLock, "token-of-c1", time.Minute).Err())
	must(t, w.Kill(ctx, "n1"))
	killed := time.Now()
	for primary := ""; primary != "n4"; primary, _, _ = w.Shard(ctx) { // no node may serve the slot meanwhile
		if time.Since(killed) > 20*time.Second {
			t.Fatal("nobody was elected")
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("elected after %s", time.Since(killed).Round(time.Millisecond))
	eventually(t, "the trace tells what the elected one lacks", func() bool {
		return slices.Contains(shortly(&seen, "n4"), history.Promoted+" lock:{orders} gone")
	})
	eventually(t, "granted again", func() bool {
		ok, err := c.SetNX(ctx, clusterLock, "another-token", time.Minute).Result()
		return err == nil && ok
	})
	must(t, w.Mend(ctx, cluster.Link{From: "n1", To: "n4"}))
	must(t, w.Restart(ctx, "n1", cluster.Keep))
	eventually(t, "n1 copies n4", func() bool {
		_, replicas, err := w.Shard(ctx)
		return err == nil && slices.Equal(replicas, []string{"n1"})
	})
	eventually(t, "n1 has what n4 has", func() bool { return stored(t, w, "n1", clusterLock) == "another-token" })
}

// TestClusterDeposes: with a vote and without one, the replica takes the place of
// a primary that runs, and has the lock; the trace says so.
func TestClusterDeposes(t *testing.T) {
	for _, how := range []cluster.Deposition{cluster.Force, cluster.Takeover} {
		t.Run(string(how), func(t *testing.T) {
			var seen record
			w := startCluster(t, func(c *Config) { c.OnServer = seen.add })
			ctx := t.Context()
			must(t, clusterClient(t, w, "c1").SetNX(ctx, clusterLock, "token-of-c1", time.Minute).Err())
			eventually(t, "replicated", func() bool { return stored(t, w, "n4", clusterLock) == "token-of-c1" })
			begin := time.Now()
			must(t, w.Depose(ctx, "n4", how))
			t.Logf("%s took %s", how, time.Since(begin).Round(time.Millisecond))
			eventually(t, "the trace tells what the new one has", func() bool {
				return slices.Contains(shortly(&seen, "n4"), history.Promoted+" lock:{orders} c1#1")
			})
			eventually(t, "n1 copies n4", func() bool {
				primary, replicas, err := w.Shard(ctx)
				return err == nil && primary == "n4" && slices.Equal(replicas, []string{"n1"})
			})
		})
	}
}

// TestClusterPairIsCutWithItsBus: only the pair, and both of its ports.
func TestClusterPairIsCutWithItsBus(t *testing.T) {
	w := startCluster(t)
	ctx := t.Context()
	for _, l := range []cluster.Link{{From: "n2", To: "n1"}, {From: "n1", To: "n2"}} {
		must(t, w.Cut(ctx, l, cluster.Reset))
	}
	eventually(t, "n2 misses n1", func() bool {
		text, err := w.nodes["n2"].direct.ClusterNodes(ctx).Result()
		id, errID := w.nodes["n1"].id(ctx)
		must(t, errID)
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, id) {
				return err == nil && strings.Contains(line, "fail?")
			}
		}
		return false
	})
	for _, other := range []string{"n3", "n5"} {
		members, err := w.nodes[other].members(ctx)
		must(t, err)
		for _, m := range members {
			if m.failed {
				t.Errorf("%s takes %s for failed, which only n2 cannot reach", other, m.id)
			}
		}
	}
	if primary, _, err := w.Shard(ctx); err != nil || primary != "n1" {
		t.Errorf("the slot is with %s (%v): one node alone has deposed n1", primary, err)
	}
	for _, l := range []cluster.Link{{From: "n2", To: "n1"}, {From: "n1", To: "n2"}} {
		must(t, w.Mend(ctx, l))
	}
	eventually(t, "n2 has found n1 again", func() bool {
		text, err := w.nodes["n2"].direct.ClusterNodes(ctx).Result()
		return err == nil && !strings.Contains(text, "fail")
	})
}

// TestClusterKeepsItsNames: a node that lost its data is still who it was, and
// has its slots.
func TestClusterKeepsItsNames(t *testing.T) {
	w := startCluster(t)
	ctx := t.Context()
	before, err := w.nodes["n2"].id(ctx)
	must(t, err)
	must(t, w.Restart(ctx, "n2", cluster.Lose))
	after, err := w.nodes["n2"].id(ctx)
	if err != nil || after != before {
		t.Errorf("n2 is %s, and was %s (%v)", after, before, err)
	}
}

// TestClientsAreCutOneByOne: a client is cut from one node of the cluster, and another client is
// not.
func TestClientsAreCutOneByOne(t *testing.T) {
	w := startCluster(t)
	ctx := t.Context()
	one, two := clusterClient(t, w, "c1"), clusterClient(t, w, "c2")
	must(t, one.Set(ctx, clusterLock, "x", 0).Err())
	must(t, two.Get(ctx, clusterLock).Err())
	must(t, w.Cut(ctx, cluster.Link{From: "c1", To: "n1"}, cluster.Reset))
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := one.Get(short, clusterLock).Err(); err == nil {
		t.Error("c1 reads through a cut link")
	}
	must(t, two.Get(ctx, clusterLock).Err())
}

// TestNodesDialFromAddressesOfTheirOwn: a junction knows them without asking the
// kernel.
func TestNodesDialFromAddressesOfTheirOwn(t *testing.T) {
	w := startCluster(t)
	known := make(map[string]bool)
	for _, j := range w.junctions {
		j.mu.Lock()
		for c := range j.conns {
			if name := w.bySource(c); name != "" {
				known[name] = true
			}
		}
		j.mu.Unlock()
	}
	for _, name := range w.Nodes() {
		if !known[name] {
			t.Errorf("no connection is known for one of %s by where it comes from", name)
		}
	}
}

func TestStandingOfNodes(t *testing.T) {
	w := startCluster(t)
	given, err := w.Standing(t.Context())
	must(t, err)
	if len(given) != 6 || given[0].Cluster == "" {
		t.Fatalf("the nodes say %+v", given)
	}
	for i, g := range given {
		copies := ""
		if i >= 3 {
			copies = cluster.NodeName(i - 2)
		}
		if g.Cluster != given[0].Cluster || g.Copies != copies || g.Node != cluster.NodeName(i+1) {
			t.Errorf("%+v, want a copy of %q in cluster %s", g, copies, given[0].Cluster)
		}
	}
}

func TestStandingOfReplicas(t *testing.T) {
	w := start(t, cluster.Replicated, 2, 1)
	given, err := w.Standing(t.Context())
	if want := []history.Given{{Node: "n1"}, {Node: "n2", Copies: "n1"}}; err != nil || !slices.Equal(given, want) {
		t.Errorf("the nodes say %+v (%v), want %+v", given, err, want)
	}
}

func TestSlotOf(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 12739, "orders": 105, "lock:{orders}": 105, "fence:{orders}": 105, "a{}b": slotOf("a{}b"), "{orders}{x}": 105,
	} {
		if got := slotOf(key); got != want {
			t.Errorf("the slot of %q is %d, want %d", key, got, want)
		}
	}
	if slotOf("a{}b") == slotOf("") {
		t.Error("empty braces count as a tag")
	}
}

// TestUndump reads what a server itself wrote.
func TestUndump(t *testing.T) {
	w := start(t, cluster.Single, 1, 1)
	ctx, c := t.Context(), dial(t, w, "c1", "n1")
	must(t, c.ConfigSet(ctx, "rdbcompression", "no").Err())
	long := strings.Repeat("token", 100)
	must(t, c.MSet(ctx, "text", "token", "long", long, "number", "77", "negative", "-300", "large", "1234567").Err())
	must(t, c.HSet(ctx, "hash", "c1", "1", "c2", "-5", "c3", "70000", "c4", long, "c5", "4000", "c6", "99999999999", "c7", "-3000").Err())
	must(t, c.ZAdd(ctx, "zset", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: 1700000000000, Member: "b"}).Err())
	must(t, c.LPush(ctx, "list", "x").Err())
	wide := make(map[string]string)
	for i := range 600 {
		wide[strings.Repeat("f", i+1)] = "v"
	}
	must(t, c.HSet(ctx, "wide", wide).Err())
	for name, want := range map[string]key{
		"text": {kind: text, value: "token"}, "long": {kind: text, value: long}, "number": {kind: text, value: "77"},
		"negative": {kind: text, value: "-300"}, "large": {kind: text, value: "1234567"},
		"hash": {kind: hash, fields: map[string]string{"c1": "1", "c2": "-5", "c3": "70000", "c4": long, "c5": "4000", "c6": "99999999999", "c7": "-3000"}},
		"zset": {kind: sorted, fields: map[string]string{"a": "1.5", "b": "1700000000000"}},
		"list": {kind: other}, "wide": {kind: hash, fields: wide},
	} {
		payload, err := c.Dump(ctx, name).Result()
		must(t, err)
		got, err := undump(payload)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s reads as %+v (%v), want %+v", name, got, err, want)
		}
		if _, err := undump(payload[:len(payload)/2]); err == nil && want.kind != other && len(payload) > 24 {
			t.Errorf("half of the dump of %s reads as well", name)
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
