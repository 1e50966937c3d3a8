package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

const secret = "open-sesame"

// somebodys starts a redis-server that is not the world's, with a password.
func somebodys(t *testing.T, more ...string) (addr string, client *redis.Client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = ln.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--requirepass", secret, "--dir", t.TempDir(),
	}, more...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client = redis.NewClient(&redis.Options{Addr: addr, Password: secret, MaxRetries: -1})
	t.Cleanup(func() {
		_ = client.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: its state says nothing
	})
	for end := time.Now().Add(10 * time.Second); client.Ping(t.Context()).Err() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("redis-server does not answer")
		}
	}
	return addr, client
}

// TestExistingServers plays on a server that is not ours: the verdict is the
// same as anywhere, what was there stays, what was made goes, and no password
// is shown or kept.
func TestExistingServers(t *testing.T) {
	needServers(t)
	t.Parallel()
	addr, client := somebodys(t)
	if err := client.Set(t.Context(), "basic:orders", "somebody else's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	r := invoke(t, "run", "kleppmann-gc-pause", "--lock", "basic,basic+fence", "--on", "redis://:"+secret+"@"+addr, "--out", out).
		want(t, reports.ExitExpected, "exclusion  c2 was granted", "written  keys with", "--on redis://:PASSWORD@"+addr, "world external")
	if all := r.out + r.errs; strings.Contains(all, secret) {
		t.Errorf("the password is shown:\n%s", all)
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || !slices.Equal(keys, []string{"basic:orders"}) {
		t.Errorf("left on the server: %v %v", keys, err)
	}
	dir := filepath.Join(out, "kleppmann-gc-pause", "basic", "external-1")
	for _, name := range []string{store.RunFile, store.VerdictFile, store.HistoryFile, store.ReportFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%s: %v, or it keeps the password", name, err)
		}
	}
}

// TestExistingServersThatWillNotDo are refused before anything is written.
func TestExistingServersThatWillNotDo(t *testing.T) {
	needServers(t)
	t.Parallel()
	addr, _ := somebodys(t)
	_, port, _ := net.SplitHostPort(addr)
	replica, client := somebodys(t, "--replicaof", "127.0.0.1 "+port, "--masterauth", secret)
	_ = client
	member, _ := somebodys(t, "--cluster-enabled", "yes")
	at := "redis://:" + secret + "@"
	for address, words := range map[string]string{
		at + replica:                     "is a replica of 127.0.0.1:" + port,
		at + member:                      "is a node of a Redis Cluster",
		at + addr + ",localhost:" + port: "are one server",
		"redis://" + addr:                "NOAUTH",
		"redis://127.0.0.1:1":            "does not answer",
	} {
		invoke(t, "run", "calm", "--lock", "basic", "--on", address, "--out", t.TempDir()).want(t, reports.ExitError, words)
	}
	for address, words := range map[string]string{
		"redis://":            "is no host and port",
		"redis://h:99999":     "is no host and port",
		"redis://h:1,h:1":     "is there twice",
		"redis://:pass@h:1/x": `"x" is no number of a database`,
		"rediss://a%zz:b@h:1": "not URL-encoded",
	} {
		invoke(t, "run", "calm", "--lock", "basic", "--on", address, "--out", t.TempDir()).want(t, exitUsage, words)
	}
}

// TestExistingServersCannotDoEverything: what would need control of the servers
// is unknown, never a pass.
func TestExistingServersCannotDoEverything(t *testing.T) {
	needServers(t)
	t.Parallel()
	addr, client := somebodys(t)
	at := "redis://:" + secret + "@" + addr
	invoke(t, "run", "kleppmann-clock-jump", "--lock", "basic", "--on", at, "--out", t.TempDir()).
		want(t, reports.ExitUnknown, "the external world cannot do: clock-jump")
	invoke(t, "run", "failover-before-replication", "--lock", "basic", "--on", at, "--out", t.TempDir()).
		want(t, reports.ExitUnknown, "the external world has no topology replicated")
	if keys, err := client.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left on the server: %v %v", keys, err)
	}
}
