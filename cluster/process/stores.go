package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/programs"
)

// clientPort is the first port of every store: the one that locks dial.
const clientPort = "client"

// storeServer is what the servers of the other stores have in common: package
// programs describes them, and they are asked in their own words whether they
// serve.
//
// None of them tells what it executes, as Redis does, so there is no server
// trace, and none speaks in requests and replies that a proxy could count.
type storeServer struct {
	others []string // ports beside the one for clients
	// describe the server of a node.
	describe func(n *node) (programs.Command, error)
	// alone says that it is ready whatever its peers do.
	alone bool
	// jumps says that it sees the clock of libfaketime.
	jumps bool
	// forks says that its processes leave its process group.
	forks bool
	// user it runs as where this process is root.
	user string
}

var _ software = storeServer{}

func (s storeServer) ports() []string { return append([]string{clientPort}, s.others...) }

// program writes the files of the description, and runs what has to run before.
func (s storeServer) program(ctx context.Context, n *node) (Program, error) {
	cmd, err := s.describe(n)
	if err != nil {
		return Program{}, err
	}
	for _, dir := range cmd.Dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Program{}, err
		}
	}
	for _, f := range cmd.Files {
		if err := os.WriteFile(f.Path, []byte(f.Text), f.Mode); err != nil {
			return Program{}, err
		}
	}
	if cmd.Before != nil && !n.prepared() {
		if err := n.runFirst(ctx, s.asProgram(n, *cmd.Before)); err != nil {
			return Program{}, err
		}
	}
	return s.asProgram(n, cmd), nil
}

func (s storeServer) asProgram(n *node, cmd programs.Command) Program {
	return Program{
		Server: n.name, Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: n.dir, User: userOf(s.user),
		Output: filepath.Join(n.dir, logFile), Forks: s.forks,
	}
}

// userOf is whom to run as: nobody else where we are no root, who alone can
// choose.
func userOf(name string) string {
	if os.Geteuid() != 0 {
		return ""
	}
	return name
}

// preparedFile is there once a node's first program has done its work.
const preparedFile = "prepared"

func (n *node) prepared() bool {
	_, err := os.Stat(filepath.Join(n.dir, preparedFile))
	return err == nil
}

// runFirst runs a program to its end.
func (n *node) runFirst(ctx context.Context, p Program) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	s, err := n.w.place.Start(ctx, p)
	if err != nil {
		return err
	}
	select {
	case <-s.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s: %w", filepath.Base(p.Path), ctx.Err()), s.End(context.WithoutCancel(ctx)))
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(p.Path), err, n.logTail())
	}
	return os.WriteFile(filepath.Join(n.dir, preparedFile), nil, 0o600)
}

// probeLimit bounds one question to a store.
const probeLimit = 2 * time.Second

// probe asks whether the node serves, which most of them do only in sight of
// their peers. Once the world runs, a member that is restarted need only listen:
// whether it finds its peers is what a fault may be about.
func (s storeServer) probe(n *node) error {
	cmd, err := s.describe(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.w.ctx, probeLimit)
	defer cancel()
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", n.addr)
	}
	if s.alone || !n.w.booted.Load() {
		return cmd.Ready(ctx, dial)
	}
	c, err := dial(ctx)
	if err != nil {
		return err
	}
	return c.Close()
}

// started has nothing to do.
func (storeServer) started(context.Context, *node) error { return nil }

func (s storeServer) can(a cluster.Ability) bool {
	switch a {
	case cluster.CanRestartKept:
		return true
	case cluster.CanJumpClock:
		return s.jumps
	}
	return false
}

// etcdServer is a member of an etcd cluster. It is a Go program, which asks the
// kernel for the time and sees no preloaded clock.
func etcdServer() storeServer {
	return storeServer{others: []string{"peer"}, describe: func(n *node) (programs.Command, error) {
		var all []programs.Member
		for _, name := range n.w.nodeNames {
			host, port, err := n.w.announced(name, 1)
			if err != nil {
				return programs.Command{}, err
			}
			all = append(all, programs.Member{Name: name, Peer: net.JoinHostPort(host, port)})
		}
		return programs.Etcd{
			Name: n.name, Dir: filepath.Join(n.dir, "data"), Token: n.w.host,
			ListenClient: n.addr, ListenPeer: n.addrs["peer"], Cluster: all,
		}.Command()
	}}
}

// zookeeperServer is a member of a ZooKeeper ensemble. Java was not seen to work
// with a preloaded clock, and ZooKeeper counts its sessions on the monotonic one.
func zookeeperServer() storeServer {
	return storeServer{others: []string{"quorum", electionPort}, describe: func(n *node) (programs.Command, error) {
		var all []programs.Member
		id := 0
		for i, name := range n.w.nodeNames {
			if name == n.name {
				id = i + 1
				all = append(all, programs.Member{Name: name, Peer: n.addrs["quorum"], Election: n.addrs[electionPort]})
				continue
			}
			member := programs.Member{Name: name}
			for at, addr := range map[int]*string{1: &member.Peer, 2: &member.Election} {
				host, port, err := n.w.announced(name, at)
				if err != nil {
					return programs.Command{}, err
				}
				*addr = net.JoinHostPort(host, port)
			}
			all = append(all, member)
		}
		return programs.ZooKeeper{ID: id, Dir: n.dir, ListenClient: n.addr, Ensemble: all}.Command()
	}}
}

// postgresServer is a PostgreSQL server. What it takes for the time of day is
// libfaketime's.
func postgresServer() storeServer {
	return storeServer{alone: true, jumps: true, forks: true, user: programs.PostgresUser, describe: func(n *node) (programs.Command, error) {
		return programs.Postgres{Dir: n.dir, Listen: n.addr}.Command()
	}}
}

// postmasterFile is in the data folder of a PostgreSQL server that runs, or was
// killed.
const postmasterFile = "data/postmaster.pid"

// removeSharedMemory deletes the segment that a killed PostgreSQL server leaves
// in the kernel. The server would do so at its next start in that folder, which
// may never come. The seventh line of its file has the segment's key and id.
// Source: "postmaster.pid" in PostgreSQL's documentation, miscadmin.h.
func removeSharedMemory(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, postmasterFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	const segment = 6
	if len(lines) <= segment {
		return nil // killed before it had one
	}
	fields := strings.Fields(lines[segment])
	if len(fields) != 2 {
		return nil
	}
	id, err := strconv.Atoi(fields[1])
	if err != nil {
		return fmt.Errorf("%s: shared memory: %w", postmasterFile, err)
	}
	_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("remove shared memory %d: %w", id, err)
	}
	return nil
}
