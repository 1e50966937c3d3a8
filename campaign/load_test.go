package campaign

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// TestLocksOfAFileAreKnown: a misspelt lock is a mistake wherever it stands,
// with its place and the nearest right word.
func TestLocksOfAFileAreKnown(t *testing.T) {
	const head = "name: f\nabout: Nothing breaks.\n"
	for name, c := range map[string]struct{ text, want string }{
		"locks":     {"locks: [basc]\n", `f.yaml:3:9: there is no lock "basc"; did you mean "basic"?`},
		"topology":  {"topology: {redlok: independent}\n", `there is no lock "redlok"; did you mean "redlock"?`},
		"expect":    {"expect:\n  watchdg: {exclusion: pass}\n", `there is no lock "watchdg"; did you mean "watchdog"?`},
		"all right": {"locks: [redlock+fence]\ntopology: {redlock+fence: independent, default: single}\nexpect: {default: {exclusion: pass}}\n", ""},
		"one word":  {"topology: single\nexpect: {exclusion: pass}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.yaml")
			if err := os.WriteFile(path, []byte(head+c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadScenario(path)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestEmbeddedLocksAreKnown holds the built-in scenarios to the same.
func TestEmbeddedLocksAreKnown(t *testing.T) {
	known := append(lockNames(), scenarios.Default)
	for _, name := range scenarios.Names() {
		s, err := scenarios.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		named := slices.Clone(s.Locks)
		for lock := range s.Topology {
			named = append(named, lock)
		}
		for lock := range s.Expect {
			named = append(named, lock)
		}
		for _, lock := range named {
			if !slices.Contains(known, lock) {
				t.Errorf("%s names %s", name, lock)
			}
		}
	}
}

// TestTheLargestWorldRuns: what the loader takes, the simulator can play.
func TestTheLargestWorldRuns(t *testing.T) {
	sweeping(t)
	s, err := scenarios.Load("calm")
	if err != nil {
		t.Fatal(err)
	}
	s.Clients, s.Nodes = scenarios.MaxClients, map[cluster.Topology]int{cluster.Independent: scenarios.MaxNodes}
	lock, err := FindLock("redlock")
	if err != nil {
		t.Fatal(err)
	}
	run, _ := PlayScenario(t.Context(), s, lock, store.Job{World: string(cluster.Sim), Topology: string(cluster.Independent), Seed: 1})
	if run.Error != "" {
		t.Error(run.Error)
	}
}

// TestAPlanForAnotherTopologyProvesNothing: it is no failure of the harness
// either.
func TestAPlanForAnotherTopologyProvesNothing(t *testing.T) {
	run, _ := Play(t.Context(), store.Job{Scenario: "partition-minority", Lock: "basic", World: string(cluster.Sim), Topology: string(cluster.Single), Seed: 1}, "")
	if run.Outcome == "error" || run.Error != "" || !strings.Contains(run.Checks[0].Reason, "the topology single has one node") {
		t.Errorf("%s %s: %+v", run.Outcome, run.Error, run.Checks)
	}
}
