package sim

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-io/holdfast/cluster"
)

// epoch is where both clocks start, well inside a microsecond.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 123_456_500, time.UTC)

// pair is a sim node and a real server that get the same commands at the same
// time of the same clock.
type pair struct {
	t        testing.TB
	real     *realRedis
	conn     *rawConn
	node     *node
	sess     *nodeSession
	wall     time.Time
	compared int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	real := startRedis(t, epoch)
	w, err := New(Config{Topology: cluster.Single, Nodes: 1, Clients: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	p := &pair{t: t, real: real, conn: real.dial(t), node: w.nodes[0]}
	p.sess = p.node.newSession("c1")
	p.setClock(epoch)
	return p
}

// setClock freezes both clocks at a time.
func (p *pair) setClock(wall time.Time) {
	p.wall = wall
	p.real.setClock(p.t, wall)
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	p.node.clock = clock{since: time.Now(), wall: wall}
}

// do sends a command to both and returns what differs, or nothing.
func (p *pair) do(args ...string) string {
	p.compared++
	request := encode(args)
	want, err := p.conn.ask(request)
	if err != nil {
		p.t.Fatalf("the real server at %q: %v", args, err)
	}
	got := p.sess.feed(request)
	a, b := normalise(args, want), normalise(args, got.reply)
	if got.end || a != b {
		return fmt.Sprintf("%q at %v:\n  Redis %q\n  sim   %q", args, p.wall.Sub(epoch), a, b)
	}
	return ""
}

// normalise takes out of a reply what cannot agree, each for its reason.
func normalise(args []string, reply []byte) string {
	s := string(reply)
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		// The connection's number depends on who else has connected.
		if before, after, ok := strings.Cut(s, "$2\r\nid\r\n:"); ok {
			_, after, _ = strings.Cut(after, "\r\n")
			s = before + after
		}
	case "HGETALL", "HKEYS", "HVALS":
		// The order of a hash is nobody's promise.
		s = sortElements(s, strings.EqualFold(args[0], "HGETALL"))
	case "EVAL", "EVALSHA", "SCRIPT":
		// Two compilers word syntax errors differently.
		if head, _, ok := strings.Cut(s, "Error compiling script"); ok {
			s = head + "Error compiling script\r\n"
		}
		// Two Lua machines word their own errors differently; where they
		// happened is compared.
		for _, own := range engineErrors {
			if i := strings.Index(s, own); i >= 0 {
				j := max(strings.Index(s, " script: "), i)
				s = s[:i] + "(Lua)" + s[j:]
			}
		}
	}
	return s
}

// engineErrors begin the errors of the Lua machine itself.
var engineErrors = []string{"attempt to", "bad argument", "cannot perform"}

// sortElements sorts the elements of an array or the pairs of a map.
func sortElements(s string, pairs bool) string {
	head, body, _ := strings.Cut(s, "\r\n")
	in := bufio.NewReader(strings.NewReader(body))
	var elements []string
	for {
		var element bytes.Buffer
		if copyReply(&element, in) != nil {
			break
		}
		if pairs {
			_ = copyReply(&element, in) // a pair is never half
		}
		elements = append(elements, element.String())
	}
	slices.Sort(elements)
	return head + "\r\n" + strings.Join(elements, "")
}

// step is one command, or one move of the clock.
type step struct {
	Args []string
	Move time.Duration
}

func (s step) String() string {
	if s.Args == nil {
		return "clock " + s.Move.String()
	}
	return fmt.Sprintf("%.80q", s.Args)
}

// TestSameRepliesAsRealRedis holds the sim node against a redis-server: random
// commands and scripts, with both clocks standing still and jumping. The seed
// is fixed, so that one change gives one result; HOLDFAST_LONG=1 or
// -rapid.checks and -rapid.seed explore further.
func TestSameRepliesAsRealRedis(t *testing.T) {
	fixSeed(t)
	scripts := implScripts(t)
	for _, protocol := range []string{"2", "3"} {
		t.Run("RESP"+protocol, func(t *testing.T) {
			p := newPair(t)
			if d := p.do("HELLO", protocol); d != "" {
				t.Fatal(d)
			}
			began := time.Now()
			rapid.Check(t, func(rt *rapid.T) {
				steps := rapid.SliceOfN(steps(scripts), 30, 60).Draw(rt, "steps")
				if d := p.run(steps); d != "" {
					rt.Fatal(d)
				}
			})
			t.Logf("%d commands compared in %v", p.compared, time.Since(began).Round(time.Millisecond))
		})
	}
}

// run plays steps on empty servers.
func (p *pair) run(steps []step) string {
	p.setClock(epoch)
	for _, clean := range [][]string{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}} {
		if d := p.do(clean...); d != "" {
			return d
		}
	}
	for i, s := range steps {
		if d := p.play(s); d != "" {
			var before strings.Builder
			for _, b := range steps[:i] {
				if b.Args != nil || b.Move != 0 {
					fmt.Fprintf(&before, "  %v\n", b)
				}
			}
			return d + "\nafter\n" + before.String()
		}
	}
	return ""
}

func (p *pair) play(s step) string {
	switch {
	case s.Args != nil:
		return p.do(s.Args...)
	case s.Move != 0:
		return p.move(s.Move)
	}
	return "" // what rapid shrinks a step to
}

// move moves both clocks. Redis drops a key whose time is up when somebody
// touches it, or by and by; one that nobody touched before the clock went back
// may be there again. So all keys are touched before and after.
func (p *pair) move(by time.Duration) string {
	touch := append([]string{"EXISTS"}, allKeys...)
	if d := p.do(touch...); d != "" {
		return d
	}
	p.setClock(p.wall.Add(by))
	return p.do(touch...)
}

// fixSeed makes rapid repeatable unless the caller wants otherwise.
func fixSeed(t *testing.T) {
	seed, checks := flag.Lookup("rapid.seed"), flag.Lookup("rapid.checks")
	oldSeed, oldChecks := seed.Value.String(), checks.Value.String()
	_ = flag.Set("rapid.nofailfile", "true") // the seed is fixed, or known
	t.Cleanup(func() {
		_ = seed.Value.Set(oldSeed)
		_ = checks.Value.Set(oldChecks)
	})
	if os.Getenv("HOLDFAST_LONG") != "" {
		_ = checks.Value.Set("3000")
		return
	}
	if oldSeed == "0" && oldChecks == "100" { // both as they come
		_ = seed.Value.Set("1")
		_ = checks.Value.Set("150")
	}
}

// implScripts are the scripts of all locks, with what each takes. A script
// that the table does not know fails the test.
func implScripts(t *testing.T) []scriptCall {
	t.Helper()
	files, err := filepath.Glob("../../impl/*/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts under impl: %v", err)
	}
	var out []scriptCall
	seen := map[string]bool{}
	for _, f := range files {
		name := filepath.ToSlash(strings.TrimPrefix(f, "../../impl/"))
		call, ok := scriptTable[name]
		if !ok {
			t.Errorf("script %s is not in scriptTable: say which keys and arguments it takes", name)
			continue
		}
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = true
		call.source = string(source)
		out = append(out, call)
	}
	for name := range scriptTable {
		if !seen[name] {
			t.Errorf("scriptTable names %s, which is not there", name)
		}
	}
	return out
}

// TestShapesAreRedis holds the table of commands against COMMAND of a real
// server.
func TestShapesAreRedis(t *testing.T) {
	conn := startRedis(t, epoch).dial(t)
	rdb := redis.NewClient(&redis.Options{Addr: conn.RemoteAddr().String()})
	defer rdb.Close()
	infos, err := rdb.Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, info := range infos {
		want := shape{arity: int(info.Arity), first: int(info.FirstKeyPos), last: int(info.LastKeyPos), step: int(info.StepCount)}
		for _, f := range info.Flags {
			switch f {
			case "write":
				want.flags |= write
			case "noscript":
				want.flags |= noscript
			}
		}
		if got, ok := shapes[strings.ToUpper(name)]; !ok || got != want {
			t.Errorf("%s: %+v in the table, %+v in Redis", name, got, want)
		}
	}
	if len(infos) != len(shapes) {
		t.Errorf("%d commands in the table, %d in Redis", len(shapes), len(infos))
	}
}
