package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// tracer reads what one node does. It connects again for as long as the trace
// runs.
type tracer struct {
	trace *trace
	node  *node

	mu          sync.Mutex // held while an item is taken in
	connections int
	role        string            // where roles change by themselves
	names       map[string]string // client by address
	keys        keyspace
	events      map[string][]string // on a key, since the last command
	gone        []gone              // keys that vanished since then
	past        *past               // nil once the stream has caught up with what the node holds
	script      *script             // a script whose commands may still follow
	last        int64               // when the last event was
	primary     bool                // of a shard; a replica is told what its primary does
	conn        net.Conn            // that the session reads from
	out         []event             // to be handed over once mu is free
	syncs       map[string]chan error
	synced      []chan error // to be told once all events are handed over
	syncCount   int
}

// gone is a key that vanished, and the pseudo command for that.
type gone struct{ cmd, name string }

// script is a script call and the keys that it touched.
type script struct {
	call   command
	client string
	keys   []string
}

func newTracer(t *trace, n *node) *tracer {
	return &tracer{
		trace: t, node: n, names: make(map[string]string), keys: make(keyspace),
		events: make(map[string][]string), syncs: make(map[string]chan error),
	}
}

func (tr *tracer) run() {
	for tr.trace.ctx.Err() == nil {
		err := tr.session()
		tr.failSyncs()
		if tr.trace.ctx.Err() != nil {
			return
		}
		// A node that has been killed is no news; that it is back will be seen.
		tr.trace.w.cfg.Log.Debug("the trace connects again", "node", tr.node.name, "err", err)
		if err := sleep(tr.trace.ctx, 5*time.Millisecond); err != nil {
			return
		}
	}
}

// session lasts as long as one connection.
func (tr *tracer) session() error {
	ctx := tr.trace.ctx
	dialer := net.Dialer{Timeout: knock}
	c, err := dialer.DialContext(ctx, "tcp", tr.node.addr)
	if err != nil {
		return err
	}
	tr.mu.Lock()
	tr.conn = c
	tr.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // this ends the read below
	defer func() {
		stop()
		_ = c.Close() // closed twice at the end of the trace
	}()
	// RESP3 lets commands and key space events share one connection, and so
	// one order.
	const hello = "HELLO 3\r\nPSUBSCRIBE __keyevent@0__:*\r\nMONITOR\r\n"
	if _, err := c.Write([]byte(hello)); err != nil {
		return err
	}
	r := bufio.NewReaderSize(c, 1<<18)
	if err := c.SetReadDeadline(time.Now().Add(waitBound)); err != nil {
		return err
	}
	for {
		line, _, err := readItem(r)
		if err != nil {
			return err
		}
		if line == "OK" {
			break
		}
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := tr.connected(ctx); err != nil {
		return err
	}
	tr.failSyncs() // what was sent before the stream began is not in it
	for {
		line, push, err := readItem(r)
		if err != nil {
			return err
		}
		tr.take(line, push, r.Buffered() == 0)
	}
}

func (tr *tracer) isLock(key string) bool {
	return slices.ContainsFunc(tr.trace.w.cfg.LockNames, func(name string) bool { return strings.Contains(key, name) })
}

// take takes in one item. At a pause of the stream a script is known to be
// complete, since the server sends a script and its commands in one piece.
func (tr *tracer) take(line string, push []string, pause bool) {
	tr.mu.Lock()
	defer tr.unlock()
	switch {
	case len(push) == 4 && push[0] == "pmessage":
		tr.takeEvent(strings.TrimPrefix(push[2], "__keyevent@0__:"), push[3])
	case line != "":
		if c, ok := parseMonitor(line); ok {
			if tr.learn(c) {
				break
			}
			if c.from != "lua" {
				tr.endScript()
			}
			tr.reportGone(c.shown)
			tr.takeCommand(c)
		} else {
			tr.trace.w.cfg.Log.Warn("a line of MONITOR is not understood", "node", tr.node.name, "line", line)
		}
	}
	if pause {
		tr.endScript()
		tr.reportGone(time.Now().Add(tr.node.clock.offset()))
	}
}

func (tr *tracer) takeEvent(event, name string) {
	if !tr.isLock(name) {
		return
	}
	if event != "expired" && event != "evicted" {
		tr.events[name] = append(tr.events[name], event)
		return
	}
	tr.vanished(event, name)
}

// reportGone reports the keys that vanished by themselves. Such an event has
// no time stamp: it is that of the command that found the key dead, which
// follows at once, or else that of now.
func (tr *tracer) reportGone(shown time.Time) {
	for _, g := range tr.gone {
		tr.emit(command{name: g.cmd, shown: shown}, "", g.name, nil, "")
	}
	tr.gone = nil
}

func (tr *tracer) takeCommand(c command) {
	if c.from == "lua" {
		tr.takeInner(c)
		return
	}
	client, own := tr.sender(c)
	tr.takeTurn(c)
	switch {
	case c.name == "ECHO" && len(c.args) == 2 && tr.syncs[c.args[1]] != nil:
		tr.synced = append(tr.synced, tr.syncs[c.args[1]])
		delete(tr.syncs, c.args[1])
	case c.name == "FLUSHALL" || c.name == "FLUSHDB":
		for _, name := range sortedKeys(tr.keys) {
			delete(tr.keys, name)
			tr.emit(command{name: history.Lostkeys, shown: c.shown}, client, name, nil, "")
		}
	case c.name == "MIGRATE":
		tr.takeAway(c)
	case own: // reads of ours
	case strings.HasPrefix(c.name, "RESTORE"):
		tr.takeMoved(c)
	case isScript(c.name):
		tr.script = &script{call: c, client: client, keys: slices.DeleteFunc(slices.Clone(keysOf(c)),
			func(name string) bool { return !tr.isLock(name) })}
	default:
		reply := tr.keys.apply(c, tr.events)
		for _, name := range keysOf(c) {
			if tr.isLock(name) {
				tr.emit(c, client, name, tr.keys[name], reply)
			}
		}
		clear(tr.events)
	}
}

// takeInner takes a command of a script.
func (tr *tracer) takeInner(c command) {
	if tr.script == nil {
		// The stream paused inside the script after all: report the rest of
		// it as a call of its own.
		tr.script = &script{call: command{name: "EVAL", shown: c.shown}}
	}
	tr.keys.apply(c, tr.events)
	clear(tr.events)
	tr.script.call.shown = c.shown
	for _, name := range keysOf(c) {
		if tr.isLock(name) && !slices.Contains(tr.script.keys, name) {
			tr.script.keys = append(tr.script.keys, name)
		}
	}
}

// endScript reports a script with what its keys hold after it.
func (tr *tracer) endScript() {
	s := tr.script
	if s == nil {
		return
	}
	tr.script = nil
	for _, name := range s.keys {
		tr.emit(s.call, s.client, name, tr.keys[name], "")
	}
}

// sender finds out who a command comes from, and learns names on the way.
func (tr *tracer) sender(c command) (client string, own bool) {
	name := ""
	switch {
	case c.name == "CLIENT" && len(c.args) == 3 && strings.EqualFold(c.args[1], "SETNAME"):
		name = c.args[2]
	case c.name == "HELLO":
		for i := 2; i+1 < len(c.args); i++ {
			if strings.EqualFold(c.args[i], "SETNAME") {
				name = c.args[i+1]
			}
		}
	}
	if tr.isClient(name) {
		tr.names[c.from] = name
	}
	_, own = tr.node.own.Load(c.from)
	return tr.names[c.from], own
}

func (tr *tracer) isClient(name string) bool {
	return slices.Contains(tr.trace.w.clientNames, name)
}

// emit reports one key after one command.
func (tr *tracer) emit(c command, client, name string, k *key, reply string) {
	owner, value := tr.trace.owners.of(tr.trace.ctx, k, client, slices.Contains(tr.trace.w.cfg.LockKeys, name))
	tr.out = append(tr.out, tr.trace.stamp(tr, history.Server{
		Client: client, Cmd: c.name, Key: name, Reply: reply,
		Owner: owner, PTTL: k.pttl(c.shown), Value: value,
	}, c.shown))
}

// unlock gives mu back and hands over what has gathered, without mu: whoever
// is told may break this very node because of it.
func (tr *tracer) unlock() {
	out := tr.out
	tr.out = nil
	var done []chan error
	done, tr.synced = tr.synced, nil
	tr.mu.Unlock()
	for _, ev := range out {
		if ev.promoted {
			tr.trace.wg.Go(func() { tr.trace.w.confirm(tr.node.name, ev.at) })
			continue
		}
		tr.trace.w.cfg.OnServer(ev.server, ev.at)
	}
	for _, c := range done {
		c <- nil
	}
}

// reportAll reports every lock key that the node holds.
func (tr *tracer) reportAll(cmd string) {
	tr.mu.Lock()
	defer tr.unlock()
	now := time.Now().Add(tr.node.clock.offset())
	for _, name := range sortedKeys(tr.keys) {
		k := tr.keys[name]
		if k.expire != 0 && k.expire <= now.UnixMilli() {
			continue // nobody has looked at it since
		}
		tr.emit(command{name: cmd, shown: now}, "", name, k, "")
	}
}

// sync waits until a command of ours has come back through the stream. A stream
// that was begun anew meanwhile may have lost it: then it is sent again.
func (tr *tracer) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for {
		err := tr.mark(ctx)
		if !errors.Is(err, errTraceLost) || sleep(ctx, roleEvery/10) != nil {
			return err
		}
	}
}

// mark sends the command once, and waits for it.
func (tr *tracer) mark(ctx context.Context) error {
	done := make(chan error, 1)
	tr.mu.Lock()
	tr.syncCount++
	mark := fmt.Sprintf("%s-%s-%d", "holdfast-sync", tr.node.name, tr.syncCount)
	tr.syncs[mark] = done
	tr.mu.Unlock()
	if err := tr.node.direct.Echo(ctx, mark).Err(); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (tr *tracer) failSyncs() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for mark, done := range tr.syncs {
		done <- errTraceLost
		delete(tr.syncs, mark)
	}
}

func sortedKeys(ks keyspace) []string {
	names := make([]string, 0, len(ks))
	for name := range ks {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a, b) })
	return names
}
