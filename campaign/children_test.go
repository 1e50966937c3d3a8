package campaign

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// manyJobs are enough of them for children.
func manyJobs(n int) []store.Job {
	var jobs []store.Job
	for seed := range uint64(n) {
		jobs = append(jobs, store.Job{Scenario: "kleppmann-gc-pause", Lock: "basic", World: string(cluster.Sim), Seed: seed + 1})
	}
	return jobs
}

// family keeps the commands of all children that a runner started.
type family struct {
	mu  sync.Mutex
	all []*exec.Cmd
	of  func() *exec.Cmd
}

func (f *family) child() *exec.Cmd {
	cmd := f.of()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, cmd)
	return cmd
}

// kill ends every child that has started, as the kernel does when memory is
// short.
func (f *family) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cmd := range f.all {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it may have ended by itself
		}
	}
}

// gone fails the test if a child was not waited for.
func (f *family) gone(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		t.Error("no child was started")
	}
	for i, cmd := range f.all {
		if cmd.ProcessState == nil {
			t.Errorf("child %d of %d is left", i+1, len(f.all))
		}
	}
}

func TestChildrenPlayAsThisProcessDoes(t *testing.T) {
	jobs := everyCell(7)
	f := &family{of: childOf(childServes)}
	var told []reports.Run
	theirs := Runner{Child: f.child, Done: func(r reports.Run) { told = append(told, r) }}.Play(t.Context(), jobs)
	f.gone(t)
	if len(theirs) != len(jobs) || len(told) != len(jobs) {
		t.Fatalf("%d runs and %d told of %d jobs", len(theirs), len(told), len(jobs))
	}
	for i, j := range jobs {
		run := theirs[i]
		if run.Scenario != j.Scenario || run.Lock != j.Lock {
			t.Errorf("job %d is %s of %s, not in the order of the jobs", i, run.Scenario, run.Lock)
		}
		if i%4 != 0 {
			continue // the rest is TestSameSeedSameBytes
		}
		mine, _ := mustPlay(t, j)
		mine.WallSeconds, run.WallSeconds = 0, 0
		if mine.HistorySHA256 != run.HistorySHA256 || mine.Outcome != run.Outcome ||
			reports.Stand(mine) != reports.Stand(run) || fmt.Sprint(mine.Expected) != fmt.Sprint(run.Expected) {
			t.Errorf("%s: a child says %s, this process %s", run.Repeat, run.Outcome, mine.Outcome)
		}
	}
}

// TestDyingChildCostsOneJob: a panic ends the process that plays the job, and
// nothing else. It is of this program's own code, so that it says nothing about
// the lock and the run has failed.
func TestDyingChildCostsOneJob(t *testing.T) {
	f := &family{of: childOf(childPanics)}
	jobs := manyJobs(12)
	runs := Runner{Child: f.child}.Play(t.Context(), jobs)
	f.gone(t)
	if len(runs) != len(jobs) {
		t.Fatalf("%d runs of %d jobs", len(runs), len(jobs))
	}
	for i, run := range runs {
		doomed := jobs[i].Seed == seedOfDoom
		switch {
		case !doomed && reports.Stand(run) != reports.AsExpected:
			t.Errorf("%s: %v %s", run.Repeat, reports.Stand(run), run.Error)
		case doomed && reports.Stand(run) != reports.Failed:
			t.Errorf("%s: %v, want failed", run.Repeat, reports.Stand(run))
		case doomed && (!strings.Contains(run.Error, "assignment to entry in nil map") ||
			!strings.Contains(run.Error, "renewerThatPanics")):
			t.Errorf("the error shows neither the panic nor its place: %s", run.Error)
		}
	}
}

// TestKilledChildIsReplaced: a child that the kernel ends costs at most the
// job that it plays.
func TestKilledChildIsReplaced(t *testing.T) {
	f := &family{of: childOf(childHangs)}
	jobs := manyJobs(12)
	done := 0
	runs := Runner{Child: f.child, Done: func(reports.Run) {
		if done++; done == len(jobs)-1 {
			f.kill() // only the one that hangs is at work
		}
	}}.Play(t.Context(), jobs)
	f.gone(t)
	if len(runs) != len(jobs) {
		t.Fatalf("%d runs of %d jobs", len(runs), len(jobs))
	}
	for i, run := range runs {
		want := reports.AsExpected
		if jobs[i].Seed == seedOfDoom {
			want = reports.Failed
		}
		if reports.Stand(run) != want {
			t.Errorf("%s: %v, want %v: %s", run.Repeat, reports.Stand(run), want, run.Error)
		}
	}
}

// TestCancelEndsChildren: Ctrl-C is obeyed within a moment, even by a child
// that hangs, and what has been played is kept.
func TestCancelEndsChildren(t *testing.T) {
	f := &family{of: childOf(childHangs)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	jobs := manyJobs(40)
	done := 0
	var cancelled time.Time
	runs := Runner{Child: f.child, Done: func(reports.Run) {
		if done++; done == 4 {
			cancelled = time.Now()
			cancel()
		}
	}}.Play(ctx, jobs)
	if took := time.Since(cancelled); took > 3*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	f.gone(t)
	if len(runs) < 4 || len(runs) > 8 {
		t.Errorf("%d runs of %d jobs, cancelled after 4", len(runs), len(jobs))
	}
}

func TestNoChildAtAll(t *testing.T) {
	nothing := func() *exec.Cmd { return exec.Command("/does/not/exist") }
	runs := Runner{Child: nothing}.Play(t.Context(), manyJobs(worthChildren))
	if len(runs) != worthChildren {
		t.Fatalf("%d runs", len(runs))
	}
	for _, run := range runs {
		if reports.Stand(run) != reports.Failed || !strings.Contains(run.Error, "start a child process") {
			t.Errorf("%v: %s", reports.Stand(run), run.Error)
		}
	}
}
