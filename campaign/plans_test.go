package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// A cause is a kind of thing that a plan breaks, as far as a lock can tell.
type cause string

const (
	// causeAmnesia: a node has lost keys.
	causeAmnesia cause = "amnesia"
	// causeOldDisk: a node has old keys, or old ends of keys, again.
	causeOldDisk cause = "old disk"
	// causeClock: a node's clock does not run with real time.
	causeClock cause = "clock"
	// causeLate: a client or its requests were held up, so that a write may
	// arrive when the lease it was meant for is over.
	causeLate cause = "late"
)

// brings says what a fault that has begun can cause. The words are those of
// the history, which is all that a reader of a report has.
func brings(f checker.Fault) (cause, bool) {
	switch f.Fault {
	case "clock":
		return causeClock, true
	case "failover":
		return causeAmnesia, true
	case "kill":
		switch {
		case strings.Contains(f.What, "restarts empty"):
			return causeAmnesia, true
		case strings.Contains(f.What, "last fsync"):
			return causeOldDisk, true
		}
	case "flush":
		if strings.Contains(f.What, "keys") {
			return causeAmnesia, true
		}
	case "pause", "delay", "cut", "partition":
		return causeLate, true
	}
	return "", false
}

// excuses says what a lock without a mistake may be found guilty of, and which
// causes explain it. What is not in the table is never excused. On a guarded
// resource a late write is no excuse; only a node that has forgotten the fence
// counter is.
//
//	amnesia   the node forgets the key: another is let in, the lease is not
//	          on record. It forgets the counter: fences start again, and the
//	          guard takes a stale write for a new one.
//	old disk  the same, and a lease ends when it ended before its renewal. Or
//	          the node remembers a key that had been deleted, and grants
//	          nothing until that ends.
//	clock     the key ends too early or too late by real time.
//	late      the write passes its own lease on the way to a plain resource.
func excuses(check, kind string, guarded bool) []cause {
	switch check + " " + kind {
	case "exclusion broken", "linearizability not-linearizable", "lease never-there", "continuity gap", "continuity owner-between":
		return []cause{causeAmnesia, causeOldDisk, causeClock}
	case "updates lost-update":
		if guarded {
			return []cause{causeAmnesia, causeOldDisk}
		}
		return []cause{causeAmnesia, causeOldDisk, causeClock, causeLate}
	case "fencing fence-not-monotonic", "fencing fence-repeated", "lease data-lost":
		return []cause{causeAmnesia, causeOldDisk}
	case "lease expired-early":
		return []cause{causeOldDisk, causeClock}
	case "validity too-late", "validity over-at-grant":
		return []cause{causeClock}
	case "liveness no-grant":
		return []cause{causeOldDisk, causeClock}
	}
	return nil
}

// finding is one violation with what explains it.
type finding struct {
	check string
	checker.Found
	causes []cause
}

// class names what a finding is, and why.
func (f finding) class() string {
	words := make([]string, len(f.causes))
	for i, c := range f.causes {
		words[i] = string(c)
	}
	return f.check + " " + f.Kind + ": " + strings.Join(words, "+")
}

// findings are the violations of a run, each with the causes that excuse it:
// faults that were active at some moment between the first call of what it
// names and its last event, and that its sentence names too. What was over
// before, or came after, explains nothing.
func findings(run reports.Run, h *history.History) []finding {
	var out []finding
	facts := checker.Gather(h)
	for _, c := range run.Checks {
		for _, v := range c.Violations {
			f := finding{check: c.Name, Found: v}
			may := excuses(c.Name, v.Kind, h.Header.Resource == scenarios.Guarded)
			from, to := stretch(facts, v.Ops)
			for _, x := range facts.Faults {
				why, ok := brings(x)
				if ok && slices.Contains(may, why) && !slices.Contains(f.causes, why) &&
					x.Start <= to && x.Stop >= from && strings.Contains(v.Fault, x.String()) {
					f.causes = append(f.causes, why)
				}
			}
			slices.Sort(f.causes)
			out = append(out, f)
		}
	}
	return out
}

// stretch is the time from the first invoke of the acquisitions that a finding
// names to its last event.
func stretch(facts *checker.Facts, ops []int) (from, to int64) {
	events := facts.History.Events
	from = events[slices.Min(ops)].T
	for _, i := range ops {
		to = max(to, events[i].T)
		if op := events[i].Op; op != nil && facts.ByAcq[op.Acq] != nil {
			from = min(from, facts.ByAcq[op.Acq].Invoked)
		}
		if r := events[i].Resource; r != nil && facts.ByAcq[r.Acq] != nil {
			from = min(from, facts.ByAcq[r.Acq].Invoked)
		}
	}
	return from, to
}

// playPlan plays a plan of [RandomPlan] with a lock.
func playPlan(t *testing.T, lock string, topology cluster.Topology, seed uint64) (*scenarios.Scenario, reports.Run, *history.History) {
	t.Helper()
	entry, err := FindLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	s := RandomPlan(seed, topology)
	switch entry.Kind { // each lock does what it is for
	case catalogue.Semaphore:
		s.Workload.Kind = scenarios.Permits
	case catalogue.RW:
		s.Workload.ReadShare = 0.5
	}
	run, h := PlayScenario(t.Context(), s, entry, store.Job{World: string(cluster.Sim), Topology: string(topology), Seed: seed})
	return s, run, h
}

// topologies are those that the reference lock runs on.
var planTopologies = []cluster.Topology{cluster.Single, cluster.Replicated}

// TestReferenceBreaksOnlyByItsFaults plays the lock that is meant to be right
// under plans that break anything. Each violation must be explained by a fault
// of its plan, and the plans must break all that the rules excuse.
func TestReferenceBreaksOnlyByItsFaults(t *testing.T) {
	sweeping(t)
	tally, faults := map[string]int{}, map[string]int{}
	failures, ops := 0, 0
	for seed := range uint64(plans()) {
		s, run, h := playPlan(t, "reference", planTopologies[seed%4/3], seed)
		ops += run.Ops
		for _, step := range s.Nemesis {
			faults[step.Fault.Kind()]++
		}
		var bad []string
		if said := spoke(h); said != "" {
			bad = append(bad, "a client that stood still spoke "+said)
		}
		for _, f := range findings(run, h) {
			tally[f.class()]++
			if len(f.causes) == 0 {
				bad = append(bad, fmt.Sprintf("nothing in the plan explains %s %s", f.check, f.Kind))
			}
		}
		if len(bad) == 0 && run.Verdict != checker.Error && run.Error == "" && len(run.Leaks) == 0 {
			continue
		}
		t.Errorf("%s  %s\n%s", planOf(s), strings.Join(bad, "\n  "), sentences(run))
		if failures++; failures == 20 {
			t.Fatal("twenty are enough")
		}
	}
	t.Logf("%d plans, %d ops, faults %v", plans(), ops, faults)
	for _, class := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%6d  %s", tally[class], class)
	}
	for _, k := range nemesis.Kinds() {
		switch k.(type) {
		case nemesis.Migrate: // the simulator has no slots that could move
			continue
		case nemesis.Disconnect: // in the simulator it cuts all links of a node, as partitions do that are drawn
			continue
		}
		if faults[k.Kind()] == 0 {
			t.Errorf("no plan has a %s", k.Kind())
		}
	}
}
