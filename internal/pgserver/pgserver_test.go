package pgserver

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), "127.0.0.1", "a secret", "fsync=off")
	if errors.Is(err, ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAServerComesBackAndLeavesNothing(t *testing.T) {
	s := start(t)
	addr := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	reachable := func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if !reachable() {
		t.Fatal("a server that was ready takes no connections")
	}
	s.Kill()
	if reachable() {
		t.Error("a server that was killed takes connections")
	}
	if err := s.Launch(context.Background(), "fsync=off"); err != nil || !reachable() {
		t.Fatalf("the server did not come back: %v", err)
	}
	pid := s.Pid()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("its processes are still there: %v", err)
	}
}

func TestABadSettingIsTold(t *testing.T) {
	start(t) // skips where there is no server
	s, err := Start(t.Context(), "127.0.0.1", "a secret", "no_such_setting=1")
	if err == nil {
		_ = s.Stop()
		t.Fatal("a server started with a setting that there is not")
	}
	if got := err.Error(); !strings.Contains(got, "no_such_setting") {
		t.Errorf("the error does not say why: %v", got)
	}
}
