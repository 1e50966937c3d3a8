package campaign

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// everyCell is a job for each scenario and each of its locks.
func everyCell(seed uint64) []store.Job {
	var jobs []store.Job
	cells(func(scenario, lock string, want cell) {
		if want == unplayed {
			return
		}
		jobs = append(jobs, store.Job{Scenario: scenario, Lock: lock, World: string(cluster.Sim), Seed: seed})
	})
	return jobs
}

// onCores runs f with a number of cores for the scheduler.
func onCores(n int, f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	f()
}

// underLoad runs f beside goroutines that never rest, two a core, so that the
// scheduler stops the simulation at odd places.
func underLoad(f func()) {
	var stop atomic.Bool
	done := make(chan struct{})
	n := 2 * runtime.NumCPU()
	for range n {
		go func() {
			for !stop.Load() {
			}
			done <- struct{}{}
		}()
	}
	f()
	stop.Store(true)
	for range n {
		<-done
	}
}

// differ tells where two histories part.
func differ(a, b *history.History) string {
	if a == nil || b == nil {
		return "one has no history"
	}
	for i := range min(len(a.Events), len(b.Events)) {
		if x, y := fmt.Sprint(a.Events[i]), fmt.Sprint(b.Events[i]); x != y {
			return fmt.Sprintf("event %d of %d and %d:\n  %s\n  %s", i, len(a.Events), len(b.Events), x, y)
		}
	}
	return fmt.Sprintf("one has %d events, the other %d", len(a.Events), len(b.Events))
}

// TestSameSeedSameBytes: a run is a function of its seed. It does not depend
// on the number of cores, on what else the machine does, or on the runs that
// the process has played before.
func TestSameSeedSameBytes(t *testing.T) {
	sweeping(t)
	jobs := everyCell(1)
	first := make([]reports.Run, len(jobs))
	histories := make([]*history.History, len(jobs))
	onCores(1, func() {
		for i, j := range jobs {
			first[i], histories[i] = mustPlay(t, j)
		}
	})
	again := func(how string, every int) {
		for i := 0; i < len(jobs); i += every {
			j := jobs[i]
			run, h := mustPlay(t, j)
			if run.HistorySHA256 != first[i].HistorySHA256 {
				t.Errorf("%s: other bytes %s: %s", run.Repeat, how, differ(histories[i], h))
			}
		}
	}
	onCores(2, func() { again("on two cores", 1) })
	if !raced {
		onCores(2, func() { underLoad(func() { again("under load", 15) }) })
	}
	for _, env := range []string{"GOMAXPROCS=1", "GOMAXPROCS=2"} {
		// A child plays every other job or so, hence in another order.
		runs := Runner{Child: childOf(childServes, env)}.Play(context.Background(), jobs)
		for i, run := range runs {
			if run.HistorySHA256 != first[i].HistorySHA256 {
				t.Errorf("%s: other bytes in a process with %s: %s", run.Repeat, env, run.Error)
			}
		}
	}
}

func TestOtherSeedOtherBytes(t *testing.T) {
	for _, j := range everyCell(1) {
		one, _ := mustPlay(t, j)
		j.Seed = 2
		two, _ := mustPlay(t, j)
		if one.HistorySHA256 == two.HistorySHA256 {
			t.Errorf("%s: the seed changes nothing", two.Repeat)
		}
	}
}

// TestRandomPlansRepeat plays random plans twice: their faults meet each other
// in ways that no scenario has thought of.
func TestRandomPlansRepeat(t *testing.T) {
	sweeping(t)
	for _, c := range []struct {
		lock     string
		topology cluster.Topology
	}{
		{"reference", cluster.Single}, {"basic+fence", cluster.Single}, {"service", cluster.Single},
		{"watchdog", cluster.Replicated}, {"redlock", cluster.Independent},
	} {
		for seed := range uint64(max(plans()/100, 10)) {
			var one, two reports.Run
			var h1, h2 *history.History
			s := RandomScenario(seed, c.topology)
			onCores(1, func() { _, one, h1 = random(t, c.lock, c.topology, seed) })
			onCores(2, func() { _, two, h2 = random(t, c.lock, c.topology, seed) })
			if one.HistorySHA256 != two.HistorySHA256 {
				t.Errorf("%s on %s: %sother bytes on two cores: %s", c.lock, c.topology, planOf(s), differ(h1, h2))
			}
			if one.Error != "" || len(one.Leaks) > 0 {
				t.Errorf("%s on %s: %s%s", c.lock, c.topology, planOf(s), sentences(one))
			}
		}
	}
}
