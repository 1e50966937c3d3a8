package process

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// renew and release are the scripts of every lock on one Redis.
var (
	renew = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then
		return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`)
	release = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then
		return redis.call('del', KEYS[1]) else return 0 end`)
)

func TestTraceFollowsALock(t *testing.T) {
	r := new(record)
	w := start(t, cluster.Single, 1, 2, func(cfg *Config) { cfg.OnServer = r.add })
	ctx := t.Context()
	c1, c2 := dial(t, w, "c1", "n1"), dial(t, w, "c2", "n1")
	began := Monotonic()
	c1.SetNX(ctx, "lock:x", "token \"one\"\n", 5*time.Second)
	c2.SetNX(ctx, "lock:x", "token two", 5*time.Second)
	renew.Eval(ctx, c1, []string{"lock:x"}, "token \"one\"\n", 9000)
	release.Eval(ctx, c2, []string{"lock:x"}, "token two")
	release.Eval(ctx, c1, []string{"lock:x"}, "token \"one\"\n")
	c1.SetNX(ctx, "lock:x", "token three", 30*time.Millisecond)
	c1.Incr(ctx, "lock:x:fence")
	c1.Set(ctx, "unrelated", "v", 0)
	time.Sleep(60 * time.Millisecond)
	c2.SetNX(ctx, "lock:x", "token four", time.Second)
	must(t, w.SyncTrace(ctx))
	ended := Monotonic()
	want := []string{
		"c1 SET lock:x owner=c1#1 reply=OK value=",
		"c2 SET lock:x owner=c1#1 reply=nil value=",
		"c1 EVAL lock:x owner=c1#1 reply= value=",
		"c2 EVAL lock:x owner=c1#1 reply= value=",
		"c1 EVAL lock:x owner= reply= value=",
		"c1 SET lock:x owner=c1#2 reply=OK value=",
		"c1 INCR lock:x:fence owner= reply=1 value=1",
		"expired lock:x owner= reply= value=",
		"c2 SET lock:x owner=c2#1 reply=OK value=",
	}
	if got := r.lines("n1"); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, pttl := range []int64{5000, 5000, 9000, 9000, -2, 30, -1, -2, 1000} {
		ev, at := r.events[i], r.at[i]
		if d := pttl - ev.PTTL; d < 0 || d > 20 || pttl < 0 && d != 0 {
			t.Errorf("after event %d the PTTL is %d, want about %d", i+1, ev.PTTL, pttl)
		}
		if at < began || at > ended || i > 0 && at < r.at[i-1] {
			t.Errorf("event %d is at %d, outside of %d to %d or before the one before", i+1, at, began, ended)
		}
		if d := time.Duration(at - ev.Clock).Abs(); d > 2*time.Millisecond {
			t.Errorf("event %d: the clock of a right node is off by %s", i+1, d)
		}
	}
}

// TestTraceIsStampedInsideItsCall: the time of an event is when the node ran
// the command, not when the trace was read.
func TestTraceIsStampedInsideItsCall(t *testing.T) {
	r := new(record)
	w := start(t, cluster.Single, 1, 1, func(cfg *Config) { cfg.OnServer = r.add })
	client := dial(t, w, "c1", "n1")
	var before, after []int64
	for i := range 100 {
		if i == 50 {
			must(t, w.JumpClock(t.Context(), "n1", 3*time.Second))
		}
		before = append(before, Monotonic())
		must(t, client.Set(t.Context(), "lock", i, 0).Err())
		after = append(after, Monotonic())
	}
	must(t, w.SyncTrace(t.Context()))
	outside := 0
	for i, at := range r.at {
		if at < before[i]-50_000 || at > after[i] {
			outside++
		}
		if ahead := time.Duration(r.events[i].Clock - at); (ahead > time.Second) != (i >= 50) {
			t.Errorf("event %d: the node's clock is %s ahead", i, ahead)
		}
	}
	if outside > 2 {
		t.Errorf("%d of 100 events are stamped outside of their calls", outside)
	}
}

func TestTraceOfHashesAndSortedSets(t *testing.T) {
	r := new(record)
	w := start(t, cluster.Single, 1, 2, func(cfg *Config) { cfg.OnServer = r.add })
	ctx := t.Context()
	c1, c2 := dial(t, w, "c1", "n1"), dial(t, w, "c2", "n1")
	c1.HIncrBy(ctx, "lock:h", "me", 1)
	c1.HIncrBy(ctx, "lock:h", "me", 1)
	c1.HIncrBy(ctx, "lock:h", "me", -3)
	c1.HIncrBy(ctx, "lock:h", "me", -1)
	c1.HDel(ctx, "lock:h", "me")
	c1.ZAdd(ctx, "lock:z", redis.Z{Score: 1, Member: "a"})
	c2.ZAdd(ctx, "lock:z", redis.Z{Score: 5, Member: "b"})
	c2.ZRemRangeByScore(ctx, "lock:z", "-inf", "(5")
	c2.ZRem(ctx, "lock:z", "b")
	must(t, w.SyncTrace(ctx))
	want := []string{
		"c1 HINCRBY lock:h owner=c1#1 reply=1 value=1",
		"c1 HINCRBY lock:h owner=c1#1 reply=2 value=2",
		"c1 HINCRBY lock:h owner=c1#1 reply=-1 value=-1",
		"c1 HINCRBY lock:h owner=c1#1 reply=-2 value=-2",
		"c1 HDEL lock:h owner= reply= value=",
		"c1 ZADD lock:z owner=c1#2 reply= value=",
		"c2 ZADD lock:z owner=c1#2,c2#1 reply= value=",
		"c2 ZREMRANGEBYSCORE lock:z owner=c2#1 reply= value=",
		"c2 ZREM lock:z owner= reply= value=",
	}
	if got := r.lines("n1"); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTraceOverCrashesAndFlushes(t *testing.T) {
	r := new(record)
	w := start(t, cluster.Independent, 2, 1, func(cfg *Config) { cfg.OnServer = r.add })
	ctx := t.Context()
	for _, node := range w.Nodes() {
		must(t, dial(t, w, "c1", node).Set(ctx, "lock", "token", 0).Err())
	}
	must(t, w.Kill(ctx, "n1"))
	must(t, w.Restart(ctx, "n1", cluster.Keep))
	dial(t, w, "c1", "n1").Get(ctx, "lock")
	must(t, w.Restart(ctx, "n1", cluster.Lose))
	must(t, w.Flush(ctx, "n2", false))
	must(t, w.Stall(ctx, "n2"))
	must(t, w.EndTrace(ctx))
	got := r.lines("n1")
	if want := []string{
		"c1 SET lock owner=c1#1 reply=OK value=",
		"c1 GET lock owner=c1#1 reply= value=",
		"lost lock owner= reply= value=",
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("the trace of n1 is %q, want %q", got, want)
	}
	got = r.lines("n2")
	if want := []string{
		"c1 SET lock owner=c1#1 reply=OK value=", "lost lock owner= reply= value=",
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("the trace of n2 is %q, want %q", got, want)
	}
}

func TestTraceOfReplicas(t *testing.T) {
	r := new(record)
	w := start(t, cluster.Replicated, 2, 1, func(cfg *Config) { cfg.OnServer = r.add })
	ctx := t.Context()
	client := dial(t, w, "c1", cluster.Primary)
	must(t, client.SetNX(ctx, "lock", "token", time.Minute).Err())
	eventually(t, "the replica reports the key", func() bool { return len(r.lines("n2")) > 0 })
	must(t, w.Promote(ctx, "n2"))
	must(t, w.EndTrace(ctx))
	want := []string{
		"SET lock owner=c1#1 reply=OK value=",
		"promoted lock owner=c1#1 reply= value=",
		"left lock owner=c1#1 reply= value=",
	}
	if got := r.lines("n2"); !reflect.DeepEqual(got, want) {
		t.Errorf("the trace of the replica is %q, want %q", got, want)
	}
	for _, ev := range r.events {
		if ev.PTTL < 59_000 || ev.PTTL > 60_000 {
			t.Errorf("%s on %s: PTTL %d", ev.Cmd, ev.Node, ev.PTTL)
		}
	}
	if !slices.ContainsFunc(r.events, func(ev history.Server) bool { return ev.Node == "n1" && ev.Cmd == history.Left }) {
		t.Error("the key on the old primary is not reported as left")
	}
}

func TestParseMonitor(t *testing.T) {
	c, ok := parseMonitor(`1700000000.000123 [0 127.0.0.1:5555] "set" "a \"b\"" "\x01\\\n" ""`)
	if want := []string{"set", `a "b"`, "\x01\\\n", ""}; !ok || !reflect.DeepEqual(c.args, want) {
		t.Errorf("the arguments are %q, want %q", c.args, want)
	}
	if c.name != "SET" || c.from != "127.0.0.1:5555" || c.shown.UnixMicro() != 1700000000000123 {
		t.Errorf("parsed as %+v", c)
	}
	for _, bad := range []string{"OK", "1700000000.1 [0 x]", "x.y [0 a] \"GET\""} {
		if _, ok := parseMonitor(bad); ok {
			t.Errorf("%q was taken for a command", bad)
		}
	}
}

func TestRepliesAreCounted(t *testing.T) {
	var r replyScanner
	stream := "+OK\r\n>2\r\n$1\r\na\r\n:1\r\n%1\r\n$1\r\nk\r\n*2\r\n:1\r\n$-1\r\n:7\r\n"
	var passed strings.Builder
	for i := range len(stream) { // byte by byte: replies come in any pieces
		pass, goOn := r.feed([]byte{stream[i]}, 3)
		passed.Write(pass)
		if !goOn {
			break
		}
	}
	if want := strings.TrimSuffix(stream, ":7\r\n"); passed.String() != want {
		t.Errorf("before the third reply %q passed, want %q", passed.String(), want)
	}
	var q requestScanner
	if got := q.feed([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*1\r\n$4\r\nTI")); !reflect.DeepEqual(got, []string{"GET", "PING"}) {
		t.Errorf("the requests are %q", got)
	}
	if got := q.feed([]byte("ME\r\n")); !reflect.DeepEqual(got, []string{"TIME"}) {
		t.Errorf("the request in two pieces is %q", got)
	}
}
