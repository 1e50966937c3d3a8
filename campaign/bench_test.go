package campaign

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// BenchmarkRun is a whole run, from the scenario's name to the judged history:
// Kleppmann's pause on redlock over five nodes with a TTL of 30 s.
func BenchmarkRun(b *testing.B) {
	for _, lock := range []string{"redlock", "basic"} {
		b.Run(lock, func(b *testing.B) {
			virtual, seed := 0.0, uint64(0)
			began := time.Now()
			for b.Loop() {
				seed++
				run, _ := Play(context.Background(), store.Job{
					Scenario: "kleppmann-gc-pause", Lock: lock, World: "sim", Seed: seed, TTL: 30 * time.Second,
				}, "")
				if reports.Stand(run) != reports.AsExpected {
					b.Fatalf("%s: %v %s", run.Repeat, run.Mismatches, run.Error)
				}
				virtual += run.VirtualSeconds
			}
			wall := time.Since(began).Seconds()
			b.ReportMetric(virtual/wall, "virtual-s/s")
			b.ReportMetric(float64(seed)/wall, "runs/s")
		})
	}
}

// BenchmarkMemory plays many runs and reports how much the heap has grown
// between the first hundred and the last.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	job := store.Job{Scenario: "kleppmann-gc-pause", Lock: "basic", World: "sim", TTL: 30 * time.Second}
	for i := range 100 {
		job.Seed = uint64(i)
		Play(context.Background(), job, "")
	}
	before := heap()
	for b.Loop() {
		job.Seed++
		Play(context.Background(), job, "")
	}
	b.ReportMetric(heap()-before, "MiB-grown")
}
