package sim

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// inWorld runs f in a bubble with a world and closes it afterwards.
func inWorld(t testing.TB, cfg Config, f func(w *World)) {
	t.Helper()
	if err := Bubble(func() {
		w, err := New(cfg)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(w)
	}); err != nil {
		t.Fatal(err)
	}
}

// redisOf is a plain go-redis client of a world's client.
func redisOf(w *World, name string, node int) *redis.Client {
	return redis.NewClient(w.Endpoints(name)[node].Options())
}

func TestSetAndExpiryInVirtualTime(t *testing.T) {
	inWorld(t, Config{Topology: cluster.Single, Nodes: 1, Clients: 1}, func(w *World) {
		ctx := context.Background()
		rdb := redisOf(w, "c1", 0)
		defer rdb.Close()
		if ok, err := rdb.SetNX(ctx, "k", "v", 10*time.Second).Result(); !ok || err != nil {
			t.Errorf("SET NX: %v %v", ok, err)
		}
		if ok, err := rdb.SetNX(ctx, "k", "w", 10*time.Second).Result(); ok || err != nil {
			t.Errorf("second SET NX: %v %v", ok, err)
		}
		time.Sleep(9 * time.Second)
		if left := rdb.PTTL(ctx, "k").Val(); left <= 0 || left > time.Second {
			t.Errorf("PTTL after 9 s of 10: %v", left)
		}
		time.Sleep(1100 * time.Millisecond)
		if _, err := rdb.Get(ctx, "k").Result(); err != redis.Nil {
			t.Errorf("GET after expiry: %v", err)
		}
		got, err := redis.NewScript(`return redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])`).Run(ctx, rdb, []string{"k"}, "x", 5000).Result()
		if err != nil || got != "OK" {
			t.Errorf("script: %v %v", got, err)
		}
	})
}

// perSecond runs f b.N times in a world and reports commands per second of
// wall time. The benchmark's own clock must not be read inside the bubble,
// where it is virtual.
func perSecond(b *testing.B, commands int, f func(ctx context.Context, rdb *redis.Client) error) {
	began := time.Now()
	inWorld(b, Config{Topology: cluster.Single, Nodes: 1, Clients: 1, LockNames: []string{"lock"}, OnServer: func(history.Server) {}}, func(w *World) {
		ctx := context.Background()
		rdb := redisOf(w, "c1", 0)
		defer rdb.Close()
		for range b.N {
			if err := f(ctx, rdb); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(commands*b.N)/time.Since(began).Seconds(), "commands/s")
}

// BenchmarkSetDel is an acquire and a release of the simplest lock, with the
// server trace on.
func BenchmarkSetDel(b *testing.B) {
	perSecond(b, 2, func(ctx context.Context, rdb *redis.Client) error {
		if err := rdb.SetNX(ctx, "lock", "token", 10*time.Second).Err(); err != nil {
			return err
		}
		return rdb.Del(ctx, "lock").Err()
	})
}

// BenchmarkEval is a grant by script, with the server trace on.
func BenchmarkEval(b *testing.B) {
	script := redis.NewScript(`if redis.call("exists", KEYS[1]) == 0 or redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2]) end return 0`)
	perSecond(b, 1, func(ctx context.Context, rdb *redis.Client) error {
		return script.Run(ctx, rdb, []string{"lock"}, "token", 10000).Err()
	})
}
