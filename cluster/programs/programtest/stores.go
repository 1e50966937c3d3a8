package programtest

import (
	"testing"

	"github.com/holdfast-io/holdfast/cluster/programs"
)

// Etcd starts a cluster of n members.
func Etcd(t testing.TB, n int) []*Server {
	t.Helper()
	var all []programs.Member
	for i := range n {
		all = append(all, programs.Member{Name: name(i), Peer: Host() + ":2380"})
	}
	var servers []*Server
	var ready programs.Command
	for i := range n {
		addr := Host() + ":2379"
		cmd, err := programs.Etcd{
			Name: name(i), Dir: Dir(t), ListenClient: addr, ListenPeer: all[i].Peer, Cluster: all, Token: t.Name(),
		}.Command()
		ready = Or(t, cmd, err)
		servers = append(servers, Start(t, ready, addr))
	}
	Ready(t, ready.Ready, servers...)
	return servers
}

// ZooKeeper starts an ensemble of n servers.
func ZooKeeper(t testing.TB, n int) []*Server {
	t.Helper()
	var all []programs.Member
	for range n {
		host := Host()
		all = append(all, programs.Member{Peer: host + ":2888", Election: host + ":3888"})
	}
	var servers []*Server
	var ready programs.Command
	for i := range n {
		addr := Host() + ":2181"
		cmd, err := programs.ZooKeeper{ID: i + 1, Dir: Dir(t), ListenClient: addr, Ensemble: all}.Command()
		ready = Or(t, cmd, err)
		servers = append(servers, Start(t, ready, addr))
	}
	Ready(t, ready.Ready, servers...)
	return servers
}

// Postgres starts one server.
func Postgres(t testing.TB) *Server {
	t.Helper()
	addr := Host() + ":5432"
	cmd, err := programs.Postgres{Dir: Dir(t), Listen: addr}.Command()
	s := Start(t, Or(t, cmd, err), addr)
	Ready(t, cmd.Ready, s)
	return s
}

func name(i int) string { return "n" + string(rune('1'+i)) }
