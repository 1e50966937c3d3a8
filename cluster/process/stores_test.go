package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-io/holdfast/cluster"
)

// startStore starts a world of another store, or skips the test visibly where
// this machine has none; where it was promised the test fails.
func startStore(t *testing.T, topology cluster.Topology, nodes int) *World {
	t.Helper()
	if err := AvailableFor(topology); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return start(t, topology, nodes, 2)
}

// ready asks a node through a client's own proxy.
func ready(w *World, client, name string, limit time.Duration) error {
	n := w.nodes[name]
	cmd, err := n.runs.(storeServer).describe(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return cmd.Ready(ctx, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", w.Endpoints(client)[name])
	})
}

// awaitServing waits until a node serves, or until it does not.
func awaitServing(t *testing.T, w *World, client, name string, want bool) {
	t.Helper()
	var last error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if last = ready(w, client, name, 2*time.Second); (last == nil) == want {
			return
		}
	}
	t.Fatalf("%s through %s: serves %t, want %t: %v", name, client, last == nil, want, last)
}

func do(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// cutPair cuts both directions between two parties, or mends them.
func cutPair(t *testing.T, w *World, a, b string, cut bool) {
	t.Helper()
	for _, l := range []cluster.Link{{From: a, To: b}, {From: b, To: a}} {
		if cut {
			do(t, "cut", w.Cut(t.Context(), l, cluster.Drop))
		} else {
			do(t, "mend", w.Mend(t.Context(), l))
		}
	}
}

// aroundProxies lists connections from server to server.
func aroundProxies(t *testing.T, w *World) (around []string, through int) {
	t.Helper()
	pids := map[string]int{}
	for name, n := range w.nodes {
		pids[name] = n.server.(*localServer).child.pid
	}
	for name, n := range w.nodes {
		for port, addr := range n.addrs {
			if port == clientPort {
				continue
			}
			own := netip.MustParseAddrPort(addr)
			for _, remote := range establishedTo(t, own) {
				through++
				inode := inodeOf(remote, own)
				for other, pid := range pids {
					if inode != "" && holds(pid, "socket:["+inode+"]") {
						around = append(around, fmt.Sprintf("%s to %s:%s", other, name, port))
					}
				}
			}
		}
	}
	return around, through
}

// establishedTo lists the far ends of the connections at a local address.
func establishedTo(t *testing.T, own netip.AddrPort) []netip.AddrPort {
	t.Helper()
	var out []netip.AddrPort
	for table, local := range map[string]string{"/proc/net/tcp": hex4(own), "/proc/net/tcp6": hex4in6(own)} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 4 || fields[1] != local || fields[3] != "01" {
				continue
			}
			ip, port, _ := strings.Cut(fields[2], ":")
			var b [4]byte
			for i := range b {
				at := len(ip) - 2*(i+1)
				x, err := strconv.ParseUint(ip[at:at+2], 16, 8)
				do(t, "parse an address", err)
				b[i] = byte(x)
			}
			x, err := strconv.ParseUint(port, 16, 16)
			do(t, "parse a port", err)
			out = append(out, netip.AddrPortFrom(netip.AddrFrom4(b), uint16(x)))
		}
		_ = f.Close() // only read from
	}
	return out
}

// An ensemble lives through the loss of one member, however it is lost, and no
// word between two members goes around the proxies.
func TestEnsemble(t *testing.T) {
	for _, topology := range []cluster.Topology{cluster.Etcd, cluster.ZooKeeper} {
		t.Run(string(topology), func(t *testing.T) {
			w := startStore(t, topology, 3)
			ctx := t.Context()
			for _, name := range w.Nodes() {
				awaitServing(t, w, "c1", name, true)
			}

			// A client's own link, and nobody else's.
			cutPair(t, w, "c1", "n2", true)
			if err := ready(w, "c1", "n2", 300*time.Millisecond); err == nil {
				t.Error("c1 reaches n2 over a link that is cut")
			}
			awaitServing(t, w, "c2", "n2", true)
			cutPair(t, w, "c1", "n2", false)

			// n1 without the others is no majority, and they are one without it.
			cutPair(t, w, "n1", "n2", true)
			cutPair(t, w, "n1", "n3", true)
			awaitServing(t, w, "c1", "n1", false)
			awaitServing(t, w, "c1", "n2", true)
			awaitServing(t, w, "c1", "n3", true)
			cutPair(t, w, "n1", "n2", false)
			cutPair(t, w, "n1", "n3", false)
			awaitServing(t, w, "c1", "n1", true)

			// A pair alone: a majority finds a way.
			cutPair(t, w, "n2", "n3", true)
			awaitServing(t, w, "c1", "n1", true)
			cutPair(t, w, "n2", "n3", false)

			// Killed and started again, with its data; a lost majority is one.
			do(t, "kill", w.Kill(ctx, "n3"))
			awaitServing(t, w, "c1", "n1", true)
			do(t, "kill", w.Kill(ctx, "n1"))
			awaitServing(t, w, "c1", "n2", false)
			do(t, "restart", w.Restart(ctx, "n1", cluster.Keep))
			awaitServing(t, w, "c1", "n2", true)
			do(t, "restart", w.Restart(ctx, "n3", cluster.Keep))
			for _, name := range w.Nodes() {
				awaitServing(t, w, "c1", name, true)
			}
			if err := w.Restart(ctx, "n1", cluster.Lose); !errors.Is(err, cluster.ErrUnsupported) {
				t.Errorf("restart without data: %v", err)
			}

			do(t, "stall", w.Stall(ctx, "n2"))
			if err := ready(w, "c1", "n2", 300*time.Millisecond); err == nil {
				t.Error("n2 answers while it is stalled")
			}
			awaitServing(t, w, "c1", "n3", true)
			do(t, "unstall", w.Unstall(ctx, "n2"))
			awaitServing(t, w, "c1", "n2", true)

			around, through := aroundProxies(t, w)
			if len(around) > 0 || through == 0 {
				t.Errorf("%d connections, and these go around the proxies: %v", through, around)
			}
		})
	}
}

// connectPostgres opens a session through a client's proxy.
func connectPostgres(t *testing.T, w *World, client string) *pgx.Conn {
	t.Helper()
	host, port, err := net.SplitHostPort(w.Endpoints(client)["n1"])
	do(t, "address", err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable", host, port))
	do(t, "connect", err)
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // its server may be gone
	return c
}

// A server with processes of its own is stopped, killed and moved in time as one.
func TestPostgres(t *testing.T) {
	w := startStore(t, cluster.Postgres, 1)
	ctx := t.Context()
	c := connectPostgres(t, w, "c1")
	_, err := c.Exec(ctx, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	do(t, "make a table", err)

	ahead := func(c *pgx.Conn) time.Duration {
		t.Helper()
		var now time.Time
		do(t, "ask for the time", c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now))
		return time.Until(now).Round(time.Second)
	}
	if off := ahead(c); off != 0 {
		t.Errorf("the clock is off by %v", off)
	}
	do(t, "jump", w.JumpClock(ctx, "n1", time.Minute))
	if off := ahead(c); off != time.Minute {
		t.Errorf("in an old session: off by %v after a jump of a minute", off)
	}
	if off := ahead(connectPostgres(t, w, "c2")); off != time.Minute {
		t.Errorf("in a new session: off by %v after a jump of a minute", off)
	}
	do(t, "reset", w.ResetClock(ctx, "n1"))
	if err := w.RateClock(ctx, "n1", 2); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("another rate: %v", err)
	}

	// The session's process is none of the server's group.
	do(t, "stall", w.Stall(ctx, "n1"))
	answer := make(chan error, 1)
	go func() { _, err := c.Exec(context.WithoutCancel(ctx), "SELECT 1"); answer <- err }()
	select {
	case err := <-answer:
		t.Errorf("a stalled server answers: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	do(t, "unstall", w.Unstall(ctx, "n1"))
	do(t, "after the stall", <-answer)

	pid := w.nodes["n1"].server.(*localServer).child.pid
	below, err := descendants(pid)
	if err != nil || len(below) < 2 {
		t.Fatalf("the server's processes: %v, %v", below, err)
	}
	do(t, "kill", w.Kill(ctx, "n1"))
	for _, p := range below {
		if !p.over() {
			t.Errorf("process %d lives on after a kill", p.pid)
		}
	}
	do(t, "restart", w.Restart(ctx, "n1", cluster.Keep))
	n := 0
	do(t, "read", connectPostgres(t, w, "c1").QueryRow(ctx, "SELECT n FROM kept").Scan(&n))
	if n != 1 {
		t.Errorf("read %d after a restart", n)
	}

	home := w.nodes["n1"].home
	pid = w.nodes["n1"].server.(*localServer).child.pid
	do(t, "stall", w.Stall(ctx, "n1")) // a world may end like that
	do(t, "close", w.Close())
	nothingLeft(t, pid, home)
}

// nothingLeft looks for what a server may leave outside its world's folder.
func nothingLeft(t *testing.T, pid int, home string) {
	t.Helper()
	if _, err := os.Stat(home); home != "" && err == nil {
		t.Errorf("%s is still there", home)
	}
	for _, pattern := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
		if _, err := os.Stat(fmt.Sprintf(pattern, pid)); err == nil {
			t.Errorf(pattern+" is still there", pid)
		}
	}
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	do(t, "shared memory", err)
	const creator = 4
	for line := range strings.Lines(string(segments)) {
		if fields := strings.Fields(line); len(fields) > creator && fields[creator] == strconv.Itoa(pid) {
			t.Errorf("shared memory is left: %s", line)
		}
	}
}

// A world that is killed while its PostgreSQL stands still leaves processes that
// do not notice. Whoever clears up after it ends them.
func TestRemainsOfPostgres(t *testing.T) {
	if err := AvailableFor(cluster.Postgres); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), worldEnv+"="+dir, worldTopologyEnv+"="+string(cluster.Postgres))
	out, err := cmd.StdoutPipe()
	do(t, "pipe", err)
	do(t, "start", cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	do(t, "read", err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the world says %q", line)
	}
	below, err := descendants(pid)
	do(t, "processes", err)
	home, err := filepath.EvalSymlinks(filepath.Join(dir, "n1"))
	do(t, "home", err)
	do(t, "kill", cmd.Process.Kill())
	_ = cmd.Wait() // killed
	do(t, "remove remains", RemoveRemains(dir))
	for _, p := range below {
		if !p.over() {
			t.Errorf("process %d lives on", p.pid)
		}
	}
	nothingLeft(t, pid, home)
}
