package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// contention is a run with all that could make two runs differ: clients that
// meet, faults, pauses, replication, expiry. It returns the trace as bytes.
func contention(t *testing.T, seed uint64) string {
	t.Helper()
	var mu sync.Mutex // instants are apart, which the race detector cannot know
	var out strings.Builder
	cfg := Config{Topology: cluster.Replicated, Nodes: 3, Clients: 4, Seed: seed, LockNames: []string{"lock"}, ReplicationLag: time.Millisecond,
		OnServer: func(ev history.Server) {
			line, err := json.Marshal(ev)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&out, string(line))
		}}
	// go-redis draws the pauses between its retries from the global source.
	//lint:ignore SA1019 this is the very source that go-redis draws from
	rand.Seed(int64(seed))
	inWorld(t, cfg, func(w *World) {
		ctx := context.Background()
		var all sync.WaitGroup
		for i, name := range w.Clients() {
			all.Go(func() {
				rdb := redis.NewClient(w.Endpoints(name)[0].Options())
				defer rdb.Close()
				time.Sleep(time.Duration(i) * time.Millisecond)
				for n := range 60 {
					// Replies do not matter here; faults make many of them errors.
					_ = rdb.SetNX(ctx, "lock", fmt.Sprintf("%s-%d", name, n), 20*time.Millisecond).Err()
					_ = rdb.Eval(ctx, "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
						[]string{"lock"}, fmt.Sprintf("%s-%d", name, n)).Err()
					w.Step(name)
				}
			})
		}
		for _, fault := range []func() error{
			func() error { return w.PauseClient(ctx, "c2") },
			func() error { return w.Cut(ctx, cluster.Link{From: "n1", To: "c1"}, cluster.Drop) },
			func() error { return w.ResumeClient(ctx, "c2") },
			func() error { return w.Mend(ctx, cluster.Link{From: "n1", To: "c1"}) },
			func() error { return w.JumpClock(ctx, "n1", time.Second) },
			func() error { return w.Stall(ctx, "n1") },
			func() error { return w.Unstall(ctx, "n1") },
			func() error { return w.Promote(ctx, "n2") },
			func() error { return w.Kill(ctx, "n2") },
			func() error { return w.Promote(ctx, "n3") },
			func() error { return w.Restart(ctx, "n2", cluster.Lose) },
		} {
			time.Sleep(7 * time.Millisecond)
			if err := fault(); err != nil {
				t.Error(err)
			}
		}
		all.Wait()
	})
	return out.String()
}

func TestSameSeedSameBytes(t *testing.T) {
	first := contention(t, 1)
	if lines := strings.Count(first, "\n"); lines < 200 {
		t.Fatalf("only %d events: the run proves nothing", lines)
	}
	for _, cores := range []int{1, 2, runtime.NumCPU()} {
		old := runtime.GOMAXPROCS(cores)
		for range 5 {
			if again := contention(t, 1); again != first {
				t.Errorf("with %d cores the same seed gave another trace: %s", cores, firstDifference(first, again))
			}
		}
		runtime.GOMAXPROCS(old)
	}
	if contention(t, 2) == first {
		t.Error("two seeds gave one trace")
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
