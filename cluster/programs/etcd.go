package programs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Etcd is one member of an etcd cluster.
type Etcd struct {
	// Name of the member, as in Cluster.
	Name string
	// Dir is the data folder. A member that finds its data there goes on with
	// it; in an empty one it begins anew.
	Dir string
	// ListenClient and ListenPeer are the addresses, host:port, it listens on.
	ListenClient, ListenPeer string
	// AdvertiseClient is what it tells clients that ask for the members; empty
	// takes ListenClient. The locks here never ask.
	AdvertiseClient string
	// Cluster lists all members, this one included, by the addresses at which
	// they are dialled. It is the same for every member: etcd makes the
	// cluster's id of it.
	Cluster []Member
	// Token tells clusters apart that are started at the same addresses.
	Token string
	// Heartbeat and Election are etcd's own settings: 50 and 500 ms if zero,
	// half of its default. The least lease is 1.5 times Election, rounded up to
	// a second: 1 s with 500 ms. Source: minTTL in etcdserver.NewServer.
	Heartbeat, Election time.Duration

	_ struct{} // named fields only
}

// FindEtcd gives the path of the program.
func FindEtcd() (string, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("etcd: %w (%w)", ErrMissing, err)
	}
	return path, nil
}

// Command describes the member. It fails with [ErrMissing] where there is no
// etcd, and for a member that its own cluster does not list.
func (e Etcd) Command() (Command, error) {
	path, err := FindEtcd()
	if err != nil {
		return Command{}, err
	}
	var all []string
	own := ""
	for _, m := range e.Cluster {
		all = append(all, m.Name+"=http://"+m.Peer)
		if m.Name == e.Name {
			own = "http://" + m.Peer
		}
	}
	if own == "" {
		return Command{}, fmt.Errorf("etcd %s is none of its cluster's members", e.Name)
	}
	advertise := e.AdvertiseClient
	if advertise == "" {
		advertise = e.ListenClient
	}
	return Command{
		Path: path,
		Args: []string{
			"--name", e.Name,
			"--data-dir", e.Dir,
			"--listen-client-urls", "http://" + e.ListenClient,
			"--advertise-client-urls", "http://" + advertise,
			"--listen-peer-urls", "http://" + e.ListenPeer,
			"--initial-advertise-peer-urls", own,
			"--initial-cluster", strings.Join(all, ","),
			"--initial-cluster-token", "holdfast-" + e.Token,
			"--initial-cluster-state", "new", // members that have data go on with it
			"--heartbeat-interval", milliseconds(e.Heartbeat, 50*time.Millisecond),
			"--election-timeout", milliseconds(e.Election, 500*time.Millisecond),
			"--logger", "zap",
			"--log-outputs", "stderr",
		},
		Dirs:  []string{e.Dir},
		Stop:  syscall.SIGTERM,
		Ready: etcdReady,
	}, nil
}

// milliseconds is a length as etcd and ZooKeeper want it, or the default's.
func milliseconds(d, otherwise time.Duration) string {
	if d == 0 {
		d = otherwise
	}
	return fmt.Sprint(d.Milliseconds())
}

// etcdReady asks /health, which is well when a member knows a leader and a read
// through the quorum works.
func etcdReady(ctx context.Context, dial Dial) error {
	return talk(ctx, dial, func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<12))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"health":"true"`) {
			return fmt.Errorf("etcd says %s %s", resp.Status, body)
		}
		return nil
	})
}
