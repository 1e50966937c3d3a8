package sim

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// realRedis is a redis-server whose wall clock stands still until the test
// moves it. libfaketime freezes a clock when its file holds a plain date,
// without the leading @; the server's event loop lives on its monotonic clock,
// which is left alone, so nothing hangs. With both clocks standing still a
// comparison is exact to the millisecond, and whether active expiry has found
// a key already makes no difference to any reply.
type realRedis struct {
	addr  string
	clock string // the file that libfaketime reads
}

const howToInstall = "apt-get install redis-server libfaketime"

// startRedis starts a server on a loopback address and ends it with the test.
func startRedis(t *testing.T, wall time.Time) *realRedis {
	t.Helper()
	server, err := exec.LookPath("redis-server")
	preload := fakeTimeLibraries()
	if err != nil || preload == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no redis-server or no libfaketime: %s", howToInstall)
		}
		t.Skipf("no redis-server or no libfaketime: %s", howToInstall)
	}
	if out, err := exec.Command(server, "--version").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("v="+redisVersion)) {
		t.Logf("the sim node is Redis %s, this machine has: %s", redisVersion, bytes.TrimSpace(out))
	}
	dir := t.TempDir()
	r := &realRedis{addr: freeAddress(t), clock: filepath.Join(dir, "clock")}
	r.setClock(t, wall)
	host, port, _ := net.SplitHostPort(r.addr)
	cmd := exec.Command(server, "--bind", host, "--port", port, "--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir", dir)
	// glibc behind libfaketime, or jemalloc asks for the time before there is any.
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+preload, "FAKETIME_TIMESTAMP_FILE="+r.clock,
		"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "TZ=UTC")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Pdeathsig follows the thread that forked, so the thread must stay.
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		for _, left := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
			_ = os.Remove(fmt.Sprintf("/dev/shm/"+left, cmd.Process.Pid))
		}
		runtime.UnlockOSThread()
	})
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", r.addr)
		if err == nil {
			_ = conn.Close()
			return r
		}
		if time.Since(began) > 5*time.Second {
			t.Fatalf("redis-server does not answer: %v\n%s", err, log.String())
		}
	}
}

// fakeTimeLibraries are the paths to preload, or nothing when they are not
// installed.
func fakeTimeLibraries() string {
	find := func(patterns ...string) string {
		for _, p := range patterns {
			if found, _ := filepath.Glob(p); len(found) > 0 {
				return found[0]
			}
		}
		return ""
	}
	fake := find("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")
	libc := find("/lib/*/libc.so.6", "/lib64/libc.so.6")
	if fake == "" || libc == "" {
		return ""
	}
	return fake + ":" + libc
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// setClock makes the server's wall clock stand at a time, from the next time
// it looks.
func (r *realRedis) setClock(t testing.TB, wall time.Time) {
	t.Helper()
	next := r.clock + ".next"
	if err := os.WriteFile(next, []byte(wall.UTC().Format("2006-01-02 15:04:05.000000000")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.clock); err != nil {
		t.Fatal(err)
	}
}

// rawConn exchanges raw bytes with the real server.
type rawConn struct {
	net.Conn
	in *bufio.Reader
}

func (r *realRedis) dial(t *testing.T) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &rawConn{Conn: conn, in: bufio.NewReader(conn)}
}

// ask sends a request and returns the bytes of one whole reply.
func (c *rawConn) ask(request []byte) ([]byte, error) {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := copyReply(&out, c.in)
	return out.Bytes(), err
}

// copyReply copies one reply, of RESP2 or RESP3, as it is.
func copyReply(out *bytes.Buffer, in *bufio.Reader) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	out.Write(line)
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return nil
		}
		_, err = io.CopyN(out, in, int64(n)+2)
		return err
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return nil
	}
	for range n {
		if err := copyReply(out, in); err != nil {
			return err
		}
	}
	return nil
}

// encode writes a request as clients do.
func encode(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}
