package harness

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// simulate plays a scenario, given as YAML, against a lock.
func simulate(t *testing.T, yaml string, lock catalogue.Entry) *history.History {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	r := Run(context.Background(), Config{Scenario: s, Lock: lock, Seed: 1})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r.History
}

// ops picks the client events that a test looks at.
func ops(h *history.History, which func(op *history.Op) bool) []*history.Op {
	var out []*history.Op
	for _, ev := range h.Events {
		if ev.Op != nil && which(ev.Op) {
			out = append(out, ev.Op)
		}
	}
	return out
}

func entry(t *testing.T, name string) catalogue.Entry {
	t.Helper()
	e, ok := catalogue.Find(name)
	if !ok {
		t.Fatalf("there is no lock %s", name)
	}
	return e
}

func TestCancelReachesTheCallUnderWay(t *testing.T) {
	h := simulate(t, `
name: cancelled
about: The second client gives up while it waits.
topology: single
clients: 2
workload: {hold: 0.5ttl}
length: 1ttl
nemesis:
  - when: {op: acquire, type: invoke, client: c2, after: 0.1ttl}
    cancel: {client: c2}
`, entry(t, "watchdog"))
	cancelled := ops(h, func(op *history.Op) bool {
		return op.Client == "c2" && op.F == history.Acquire && op.Type != history.Invoke
	})
	if len(cancelled) == 0 || cancelled[0].Type == history.OK {
		t.Fatalf("the first acquire of c2 was not cancelled: %+v", cancelled)
	}
}

func TestHoldersExtendByHand(t *testing.T) {
	h := simulate(t, `
name: extended
about: A holder extends its lease while it works.
topology: single
clients: 1
workload: {hold: 1ttl, extend: 0.3ttl}
length: 0.5ttl
`, entry(t, "reference"))
	extends := ops(h, func(op *history.Op) bool {
		return op.Acq == 1 && op.F == history.Extend && op.Type == history.OK
	})
	if len(extends) != 3 {
		t.Fatalf("%d extends in 1 TTL of work, want 3", len(extends))
	}
	if extends[0].Until == nil {
		t.Error("an extend does not say what validity it was told")
	}
}

// TestAHolderWhoseExtendFailsLeaves: it writes nothing, since it does not know
// whether it still holds.
func TestAHolderWhoseExtendFailsLeaves(t *testing.T) {
	e := entry(t, "reference")
	e.New = func(impl.Env) (impl.Lock, error) { return stubborn{}, nil }
	h := simulate(t, `
name: stubborn
about: A lock that never extends.
topology: single
clients: 1
workload: {hold: 1ttl, extend: 0.3ttl}
length: 0.5ttl
`, e)
	writes := ops(h, func(op *history.Op) bool { return op.F == history.Write })
	abandons := ops(h, func(op *history.Op) bool { return op.F == history.Abandon })
	if len(writes) != 0 || len(abandons) == 0 {
		t.Errorf("%d writes and %d abandons after extends that failed", len(writes), len(abandons))
	}
}

type stubborn struct{}

func (stubborn) Acquire(context.Context) (impl.Lease, error) { return stubborn{}, nil }
func (stubborn) Release(context.Context) error               { return nil }
func (stubborn) Extend(context.Context) error                { return errors.New("no") }

func TestAFaultThatNeverStrikesIsOnRecord(t *testing.T) {
	h := simulate(t, `
name: late
about: The fault comes after the end.
topology: single
clients: 1
length: 1ttl
nemesis:
  - when: {at: 50ttl}
    stall: {}
`, entry(t, "basic"))
	if !slices.ContainsFunc(h.Events, func(ev history.Event) bool {
		return ev.Nemesis != nil && ev.Nemesis.Phase == history.Never
	}) {
		t.Error("nothing says that the stall never happened")
	}
}

// TestSpansAreWholeMicroseconds: the simulator tells instants apart by their
// nanoseconds, so waits must not move them.
func TestSpansAreWholeMicroseconds(t *testing.T) {
	for _, s := range []nemesis.Span{nemesis.TTLs(1.0 / 3), nemesis.TTLs(0.123456789)} {
		if d := s.Of(10 * time.Second); d%time.Microsecond != 0 {
			t.Errorf("%v of 10s is %v", s, d)
		}
	}
}

// A lock on a store that the world does not have is not run, and not passed.
func TestNoStoreNoRun(t *testing.T) {
	s, err := scenarios.Load("calm")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range catalogue.Baselines() {
		r := Run(t.Context(), Config{Scenario: s, Lock: e, World: cluster.Sim, Seed: 1})
		if want := "the sim world has no " + e.Store; r.Skipped != want || r.History != nil || r.Err != nil {
			t.Errorf("%s: skipped %q, want %q; history %v, error %v", e.Name, r.Skipped, want, r.History != nil, r.Err)
		}
	}
}
