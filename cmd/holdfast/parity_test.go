package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// comparison is one scenario that both worlds play.
type comparison struct {
	scenario string
	// ttl on real servers; zero is the default of a second.
	ttl time.Duration
}

// quick are the scenarios whose figures leave real servers room enough at a
// TTL of one second. A failover takes 0.1 to 0.2 s on a busy machine; go-redis
// dials again 0.1 s after a refusal, and all that must be well inside the
// 0.25 TTL of the holder's work.
var quick = []comparison{
	{scenario: "calm"}, {scenario: "slow-work"}, {scenario: "kleppmann-gc-pause"}, {scenario: "kleppmann-fencing"},
	{scenario: "kleppmann-clock-jump", ttl: 2 * time.Second}, {scenario: "failover-before-replication", ttl: 3 * time.Second}, {scenario: "partition-holder"},
	{scenario: "readers-and-writers"}, {scenario: "reader-outlives-lease"}, {scenario: "permits"}, {scenario: "permits-clock-jump"},
	{scenario: "reentry"}, {scenario: "fair-queue-impatient"}, {scenario: "fair-queue-crashed-waiter"},
	{scenario: "opposite-orders"}, {scenario: "shared-lock-object"},
	{scenario: "partition-minority"}, {scenario: "node-disconnected"}, {scenario: "delayed-restart"}, {scenario: "node-stall"}, {scenario: "redlock-fence"},
}

// patient need a longer TTL, since something in them takes a time of its own:
//
//   - crash-restart-amnesia: a redis-server is back after 0.1 to 0.3 s, which
//     must be well inside the 0.25 TTL of the holder's work;
//   - renewal-blip: go-redis tries for about two seconds, which must be well
//     below the TTL.
var patient = []comparison{
	{scenario: "crash-restart-amnesia", ttl: 3 * time.Second},
	{scenario: "delayed-write"}, // reliable, and only here for the sake of the quick ones' wall time
	{scenario: "renewal-blip", ttl: 6 * time.Second},
}

// clusters are stories of servers that elect a primary by themselves, which the
// simulator does not know.
var clusters = []string{"sentinel-failover", "cluster-failover"}

// TestParityOfClusters: one verdict on servers here and in containers. A run that
// disagrees with its scenario has a second try, as in compareWorlds.
func TestParityOfClusters(t *testing.T) {
	needServers(t)
	if !haveContainers(t) {
		t.Skip("nothing to compare with")
	}
	t.Parallel()
	root := t.TempDir()
	var jobs []store.Job
	for _, name := range clusters {
		for _, world := range []string{"process", "container"} {
			jobs = append(jobs, store.Job{Scenario: name, Lock: "basic", World: world, Seed: 1})
		}
	}
	runs, lags := sideBySide(root, jobs, len(jobs))
	for i, j := range jobs {
		if reports.Stand(runs[i]) == reports.AsExpected {
			continue
		}
		j.TTL = 3 * time.Duration(runs[i].TTLNanos)
		t.Logf("%s: %s says %s %v %s, while the machine stood still for %v: again with a TTL of %v\n%s",
			j.Scenario, j.World, told(runs[i]), runs[i].Mismatches, runs[i].Error, lags[i], j.TTL, complaints(runs[i]))
		again, _ := sideBySide(root, []store.Job{j}, 1)
		runs[i] = again[0]
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tlock\tprocess\twall\tcontainer\twall")
	for i := 0; i < len(runs); i += 2 {
		p, c := runs[i], runs[i+1]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1fs\t%s\t%.1fs\n", p.Scenario, p.Lock, told(p), p.WallSeconds, told(c), c.WallSeconds)
		if !agree(p, p) || !agree(p, c) {
			t.Errorf("%s: process says %s %v %s, container says %s %v %s\n%s\n%s", p.Scenario,
				told(p), p.Mismatches, p.Error, told(c), c.Mismatches, c.Error, complaints(p), complaints(c))
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &table)
	publish(t, table.String())
}

// TestParity: one scenario file, three worlds, one verdict.
func TestParity(t *testing.T) {
	needServers(t)
	compareWorlds(t, quick)
}

func TestParityWithLongLeases(t *testing.T) {
	needServers(t)
	if os.Getenv("HOLDFAST_LONG") != "1" {
		t.Skip("takes minutes: set HOLDFAST_LONG=1")
	}
	compareWorlds(t, patient)
}

// haveContainers says whether containers can be compared too. On a laptop without
// an engine their column stays empty, and the log says why; in CI that fails.
func haveContainers(t *testing.T) bool {
	err := container.Available(t.Context(), "")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Logf("SKIPPED: nothing is compared with containers: %v", err)
	}
	return err == nil
}

// inContainers plays the first lock of every scenario, since each run takes
// seconds that the others of the scenario would not make more telling, and gives
// the runs by their scenario. A run that disagrees has a second try, as on
// servers that are no containers.
func inContainers(t *testing.T, root string, onServers []store.Job, simulated []reports.Run) map[string]reports.Run {
	out := map[string]reports.Run{}
	if !haveContainers(t) {
		return out
	}
	var jobs []store.Job
	var sims []reports.Run
	for i, j := range onServers {
		if i > 0 && onServers[i-1].Scenario == j.Scenario {
			continue
		}
		j.World = "container"
		jobs, sims = append(jobs, j), append(sims, simulated[i])
	}
	began := time.Now()
	runs, lags := sideBySide(root, jobs, 4)
	for i, j := range jobs {
		if !agree(sims[i], runs[i]) {
			j.TTL = 4 * time.Duration(runs[i].TTLNanos)
			t.Logf("%s / %s said %s %v %s in containers, while the machine stood still for %v: again with a TTL of %v\n%s",
				j.Scenario, j.Lock, told(runs[i]), runs[i].Mismatches, runs[i].Error, lags[i], j.TTL, complaints(runs[i]))
			again, _ := sideBySide(root, []store.Job{j}, 1)
			runs[i] = again[0]
		}
		if !agree(sims[i], runs[i]) {
			t.Errorf("%s / %s: sim says %s, container says %s %v %s\n%s",
				j.Scenario, j.Lock, told(sims[i]), told(runs[i]), runs[i].Mismatches, runs[i].Error, complaints(runs[i]))
		}
		out[j.Scenario+" "+j.Lock] = runs[i]
	}
	t.Logf("%d runs in containers took %v", len(jobs), time.Since(began).Round(time.Second))
	return out
}

func compareWorlds(t *testing.T, list []comparison) {
	var simulated, real []store.Job
	for _, c := range list {
		s, err := scenarios.Load(c.scenario)
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range s.Locks {
			simulated = append(simulated, store.Job{Scenario: c.scenario, Lock: lock, World: "sim", Seed: 1})
			real = append(real, store.Job{Scenario: c.scenario, Lock: lock, World: "process", Seed: 1, TTL: c.ttl})
		}
	}
	root := t.TempDir()
	inSim := campaign.Runner{Keep: campaign.Keep{Root: root}}.Play(context.Background(), simulated)
	onServers, lags := sideBySide(root, real, 8)
	// Real time has its price: on a machine that stands still for a good part
	// of a TTL, in the harness or in one of its clients, the story that a
	// scenario tells in fortieths of it is another one. A run that disagrees is
	// told with all its complaints and played once more, alone and with time
	// enough; then the worlds must agree in everything.
	for i, s := range inSim {
		if agree(s, onServers[i]) {
			continue
		}
		patience := real[i]
		patience.TTL = 4 * time.Duration(onServers[i].TTLNanos)
		t.Logf("%s / %s said %s %v, while the machine stood still for %v: again with a TTL of %v\n%s",
			s.Scenario, s.Lock, told(onServers[i]), onServers[i].Mismatches, lags[i], patience.TTL, complaints(onServers[i]))
		again, lag := sideBySide(root, []store.Job{patience}, 1)
		onServers[i], lags[i] = again[0], lag[0]
	}
	boxed := inContainers(t, root, real, inSim)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tlock\tsim\tprocess\twall\tcontainer\twall")
	for i, s := range inSim {
		p := onServers[i]
		in, wall := "-", "-"
		if c, played := boxed[s.Scenario+" "+s.Lock]; played {
			in, wall = told(c), fmt.Sprintf("%.1fs", c.WallSeconds)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1fs\t%s\t%s\n", s.Scenario, s.Lock, told(s), told(p), p.WallSeconds, in, wall)
		if !agree(s, p) {
			t.Errorf("%s / %s: sim says %s, process says %s %v %s (the machine stood still for %v at most)\n%s",
				s.Scenario, s.Lock, told(s), told(p), p.Mismatches, p.Error, lags[i], complaints(p))
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &table)
	publish(t, table.String())
}

// publish appends a table to the file that HOLDFAST_PARITY names: go test shows
// nothing of a test that passes, and "make test" prints the file.
func publish(t *testing.T, table string) {
	t.Helper()
	path := os.Getenv("HOLDFAST_PARITY")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(table + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// agree says whether real servers told what the simulator did, and nothing that
// the scenario does not expect.
func agree(sim, real reports.Run) bool {
	return told(sim) == told(real) && real.Error == "" && reports.Stand(real) == reports.AsExpected
}

// complaints are the sentences of all violations of a run.
func complaints(r reports.Run) string {
	var lines strings.Builder
	for _, c := range r.Checks {
		for _, v := range c.Violations {
			fmt.Fprintf(&lines, "  %s: %s\n", c.Name, v.Summary)
		}
	}
	return lines.String()
}

// sideBySide plays runs on real servers, several at a time since they mostly
// wait, and measures for each how late a timer came at worst.
func sideBySide(root string, jobs []store.Job, width int) ([]reports.Run, []time.Duration) {
	runs, lags := make([]reports.Run, len(jobs)), make([]time.Duration, len(jobs))
	places := make(chan struct{}, width)
	var all sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			over, worst := make(chan struct{}), make(chan time.Duration)
			go watchTimers(over, worst)
			runs[i], _ = campaign.Play(context.Background(), j, root)
			close(over)
			lags[i] = <-worst
		})
	}
	all.Wait()
	return runs, lags
}

// watchTimers sleeps in short naps and reports by how much the worst one was
// too long.
func watchTimers(over <-chan struct{}, worst chan<- time.Duration) {
	const nap = 5 * time.Millisecond
	lag := time.Duration(0)
	for {
		began := time.Now()
		select {
		case <-over:
			worst <- lag
			return
		case <-time.After(nap):
			lag = max(lag, time.Since(began)-nap)
		}
	}
}

// told is what both worlds must agree on: the verdict, and what the checks
// say that are the point of a scenario.
func told(r reports.Run) string {
	words := []string{string(r.Verdict)}
	for _, c := range r.Checks {
		if (c.Name == "exclusion" || c.Name == "updates" || c.Name == "fencing") && c.Verdict != checker.Pass && c.Applies {
			words = append(words, c.Name+" "+reports.Outcome([]checker.Result{c}, c.Verdict))
		}
	}
	return strings.Join(words, ", ")
}

// TestWhatAWorldCannotDo is never a pass.
func TestWhatAWorldCannotDo(t *testing.T) {
	needServers(t)
	invoke(t, "run", "pause-during-acquire", "--lock", "redlock", "--on", "process", "--out", t.TempDir()).
		want(t, reports.ExitUnknown, "UNKNOWN", "the process world cannot do: pause-inside-acquire")
}
