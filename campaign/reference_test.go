package campaign

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// long asks for sweeps that are too long for every day.
func long() bool { return os.Getenv("HOLDFAST_LONG") == "1" }

// plans is how many random plans a sweep plays. HOLDFAST_PLANS overrules it.
func plans() int {
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_PLANS")); err == nil && n > 0 {
		return n
	}
	switch {
	case long():
		return 20_000
	case raced:
		return 150
	case testing.Short():
		return 300
	}
	return 600
}

// random plays a random plan; its seed is the run's seed too.
func random(t *testing.T, lock string, topology cluster.Topology, seed uint64) (*scenarios.Scenario, reports.Run, *history.History) {
	t.Helper()
	entry, err := FindLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	s := RandomScenario(seed, topology)
	run, h := PlayScenario(t.Context(), s, entry, store.Job{World: string(cluster.Sim), Topology: string(topology), Seed: seed})
	return s, run, h
}

// planOf tells a plan so that a failure can be understood from the log alone.
func planOf(s *scenarios.Scenario) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %s, %d clients, %+v\n", strings.TrimPrefix(s.Name, "random-"), s.Clients, s.Workload)
	for _, step := range s.Nemesis {
		fmt.Fprintf(&b, "  %v: %s %+v for %v\n", step.When, step.Fault.Kind(), step.Fault, step.For)
	}
	return b.String()
}

// sentences are the violations of a run in words.
func sentences(run reports.Run) string {
	var b strings.Builder
	for _, c := range run.Checks {
		for _, v := range c.Violations {
			fmt.Fprintf(&b, "  %s %s: %s [%s]\n", c.Name, v.Kind, v.Summary, v.Fault)
		}
		if c.Verdict == checker.Error {
			fmt.Fprintf(&b, "  %s: %s\n", c.Name, c.Reason)
		}
	}
	if run.Error != "" {
		fmt.Fprintf(&b, "  error: %s\n", run.Error)
	}
	for _, l := range run.Leaks {
		fmt.Fprintf(&b, "  leak: %s\n", l)
	}
	return b.String()
}

// spoke finds an op of a client that was paused or dead at that time. Timers
// of the lock's code fire in the simulator all the same, but nobody may hear
// of what follows.
func spoke(h *history.History) string {
	silent := map[string]string{}
	for _, ev := range h.Events {
		switch {
		case ev.Nemesis != nil && (ev.Nemesis.Fault == "pause" || ev.Nemesis.Fault == "crash"):
			for _, c := range ev.Nemesis.On {
				if ev.Nemesis.Phase == history.Start {
					silent[c] = ev.Nemesis.Fault
				} else if silent[c] == "pause" {
					delete(silent, c)
				}
			}
		case ev.Op != nil && ev.Op.F != history.Crash && silent[ev.Op.Client] != "":
			return fmt.Sprintf("at %v after its %s: %+v", time.Duration(ev.T), silent[ev.Op.Client], *ev.Op)
		}
	}
	return ""
}

// TestReferenceRaisesNoFalseAlarm plays the lock that is meant to be right
// under random plans that it must survive.
func TestReferenceRaisesNoFalseAlarm(t *testing.T) {
	sweeping(t)
	verdicts := map[checker.Verdict]int{}
	failures, ops := 0, 0
	for seed := range uint64(plans()) {
		s, run, h := random(t, "reference", cluster.Single, seed)
		verdicts[run.Verdict]++
		ops += run.Ops
		if said := spoke(h); said != "" {
			t.Errorf("%sa client that stood still spoke %s", planOf(s), said)
		}
		if run.Verdict != checker.Violation && run.Verdict != checker.Error && run.Error == "" && len(run.Leaks) == 0 {
			continue
		}
		t.Errorf("%s%s", planOf(s), sentences(run))
		if failures++; failures == 10 {
			t.Fatal("ten are enough")
		}
	}
	t.Logf("%d plans, %d ops: %v", plans(), ops, verdicts)
	if verdicts[checker.Pass] < plans()/2 {
		t.Errorf("only %d of %d plans prove something", verdicts[checker.Pass], plans())
	}
}

func hasClock(s *scenarios.Scenario) bool {
	return slices.ContainsFunc(s.Nemesis, func(step nemesis.Step) bool {
		return step.Fault.Kind() == (nemesis.Clock{}).Kind()
	})
}

// ownLateRelease says whether the first holder of a pair lost its key to a
// release of its own. The lock's identifier is one for all its acquisitions:
//
//	0    c2 sends a release, which is slow; go-redis sends it again and again
//	1    c2's lease is over; c2 acquires anew, under the same identifier
//	2    the last of its releases arrives, finds the identifier, and deletes
//	3    c1 is granted the lock inside c2's lease
func ownLateRelease(h *history.History, first, second int) bool {
	client := h.Events[first].Op.Client
	return slices.ContainsFunc(h.Events[first:second], func(ev history.Event) bool {
		s := ev.Server
		return s != nil && s.Client == client && s.Key == "lock:"+harness.LockName && s.PTTL == -2 && s.Reply == "1"
	})
}

// unexplained are the broken promises of a run that nothing in the plan and
// none of the lock's known weaknesses explains. A lock without an allowance
// for drift has no promise of a node whose clock is fast.
func unexplained(s *scenarios.Scenario, run reports.Run, h *history.History) int {
	n := 0
	for _, c := range run.Checks {
		for _, v := range c.Violations {
			if v.Kind == checker.Broken && !hasClock(s) && !ownLateRelease(h, v.Ops[0], v.Ops[1]) {
				n++
			}
		}
	}
	return n
}

// TestRandomPlansBreakNoPromiseOfOneNode: a node that keeps its data and its
// clock keeps its promises, so that whatever happens to a lock on it is the
// holder's doing.
func TestRandomPlansBreakNoPromiseOfOneNode(t *testing.T) {
	sweeping(t)
	kinds := map[string]int{}
	failures := 0
	for seed := range uint64(plans()) {
		s, run, h := random(t, "basic+fence", cluster.Single, seed)
		for _, c := range run.Checks {
			if c.Verdict == checker.Violation {
				kinds[c.Name+" "+c.Kind]++
			}
		}
		if run.Error == "" && len(run.Leaks) == 0 && unexplained(s, run, h) == 0 {
			continue
		}
		t.Errorf("%s%s", planOf(s), sentences(run))
		if failures++; failures == 10 {
			t.Fatal("ten are enough")
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%d of %d plans: %s", kinds[kind], plans(), kind)
	}
	if kinds["exclusion "+checker.Overrun] == 0 {
		t.Error("the plans are harmless: not one holder outlived its lease")
	}
}
