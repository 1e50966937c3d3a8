package main

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
)

// needStore skips a test on a machine without a store's servers, but not where
// they are promised.
func needStore(t *testing.T, topology cluster.Topology) {
	t.Helper()
	err := process.AvailableFor(topology)
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("CI must have the servers of every store: %v", err)
	case err != nil:
		t.Skip(err)
	case testing.Short():
		t.Skip("real servers take their time")
	}
}

// What Redis's locks are told of pauses, crashes and clocks holds for the others,
// on their own servers and whatever topology the scenario has for Redis's.
func TestStoresOnRealServers(t *testing.T) {
	for _, tt := range []struct{ scenario, lock, want string }{
		{"kleppmann-gc-pause", "etcd", "exclusion        VIOLATION overrun"},
		{"kleppmann-fencing", "zookeeper", "exclusion        VIOLATION overrun"},
		{"majority-down", "etcd", "PASS"},
		{"node-stall", "zookeeper", "PASS"},
		{"kleppmann-clock-jump", "postgres", "exclusion        VIOLATION broken"},
		{"crash-restart-keep", "postgres", "PASS"},
	} {
		t.Run(tt.scenario+" "+tt.lock, func(t *testing.T) {
			t.Parallel()
			store, _, _ := strings.Cut(tt.lock, "-")
			needStore(t, cluster.Topology(store))
			r := invoke(t, "run", tt.scenario, "--lock", tt.lock, "--on", "process", "--out", "", "--quiet")
			if !strings.Contains(r.out, tt.want) || !strings.Contains(r.out, tt.lock+"   as expected") {
				t.Errorf("exit %d, want %q in\n%s\n%s", r.code, tt.want, r.out, r.errs)
			}
			if !strings.Contains(r.out, "topology "+store) || !strings.Contains(r.out, "TTL 2s") {
				t.Errorf("the wrong place or TTL:\n%s", r.out)
			}
		})
	}
}

// What cannot be played says so, and is no pass.
func TestStoresThatCannotPlay(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"calm", "--lock", "etcd"}, "the sim world has no etcd"},
		{[]string{"kleppmann-clock-jump", "--lock", "etcd", "--on", "process"}, "the process world cannot do: clock-jump"},
		{[]string{"partition-minority", "--lock", "postgres", "--on", "process"}, "the topology postgres has one node"},
		{[]string{"calm", "--lock", "etcd", "--topology", "postgres", "--on", "process"}, "the lock etcd is kept in the topology etcd, not in postgres"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			if len(tt.args) > 3 {
				needStore(t, cluster.Etcd)
				needStore(t, cluster.Postgres)
			}
			r := invoke(t, append([]string{"run"}, append(tt.args, "--out", "", "--quiet")...)...)
			if !strings.Contains(strings.Join(strings.Fields(r.out), " "), tt.want) || !strings.Contains(r.out, "UNKNOWN") {
				t.Errorf("exit %d, want %q in\n%s\n%s", r.code, tt.want, r.out, r.errs)
			}
		})
	}
}
