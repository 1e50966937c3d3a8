package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
)

func refused(t *testing.T, addr string) bool {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func TestCutLosesRequestsOrReplies(t *testing.T) {
	w := start(t, cluster.Single, 1, 2)
	up := cluster.Link{From: "c1", To: "n1"}
	for _, c := range []struct {
		name    string
		link    cluster.Link
		applied string
	}{
		{name: "request", link: up},
		{name: "reply", link: up.Back(), applied: "request or reply"},
	} {
		client, other := dial(t, w, "c1", "n1"), dial(t, w, "c2", "n1")
		must(t, w.Cut(t.Context(), c.link, cluster.Drop))
		if err := client.Set(t.Context(), c.name, "request or reply", 0).Err(); !timedOut(err) {
			t.Errorf("%s cut: the client got %v, not a time-out", c.name, err)
		}
		if err := other.Ping(t.Context()).Err(); err != nil {
			t.Errorf("%s cut: another client got %v", c.name, err)
		}
		if got := stored(t, w, "n1", c.name); got != c.applied {
			t.Errorf("%s cut: the node holds %q, want %q", c.name, got, c.applied)
		}
		must(t, w.Mend(t.Context(), c.link))
		must(t, dial(t, w, "c1", "n1").Ping(t.Context()).Err())
		if got := stored(t, w, "n1", c.name); got != c.applied {
			t.Errorf("%s mended: the node holds %q, want %q: lost bytes came back", c.name, got, c.applied)
		}
	}
}

// TestMendEndsConnectionsWithAHole: a connection that lost bytes must not go
// on, and one that lost none must.
func TestMendEndsConnectionsWithAHole(t *testing.T) {
	w := start(t, cluster.Single, 1, 1)
	addr := w.Endpoints("c1")["n1"]
	holed, whole := rawPing(t, addr), rawPing(t, addr)
	link := cluster.Link{From: "c1", To: "n1"}
	must(t, w.Cut(t.Context(), link, cluster.Drop))
	_, err := holed.Write([]byte("PING\r\n"))
	must(t, err)
	time.Sleep(20 * time.Millisecond)
	must(t, w.Mend(t.Context(), link))
	must(t, holed.SetReadDeadline(time.Now().Add(time.Second)))
	if _, err := holed.Read(make([]byte, 9)); !ended(err) {
		t.Errorf("the connection with a hole goes on: %v", err)
	}
	_, err = whole.Write([]byte("PING\r\n"))
	must(t, err)
	must(t, whole.SetReadDeadline(time.Now().Add(time.Second)))
	if _, err := whole.Read(make([]byte, 9)); err != nil {
		t.Errorf("the connection without a hole is over: %v", err)
	}
}

func rawPing(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.Write([]byte("PING\r\n"))
	must(t, err)
	_, err = bufio.NewReaderSize(c, 16).ReadString('\n')
	must(t, err)
	return c
}

func TestResetRefusesAtOnce(t *testing.T) {
	w := start(t, cluster.Single, 1, 1)
	client := dial(t, w, "c1", "n1")
	link := cluster.Link{From: "n1", To: "c1"}
	must(t, w.Cut(t.Context(), link, cluster.Reset))
	begin := time.Now()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); !ended(err) && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the old connection got %v", err)
	}
	if !refused(t, w.Endpoints("c1")["n1"]) {
		t.Error("a new connection was not refused")
	}
	if d := time.Since(begin); d > readTimeout/2 {
		t.Errorf("it took %s to be refused", d)
	}
	must(t, w.Mend(t.Context(), link))
	must(t, dial(t, w, "c1", "n1").Ping(t.Context()).Err())
}

// TestDelay shows both uses: a slow link, and the write that comes late, when
// its sender has given up.
func TestDelay(t *testing.T) {
	w := start(t, cluster.Single, 1, 1)
	client := dial(t, w, "c1", "n1")
	link := cluster.Link{From: "c1", To: "n1"}
	must(t, w.Delay(t.Context(), link, 60*time.Millisecond))
	begin := time.Now()
	must(t, client.Set(t.Context(), "slow", "v", 0).Err())
	if d := time.Since(begin); d < 60*time.Millisecond || d >= readTimeout {
		t.Errorf("over a link with 60 ms more the call took %s", d)
	}
	const late = 3 * readTimeout
	must(t, w.Delay(t.Context(), link, late))
	begin = time.Now()
	if err := client.Set(t.Context(), "late", "v", 0).Err(); !timedOut(err) {
		t.Errorf("over a link with %s more the call got %v", late, err)
	}
	// A packet on its way does not come sooner because the link has healed.
	must(t, w.Delay(t.Context(), link, 0))
	if got := stored(t, w, "n1", "late"); got != "" && time.Since(begin) < late {
		t.Errorf("the late write is there already: %q", got)
	}
	eventually(t, "the late write arrives", func() bool { return stored(t, w, "n1", "late") == "v" })
	if d := time.Since(begin); d < late {
		t.Errorf("the late write arrived after %s, before its time", d)
	}
}

func TestLoseReply(t *testing.T) {
	w := start(t, cluster.Single, 1, 2)
	client := dial(t, w, "c1", "n1")
	must(t, w.LoseReply(t.Context(), "c1", "n1", "set", 2))
	must(t, client.Set(t.Context(), "a", "1", 0).Err())
	must(t, client.Get(t.Context(), "a").Err())
	begin := time.Now()
	if err := client.Set(t.Context(), "a", "2", 0).Err(); !ended(err) {
		t.Errorf("the second SET got %v, want an end of the connection", err)
	}
	if d := time.Since(begin); d > readTimeout/2 {
		t.Errorf("the end came after %s", d)
	}
	if got := stored(t, w, "n1", "a"); got != "2" {
		t.Errorf("the node holds %q: the command was not executed", got)
	}
	must(t, client.Set(t.Context(), "a", "3", 0).Err())
	// In a pipeline the replies before the lost one still come.
	must(t, w.LoseReply(t.Context(), "c1", "n1", "INCR", 2))
	raw := rawPing(t, w.Endpoints("c1")["n1"])
	_, err := io.WriteString(raw, "INCR p\r\nINCR p\r\nINCR p\r\n")
	must(t, err)
	must(t, raw.SetReadDeadline(time.Now().Add(time.Second)))
	if got, err := io.ReadAll(raw); err != nil || string(got) != ":1\r\n" {
		t.Errorf("pipeline: the client got %q, %v, want the first reply and the end", got, err)
	}
	if got := stored(t, w, "n1", "p"); got != "3" {
		t.Errorf("pipeline: the node holds %q, want all applied", got)
	}
}

func TestClocks(t *testing.T) {
	w := start(t, cluster.Single, 1, 1)
	client := dial(t, w, "c1", "n1")
	ctx := t.Context()
	must(t, client.Set(ctx, "k", "v", 10*time.Second).Err())
	begin := time.Now()
	must(t, w.JumpClock(ctx, "n1", 11*time.Second))
	if err := client.Get(ctx, "k").Err(); err != redis.Nil {
		t.Errorf("after a jump past its time the key says %v", err)
	}
	t.Logf("from jump to effect %s", time.Since(begin))
	must(t, w.ResetClock(ctx, "n1"))
	must(t, client.Set(ctx, "k", "v", 10*time.Second).Err())
	must(t, w.JumpClock(ctx, "n1", -20*time.Second))
	if left := client.PTTL(ctx, "k").Val(); left < 29*time.Second || left > 31*time.Second {
		t.Errorf("after a jump back by 20 s a key of 10 s has %s left", left)
	}
	must(t, w.ResetClock(ctx, "n1"))
	must(t, client.Set(ctx, "k", "v", time.Minute).Err())
	must(t, w.RateClock(ctx, "n1", 10))
	if off := shownOffset(t, client); off < 0 || off > 60*time.Millisecond {
		t.Errorf("a change of rate made the clock jump by %s", off)
	}
	time.Sleep(200 * time.Millisecond)
	if off := shownOffset(t, client); off < 1700*time.Millisecond || off > 2500*time.Millisecond {
		t.Errorf("after 0.2 s at ten times the rate the clock is ahead by %s", off)
	}
	must(t, w.RateClock(ctx, "n1", 1))
	ahead := shownOffset(t, client)
	time.Sleep(50 * time.Millisecond)
	if now := shownOffset(t, client); (now - ahead).Abs() > 5*time.Millisecond {
		t.Errorf("at rate 1 the clock moved from %s to %s ahead", ahead, now)
	}
	must(t, w.Kill(ctx, "n1"))
	must(t, w.Restart(ctx, "n1", cluster.Keep))
	if now := shownOffset(t, dial(t, w, "c1", "n1")); (now - ahead).Abs() > 5*time.Millisecond {
		t.Errorf("a restart moved the clock from %s to %s ahead", ahead, now)
	}
	must(t, w.ResetClock(ctx, "n1"))
	if now := shownOffset(t, dial(t, w, "c1", "n1")); now.Abs() > 5*time.Millisecond {
		t.Errorf("after a reset the clock is %s off", now)
	}
}

// shownOffset is how far a node's clock is ahead.
func shownOffset(t *testing.T, c *redis.Client) time.Duration {
	t.Helper()
	before := time.Now()
	shown, err := c.Time(t.Context()).Result()
	must(t, err)
	return shown.Sub(before.Add(time.Since(before) / 2).Round(0))
}

func TestKillRestartStallFlush(t *testing.T) {
	w := start(t, cluster.Independent, 2, 1)
	ctx := t.Context()
	client := dial(t, w, "c1", "n1")
	must(t, client.Set(ctx, "k", "v", 0).Err())
	must(t, w.Kill(ctx, "n1"))
	if err := client.Get(ctx, "k").Err(); !ended(err) && !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed node says %v", err)
	}
	begin := time.Now()
	must(t, w.Restart(ctx, "n1", cluster.Keep))
	t.Logf("restart took %s", time.Since(begin).Round(time.Millisecond))
	if got := dial(t, w, "c1", "n1").Get(ctx, "k").Val(); got != "v" {
		t.Errorf("after a restart that keeps, the key is %q", got)
	}
	must(t, w.Restart(ctx, "n1", cluster.Lose))
	if got := dial(t, w, "c1", "n1").Get(ctx, "k").Val(); got != "" {
		t.Errorf("after a restart that loses, the key is %q", got)
	}
	if err := w.Restart(ctx, "n1", cluster.Fsynced); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("a restart as of the last fsync says %v", err)
	}

	client = dial(t, w, "c1", "n1")
	must(t, w.Stall(ctx, "n1"))
	if err := client.Set(ctx, "late", "v", 0).Err(); !timedOut(err) {
		t.Errorf("a stalled node says %v", err)
	}
	must(t, w.Unstall(ctx, "n1"))
	eventually(t, "the request to the stalled node is applied late", func() bool {
		return stored(t, w, "n1", "late") == "v"
	})
	must(t, w.Flush(ctx, "n1", false))
	if got := stored(t, w, "n1", "late"); got != "" {
		t.Errorf("after a flush the key is %q", got)
	}
	script := redis.NewScript("return 1")
	client = dial(t, w, "c1", "n2")
	must(t, script.Load(ctx, client).Err())
	must(t, w.Flush(ctx, "n2", true))
	if err := script.EvalSha(ctx, client, nil).Err(); err == nil || !strings.Contains(err.Error(), "NOSCRIPT") {
		t.Errorf("after a flush of the scripts EVALSHA says %v", err)
	}
}

func TestPromote(t *testing.T) {
	w := start(t, cluster.Replicated, 3, 2)
	ctx := t.Context()
	client, raw := dial(t, w, "c1", cluster.Primary), rawPing(t, w.Endpoints("c1")[cluster.Primary])
	must(t, client.Set(ctx, "a", "1", 0).Err())
	eventually(t, "a is replicated", func() bool {
		return stored(t, w, "n2", "a") == "1" && stored(t, w, "n3", "a") == "1"
	})
	cut := cluster.Link{From: "n1", To: "n2"}
	must(t, w.Cut(ctx, cut, cluster.Drop))
	must(t, client.Set(ctx, "b", "1", 0).Err())
	eventually(t, "b reaches the other replica", func() bool { return stored(t, w, "n3", "b") == "1" })
	if got := stored(t, w, "n2", "b"); got != "" {
		t.Fatalf("b passed a cut link: %q", got)
	}
	begin := time.Now()
	must(t, w.Promote(ctx, "n2"))
	t.Logf("promotion took %s", time.Since(begin).Round(time.Millisecond))
	if w.PrimaryNode() != "n2" {
		t.Errorf("the primary is %s", w.PrimaryNode())
	}
	must(t, raw.SetReadDeadline(time.Now().Add(time.Second)))
	if _, err := raw.Read(make([]byte, 1)); !ended(err) {
		t.Errorf("the connection to the old primary goes on: %v", err)
	}
	client = dial(t, w, "c1", cluster.Primary)
	if got := client.Get(ctx, "a").Val() + client.Get(ctx, "b").Val(); got != "1" {
		t.Errorf("a and b on the new primary are %q, want the cut write lost", got)
	}
	must(t, client.Set(ctx, "c", "1", 0).Err())
	eventually(t, "the third node follows", func() bool { return stored(t, w, "n3", "c") == "1" })
	if got := stored(t, w, "n1", "c"); got != "" {
		t.Errorf("the old primary follows without a restart: %q", got)
	}
	must(t, w.Mend(ctx, cut))
	must(t, w.Restart(ctx, "n1", cluster.Keep))
	eventually(t, "the old primary comes back as a replica", func() bool { return stored(t, w, "n1", "c") == "1" })
	// A cut of the primary's name hits the node behind it.
	must(t, w.Cut(ctx, cluster.Link{From: "c1", To: cluster.Primary}, cluster.Reset))
	if !refused(t, w.Endpoints("c1")[cluster.Primary]) || !refused(t, w.Endpoints("c1")["n2"]) ||
		refused(t, w.Endpoints("c1")["n3"]) {
		t.Error("the wrong proxies refuse")
	}
}

func TestResource(t *testing.T) {
	w := start(t, cluster.Single, 1, 2, func(cfg *Config) {
		cfg.ResourceHandler = func(client string) func([]byte) []byte {
			return func(line []byte) []byte { return append([]byte(client+":"), line...) }
		}
	})
	c, err := net.Dial("tcp", w.Endpoints("c2")[cluster.Resource])
	must(t, err)
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for _, word := range []string{"one", "two"} {
		_, err = io.WriteString(c, word+"\n")
		must(t, err)
		line, err := r.ReadString('\n')
		must(t, err)
		if line != "c2:"+word+"\n" {
			t.Errorf("the resource says %q", line)
		}
	}
	must(t, w.Cut(t.Context(), cluster.Link{From: "c2", To: cluster.Resource}, cluster.Reset))
	must(t, c.SetReadDeadline(time.Now().Add(time.Second)))
	if _, err := r.ReadByte(); !ended(err) {
		t.Errorf("a reset link to the resource says %v", err)
	}
}
