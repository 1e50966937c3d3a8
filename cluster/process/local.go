package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"

	"github.com/holdfast-io/holdfast/cluster"
)

// local is this machine as a place for servers. All of them share the world's
// loopback address.
type local struct {
	tools tools
	host  string
	spawn *spawner
	track func(func()) // counts goroutines

	mu      sync.Mutex
	running map[string]*localServer // by party
}

var _ Place = (*local)(nil)

func newLocal(t tools, host string, spawn *spawner, track func(func())) *local {
	return &local{tools: t, host: host, spawn: spawn, track: track, running: make(map[string]*localServer)}
}

// World is [cluster.Process].
func (l *local) World() cluster.World { return cluster.Process }

// Host is the world's own address for all servers.
func (l *local) Host(string) string { return l.host }

// OwnAddresses is false: a killed process leaves its machine.
func (l *local) OwnAddresses() bool { return false }

// Gateway is the same.
func (l *local) Gateway() string { return l.host }

// Preload puts the C library behind libfaketime: without it the allocator of
// redis-server asks for the time before libfaketime is ready, and hangs.
func (l *local) Preload() string {
	if l.tools.faketime == "" {
		return ""
	}
	return l.tools.faketime + ":" + l.tools.libc
}

// Start starts a child that dies with this process.
func (l *local) Start(_ context.Context, p Program) (Server, error) {
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), p.Env...)
	if p.User != "" {
		credential, err := credentialOf(p.User, p.Dir)
		if err != nil {
			return nil, fmt.Errorf("start %s as user %s: %w", p.Server, p.User, err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	}
	if p.Output != "" {
		out, err := os.OpenFile(p.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Server, err)
		}
		defer func() { _ = out.Close() }() // the child has it by then
		cmd.Stdout, cmd.Stderr = out, out
	}
	c, err := l.spawn.start("node "+p.Server, cmd, l.track)
	if err != nil {
		return nil, err
	}
	c.forks = p.Forks
	s := &localServer{child: c}
	l.mu.Lock()
	l.running[p.Server] = s
	l.mu.Unlock()
	return s, nil
}

// credentialOf gives a folder to a user and returns what a process needs to run
// as that user.
func credentialOf(name, dir string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("uid %q: %w", u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("gid %q: %w", u.Gid, err)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// Caller finds the process that holds the other end of a connection.
func (l *local) Caller(conn net.Conn) string {
	l.mu.Lock()
	pids := make(map[string]int, len(l.running))
	for name, s := range l.running {
		if !s.child.gone() {
			pids[name] = s.child.pid
		}
	}
	l.mu.Unlock()
	return callerAmong(conn, pids)
}

// Close ends what still runs.
func (l *local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), waitBound)
	defer cancel()
	var errs []error
	for _, s := range l.running {
		errs = append(errs, s.End(ctx))
	}
	return errors.Join(errs...)
}

// localServer is a child of this process.
type localServer struct{ child *child }

func (s *localServer) Stop(ctx context.Context) error   { return s.child.stop(ctx) }
func (s *localServer) Resume(ctx context.Context) error { return s.child.resume(ctx) }
func (s *localServer) Done() <-chan struct{}            { return s.child.exited }
func (s *localServer) Err() error                       { return s.child.err }

// End kills the child, and removes what libfaketime leaves behind then.
func (s *localServer) End(ctx context.Context) error {
	if err := s.child.end(ctx); err != nil {
		return err
	}
	return removeFaketimeFiles(s.child.pid)
}
