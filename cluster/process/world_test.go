package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// clientEnv turns the test binary into a small client: it prints the machine's
// monotonic clock every millisecond.
const clientEnv = "HOLDFAST_TEST_CLIENT"

// worldEnv turns the test binary into a harness with a world in the folder
// named, which prints the pid of its node and waits to be killed.
const worldEnv = "HOLDFAST_TEST_WORLD"

// worldTopologyEnv is that world's topology. The node of another store than
// Redis is stalled before its pid is printed.
const worldTopologyEnv = "HOLDFAST_TEST_TOPOLOGY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(worldEnv); dir != "" {
		topology := cluster.Topology(os.Getenv(worldTopologyEnv))
		w, err := Start(context.Background(), Config{Topology: topology, Nodes: 1, Clients: 1, Dir: dir})
		if err == nil && topology.Store() {
			err = w.Stall(context.Background(), "n1")
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(w.nodes["n1"].server.(*localServer).child.pid)
		select {}
	}
	if os.Getenv(clientEnv) != "" {
		for {
			fmt.Println(Monotonic())
			time.Sleep(time.Millisecond)
		}
	}
	code := m.Run()
	if err := drained(5 * time.Second); code == 0 && err != nil {
		fmt.Fprintf(os.Stderr, "goroutines left behind: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// drained waits for the goroutines of closed clients. go-redis's pool redials
// a dead node in a loop that sleeps a second between two looks at whether it
// was closed (pool.go, tryDial), so it may outlive its pool by that long.
func drained(bound time.Duration) error {
	var err error
	for end := time.Now().Add(bound); time.Now().Before(end); {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}

// need skips a test on a machine without the servers, visibly, and fails it
// where they were promised.
func need(t *testing.T) {
	t.Helper()
	if err := Available(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("real servers are missing: %v", err)
		}
		t.Skipf("real servers are missing: %v", err)
	}
}

// record is what a world reported.
type record struct {
	mu     sync.Mutex
	events []history.Server
	at     []int64
}

func (r *record) add(ev history.Server, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.at = append(r.events, ev), append(r.at, at)
}

// lines are the events of a node in short.
func (r *record) lines(node string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, ev := range r.events {
		if ev.Node == node {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s owner=%s reply=%s value=%s",
				ev.Client, ev.Cmd, ev.Key, ev.Owner, ev.Reply, ev.Value)))
		}
	}
	return lines
}

func start(t *testing.T, topology cluster.Topology, nodes, clients int, adapt ...func(*Config)) *World {
	t.Helper()
	need(t)
	t.Parallel()
	cfg := Config{
		Topology: topology, Nodes: nodes, Clients: clients, LockNames: []string{"lock"}, Dir: t.TempDir() + "/scratch",
	}
	for _, f := range adapt {
		f(&cfg)
	}
	begin := time.Now()
	w, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s with %d nodes started in %s", topology, nodes, time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		begin := time.Now()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("closed in %s", time.Since(begin).Round(time.Millisecond))
	})
	return w
}

// readTimeout must outlast a stutter of a busy machine, and is waited for in
// full by every test of a lost message.
const readTimeout = 500 * time.Millisecond

// dial gives a client's warm connection, without retries, so that every
// outcome is seen as it is.
func dial(t *testing.T, w *World, client, endpoint string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: w.Endpoints(client)[endpoint], ClientName: client, MaxRetries: -1, PoolSize: 1,
		ReadTimeout: readTimeout, WriteTimeout: readTimeout, DialTimeout: time.Second, DialerRetries: 1,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = c.Close() }) // nothing depends on it
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("%s to %s: %v", client, endpoint, err)
	}
	return c
}

// stored is what a node holds, asked past all proxies.
func stored(t *testing.T, w *World, node, key string) string {
	t.Helper()
	value, err := w.nodes[node].direct.Get(t.Context(), key).Result()
	if err == redis.Nil {
		return ""
	}
	if err != nil {
		t.Fatalf("node %s: %v", node, err)
	}
	return value
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTopologiesStartAndLeaveNothingBehind(t *testing.T) {
	for _, c := range []struct {
		topology cluster.Topology
		nodes    int
		endpoint string
	}{
		{topology: cluster.Single, nodes: 1, endpoint: "n1"},
		{topology: cluster.Independent, nodes: 5, endpoint: "n5"},
		{topology: cluster.Replicated, nodes: 3, endpoint: cluster.Primary},
		{topology: cluster.RedisCluster, nodes: 6, endpoint: "n2"}, // which has the slot of "lock"
	} {
		t.Run(string(c.topology), func(t *testing.T) {
			r := new(record)
			w := start(t, c.topology, c.nodes, 2, func(cfg *Config) { cfg.OnServer = r.add })
			must(t, dial(t, w, "c2", c.endpoint).Set(t.Context(), "lock", "v", 0).Err())
			if c.topology == cluster.Replicated {
				eventually(t, "replicated", func() bool { return stored(t, w, "n3", "lock") == "v" })
			}
			var pids []int
			for _, n := range w.nodes {
				pids = append(pids, n.server.(*localServer).child.pid)
			}
			addrs := w.Endpoints("c1")
			must(t, w.Close())
			for _, pid := range pids {
				if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
					t.Errorf("process %d is still there", pid)
				}
				for _, file := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
					if _, err := os.Stat("/dev/shm/" + fmt.Sprintf(file, pid)); err == nil {
						t.Errorf("%s of %d is still there", file, pid)
					}
				}
			}
			for name, addr := range addrs {
				if !refused(t, addr) {
					t.Errorf("%s still listens on %s", name, addr)
				}
			}
			if _, err := os.Stat(w.cfg.Dir); !os.IsNotExist(err) {
				t.Errorf("the scratch folder is still there: %v", err)
			}
			if got := r.lines("n1"); c.topology == cluster.Single &&
				(len(got) < 2 || !strings.HasPrefix(got[len(got)-1], "left lock")) {
				t.Errorf("the key that was left is not reported: %q", got)
			}
		})
	}
}

func TestClientsArePausedAndCrashed(t *testing.T) {
	var out ticks
	exits := make(chan error, 1)
	w := start(t, cluster.Single, 1, 1, func(cfg *Config) {
		cfg.OnClientExit = func(_ string, err error) { exits <- err }
	})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clientEnv+"=1")
	cmd.Stdout = &out
	must(t, w.StartClient("c1", cmd))
	if err := w.StartClient("c1", exec.Command("true")); err == nil {
		t.Error("a running client was started again")
	}
	eventually(t, "the client ticks", func() bool { return out.count() > 3 })
	must(t, w.PauseClient(t.Context(), "c1"))
	time.Sleep(20 * time.Millisecond) // what is in the pipe comes through
	before := out.count()
	time.Sleep(100 * time.Millisecond)
	if now := out.count(); now != before {
		t.Errorf("a paused client ticked %d times", now-before)
	}
	must(t, w.ResumeClient(t.Context(), "c1"))
	eventually(t, "the client ticks again", func() bool { return out.count() > before+3 })
	must(t, w.PauseClient(t.Context(), "c1"))
	must(t, w.CrashClient(t.Context(), "c1"))
	if err := <-exits; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the exit of a crashed client is %v", err)
	}
	if err := w.PauseClient(t.Context(), "c1"); err == nil {
		t.Error("a dead client was paused")
	}
}

// ticks counts lines.
type ticks struct {
	mu sync.Mutex
	n  int
}

func (c *ticks) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += strings.Count(string(b), "\n")
	return len(b), nil
}

func (c *ticks) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for !ok() {
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			t.Fatalf("not in 5 s: %s", what)
		}
	}
}

// TestCloseWhateverIsBroken: nothing that is broken may hold up the end.
func TestCloseWhateverIsBroken(t *testing.T) {
	r := new(record)
	w := start(t, cluster.Replicated, 3, 2, func(cfg *Config) { cfg.OnServer = r.add })
	ctx := t.Context()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clientEnv+"=1")
	must(t, w.StartClient("c1", cmd))
	must(t, w.PauseClient(ctx, "c1"))
	client := dial(t, w, "c2", "n1")
	must(t, w.Delay(ctx, cluster.Link{From: "c2", To: "n1"}, time.Hour))
	if err := client.Set(ctx, "lock", "v", 0).Err(); !timedOut(err) {
		t.Errorf("a delayed command says %v", err)
	}
	must(t, w.Cut(ctx, cluster.Link{From: "n1", To: "n2"}, cluster.Drop))
	must(t, w.Cut(ctx, cluster.Link{From: "n3", To: "n1"}, cluster.Reset))
	must(t, w.Stall(ctx, "n2"))
	must(t, w.Kill(ctx, "n3"))
	begin := time.Now()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("the end took %s", d)
	}
	if err := w.StartClient("c1", exec.Command("true")); err == nil {
		t.Error("a client was started in a closed world")
	}
	if err := w.Restart(ctx, "n1", cluster.Keep); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a restart in a closed world says %v", err)
	}
}

func TestStartThatFailsLeavesNothing(t *testing.T) {
	need(t)
	dir := t.TempDir() + "/scratch"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Topology: cluster.Replicated, Nodes: 2, Clients: 1, Dir: dir}); err == nil {
		t.Error("a cancelled start succeeded")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the scratch folder is still there: %v", err)
	}
	for _, bad := range []Config{
		{Topology: "ring", Nodes: 1, Clients: 1},
		{Topology: cluster.Single, Nodes: 2, Clients: 1},
		{Topology: cluster.Independent, Nodes: 3},
	} {
		if _, err := Start(t.Context(), bad); err == nil {
			t.Errorf("a world was made of %+v", bad)
		}
	}
}

func TestNodesDieWithTheirParent(t *testing.T) {
	need(t)
	t.Parallel()
	out := make(chan string, 1)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), worldEnv+"="+t.TempDir()+"/scratch", worldTopologyEnv+"="+string(cluster.Single))
	cmd.Stdout = lineTo(out)
	must(t, cmd.Start())
	pid, err := strconv.Atoi(strings.TrimSpace(<-out))
	must(t, err)
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Error("the killed parent ended well")
	}
	eventually(t, "the node ends with its parent", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z")
	})
	must(t, removeFaketimeFiles(pid))
}

// lineTo sends the first thing that is written.
type lineTo chan string

func (c lineTo) Write(b []byte) (int, error) {
	select {
	case c <- string(b):
	default:
	}
	return len(b), nil
}
