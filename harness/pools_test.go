package harness

import (
	"runtime/debug"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/scenarios"
)

// TestRunsShareNoTimers plays runs in one process in which go-redis's callers
// wait for a connection. With a timer of the run before, the process ends.
func TestRunsShareNoTimers(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only what the harness collects is collected
	lock, ok := catalogue.Find("redsync+failfast")
	if !ok {
		t.Fatal("no such lock")
	}
	s, err := scenarios.Load("partition-minority")
	if err != nil {
		t.Fatal(err)
	}
	crowded := 0
	for seed := range uint64(14) {
		if r := Run(t.Context(), Config{Scenario: s, Lock: lock, World: cluster.Sim, Seed: seed + 1}); r.Err != nil {
			t.Errorf("seed %d: %v", seed+1, r.Err)
		}
		if pools.used {
			crowded++
		}
	}
	if crowded < 5 {
		t.Errorf("nobody waited for a connection in all but %d runs", crowded)
	}
	calm, err := scenarios.Load("calm")
	if err != nil {
		t.Fatal(err)
	}
	basic, _ := catalogue.Find("basic")
	if Run(t.Context(), Config{Scenario: calm, Lock: basic, World: cluster.Sim, Seed: 1}); pools.used {
		t.Error("a calm run dials as often as a pool has connections")
	}
}
