package container

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
)

// TestKilledServerRefuses: the address of a killed server is gone with its
// container, and who dials that waits for about three seconds; at the proxies a
// server that is down refuses at once, like a process that has died.
func TestKilledServerRefuses(t *testing.T) {
	p, dir := open(t)
	w, err := process.Start(t.Context(), process.Config{Topology: cluster.Single, Nodes: 1, Clients: 1, Place: p, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		begin := time.Now()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("close took %v", time.Since(begin).Round(time.Millisecond))
	})
	addr := w.Endpoints("c1")["n1"]
	if reply := ask(t, addr); reply != "+PONG\r\n" {
		t.Fatalf("a server that runs says %q", reply)
	}
	if err := w.Kill(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for range 5 {
		if reply := ask(t, addr); reply != "" {
			t.Errorf("a server that was killed says %q", reply)
		}
	}
	took := time.Since(begin)
	t.Logf("five refusals took %v", took)
	if took > time.Second {
		t.Error("whoever dials a killed server has to wait")
	}
	if err := w.Restart(t.Context(), "n1", cluster.Keep); err != nil {
		t.Fatal(err)
	}
	if reply := ask(t, addr); reply != "+PONG\r\n" {
		t.Errorf("a server that was started again says %q", reply)
	}
}

// ask sends a PING over a connection of its own and gives the answer, empty
// where the connection ends instead.
func ask(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // a read fails if not
	_, _ = c.Write([]byte("PING\r\n"))
	reply := make([]byte, 64)
	n, _ := c.Read(reply)
	return string(reply[:n])
}
