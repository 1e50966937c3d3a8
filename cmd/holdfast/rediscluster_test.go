package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// untagged is a scenario that names its lock itself, without braces.
const untagged = `name: cluster-untagged
about: A lock with two keys, which lie in different slots of a Redis Cluster.
topology: cluster
clients: 1
locks: [basic+fence]
workload: {locks: [orders], acquire-timeout: 0.1ttl}
length: 0.1ttl
final: {wait: 0.1ttl}
expect: {exclusion: unknown, updates: unknown, fencing: unknown, linearizability: unknown, liveness: no-grant}
`

// TestRedisCluster: every story of a Redis Cluster has the end that its scenario
// tells, on real servers.
func TestRedisCluster(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	path := filepath.Join(root, "cluster-untagged.yaml")
	if err := os.WriteFile(path, []byte(untagged), 0o600); err != nil {
		t.Fatal(err)
	}
	jobs := []store.Job{
		{Scenario: "cluster-failover", Lock: "basic"},
		{Scenario: "cluster-takeover", Lock: "basic"},
		{Scenario: "cluster-slot-migration", Lock: "basic"},
		{Scenario: "cluster-slot-migration", Lock: "basic+fence"},
		{Scenario: "cluster-as-independent", Lock: "redlock"},
		{Scenario: "cluster-failover-forced", Lock: "basic"},
		{Scenario: path, Lock: "basic+fence"},
	}
	const migrations, given, crossing = 2, 4, 6 // places in the list
	for i := range jobs {
		jobs[i].World, jobs[i].Seed = "process", 1
	}
	runs, lags := sideBySide(root, jobs, 3)
	for i, r := range runs {
		name := filepath.Base(r.Scenario) + " / " + r.Lock
		if jobs[i].Scenario != path && reports.Stand(r) != reports.AsExpected {
			// As in the parity test: real time has its price.
			t.Logf("%s: %v %s, while the machine stood still for %v: again with a longer TTL\n%s", name, r.Mismatches, r.Error, lags[i], complaints(r))
			again := jobs[i]
			again.TTL = 3 * time.Duration(r.TTLNanos)
			r, _ = campaign.Play(context.Background(), again, filepath.Join(root, "again"))
			if reports.Stand(r) != reports.AsExpected {
				t.Errorf("%s: %v %s\n%s", name, r.Mismatches, r.Error, complaints(r))
			}
			runs[i] = r
		}
		t.Logf("%s: %s, %.1fs", name, told(r), r.WallSeconds)
	}
	for _, r := range runs[migrations : migrations+2] {
		if h := storyOf(t, r); h.Header.Moved == 0 || h.Header.Asked == 0 {
			t.Errorf("%s: clients were told MOVED %d times and ASK %d times", r.Lock, h.Header.Moved, h.Header.Asked)
		}
	}
	if !strings.Contains(complaints(runs[given]), "are one cluster: n1, n2, n3, n4, n5, n6 (n4 copies n1, n5 copies n2, n6 copies n3)") {
		t.Errorf("redlock on the nodes of a cluster:\n%s", complaints(runs[given]))
	}
	refused := 0
	for _, e := range storyOf(t, runs[crossing]).Events {
		if e.Op != nil && strings.Contains(e.Op.Error, "CROSSSLOT") {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("a script with keys in two slots was never refused: %s", told(runs[crossing]))
	}
}

// storyOf is the history of a run.
func storyOf(t *testing.T, r reports.Run) *history.History {
	t.Helper()
	h, _, err := store.ReadHistory(r.History)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRedisClusterIsNotSimulated: the simulator says so, and passes nothing.
func TestRedisClusterIsNotSimulated(t *testing.T) {
	r, _ := campaign.Play(t.Context(), store.Job{Scenario: "cluster-failover", Lock: "basic", World: "sim", Seed: 1}, t.TempDir())
	why := ""
	for _, c := range r.Checks {
		why += c.Reason + "\n"
	}
	if r.Verdict != checker.Unknown || !strings.Contains(why, "the sim world has no topology cluster") {
		t.Errorf("sim says %s: %s", r.Verdict, why)
	}
}
