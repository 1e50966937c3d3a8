package study

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// TestComparisonCasesExist, so that every line to repeat works, and a fault that
// is not played has its reason.
func TestComparisonCasesExist(t *testing.T) {
	for _, s := range systems() {
		for _, x := range append(troubles(), guarded, speed) {
			c, reason := s.plays(x)
			if c.Scenario == "" {
				if reason == "" {
					t.Errorf("%s under %q: neither played, nor is it said why not", s.Name, x.Name)
				}
				continue
			}
			if _, err := scenarios.Load(c.Scenario); err != nil {
				t.Errorf("%s under %q: %v", s.Name, x.Name, err)
			}
			if _, err := campaign.FindLock(c.Lock); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		for name := range s.Instead {
			if !known(name) {
				t.Errorf("%s replaces the scenario of %q, which is no fault", s.Name, name)
			}
		}
	}
}

func known(name string) bool {
	for _, x := range append(troubles(), guarded, speed) {
		if x.Name == name {
			return true
		}
	}
	return false
}

// TestComparisonTellsWhatItSaw: the page's words follow from the runs, and what
// was not played is said with its reason. The runs are the simulator's.
func TestComparisonTellsWhatItSaw(t *testing.T) {
	inSim := func(ctx context.Context, j store.Job) (reports.Run, *history.History) {
		if j.Lock != "basic+fence" && j.Lock != "redlock+fence" || j.Topology == string(cluster.Sentinel) || j.Topology == string(cluster.RedisCluster) {
			return reports.Run{Checks: []checker.Result{{Name: "world", Verdict: checker.Unknown, Reason: "it is not here"}}}, nil
		}
		j.World, j.TTL = string(cluster.Sim), 0
		return InProcess(ctx, j)
	}
	var page strings.Builder
	if err := Comparison(t.Context(), &page, Options{Seeds: 2, Play: inSim}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| one Redis | holder paused, holder cut off, server forgets, server's clock jumps | holder paused, late write, holder cut off, server forgets, server's clock jumps |",
		"| one Redis | **always** 2 of 2 (34-100 %) | **never** 0 of 2 (0-66 %) | **never** 0 of 2 (0-66 %) |",
		"- Redis with Sentinel, holder paused: it is not here.",
		"holdfast run kleppmann-gc-pause --lock basic+fence --on process --topology cluster --seed 1 --ttl 3s",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in\n%s", want, page.String())
		}
	}
}

// TestTheCommittedComparisonHasEveryRow: its figures are those of the machine
// that wrote it, but its systems and faults are these.
func TestTheCommittedComparisonHasEveryRow(t *testing.T) {
	text, err := os.ReadFile("../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, s := range systems() {
		if !strings.Contains(page, "\n| "+s.Name+" | ") || !strings.Contains(page, "**"+s.Name+"** (`"+s.Lock+"`)") {
			t.Errorf("%s is missing: run holdfast study comparison --out docs/comparison.md", s.Name)
		}
	}
	for _, x := range troubles() {
		if !strings.Contains(page, " | "+x.Name+" |") || !strings.Contains(page, "**"+x.Name+"** ("+scenarioLink(x.Scenario)+")") {
			t.Errorf("%q is missing: run holdfast study comparison --out docs/comparison.md", x.Name)
		}
	}
}
