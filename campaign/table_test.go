package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// seeds is with how many seeds a cell of the table is played.
func seeds() uint64 {
	switch {
	case long():
		return 40
	case raced || testing.Short():
		return 2
	}
	return 5
}

// mustPlay plays a built-in scenario in the simulator.
func mustPlay(t *testing.T, j store.Job) (reports.Run, *history.History) {
	t.Helper()
	j.World = string(cluster.Sim)
	run, h := Play(t.Context(), j, "")
	if run.Error != "" || h == nil {
		t.Fatalf("%s: %s", run.Repeat, run.Error)
	}
	return run, h
}

// said is a check's answer in the words of expectations: the kind of a
// violation of the exclusion, the verdict otherwise.
func said(run reports.Run, check string) string {
	for _, c := range run.Checks {
		if c.Name == check {
			return cmp.Or(c.Kind, string(c.Verdict))
		}
	}
	return "not run"
}

const (
	pass = string(checker.Pass)
	lost = checker.LostUpdate
)

// cell is what must come out for a lock under a scenario.
type cell struct{ exclusion, updates string }

var (
	ok      = cell{exclusion: pass, updates: pass}
	late    = cell{exclusion: pass, updates: lost}
	fenced  = cell{exclusion: checker.Overrun, updates: pass} // by a fence, or by the version
	overrun = cell{exclusion: checker.Overrun, updates: lost}
	broken  = cell{exclusion: checker.Broken, updates: lost}
	// brokenOnly: its holder learns of the loss before it writes.
	brokenOnly = cell{exclusion: checker.Broken, updates: pass}

	// unplayed: the simulator has no such servers, and says so.
	unplayed = cell{exclusion: "unplayed"}

	// Holders of permits write nothing, so that nothing can be lost.
	none    = string(checker.Unknown)
	permits = cell{exclusion: pass, updates: none}
	crowded = cell{exclusion: checker.Overrun, updates: none}
	flooded = cell{exclusion: checker.Broken, updates: none}
)

// each gives the same cell to several locks.
func each(c cell, locks ...string) map[string]cell {
	m := map[string]cell{}
	for _, l := range locks {
		m[l] = c
	}
	return m
}

func join(ms ...map[string]cell) map[string]cell {
	out := map[string]cell{}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}

// promised is the table of holdfast's promises. It says again what the YAML
// files expect, on purpose: an expectation that is bent in a file to make a
// run green is caught here.
func promised() map[string]map[string]cell {
	oneNode := []string{"basic", "reentrant", "watchdog", "service"}
	five := append(slices.Clone(oneNode), "redlock")
	six := append(slices.Clone(five), "reference")
	return map[string]map[string]cell{
		"calm": each(ok, six...),
		"slow-work": join(each(overrun, "basic", "reentrant", "redlock"),
			each(ok, "watchdog", "service", "reference")),
		"kleppmann-gc-pause":    join(each(overrun, five...), each(late, "reference")),
		"kleppmann-fencing":     join(each(fenced, "basic+fence", "service+fence"), each(ok, "reference")),
		"redlock-fence":         each(ok, "redlock+fence"),
		"pause-during-acquire":  join(each(overrun, oneNode...), each(ok, "redlock", "reference")),
		"delayed-write":         each(late, six...),
		"kleppmann-clock-jump":  each(broken, six...),
		"crash-restart-amnesia": each(broken, six...),
		"delayed-restart":       each(ok, "redlock"),
		"failover-before-replication": each(broken,
			append(slices.Clone(oneNode), "reference")...),
		"partition-holder":       join(each(overrun, five...), each(ok, "reference")),
		"partition-minority":     each(ok, "redlock"),
		"extend-too-late":        each(ok, "reference"),
		"renewal-blip":           join(each(overrun, "watchdog", "service"), each(ok, "reference")),
		"node-stall":             each(ok, six...),
		"server-killed":          each(ok, six...),
		"server-clock-jump":      join(each(broken, oneNode...), each(ok, "redlock"), each(brokenOnly, "reference")),
		"speed":                  each(ok, six...),
		"crash-restart-keep":     each(ok, six...),
		"paused-holders":         each(overrun, "basic", "redlock"),
		"paused-holders-guarded": join(each(fenced, "basic+fence", "service+fence"), each(ok, "reference")),
		"node-disconnected":      join(each(overrun, "watchdog", "service"), each(ok, "reference")),
		"lock-key-deleted":       join(each(broken, "watchdog", "service"), each(brokenOnly, "reference")),
		"node-refuses":           each(ok, "basic", "reference"),
		"script-flush":           each(ok, append(six, "evalsha-without-fallback")...),
		"majority-down":          each(ok, "redlock"),
		"out-of-memory":          each(ok, "basic", "reference"),

		"redlock-slow-votes":       each(ok, "redlock"),
		"redlock-clock-rate-10":    each(broken, "redlock"),
		"redlock-clock-rate-50":    each(broken, "redlock"),
		"redlock-clock-slew":       each(ok, "redlock"),
		"redlock-fsync-always":     each(ok, "redlock"),
		"redlock-fsync-everysec":   each(broken, "redlock"),
		"redlock-partitions":       each(ok, "redlock"),
		"redlock-lost-vote":        each(ok, "redlock"),
		"check-and-set-pause":      join(each(fenced, "basic", "redlock"), each(ok, "reference")),
		"check-and-set-late-write": each(ok, "basic", "redlock", "reference"),
		"sentinel-failover":        each(unplayed, "basic", "watchdog", "reference"),
		"sentinel-split-brain":     each(unplayed, "basic", "watchdog", "reference"),
		"sentinel-lagging-replica": each(unplayed, "basic", "watchdog", "reference", "basic+wait"),
		"sentinel-cut-replicas":    each(unplayed, "basic", "basic+wait"),
		"sentinel-min-replicas":    each(unplayed, "basic", "basic+wait"),

		"opposite-orders":           each(ok, append(six, "fair", "rwlock")...),
		"permits":                   join(each(permits, "semaphore"), each(crowded, "semaphore+client-time")),
		"permits-clock-jump":        each(flooded, "semaphore", "semaphore+client-time"),
		"readers-and-writers":       each(ok, "rwlock"),
		"reader-outlives-lease":     each(brokenOnly, "rwlock"),
		"reentry":                   each(ok, "reentrant", "watchdog", "service"),
		"shared-lock-object":        join(each(ok, "basic", "watchdog", "service", "reference"), each(broken, "reentrant", "redlock")),
		"fair-queue-crashed-waiter": each(ok, "fair"),
		"fair-queue-impatient":      each(ok, "fair"),
	}
}

// cells goes through the table in a fixed order.
func cells(f func(scenario, lock string, want cell)) {
	table := promised()
	for _, scenario := range slices.Sorted(maps.Keys(table)) {
		for _, lock := range slices.Sorted(maps.Keys(table[scenario])) {
			f(scenario, lock, table[scenario][lock])
		}
	}
}

func TestTableOfPromises(t *testing.T) {
	sweeping(t)
	cells(func(scenario, lock string, want cell) {
		t.Run(scenario+"/"+lock, func(t *testing.T) {
			if want == unplayed {
				job := store.Job{Scenario: scenario, Lock: lock, World: string(cluster.Sim), Seed: 1}
				run, _ := Play(t.Context(), job, "")
				if run.Verdict != checker.Unknown || len(run.Checks) != 1 || !strings.Contains(run.Checks[0].Reason, "topology sentinel") {
					t.Errorf("%s: %s %v, want unknown and why", run.Repeat, run.Verdict, run.Checks)
				}
				return
			}
			for seed := uint64(1); seed <= seeds(); seed++ {
				run, _ := mustPlay(t, store.Job{Scenario: scenario, Lock: lock, Seed: seed})
				if reports.Stand(run) != reports.AsExpected {
					t.Errorf("%s: %v: %v", run.Repeat, reports.Stand(run), run.Mismatches)
				}
				if len(run.Leaks) > 0 {
					t.Errorf("%s: left behind: %v", run.Repeat, run.Leaks)
				}
				if got := (cell{exclusion: said(run, "exclusion"), updates: said(run, "updates")}); got != want {
					t.Errorf("%s: got %+v, want %+v", run.Repeat, got, want)
				}
			}
		})
	})
}

// TestTableCoversEveryScenario holds that a scenario, or a lock of one, cannot
// be added without its promise.
func TestTableCoversEveryScenario(t *testing.T) {
	table := promised()
	for _, name := range scenarios.NamesIn(cluster.Sim) { // others are played on real servers
		s, err := scenarios.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range s.Locks {
			if _, ok := table[name][lock]; !ok {
				t.Errorf("%s plays %s, and the table promises nothing of it", name, lock)
			}
		}
	}
}

// TestCalmOnEveryTopology: without faults every lock holds wherever it runs.
func TestCalmOnEveryTopology(t *testing.T) {
	sweeping(t)
	for _, e := range catalogue.All() {
		for _, topology := range []cluster.Topology{cluster.Single, cluster.Replicated, cluster.Independent} {
			t.Run(fmt.Sprintf("%s/%s", e.Name, topology), func(t *testing.T) {
				for seed := uint64(1); seed <= min(seeds(), 10); seed++ {
					run, _ := mustPlay(t, store.Job{Scenario: "calm", Lock: e.Name, Topology: string(topology), Seed: seed})
					if run.Verdict != checker.Pass || reports.Stand(run) != reports.AsExpected || len(run.Leaks) > 0 {
						t.Errorf("%s: %s %v %v %s", run.Repeat, run.Verdict, run.Mismatches, run.Leaks, sentences(run))
					}
				}
			})
		}
	}
}

// TestFencingStopsTheLateWrite: the write arrived, late, and was refused.
func TestFencingStopsTheLateWrite(t *testing.T) {
	for _, lock := range []string{"basic+fence", "service+fence", "reference"} {
		run, h := mustPlay(t, store.Job{Scenario: "kleppmann-fencing", Lock: lock, Seed: 1})
		refused := slices.ContainsFunc(h.Events, func(ev history.Event) bool {
			r := ev.Resource
			return r != nil && r.F == history.Write && r.Client == "c1" && r.Refused != "" && !r.Applied
		})
		if !refused || said(run, "fencing") != pass {
			t.Errorf("%s: late write refused %v, fencing %s", run.Repeat, refused, said(run, "fencing"))
		}
	}
}

// TestRedlockFencesGoBackwards: the largest of a quorum's counters is no fence.
func TestRedlockFencesGoBackwards(t *testing.T) {
	for seed := uint64(1); seed <= seeds(); seed++ {
		run, _ := mustPlay(t, store.Job{Scenario: "redlock-fence", Lock: "redlock+fence", Seed: seed})
		if got := said(run, "fencing"); got != checker.FenceNotMonotonic {
			t.Errorf("%s: fencing %s, want %s", run.Repeat, got, checker.FenceNotMonotonic)
		}
	}
}

// TestMinorityLossStopsNobody: with three of five nodes the lock goes on.
func TestMinorityLossStopsNobody(t *testing.T) {
	run, _ := mustPlay(t, store.Job{Scenario: "partition-minority", Lock: "redlock", Seed: 1})
	for _, c := range run.Checks {
		if c.Name == "coverage" && c.Figures["acquires_during"] < 3 {
			t.Errorf("%s: %v acquires while the minority was away", run.Repeat, c.Figures["acquires_during"])
		}
	}
}
