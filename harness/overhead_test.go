package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// bareVerb turns this test program into a client without a harness.
const bareVerb = "bare"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case WorkerVerb:
			exitOn(Work(context.Background(), os.Stdin, os.Stdout))
		case bareVerb:
			exitOn(bare(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bare plays the rounds of a workload as an application would, for a second,
// and prints how many there were.
func bare(text string) error {
	var a assignment
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	entry, _ := catalogue.Find(a.Lock)
	locks, err := buildLocks(entry, a.Workload, a.Mark, impl.Env{Client: a.Client, Nodes: a.endpoints(), TTL: a.TTL})
	if err != nil {
		return err
	}
	store := storage{dial: func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, a.Resource) }}
	rounds, ctx := 0, context.Background()
	for end := time.Now().Add(time.Second); time.Now().Before(end); rounds++ {
		lease, err := locks[0].Acquire(ctx)
		if err != nil {
			return err
		}
		if a.Resource != "" {
			got, err := store.call(ctx, time.Second, request{F: history.Read})
			if err != nil {
				return err
			}
			if _, err := store.call(ctx, time.Second, request{F: history.Write, Seen: got.Version}); err != nil {
				return err
			}
		}
		if err := lease.Release(ctx); err != nil {
			return err
		}
	}
	fmt.Println(rounds)
	return nil
}

// BenchmarkOverhead is what the harness costs a lock in the process world: the
// rounds of one client in a second, recorded and traced, against the same
// rounds in a bare loop through the same proxies to the same server. The two
// take turns in one run, and the ratio is that of the medians.
func BenchmarkOverhead(b *testing.B) {
	if err := process.Available(); err != nil {
		b.Skip(err)
	}
	for _, kind := range []string{scenarios.Permits, scenarios.Update} {
		name := map[string]string{scenarios.Permits: "lock", scenarios.Update: "lock-read-write"}[kind]
		b.Run(name, func(b *testing.B) {
			var through, bare []float64
			for b.Loop() {
				with, without := overhead(b, kind)
				through, bare = append(through, with), append(bare, without)
			}
			slices.Sort(through)
			slices.Sort(bare)
			b.ReportMetric(through[len(through)/2], "locks/s")
			b.ReportMetric(bare[len(bare)/2], "bare-locks/s")
			b.ReportMetric(through[len(through)/2]/bare[len(bare)/2], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// overhead plays one run of a second through the harness, and then a bare
// loop of a second in its world.
func overhead(b *testing.B, kind string) (with, without float64) {
	b.Helper()
	entry, _ := catalogue.Find("basic")
	cfg := Config{
		World: cluster.Process, Lock: entry, TTL: time.Second, Dir: b.TempDir(), Topology: cluster.Single,
		Scenario: &scenarios.Scenario{
			Name: "overhead", Clients: 1, Length: nemesis.TTLs(1),
			Workload: scenarios.Workload{
				Kind: kind, AcquireTimeout: nemesis.TTLs(4), CallTimeout: nemesis.TTLs(1), WriteTimeout: nemesis.TTLs(4),
			},
		},
	}
	r := newProcRun(cfg)
	if err := r.setUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			b.Fatal(err)
		}
	}()
	if err := r.begin(); err != nil {
		b.Fatal(err)
	}
	r.sleep(b.Context(), time.Second)
	r.finish(b.Context(), false)
	granted := 0
	for _, ev := range r.rec.Events() {
		if ev.Op != nil && ev.Op.F == history.Acquire && ev.Op.Type == history.OK && ev.T <= int64(time.Second) {
			granted++
		}
	}
	a := r.assign(0, "c1")
	a.Mark = "bare:"
	if kind == scenarios.Permits {
		a.Resource = ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	out, err := exec.Command(os.Args[0], bareVerb, string(text)).Output()
	if err != nil {
		b.Fatal(err)
	}
	rounds, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		b.Fatal(err)
	}
	return float64(granted), float64(rounds)
}
