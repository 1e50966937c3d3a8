package sim

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// node is a simulated Redis: miniredis for the commands, and around it what
// Redis has and miniredis lacks. A command runs where its bytes arrive, with
// no goroutine in between.
//
// Expiry is ours: Redis keeps the absolute time, in milliseconds of its wall
// clock, at which a key ends, so a clock that jumps back prolongs keys.
// miniredis keeps what is left. Before a command the node tells miniredis what
// is left of the keys that the command names, and after it reads back what has
// changed.
type node struct {
	name  string
	world *World

	mu        sync.Mutex
	m         *miniredis.Miniredis
	srv       *server.Server
	db        *miniredis.RedisDB
	clock     clock
	deadlines map[string]int64 // key -> wall clock in ms
	scripts   map[string]string
	timer     *time.Timer // fires when the next deadline has passed
	// frozen is the wall clock of the script that runs: time stands still in
	// a script.
	frozen time.Time
	nobody *server.Peer // gets replies that nobody wants
	// scratch holds a reply that must be changed on its way out.
	scratch     bytes.Buffer
	scratchPeer *server.Peer

	down     atomic.Bool
	stalled  bool
	off      bool     // the network; guarded by world.mu
	backlog  []func() // what arrived during a stall
	errReply string   // answer to every command on a key
	replica  bool
	disk     *disk // nil unless restarts as of the last fsync are wanted

	trace   []history.Server // of the command that runs, in order
	written []string         // keys that the command wrote, for replication
}

func newNode(w *World, name string, index int) *node {
	n := &node{
		name: name, world: w,
		// Healthy clocks differ by a microsecond, which also keeps expiries
		// on different nodes from falling on one instant.
		clock:  newClock(w.start, time.Duration(index)*time.Microsecond),
		nobody: server.NewPeer(bufio.NewWriter(io.Discard)),
	}
	n.scratchPeer = server.NewPeer(bufio.NewWriter(&n.scratch))
	n.wipe()
	return n
}

// wipe makes the node new and empty.
func (n *node) wipe() {
	if n.m != nil {
		n.m.Close()
	}
	n.m = miniredis.NewMiniRedis()
	conn, err := n.m.Dial() // starts it without a listener
	if err != nil {
		panic(err) // an in-memory pipe cannot fail
	}
	_ = conn.Close()
	n.srv = n.m.Server()
	n.db = n.m.DB(0)
	n.deadlines = map[string]int64{}
	n.scripts = map[string]string{}
}

// wall is the node's clock, standing still inside a script.
func (n *node) wall() time.Time {
	if !n.frozen.IsZero() {
		return n.frozen
	}
	return n.clock.now(time.Now())
}

// nodeSession is one connection as the node sees it.
type nodeSession struct {
	node   *node
	client string
	in     []byte
	out    bytes.Buffer
	peer   *server.Peer
	// blocked: a request is held up, and all behind it wait; delayed: it has
	// been, and is executed next.
	blocked, delayed bool
}

func (n *node) newSession(client string) *nodeSession {
	s := &nodeSession{node: n, client: client}
	s.peer = server.NewPeer(bufio.NewWriter(&s.out))
	return s
}

// fed is what became of a chunk.
type fed struct {
	reply []byte
	end   bool             // the connection must end
	trace []history.Server // what the server trace saw
	late  time.Duration    // how long the replies are held up
	again time.Duration    // when the request at hand may be executed
}

// feed executes the requests that are complete.
func (s *nodeSession) feed(chunk []byte) (f fed) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	s.in = append(s.in, chunk...)
	for !f.end && !s.blocked {
		args, rest, err := parseCommand(s.in)
		if err != nil {
			fail(s.peer, err.Error())
			s.peer.Flush()
			f.end = true
			break
		}
		if args == nil {
			break
		}
		if len(args) == 0 {
			s.in = rest
			continue
		}
		if s.one(args, &f) {
			s.in = rest
		}
	}
	if len(s.in) == 0 {
		s.in = nil
	}
	f.reply = slices.Clone(s.out.Bytes())
	s.out.Reset()
	return f
}

// one executes a request, unless a blow falls on it. It says whether the
// request is done with.
func (s *nodeSession) one(args []string, f *fed) (done bool) {
	name := strings.ToUpper(args[0])
	var blow *cluster.Blow
	if !s.delayed {
		blow = s.node.world.struck(s.client, s.node.name, name)
	}
	s.delayed = false
	if blow != nil {
		switch blow.Deed {
		case cluster.LoseRequest:
			f.end = true
			return true
		case cluster.DelayRequest:
			s.blocked, s.delayed = true, true // it is not struck twice
			f.again = blow.By
			return false
		}
	}
	before := s.out.Len()
	events := s.node.serve(s.client, s.peer, args)
	s.peer.Flush()
	f.end = s.peer.Closed()
	for _, ev := range events {
		if ev.Client != "" {
			ev.Reply = shortReply(s.out.Bytes()[before:])
		}
		f.trace = append(f.trace, ev)
	}
	if blow != nil && blow.Deed == cluster.LoseReply {
		s.out.Truncate(before)
		f.end = true
	}
	if blow != nil && blow.Deed == cluster.DelayReply {
		f.late = blow.By
	}
	return true
}

// serve runs one request of a client and gives its trace, without the reply.
func (n *node) serve(client string, peer *server.Peer, args []string) []history.Server {
	n.trace = n.trace[:0]
	now := n.clock.now(time.Now())
	n.frozen = now
	n.expireLocked(now)
	n.written = n.written[:0]
	n.command(peer, args, false)
	n.frozen = time.Time{}
	name := strings.ToUpper(args[0])
	for _, key := range keysOf(name, args) {
		if n.world.traced(key) {
			ev := n.describe(client, key)
			ev.Cmd, ev.Client = name, client
			n.trace = append(n.trace, ev)
		}
	}
	n.propagate()
	n.arm()
	return n.trace
}

// command runs a request or a call from a script, after the checks that a
// server makes before any command.
func (n *node) command(peer *server.Peer, args []string, nested bool) {
	name := strings.ToUpper(args[0])
	c, known := shapes[name]
	if problem := c.problem(known, args, nested); problem != "" {
		fail(peer, problem)
		return
	}
	if f := own(name); f != nil {
		f(n, peer, args, nested)
		return
	}
	if why, ok := notSimulated[name]; ok {
		fail(peer, "ERR "+name+" is not simulated: "+why)
		return
	}
	keys := keysOf(name, args)
	if len(keys) > 0 && n.refuses(peer, name) {
		return
	}
	if f := ownData(name); f != nil {
		f(n, peer, args)
		if c.flags&write != 0 {
			n.written = append(n.written, keys...)
		}
		return
	}
	if !n.srv.IsRegisteredCommand(name) {
		fail(peer, "ERR "+name+" is not simulated")
		return
	}
	n.passOn(peer, name, args, keys)
}

// refuses answers a command on a key with the error that the node is in.
func (n *node) refuses(peer *server.Peer, name string) bool {
	switch {
	case n.errReply != "":
		fail(peer, n.errReply)
		return true
	case n.replica && shapes[name].flags&write != 0:
		fail(peer, "READONLY You can't write against a read only replica.")
		return true
	}
	return false
}

// passOn lets miniredis run a command, with the times to live of its keys
// taken from our deadlines before and written back after.
func (n *node) passOn(peer *server.Peer, name string, args, keys []string) {
	now := n.wall()
	ms := now.UnixMilli()
	n.m.SetTime(now.UTC())
	sweeping := sweeps[name]
	if sweeping {
		keys = n.db.Keys()
	}
	for _, k := range keys {
		if at, ok := n.deadlines[k]; ok {
			n.db.SetTTL(k, left(at, ms))
		} else if n.db.TTL(k) != 0 { // it lost its deadline without miniredis
			n.srv.Dispatch(n.nobody, []string{"PERSIST", k})
		}
	}
	if name[0] == 'Z' {
		n.zset(peer, name, args)
	} else {
		n.srv.Dispatch(peer, args)
	}
	if sweeping {
		keys = append(keys, n.db.Keys()...)
	}
	for _, k := range keys {
		n.readBack(k, ms)
	}
	if len(keys) > 0 && shapes[name].flags&write != 0 {
		n.written = append(n.written, keys...)
	}
}

// left is what miniredis is told of a deadline. A key at its last millisecond
// is there with 0 ms left; miniredis takes 0 for no expiry. Redis's farthest
// deadlines are beyond what a duration can hold.
func left(at, ms int64) time.Duration {
	return max(time.Duration(min(at-ms, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond, 1)
}

// readBack turns what miniredis now says is left of a key into a deadline.
func (n *node) readBack(key string, ms int64) {
	now := n.db.TTL(key)
	at, had := n.deadlines[key]
	switch {
	case !n.db.Exists(key), now == 0:
		delete(n.deadlines, key)
	case !had || now != left(at, ms):
		n.deadlines[key] = ms + now.Milliseconds()
	}
}

// expireLocked drops the keys whose time is up: strictly after the deadline,
// as in Redis.
func (n *node) expireLocked(now time.Time) {
	if n.replica {
		return // a replica waits for its primary's DEL
	}
	ms := now.UnixMilli()
	var due []string
	for k, at := range n.deadlines {
		if at < ms {
			due = append(due, k)
		}
	}
	if len(due) == 0 {
		return
	}
	slices.Sort(due)
	for _, k := range due {
		if n.world.traced(k) {
			ev := n.describe("", k)
			ev.Cmd, ev.PTTL = history.Expired, -2
			n.trace = append(n.trace, ev)
		}
		n.db.Del(k)
		delete(n.deadlines, k)
	}
	n.written = append(n.written[:0], due...)
	n.propagate()
}

// arm sets the timer for the next expiry. Real Redis deletes a key that nobody
// touches within about 100 ms; here it goes with the first millisecond.
func (n *node) arm() {
	if n.timer != nil {
		n.timer.Stop()
	}
	if n.down.Load() || n.replica || len(n.deadlines) == 0 {
		return
	}
	next := int64(math.MaxInt64)
	for _, at := range n.deadlines {
		next = min(next, at)
	}
	wait := n.clock.until(time.Now(), time.UnixMilli(next+1))
	if n.timer == nil {
		n.timer = time.AfterFunc(max(wait, 0), n.expire)
		return
	}
	n.timer.Reset(max(wait, 0))
}

// expire is the timer's call.
func (n *node) expire() {
	n.mu.Lock()
	if n.down.Load() || n.stalled {
		n.mu.Unlock()
		return
	}
	n.trace = n.trace[:0]
	n.expireLocked(n.clock.now(time.Now()))
	n.arm()
	trace := slices.Clone(n.trace)
	n.mu.Unlock()
	n.world.emit(trace)
}

// moveClock changes the wall clock and lets what has run out expire.
func (n *node) moveClock(change func(c *clock, t time.Time)) {
	n.mu.Lock()
	change(&n.clock, time.Now())
	n.mu.Unlock()
	n.expire()
}
