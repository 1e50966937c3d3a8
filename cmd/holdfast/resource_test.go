package main

import (
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-io/holdfast/internal/storetest"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// shown is a URL without its password.
func shown(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if u.User = url.User(u.User.Username()); u.User.Username() == "" {
		u.User = nil
	}
	return u.String()
}

// secretive fails where a password is told, in an output or in any file.
func secretive(t *testing.T, dir string, r result) {
	t.Helper()
	if strings.Contains(r.out+r.errs, "s3cr3t") {
		t.Errorf("the password is printed:\n%s%s", r.out, r.errs)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "s3cr3t") {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestResourceOfRunMatrixAndGate plays on a real Redis, and again what was
// stored: with the password from the environment, and without it.
func TestResourceOfRunMatrixAndGate(t *testing.T) {
	place, dir := storetest.Redis(t), t.TempDir()
	for _, args := range [][]string{
		{"run", "kleppmann-fencing", "--lock", "basic+fence", "--seed", "4", "--out", dir},
		{"matrix", "--scenario", "kleppmann-fencing", "--lock", "reference", "--out", dir},
		{"matrix", "--scenario", "kleppmann-gc-pause", "--lock", "basic", "--sweep", "pause=0..2ttl", "--steps", "2", "--out", dir},
		{"gate", "--suite", "quick", "--lock", "reference", "--out", dir},
	} {
		r := program(t, nil, append(args, "--resource", place)...)
		if r.code != 0 {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.out, r.errs)
		}
		secretive(t, dir, r)
	}
	folder := filepath.Join(dir, "kleppmann-fencing", "basic+fence", "sim-redis-4")
	h, _, err := store.ReadHistory(folder)
	if err != nil || h.Header.ResourceStore != shown(t, place) {
		t.Fatalf("the header says %q, %v", h.Header.ResourceStore, err)
	}
	r := program(t, []string{passwordVariable + "=" + storetest.Secret}, "replay", folder)
	if r.code != 0 || !strings.Contains(r.out, "the same history, byte by byte") || !strings.Contains(r.out, " --resource "+shown(t, place)) {
		t.Errorf("replay: exit code %d\n%s%s", r.code, r.out, r.errs)
	}
	secretive(t, dir, r)
	if r = program(t, nil, "replay", folder); r.code != reports.ExitError || !strings.Contains(r.errs, "NOAUTH") || !strings.Contains(r.errs, "set "+passwordVariable) {
		t.Errorf("replay without the password: exit code %d\n%s%s", r.code, r.out, r.errs)
	}
	for _, verb := range []string{"check", "report"} {
		if r = program(t, nil, verb, folder); r.code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", verb, r.code, r.out, r.errs)
		}
	}
}

// TestResourceOnRealServers: a story in the process world, with its value in
// PostgreSQL. The late write is refused by the database.
func TestResourceOnRealServers(t *testing.T) {
	needServers(t)
	place, dir := storetest.Postgres(t), t.TempDir()
	for scenario, lock := range map[string]string{"kleppmann-fencing": "basic+fence", "kleppmann-gc-pause": "basic"} {
		r := invoke(t, "run", scenario, "--lock", lock, "--on", "process", "--out", dir, "--resource", place)
		if r.code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", scenario, r.code, r.out, r.errs)
		}
		secretive(t, dir, r)
		folder := filepath.Join(dir, scenario, lock, "process-postgres-1")
		h, _, err := store.ReadHistory(folder)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, ev := range h.Events {
			if ev.Resource != nil && !ev.Resource.Applied {
				refused++
			}
		}
		verdict, err := store.ReadVerdict(folder)
		if err != nil {
			t.Fatal(err)
		}
		lost := strings.Contains(r.out, "lost-update (")
		if guarded := h.Header.Resource == "guarded"; guarded != (refused > 0) || guarded == lost || verdict.Outcome != "overrun" {
			t.Errorf("%s on a %s resource: %s, %d refused, updates lost: %v", scenario, h.Header.Resource, verdict.Outcome, refused, lost)
		}
	}
}

// TestResourceThatDiesOnRealServers ends the run early, as an error and without
// a verdict.
func TestResourceThatDiesOnRealServers(t *testing.T) {
	needServers(t)
	s, dir := miniredis.RunT(t), t.TempDir()
	var scripts atomic.Int32
	s.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		switch {
		case cmd == "INFO":
			c.WriteBulk("redis_version:7.0.0\r\n")
			return true
		case strings.HasPrefix(cmd, "EVAL") && scripts.Add(1) > 6:
			c.Close()
			return true
		}
		return false
	})
	r := invoke(t, "run", "calm", "--lock", "basic", "--on", "process", "--out", dir, "--resource", "redis://"+s.Addr())
	if r.code != reports.ExitError || !strings.Contains(r.out, s.Addr()) {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.errs)
	}
	verdict, err := store.ReadVerdict(filepath.Join(dir, "calm", "basic", "process-redis-1"))
	if err != nil || verdict.Verdict != "error" || len(verdict.Checks) != 0 {
		t.Errorf("%s, %v, %v", verdict.Verdict, verdict.Checks, err)
	}
	if keys := s.Keys(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

// TestResourceThatCannotBeReached is told before the first run, with what to do,
// and leaves nothing.
func TestResourceThatCannotBeReached(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	dir := filepath.Join(t.TempDir(), "runs")
	for _, args := range [][]string{{"run", "calm"}, {"matrix"}, {"gate"}, {"matrix", "--scenario", "calm", "--sweep", "hold=0..1ttl"}} {
		for _, place := range []string{"postgres://u:s3cr3t@" + addr + "/db", "redis://u:s3cr3t@" + addr + "/0"} {
			r := invoke(t, append(args, "--out", dir, "--resource", place)...)
			if r.code != reports.ExitError || !strings.Contains(r.errs, "u@"+addr) || !strings.Contains(r.errs, "refused") || !strings.Contains(r.errs, "Try: start the server") {
				t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.out, r.errs)
			}
			if strings.Contains(r.out+r.errs, "s3cr3t") {
				t.Errorf("the password is printed: %s", r.errs)
			}
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

// TestResourceThatCannotBeRead does not repeat what was written.
func TestResourceThatCannotBeRead(t *testing.T) {
	for _, args := range [][]string{{"run", "calm"}, {"matrix"}, {"gate"}} {
		for _, place := range []string{"mysql://u:s3cr3t@h/db", "postgres://u:s3/cr3t@h/db", "postgres://u@h/db?password=s3cr3t"} {
			r := invoke(t, append(args, "--resource", place)...)
			if r.code != exitUsage || !strings.Contains(r.errs, "--resource: write postgres://") || strings.Contains(r.errs, "s3") {
				t.Errorf("%v %s: exit code %d\n%s", args, place, r.code, r.errs)
			}
		}
		if r := invoke(t, append(args, "--resource", "")...); r.code != exitUsage || !strings.Contains(r.errs, "--resource is empty") {
			t.Errorf("%v: an empty resource: exit code %d\n%s", args, r.code, r.errs)
		}
	}
}
