package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-io/holdfast/cluster/process"
)

// TestMain looks at the end whether anything of this process is left, in the
// engine and among the goroutines. It is also the process that the tests kill.
func TestMain(m *testing.M) {
	if role := os.Getenv("HOLDFAST_CONTAINER_TEST"); role != "" {
		os.Exit(play(role))
	}
	code := m.Run()
	if Available(context.Background(), "") == nil {
		left, err := Things(context.Background())
		for _, t := range left {
			if t.Labels[labelPid] == fmt.Sprint(os.Getpid()) {
				err = errors.Join(err, fmt.Errorf("left behind: %s", t))
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// play is what the test program does as a child of a test.
func play(role string) int {
	switch role {
	case "victim": // waits to be killed, with a server running
		p, err := Open(context.Background(), Config{})
		if err == nil {
			_, err = p.Start(context.Background(), process.Program{Server: "n1", Path: "redis-server", Args: []string{"--save", ""}})
		}
		fmt.Println(err)
		time.Sleep(time.Minute)
	case "available": // in a mount namespace of its own, where no socket is
		if err := errors.Join(syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
			syscall.Mount("none", "/run", "tmpfs", 0, "")); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(Available(context.Background(), ""))
	}
	return 0
}

func child(t *testing.T, role string, env ...string) (*exec.Cmd, io.Reader, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), "HOLDFAST_CONTAINER_TEST="+role)
	cmd.Stderr = os.Stderr
	if role == "available" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()         // how it ended was the test's doing
	})
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out, strings.TrimSpace(string(line[:n]))
}

// need skips a test where there is no engine or no image, and fails it in CI.
func need(t *testing.T) {
	t.Helper()
	if err := Available(t.Context(), ""); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func open(t *testing.T) (*Place, string) {
	t.Helper()
	need(t)
	dir := t.TempDir()
	p, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	p.Host("nobody") // has the address that the engine would give to the first that comes
	return p, dir
}

const port = "6379"

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// startRedis starts a server and waits for its first answer.
func startRedis(t *testing.T, p *Place, prog process.Program, args ...string) (*Server, *redis.Client) {
	t.Helper()
	prog.Path = "redis-server"
	prog.Args = append(prog.Args, "--protected-mode", "no", "--save", "")
	prog.Args = append(prog.Args, args...)
	begin := time.Now()
	s, err := p.start(t.Context(), prog)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("start of %s took %v", prog.Server, time.Since(begin).Round(time.Millisecond))
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		// Bare, since go-redis would wait and repeat, and log it.
		raw, err := net.DialTimeout("tcp", net.JoinHostPort(p.Host(prog.Server), port), 50*time.Millisecond)
		if err == nil {
			if err := raw.Close(); err != nil {
				t.Fatal(err)
			}
			return s, dial1(t, p.Host(prog.Server))
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%v\n%s\n%v", err, s.Log(), s.Err())
		}
	}
}

// dial1 gives a client with one connection that is never repeated in silence.
func dial1(t *testing.T, host string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(host, port), MaxRetries: -1, PoolSize: 1,
		DialTimeout: 500 * time.Millisecond, ReadTimeout: 300 * time.Millisecond, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// timed logs how long a step took.
func timed(t *testing.T, what string, f func() error) {
	t.Helper()
	begin := time.Now()
	if err := f(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%s took %v", what, time.Since(begin).Round(100*time.Microsecond))
}

func ctxOf(t *testing.T, f func(context.Context) error) func() error {
	return func() error { return f(t.Context()) }
}

// gate forwards from the gateway to a server and notes who came.
type gate struct {
	ln   net.Listener
	all  sync.WaitGroup
	mu   sync.Mutex
	from []string
}

func openGate(t *testing.T, p *Place, to string) *gate {
	ln, err := net.Listen("tcp", net.JoinHostPort(p.Gateway(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{ln: ln}
	g.all.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(in.RemoteAddr().String())
			g.mu.Lock()
			g.from = append(g.from, host)
			g.mu.Unlock()
			out, err := net.DialTimeout("tcp", net.JoinHostPort(to, port), time.Second)
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				g.all.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // ends when either side does
					_, _ = pair[0].Close(), pair[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() { _ = ln.Close() })
	return g
}

func (g *gate) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.from)
}

// A replica whose primary is a proxy of ours on the gateway: this process reaches
// servers, servers reach this process, and are told apart by their address.
func TestServersAreReachedAndReachUs(t *testing.T) {
	p, _ := open(t)
	host1, host2 := p.Host("n1"), p.Host("n2") // known before they start
	if host1 == host2 || p.Host("n1") != host1 {
		t.Fatalf("hosts %s, %s, then %s", host1, host2, p.Host("n1"))
	}
	s1, c1 := startRedis(t, p, process.Program{Server: "n1"}, "--repl-diskless-sync-delay", "0")
	if err := c1.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	g := openGate(t, p, host1)
	gateHost, gatePort, _ := net.SplitHostPort(g.ln.Addr().String())
	s2, c2 := startRedis(t, p, process.Program{Server: "n2"}, "--replicaof", gateHost+" "+gatePort)
	for begin := time.Now(); c2.Get(t.Context(), "k").Val() != "v"; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("no replication through the gateway\n%s", s2.Log())
		}
	}
	if from := g.seen(); len(from) == 0 || slices.ContainsFunc(from, func(f string) bool { return f != host2 }) {
		t.Errorf("the gate saw %v, want only %s", from, host2)
	}
	// Before the gate's goroutines can end, both of its ends must.
	for _, s := range []*Server{s2, s1} {
		if err := s.End(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := g.ln.Close(); err != nil {
		t.Error(err)
	}
	g.all.Wait()
}

// The folder has the same path on both sides, so that a command line means the
// same, and what the server writes belongs to us.
func TestFolderHasTheSamePath(t *testing.T) {
	p, root := open(t)
	dir := filepath.Join(root, "n1")
	write(t, dir, "redis.conf", "maxclients 77\n")
	_, c := startRedis(t, p, process.Program{
		Server: "n1", Dir: dir, Args: []string{filepath.Join(dir, "redis.conf")},
	})
	if got := c.ConfigGet(t.Context(), "maxclients").Val()["maxclients"]; got != "77" {
		t.Errorf("maxclients %s, want 77 from the file", got)
	}
	if got := c.ConfigGet(t.Context(), "dir").Val()["dir"]; got != dir {
		t.Errorf("works in %s, want %s", got, dir)
	}
	if err := c.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Getuid() {
		t.Errorf("dump.rdb belongs to user %d, want %d", uid, os.Getuid())
	}
}

// A frozen server keeps its connections and answers nothing, and its keys grow
// older meanwhile.
func TestFrozenServer(t *testing.T) {
	p, _ := open(t)
	s, c := startRedis(t, p, process.Program{Server: "n1"})
	for _, key := range []string{"short", "long"} {
		ttl := map[string]time.Duration{"short": 400 * time.Millisecond, "long": time.Minute}[key]
		if err := c.Set(t.Context(), key, "v", ttl).Err(); err != nil {
			t.Fatal(err)
		}
	}
	id := c.ClientID(t.Context()).Val()
	timed(t, "freeze", ctxOf(t, s.Stop))
	raw, err := net.DialTimeout("tcp", net.JoinHostPort(p.Host("n1"), port), time.Second)
	if err != nil {
		t.Errorf("a connection to a frozen server: %v, want the kernel to accept it", err)
	} else {
		defer raw.Close()
		if err := raw.SetReadDeadline(time.Now().Add(600 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := raw.Write([]byte("PING\r\n")); err != nil {
			t.Fatal(err)
		}
		if n, err := raw.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a frozen server answered %d bytes, %v", n, err)
		}
	}
	timed(t, "resume", ctxOf(t, s.Resume))
	if got := c.Get(t.Context(), "short").Val(); got != "" {
		t.Errorf("the short key is still %q after its TTL", got)
	}
	if got := c.Get(t.Context(), "long").Val(); got != "v" {
		t.Errorf("the long key is %q, want v", got)
	}
	if now := c.ClientID(t.Context()).Val(); now != id {
		t.Errorf("the connection was %d and is %d: it did not survive", id, now)
	}
}

// A killed server is gone with its connections, and starts again at its address
// at once.
func TestEndAndStartAgain(t *testing.T) {
	p, _ := open(t)
	for _, frozen := range []bool{false, true} {
		s, c := startRedis(t, p, process.Program{Server: "n1"})
		if n := c.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("the new server has %d keys", n)
		}
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if frozen {
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Err(); err != nil {
			t.Errorf("before the end: %v", err)
		}
		timed(t, fmt.Sprintf("end (frozen: %v)", frozen), ctxOf(t, s.End))
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), "signal 9") {
			t.Errorf("ended with %v, want signal 9", err)
		}
		if raw, err := net.DialTimeout("tcp", net.JoinHostPort(p.Host("n1"), port), 50*time.Millisecond); err == nil {
			_ = raw.Close()
			t.Error("a killed server accepts a connection")
		}
		if err := s.End(t.Context()); err != nil {
			t.Errorf("the second End: %v", err)
		}
	}
	timed(t, "start to first answer", func() error { startRedis(t, p, process.Program{Server: "n1"}); return nil })
}

// What is sent to a server off the network is lost without a word, and its
// connections go on when it is back.
func TestDisconnectAndConnect(t *testing.T) {
	p, _ := open(t)
	s, _ := startRedis(t, p, process.Program{Server: "n1"})
	raw, err := net.Dial("tcp", net.JoinHostPort(p.Host("n1"), port))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	ask := func(wait time.Duration) error {
		if err := raw.SetDeadline(time.Now().Add(wait)); err != nil {
			return err
		}
		_, err := raw.Read(make([]byte, 100))
		return err
	}
	timed(t, "disconnect", ctxOf(t, s.Disconnect))
	if _, err := raw.Write([]byte("INCR n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := ask(500 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a server off the network: %v, want silence", err)
	}
	begin := time.Now()
	if other, err := net.DialTimeout("tcp", net.JoinHostPort(p.Host("n1"), port), 5*time.Second); err == nil {
		_ = other.Close()
		t.Error("a server off the network accepts a connection")
	} else {
		t.Logf("a new connection meanwhile: %v after %v", err, time.Since(begin).Round(time.Millisecond))
	}
	timed(t, "connect", ctxOf(t, s.Connect))
	begin = time.Now()
	if err := ask(20 * time.Second); err != nil {
		t.Errorf("the connection did not survive: %v", err)
	}
	t.Logf("the request sent meanwhile was answered %v after connect", time.Since(begin).Round(time.Millisecond))
	c := dial1(t, p.Host("n1"))
	timed(t, "first answer on a new connection", func() error { return c.Ping(t.Context()).Err() })
	if got := c.Get(t.Context(), "n").Val(); got != "1" {
		t.Errorf("n is %q, want 1: the request arrives once", got)
	}
}

// A server that is frozen and off the network can be put back, and ended.
func TestFrozenAndDisconnected(t *testing.T) {
	p, _ := open(t)
	s, c := startRedis(t, p, process.Program{Server: "n1"})
	timed(t, "freeze", ctxOf(t, s.Stop))
	timed(t, "disconnect", ctxOf(t, s.Disconnect))
	timed(t, "connect", ctxOf(t, s.Connect))
	timed(t, "resume", ctxOf(t, s.Resume))
	for begin := time.Now(); c.Ping(t.Context()).Err() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("no answer")
		}
	}
	timed(t, "freeze", ctxOf(t, s.Stop))
	timed(t, "disconnect", ctxOf(t, s.Disconnect))
	// Close of the place must cope with this.
}

// The clock of a server jumps when the file that libfaketime reads is replaced,
// also from outside.
func TestClockJumps(t *testing.T) {
	p, root := open(t)
	dir := filepath.Join(root, "n1")
	file := filepath.Join(dir, "clock")
	preload := p.Preload()
	if preload == "" {
		t.Fatal("our own image has no libfaketime")
	}
	write(t, dir, "clock", "+0 x1\n")
	_, c := startRedis(t, p, process.Program{
		Server: "n1", Dir: dir,
		Env: []string{
			"LD_PRELOAD=" + preload, "FAKETIME_TIMESTAMP_FILE=" + file,
			"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
		},
	})
	shown := func() time.Duration { return time.Until(c.Time(t.Context()).Val()).Round(time.Second) }
	if d := shown(); d != 0 {
		t.Fatalf("the clock is off by %v before the jump", d)
	}
	if err := c.Set(t.Context(), "k", "v", 10*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte("+11 x1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if got := c.Get(t.Context(), "k").Val(); got != "" {
		t.Errorf("the key is %q right after a jump past its TTL", got)
	}
	t.Logf("gone in the first answer, %v after the jump", time.Since(begin).Round(10*time.Microsecond))
	if d := shown(); d != 11*time.Second {
		t.Errorf("the clock is off by %v, want 11s", d)
	}
}

// A program that cannot run says why in its log.
func TestProgramThatEndsAtOnce(t *testing.T) {
	p, _ := open(t)
	s, err := p.start(t.Context(), process.Program{Server: "n1", Path: "redis-server", Args: []string{"--no-such-option", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("ended with %v, want exit status 1", err)
	}
	if !strings.Contains(s.Log(), "no-such-option") {
		t.Errorf("the log does not say why:\n%s", s.Log())
	}
	if _, err := p.Start(t.Context(), process.Program{Server: "n1", Path: "no-such-program"}); err == nil ||
		!strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not in the image: %v", err)
	}
}

// An image may expose ports; no port of this machine is opened for them.
func TestNoPortIsPublished(t *testing.T) {
	p, _ := open(t)
	s, _ := startRedis(t, p, process.Program{Server: "n1"})
	const image = "holdfast/test:exposes"
	_, err := p.api.ContainerCommit(t.Context(), s.id, client.ContainerCommitOptions{
		Reference: image, Changes: []string{"EXPOSE 6379", `LABEL holdfast=""`},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		api, err := connect(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.ImageRemove(context.Background(), image, client.ImageRemoveOptions{Force: true})
		if err := errors.Join(err, api.Close()); err != nil {
			t.Error(err)
		}
	})
	p.image.ID = image
	s, _ = startRedis(t, p, process.Program{Server: "n2"})
	info, err := p.api.ContainerInspect(t.Context(), s.id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b := info.Container.HostConfig.PortBindings; len(b) != 0 {
		t.Errorf("published %v", b)
	}
	if len(info.Container.Config.ExposedPorts) != 1 {
		t.Errorf("the image exposes nothing, so the test proves nothing: %v", info.Container.Config.ExposedPorts)
	}
}

// What a killed process leaves behind is removed by the next, and nothing else.
func TestSweep(t *testing.T) {
	p, _ := open(t)
	startRedis(t, p, process.Program{Server: "n1"})
	cmd, out, said := child(t, "victim")
	if said != "<nil>" {
		t.Fatal(said)
	}
	count := func(pid int) (n int) {
		all, err := Things(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, thing := range all {
			if thing.Maker == pid {
				n++
			}
		}
		return n
	}
	if n := count(cmd.Process.Pid); n != 2 {
		t.Fatalf("the victim has %d things, want a network and a container", n)
	}
	if _, err := Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(cmd.Process.Pid); n != 2 {
		t.Fatalf("swept while its process was alive: %d things left", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It has ended when its output has; nobody has waited for it by then, so that
	// it is still in the table of processes.
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	timed(t, "sweep", func() error { _, err := Sweep(t.Context()); return err })
	if n := count(cmd.Process.Pid); n != 0 {
		t.Errorf("%d things of a killed process are left", n)
	}
	if n := count(os.Getpid()); n != 2 {
		t.Errorf("our own things are %d, want 2", n)
	}
}

func TestMissingEngineIsSaid(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("hiding the engine's socket needs root")
	}
	_, _, said := child(t, "available", "DOCKER_HOST=unix:///nowhere/docker.sock")
	if !strings.Contains(said, "no Docker engine answers") || !strings.Contains(said, "with-docker.sh") {
		t.Errorf("without an engine: %s", said)
	}
	t.Log(said)
}

func TestMissingImageIsSaid(t *testing.T) {
	need(t)
	err := Available(t.Context(), "holdfast.invalid/redis:none")
	if err == nil || !strings.Contains(err.Error(), "--image") || !strings.Contains(err.Error(), "make image") {
		t.Errorf("without the image: %v", err)
	}
}
