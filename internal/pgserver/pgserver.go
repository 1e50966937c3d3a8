// Package pgserver starts a PostgreSQL server of its own from the machine's
// binaries: a fresh cluster in a folder of its own, on a free port of loopback,
// with one role that has a password, and removes all of it again. It touches no
// server and no cluster that is there already.
//
// It is for tests, and for whoever runs locks on a real server; it speaks no
// SQL itself.
package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-io/holdfast/internal/child"
)

// ErrMissing says that the machine has no PostgreSQL server.
var ErrMissing = errors.New("no PostgreSQL server is installed (initdb and postgres): apt-get install postgresql, or scripts/install-test-tools.sh")

// How long the server may take to come up, and to go down before it is killed.
const (
	startLimit = time.Minute
	stopLimit  = 10 * time.Second
)

// The role of the server's owner, and the database that every cluster has.
const (
	Role     = "holdfast"
	Database = "postgres"
)

// Server is a running server.
type Server struct {
	// Host and Port of the server; Password of [Role].
	Host     string
	Port     int
	Password string
	// Dir is the server's folder.
	Dir string

	bin  string
	cred *syscall.Credential // nil where this process is not root
	cmd  *exec.Cmd
	log  *logbook
	done <-chan struct{} // closed when the process has ended
}

// Binaries is the folder of initdb and postgres: that of the newest version
// where Debian keeps them, or one in the PATH.
func Binaries() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // anything else is older
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		_, a := os.Stat(filepath.Join(dir, "initdb"))
		_, b := os.Stat(filepath.Join(dir, "postgres"))
		if a == nil && b == nil {
			return dir, nil
		}
	}
	return "", ErrMissing
}

// Start makes a cluster and starts its server on a host of loopback, with
// further settings such as "fsync=off". Stop removes all of it.
func Start(ctx context.Context, host, password string, settings ...string) (_ *Server, err error) {
	s := &Server{Host: host, Password: password}
	if s.bin, err = Binaries(); err != nil {
		return nil, err
	}
	if s.cred, err = owner(); err != nil {
		return nil, err
	}
	if s.Dir, err = os.MkdirTemp("", "holdfast-postgres-"); err != nil {
		return nil, fmt.Errorf("make the folder of PostgreSQL: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err = s.initialise(ctx); err == nil {
		err = s.Launch(ctx, settings...)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// owner is whom the server runs as: it refuses to run as root.
func owner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) initialise(ctx context.Context) error {
	secret := filepath.Join(s.Dir, "password")
	if err := os.WriteFile(secret, []byte(s.Password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the password of PostgreSQL: %w", err)
	}
	if s.cred != nil {
		for _, path := range []string{s.Dir, secret} {
			if err := os.Chown(path, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
				return fmt.Errorf("give PostgreSQL its folder: %w", err)
			}
		}
	}
	cmd := s.command("initdb", "-D", s.data(), "-U", Role, "--auth=scram-sha-256", "--pwfile="+secret,
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended by itself
		err = cmd.Wait()
		stop()
	}
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out.Bytes()))
	}
	return os.Remove(secret)
}

// command runs as the owner, in a group of its own: Ctrl-C is not for it.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.cred}
	return cmd
}

// Launch starts the server of a cluster that is there, again after [Server.Kill].
// The first time it takes a free port, and keeps it from then on.
func (s *Server) Launch(ctx context.Context, settings ...string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if s.Port == 0 {
		port, err := freePort(s.Host)
		if err != nil {
			return err
		}
		s.Port = port
	}
	args := []string{"-D", s.data(), "-h", s.Host, "-p", strconv.Itoa(s.Port), "-k", "", "-c", "shared_buffers=16MB"}
	for _, set := range settings {
		args = append(args, "-c", set)
	}
	s.cmd, s.log = s.command("postgres", args...), &logbook{ready: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	done, err := child.Start(s.cmd, syscall.SIGQUIT)
	if s.done = done; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	select {
	case <-s.log.ready:
		return nil
	case <-s.done:
		return fmt.Errorf("start PostgreSQL: it ended: %s", s.log)
	case <-ctx.Done():
		return fmt.Errorf("start PostgreSQL: %w: %s", ctx.Err(), s.log)
	}
}

func freePort(host string) (int, error) {
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return ln.Addr().(*net.TCPAddr).Port, ln.Close()
}

// URL of the server with its password.
func (s *Server) URL() string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(Role, s.Password),
		Host: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), Path: "/" + Database,
	}
	return u.String()
}

// Pid of the server's first process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Log is what the server has said.
func (s *Server) Log() string { return s.log.String() }

// Kill ends the server as a crash does. The cluster stays.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	s.end(syscall.SIGINT)
	return os.RemoveAll(s.Dir)
}

// end sends a signal, and kills what does not heed it.
func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	select {
	case <-s.done:
		return
	default:
	}
	if sig == syscall.SIGKILL {
		s.kill()
	} else {
		_ = s.cmd.Process.Signal(sig) // it may have ended by itself
	}
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.kill()
		<-s.done
	}
}

// kill ends all processes of the server. Each of them leaves the group of the
// first, so the group is no help, and one that lived on for a moment would keep
// the cluster from starting again.
func (s *Server) kill() {
	pid := s.cmd.Process.Pid
	all := []int{pid}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err == nil { // elsewhere they end by themselves when the first is gone
		for _, word := range strings.Fields(string(b)) {
			if p, err := strconv.Atoi(word); err == nil {
				all = append(all, p)
			}
		}
	}
	for _, p := range all {
		_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended by itself
	}
}

// logbook keeps what the server says, and notices that it is ready.
type logbook struct {
	mu    sync.Mutex
	text  []byte
	told  bool
	ready chan struct{}
}

// maxLog bounds what is kept.
const maxLog = 1 << 20

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) < maxLog {
		l.text = append(l.text, b...)
	}
	if !l.told && bytes.Contains(l.text, []byte("database system is ready to accept connections")) {
		l.told = true
		close(l.ready)
	}
	return len(b), nil
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.text))
}
