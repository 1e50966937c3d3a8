// Package programtest starts the servers that package programs describes, for
// the tests of what talks to them. They end with the test.
//
// It is not a world: it knows no proxies and no faults but the cut of a
// client's own connections.
package programtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster/programs"
)

// startLimit is how long a server may take to be ready: some 100 times what it
// takes on an idle machine.
const startLimit = 60 * time.Second

// hosts counts the loopback addresses that were given out.
var hosts atomic.Uint32

// Host gives a loopback address that no other test uses: the process's id and a
// counter are in it. On Linux all of 127/8 is there.
func Host() string {
	n := hosts.Add(1)
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 128+pid>>8&0x3f, pid&0xff, 1+n%250)
}

// Or skips the test where a program is missing, and fails it where CI=true: a
// test that is not run there must not look like one that was.
func Or(t testing.TB, cmd programs.Command, err error) programs.Command {
	t.Helper()
	switch {
	case errors.Is(err, programs.ErrMissing) && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return cmd
}

// Server is one that runs.
type Server struct {
	// Addr is its address for clients.
	Addr string

	process *os.Process
	done    chan struct{} // closed when it has ended
	log     *output
}

// Start starts a server whose clients dial addr. It does not wait until it is
// ready, since members of a cluster wait for each other: see [Ready].
func Start(t testing.TB, cmd programs.Command, addr string) *Server {
	t.Helper()
	if err := prepare(cmd); err != nil {
		t.Fatal(err)
	}
	if cmd.Before != nil {
		before, err := child(*cmd.Before)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := before.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd.Before.Path, err, out)
		}
	}
	s := &Server{Addr: addr, done: make(chan struct{}), log: &output{}}
	started := make(chan error, 1)
	go func() { // joined by Stop, which waits for done
		// The death signal follows the thread that forked, so it must live as
		// long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		c, err := child(cmd)
		if err == nil {
			c.Stdout, c.Stderr = s.log, s.log
			err = c.Start()
		}
		if err != nil {
			started <- err
			return
		}
		s.process = c.Process
		started <- nil
		_ = c.Wait() // killed, as a rule
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Ready waits until all servers are.
func Ready(t testing.TB, ready func(context.Context, programs.Dial) error, servers ...*Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	for _, s := range servers {
		for {
			try, end := context.WithTimeout(ctx, 2*time.Second)
			err := ready(try, s.Dial)
			end()
			if err == nil {
				break
			}
			select {
			case <-s.done:
				t.Fatalf("server at %s ended: %v\n%s", s.Addr, err, s.log)
			case <-ctx.Done():
				t.Fatalf("server at %s is not ready after %v: %v\n%s", s.Addr, startLimit, err, s.log)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// Dial opens a connection to the server's port for clients.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
}

// Kill kills the server with all its children and waits for its end.
func (s *Server) Kill() {
	_ = syscall.Kill(-s.process.Pid, syscall.SIGKILL) // it may have ended by itself
	<-s.done
}

// Stop asks the server to end, so that it takes with it what a killed one would
// leave, such as PostgreSQL's shared memory, and kills it if it does not.
func (s *Server) Stop() {
	_ = s.process.Signal(syscall.SIGINT) // it may have ended by itself
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
	s.Kill()
}

// child is a command in a process group of its own, which dies with this one.
func child(cmd programs.Command) (*exec.Cmd, error) {
	c := exec.Command(cmd.Path, cmd.Args...)
	c.Env = append(os.Environ(), cmd.Env...)
	c.Dir = cmd.WorkDir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	uid, gid, other, err := owner(cmd.User)
	if err != nil {
		return nil, err
	}
	if other {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		c.Dir = "/" // the caller's folder may be closed to the user
	}
	return c, nil
}

// owner gives the user to run as, if it is another than the caller.
func owner(name string) (uid, gid int, other bool, err error) {
	if name == "" || os.Geteuid() != 0 {
		return 0, 0, false, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, false, err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, false, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, true, err
}

// prepare makes the folders and files.
func prepare(cmd programs.Command) error {
	uid, gid, other, err := owner(cmd.User)
	if err != nil {
		return err
	}
	own := func(path string) error {
		if !other {
			return nil
		}
		return os.Chown(path, uid, gid)
	}
	for _, dir := range cmd.Dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := own(dir); err != nil {
			return err
		}
	}
	for _, f := range cmd.Files {
		if err := os.WriteFile(f.Path, []byte(f.Text), f.Mode); err != nil {
			return err
		}
		if err := own(f.Path); err != nil {
			return err
		}
	}
	return nil
}

// Dir makes a folder that another user can reach, and removes it after the
// test. A test's own folder is closed to others.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-programs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // passable, not readable
		t.Fatal(err)
	}
	return filepath.Join(dir, "server")
}

// output keeps what a server writes, for the message of a failure.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps at most the first megabyte.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() < 1<<20 {
		o.text.Write(p)
	}
	return len(p), nil
}

// String is what was written up to now.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
