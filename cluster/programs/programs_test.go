package programs_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster/programs"
	"github.com/holdfast-io/holdfast/cluster/programs/programtest"
)

// What others dial and what a member listens on are two things, and the least
// lease of a second needs the short election.
func TestEtcdArguments(t *testing.T) {
	t.Parallel()
	e := programs.Etcd{
		Name: "n2", Dir: "/d", ListenClient: "127.0.0.2:2379", ListenPeer: "127.0.0.2:2380",
		Cluster: []programs.Member{{Name: "n1", Peer: "127.0.1.1:80"}, {Name: "n2", Peer: "127.0.1.2:80"}},
	}
	cmd, err := e.Command()
	cmd = programtest.Or(t, cmd, err)
	line := strings.Join(cmd.Args, " ")
	for _, want := range []string{
		"--listen-peer-urls http://127.0.0.2:2380", "--initial-advertise-peer-urls http://127.0.1.2:80",
		"--initial-cluster n1=http://127.0.1.1:80,n2=http://127.0.1.2:80", "--heartbeat-interval 50 --election-timeout 500",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
	e.Name = "n3"
	if _, err := e.Command(); err == nil || !strings.Contains(err.Error(), "none of its cluster's members") {
		t.Errorf("a stranger: %v", err)
	}
}

func TestZooKeeperConfiguration(t *testing.T) {
	t.Parallel()
	z := programs.ZooKeeper{
		ID: 2, Dir: "/d", ListenClient: "127.0.0.2:2181",
		Ensemble: []programs.Member{{Peer: "127.0.1.1:28", Election: "127.0.1.1:38"}, {Peer: "127.0.0.2:2888", Election: "127.0.0.2:3888"}},
	}
	cmd, err := z.Command()
	cmd = programtest.Or(t, cmd, err)
	for _, want := range []string{
		"server.1=127.0.1.1:28:38\n", "server.2=127.0.0.2:2888:3888\n", "tickTime=200\n", "clientPortAddress=127.0.0.2\n",
	} {
		if !strings.Contains(cmd.Files[0].Text, want) {
			t.Errorf("no %q in %s", want, cmd.Files[0].Text)
		}
	}
	if cmd.Files[1].Text != "2\n" {
		t.Errorf("myid %q", cmd.Files[1].Text)
	}
	z.ID = 3
	if _, err := z.Command(); err == nil || !strings.Contains(err.Error(), "none of an ensemble of 2") {
		t.Errorf("a stranger: %v", err)
	}
}

// Without a program the error says so, and callers can tell.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := programs.FindEtcd(); !errors.Is(err, programs.ErrMissing) {
		t.Errorf("etcd: %v", err)
	}
	if _, _, err := programs.FindZooKeeper(); !errors.Is(err, programs.ErrMissing) {
		t.Errorf("ZooKeeper: %v", err)
	}
}

// A member of a cluster whose majority is away is not ready, though it listens.
func TestReadyWantsALeader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	other := programs.Member{Name: "n2", Peer: programtest.Host() + ":2380", Election: programtest.Host() + ":3888"}
	host, addr := programtest.Host(), programtest.Host()
	own := programs.Member{Name: "n1", Peer: host + ":2380", Election: host + ":3888"}
	etcd, err := programs.Etcd{
		Name: "n1", Dir: programtest.Dir(t), ListenClient: addr + ":2379", ListenPeer: own.Peer, Cluster: []programs.Member{own, other},
	}.Command()
	etcd = programtest.Or(t, etcd, err)
	zk, err := programs.ZooKeeper{
		ID: 1, Dir: programtest.Dir(t), ListenClient: addr + ":2181", Ensemble: []programs.Member{own, other},
	}.Command()
	zk = programtest.Or(t, zk, err)
	for port, cmd := range map[string]programs.Command{":2379": etcd, ":2181": zk} {
		s := programtest.Start(t, cmd, addr+port)
		// Until it listens; that alone is not ready.
		for try := 0; ; try++ {
			conn, err := s.Dial(ctx)
			if err == nil {
				conn.Close()
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %v", port, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		try, end := context.WithTimeout(ctx, 2*time.Second)
		if err := cmd.Ready(try, s.Dial); err == nil {
			t.Errorf("%s is ready without a majority", port)
		}
		end()
	}
}

// Whatever runs, a stop leaves nothing on the port.
func TestServersStartAndStop(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) []*programtest.Server{
		"etcd":      func(t testing.TB) []*programtest.Server { return programtest.Etcd(t, 3) },
		"zookeeper": func(t testing.TB) []*programtest.Server { return programtest.ZooKeeper(t, 3) },
		"postgres":  func(t testing.TB) []*programtest.Server { return []*programtest.Server{programtest.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range slices.Backward(start(t)) {
				s.Stop()
				if conn, err := net.DialTimeout("tcp", s.Addr, time.Second); err == nil {
					conn.Close()
					t.Errorf("%s still listens", s.Addr)
				}
			}
		})
	}
}
