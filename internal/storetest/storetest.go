// Package storetest starts the servers that tests of real protected resources
// need, once for a test binary: a PostgreSQL and a Redis of their own, each with
// a password. Where one is not installed a test is skipped, and fails if
// CI=true.
package storetest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/internal/child"
	"github.com/holdfast-io/holdfast/internal/pgserver"
)

// Secret is the password of the servers. It has signs that a URL must escape,
// and no output may ever hold it.
const Secret = "s3cr3t/#@pw"

// server is one that was started, or why it was not.
type server struct {
	url  string
	err  error
	stop func() error
}

var (
	mu    sync.Mutex
	stops []func() error

	postgres = sync.OnceValue(func() server { return keep(startPostgres()) })
	redis    = sync.OnceValue(func() server { return keep(startRedis()) })
)

func keep(s server) server {
	if s.stop != nil {
		mu.Lock()
		defer mu.Unlock()
		stops = append(stops, s.stop)
	}
	return s
}

// Stop ends what was started. It belongs at the end of a TestMain.
func Stop() error {
	mu.Lock()
	defer mu.Unlock()
	var errs []error
	for _, stop := range stops {
		errs = append(errs, stop())
	}
	stops = nil
	return errors.Join(errs...)
}

// Postgres gives the URL of the PostgreSQL server.
func Postgres(t testing.TB) string {
	t.Helper()
	return need(t, postgres())
}

// Redis gives the URL of a database of the Redis server.
func Redis(t testing.TB) string {
	t.Helper()
	return need(t, redis())
}

func need(t testing.TB, s server) string {
	t.Helper()
	switch missing := errors.Is(s.err, pgserver.ErrMissing) || errors.Is(s.err, exec.ErrNotFound); {
	case s.err == nil:
	case missing && os.Getenv("CI") != "true":
		t.Skip(s.err)
	default:
		t.Fatal(s.err)
	}
	return s.url
}

func startPostgres() server {
	pg, err := pgserver.Start(context.Background(), "127.0.0.1", Secret, "fsync=off")
	if err != nil {
		return server{err: err}
	}
	return server{url: pg.URL(), stop: pg.Stop}
}

// startLimit is how long redis-server may take to come up.
const startLimit = 20 * time.Second

func startRedis() server {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return server{err: err}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return server{err: err}
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return server{err: err}
	}
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--databases", strconv.Itoa(database+1), "--requirepass", Secret)
	done, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return server{err: err}
	}
	stop := func() error {
		_ = cmd.Process.Kill() // it has nothing to save
		<-done
		return nil
	}
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close() // it was only asked whether it is there
			u := url.URL{Scheme: "redis", User: url.UserPassword("", Secret), Host: addr, Path: "/" + strconv.Itoa(database)}
			return server{url: u.String(), stop: stop}
		}
	}
	return server{err: errors.Join(errors.New("redis-server did not come up"), stop())}
}

// database is not the first one: the number in the URL must count.
const database = 3
