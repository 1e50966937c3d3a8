package process

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// promotions are what a world said of those that happened by themselves.
type promotions struct {
	mu   sync.Mutex
	said []promotion
}

type promotion struct {
	old, name string
	at, told  int64
}

func (p *promotions) add(old, name string, at, told int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, promotion{old: old, name: name, at: at, told: told})
}

func (p *promotions) all() []promotion {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}

func startSentinel(t *testing.T, adapt ...func(*Config)) (*World, *promotions) {
	t.Helper()
	p := &promotions{}
	w := start(t, cluster.Sentinel, 3, 2, append([]func(*Config){func(c *Config) {
		c.Witnesses, c.OnPromoted = 3, p.add
	}}, adapt...)...)
	return w, p
}

// as is a client of a node through a client's own proxy.
func as(t *testing.T, w *World, client, node string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: w.Endpoints(client)[node], ClientName: client, MaxRetries: -1,
		DialTimeout: 300 * time.Millisecond, ReadTimeout: 300 * time.Millisecond, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within waits until something holds.
func within(t *testing.T, bound time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

// A primary that dies with a key that nobody else has is replaced, and comes
// back as a replica without that key.
func TestSentinelsElectAnother(t *testing.T) {
	var r record
	w, p := startSentinel(t, func(c *Config) { c.OnServer = r.add })
	ctx := t.Context()
	if err := as(t, w, "c1", "n1").Set(ctx, "lock:known", "a", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := w.nodes["n1"].direct.Wait(ctx, 2, time.Second).Result(); n != 2 {
		t.Fatalf("%d replicas: %v", n, err)
	}
	for _, replica := range []string{"n2", "n3"} {
		if err := w.Cut(ctx, cluster.Link{From: "n1", To: replica}, cluster.Drop); err != nil {
			t.Fatal(err)
		}
	}
	if err := as(t, w, "c1", "n1").Set(ctx, "lock:unknown", "b", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.Kill(ctx, "n1"); err != nil {
		t.Fatal(err)
	}
	killed := Monotonic()
	within(t, 10*time.Second, "a promotion", func() bool { return len(p.all()) == 1 })
	got := p.all()[0]
	t.Logf("%s was promoted %v after the kill, and told of %v after it", got.name,
		time.Duration(got.at-killed), time.Duration(got.told-killed))
	if got.old != "n1" || got.name == "n1" || got.at <= killed || got.told < got.at || w.PrimaryNode() != got.name {
		t.Errorf("promotion %+v, primary %s", got, w.PrimaryNode())
	}
	for _, replica := range []string{"n2", "n3"} {
		if err := w.Mend(ctx, cluster.Link{From: "n1", To: replica}); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	if err := w.Restart(ctx, "n1", cluster.Keep); err != nil {
		t.Fatal(err)
	}
	if err := w.AwaitWhole(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("whole again %v after the restart", time.Since(begin))
	if keys := w.nodes["n1"].direct.Keys(ctx, "*").Val(); !slices.Equal(keys, []string{"lock:known"}) {
		t.Errorf("n1 came back with %v", keys)
	}
	if err := w.SyncTrace(ctx); err != nil {
		t.Fatal(err)
	}
	var promoted []string
	for _, line := range r.lines(got.name) {
		if strings.HasPrefix(line, history.Promoted) {
			promoted = append(promoted, line)
		}
	}
	if len(promoted) != 1 || !strings.HasPrefix(promoted[0], "promoted lock:known owner=c1#1") {
		t.Errorf("%s reports %q at its promotion", got.name, promoted)
	}
	gone := slices.ContainsFunc(r.lines("n1"), func(line string) bool { return strings.HasPrefix(line, "lost lock:unknown") })
	if !gone {
		t.Errorf("n1 does not report that it gave up its keys: %q", r.lines("n1"))
	}
}

// With the primary out of reach of everybody but one client, there are two.
func TestSplitBrain(t *testing.T) {
	w, p := startSentinel(t)
	ctx := t.Context()
	var links []cluster.Link
	for _, other := range []string{"n2", "n3", "s1", "s2", "s3", "c2"} {
		l := cluster.Link{From: other, To: "n1"}
		links = append(links, l, l.Back())
	}
	for _, l := range links {
		if err := w.Cut(ctx, l, cluster.Drop); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 10*time.Second, "a promotion", func() bool { return len(p.all()) == 1 })
	second := p.all()[0].name
	for client, node := range map[string]string{"c1": "n1", "c2": second} {
		if ok, err := as(t, w, client, node).SetNX(ctx, "lock:x", client, time.Minute).Result(); !ok {
			t.Errorf("%s does not get the lock on %s: %v", client, node, err)
		}
	}
	for _, l := range links {
		if err := w.Mend(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	if err := w.AwaitWhole(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("whole again after %v", time.Since(begin))
	if holder := w.nodes["n1"].direct.Get(ctx, "lock:x").Val(); holder != "c2" {
		t.Errorf("n1 says %q holds the lock", holder)
	}
	if len(p.all()) != 1 {
		t.Errorf("promotions: %+v", p.all())
	}
}

// Any pair can be cut by itself: a sentinel that alone does not see the primary
// promotes nobody.
func TestOnePairIsCut(t *testing.T) {
	w, p := startSentinel(t)
	ctx := t.Context()
	flags := func(sentinel string) string {
		list, err := w.nodes[sentinel].direct.Do(ctx, "SENTINEL", "MASTER", MasterName).Result()
		fields, ok := list.(map[any]any)
		if err != nil || !ok {
			t.Fatalf("%s: %v %v", sentinel, list, err)
		}
		return fields["flags"].(string)
	}
	if err := w.Cut(ctx, cluster.Link{From: "s1", To: "n1"}, cluster.Drop); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "s1 misses n1", func() bool { return strings.Contains(flags("s1"), "s_down") })
	for _, s := range []string{"s2", "s3"} {
		if got := flags(s); got != "master" {
			t.Errorf("%s sees the primary as %q", s, got)
		}
	}
	if err := as(t, w, "c1", "n1").Ping(ctx).Err(); err != nil {
		t.Errorf("c1: %v", err)
	}
	if err := w.Mend(ctx, cluster.Link{From: "s1", To: "n1"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Cut(ctx, cluster.Link{From: "c1", To: "s2"}, cluster.Reset); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		client, sentinel string
		want             bool
	}{{"c1", "s1", true}, {"c1", "s2", false}, {"c2", "s2", true}} {
		ask, cancel := context.WithTimeout(ctx, time.Second)
		err := as(t, w, c.client, c.sentinel).Ping(ask).Err()
		cancel()
		if (err == nil) != c.want {
			t.Errorf("%s to %s: %v", c.client, c.sentinel, err)
		}
	}
	if err := w.Mend(ctx, cluster.Link{From: "c1", To: "s2"}); err != nil {
		t.Fatal(err)
	}
	if err := w.AwaitWhole(ctx); err != nil {
		t.Error(err)
	}
	if len(p.all()) != 0 {
		t.Errorf("promotions: %+v", p.all())
	}
}

// A primary that loses its data keeps its part, and so does a sentinel.
func TestSentinelsLoseData(t *testing.T) {
	w, _ := startSentinel(t)
	ctx := t.Context()
	for _, name := range []string{"n3", "s3"} {
		if err := w.Restart(ctx, name, cluster.Lose); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.AwaitWhole(ctx); err != nil {
		t.Error(err)
	}
	for addr, name := range w.Announced() {
		if _, _, err := net.SplitHostPort(addr); err != nil || !slices.Contains(w.servers(), name) {
			t.Errorf("%s is announced at %q", name, addr)
		}
	}
}
