package harness

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
)

// begins gives the first so many events of a client in one line each.
func begins(h *history.History, client string, n int) []string {
	var out []string
	for _, op := range ops(h, func(op *history.Op) bool {
		return op.Client == client && (op.Type == history.Invoke || op.F == history.Worked)
	}) {
		words := []string{op.F, op.Lock, op.Mode, fmt.Sprint(op.Acq)}
		out = append(out, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
		if len(out) == n {
			break
		}
	}
	return out
}

const oneRound = "name: x\nabout: A test.\ntopology: single\nlength: 1ttl\n"

// TestRounds: what a client does in which order, for each kind of round.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		name, yaml, lock, client string
		want                     []string
	}{
		{"a writer", "workload: {readers: [c2]}\n", "rwlock", "c1",
			[]string{"acquire orders write 1", "read orders 1", "worked orders 1", "write orders 1", "release orders 1"}},
		{"a reader reads twice", "workload: {readers: [c1]}\n", "rwlock", "c1",
			[]string{"acquire orders read 1", "read orders 1", "worked orders 1", "read orders 1", "release orders 1"}},
		{"all rounds are readers'", "workload: {read-share: 1}\n", "rwlock", "c1", []string{"acquire orders read 1"}},
		{"a permit has no resource", "workload: {kind: permits}\n", "semaphore", "c1",
			[]string{"acquire orders 1", "worked orders 1", "release orders 1"}},
		{"the inner hold first", "clients: 1\nworkload: {depth: 3}\n", "reentrant", "c1",
			[]string{"acquire orders 1", "read orders 1", "acquire orders 2", "acquire orders 3", "release orders 3", "release orders 2", "worked orders 1", "write orders 1", "release orders 1"}},
		{"in the listed order", "workload: {locks: [orders, stock], order: opposite, stagger: 1ttl}\n", "basic", "c1",
			[]string{"acquire orders 1", "acquire stock 4", "read orders 1", "worked orders 1", "write orders 1", "release stock 4", "release orders 1"}},
		{"the other way round", "clients: 2\nworkload: {locks: [orders, stock], order: opposite, stagger: 0.95ttl}\n", "basic", "c2",
			[]string{"acquire stock 2", "acquire orders 4"}},
		{"the same way", "clients: 2\nworkload: {locks: [orders, stock], stagger: 0.95ttl}\n", "basic", "c2",
			[]string{"acquire orders 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := simulate(t, oneRound+c.yaml, entry(t, c.lock))
			if got := begins(h, c.client, len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// TestThreadsShareAnObject: each thread has a process, acquisitions and a name
// of its own, and they ask for the lock through one object.
func TestThreadsShareAnObject(t *testing.T) {
	h := simulate(t, oneRound+"clients: 2\nworkload: {threads: 2, hold: 0.3ttl}\n", entry(t, "reentrant"))
	seen := map[string]bool{}
	acqs := map[int]bool{}
	for _, op := range ops(h, func(op *history.Op) bool { return op.F == history.Acquire && op.Type == history.Invoke }) {
		seen[fmt.Sprintf("%s/%d is %d", op.Client, op.Thread, op.Process)] = true
		if acqs[op.Acq] {
			t.Errorf("acquisition %d is invoked twice", op.Acq)
		}
		acqs[op.Acq] = true
	}
	for _, want := range []string{"c1/0 is 0", "c2/0 is 1", "c1/1 is 2", "c2/1 is 3"} {
		if !seen[want] {
			t.Errorf("no thread %s among %v", want, seen)
		}
	}
	inside := ops(h, func(op *history.Op) bool {
		return op.Client == "c1" && op.F == history.Acquire && op.Type == history.OK
	})
	if len(inside) < 2 || inside[0].Thread == inside[1].Thread || !h.Header.Reentrant {
		t.Errorf("the object's own second thread was not let in: %+v", inside)
	}
}

// TestImpatientClients give up after their patience, others do not.
func TestImpatientClients(t *testing.T) {
	h := simulate(t, oneRound+"clients: 3\nworkload: {hold: 0.9ttl, impatient: c2, patience: 0.15ttl}\n", entry(t, "watchdog"))
	for client, want := range map[string]bool{"c2": true, "c3": false} {
		var invoked, done int64
		for _, ev := range h.Events {
			if ev.Op == nil || ev.Op.Client != client || ev.Op.F != history.Acquire || done > 0 {
				continue
			}
			if ev.Op.Type == history.Invoke {
				invoked = ev.T
			} else {
				done = ev.T
			}
		}
		if ttl := int64(DefaultSimTTL); (done-invoked < ttl/5) != want {
			t.Errorf("%s waited for %d ms", client, (done-invoked)/1e6)
		}
	}
}

// TestWorkloadsThatDoNotFit are told with their reason, and never played.
func TestWorkloadsThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ yaml, lock, want string }{
		{"", "semaphore", "the workload takes a mutex, and the lock lets several in at once"},
		{"workload: {kind: permits}\n", "basic", "the workload takes permits, and the lock is no semaphore"},
		{"workload: {readers: [c1]}\n", "basic", "the workload has readers, and the lock knows none"},
		{"workload: {read-share: 0.5}\n", "semaphore", "the workload takes a mutex"},
		{"workload: {depth: 2}\n", "basic", "the lock does not promise to be re-entrant"},
		{"workload: {threads: 2, locks: [orders, stock]}\n", "basic", ""},
		{"workload: {depth: 2}\n", "service", ""},
		{"", "rwlock", ""},
	} {
		s, err := scenarios.Parse("test.yaml", []byte(oneRound+c.yaml))
		if err != nil {
			t.Fatal(err)
		}
		got := Config{Scenario: s, Lock: entry(t, c.lock)}.unfit()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s with %q: %q, want %q", c.lock, c.yaml, got, c.want)
		}
	}
}

// TestHeaderTellsTheKind of lock, and nothing that older histories lack.
func TestHeaderTellsTheKind(t *testing.T) {
	for _, c := range []struct {
		yaml, lock, kind string
		permits          int
		reentrant        bool
	}{
		{"", "basic", "", 0, false},
		{"", "reentrant", "", 0, false},
		{"workload: {depth: 2}\n", "reentrant", "", 0, true},
		{"workload: {threads: 2}\n", "basic", "", 0, false},
		{"", "rwlock", history.KindRW, 0, false},
		{"workload: {kind: permits}\n", "semaphore", history.KindSemaphore, 2, false},
	} {
		s, err := scenarios.Parse("test.yaml", []byte(oneRound+c.yaml))
		if err != nil {
			t.Fatal(err)
		}
		h := Config{Scenario: s, Lock: entry(t, c.lock)}.header(1, resource.NewBuiltin(resource.Plain))
		if h.Kind != c.kind || h.Permits != c.permits || h.Reentrant != c.reentrant {
			t.Errorf("%s with %q: %q, %d permits, re-entrant %v", c.lock, c.yaml, h.Kind, h.Permits, h.Reentrant)
		}
	}
	if string(catalogue.RW) != history.KindRW || string(catalogue.Semaphore) != history.KindSemaphore {
		t.Error("the catalogue and the history name kinds differently")
	}
}
