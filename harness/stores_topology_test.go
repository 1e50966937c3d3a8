package harness

import (
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/scenarios"
)

// A lock on another store runs there, whatever the scenario says of Redis's, and
// with a TTL that the store can keep.
func TestDefaultsOfStores(t *testing.T) {
	s := &scenarios.Scenario{Topology: map[string]cluster.Topology{scenarios.Default: cluster.Independent}}
	for _, tt := range []struct {
		lock     string
		world    cluster.World
		given    time.Duration
		topology cluster.Topology
		ttl      time.Duration
	}{
		{"etcd", cluster.Process, 0, cluster.Etcd, DefaultStoreTTL},
		{"postgres-advisory", cluster.Process, 0, cluster.Postgres, DefaultStoreTTL},
		{"zookeeper", cluster.Process, 5 * time.Second, cluster.ZooKeeper, 5 * time.Second},
		{"etcd", cluster.Sim, 0, cluster.Etcd, DefaultSimTTL},
		{"basic", cluster.Process, 0, cluster.Independent, DefaultProcessTTL},
	} {
		e, ok := catalogue.Find(tt.lock)
		if !ok {
			t.Fatalf("there is no lock %s", tt.lock)
		}
		got := Config{Scenario: s, Lock: e, World: tt.world, TTL: tt.given}.WithDefaults()
		if got.Topology != tt.topology || got.TTL != tt.ttl {
			t.Errorf("%s in %s: topology %s and TTL %v, want %s and %v", tt.lock, tt.world, got.Topology, got.TTL, tt.topology, tt.ttl)
		}
	}
	basic, _ := catalogue.Find("basic")
	c := Config{Scenario: s, Lock: basic, World: cluster.Process, Topology: cluster.Etcd}.WithDefaults()
	if why := c.missing(cluster.Topologies(), nil); why != "the lock basic is kept in Redis, and the topology etcd has none" {
		t.Errorf("basic on etcd: %q", why)
	}
}
