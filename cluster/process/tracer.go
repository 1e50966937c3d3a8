package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/history"
)

// tracer reads what one node does. It connects again for as long as the trace
// runs.
type tracer struct {
	trace *trace
	node  *node

	mu          sync.Mutex // held while an item is taken in
	connections int
	names       map[string]string // client by address
	keys        keyspace
	events      map[string][]string // on a key, since the last command
	script      *script             // a script whose commands may still follow
	last        int64               // when the last event was
	out         []event             // to be handed over once mu is free
	syncs       map[string]chan error
	synced      []chan error // to be told once all events are handed over
	syncCount   int
}

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
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", tr.node.addr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // this ends the read below
	defer func() {
		stop()
		_ = c.Close() // closed twice at the end of the trace
	}()
	// RESP3 lets commands and key space events share one connection, and so
	// one order.
	const hello = "HELLO 3 SETNAME " + directName + "\r\nPSUBSCRIBE __keyevent@0__:*\r\nMONITOR\r\n"
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
	for {
		line, push, err := readItem(r)
		if err != nil {
			return err
		}
		tr.take(line, push, r.Buffered() == 0)
	}
}

// connected starts from what the node holds now: nothing at first, and after a
// restart whatever was left. Keys that are gone were lost with the crash, or
// have expired meanwhile.
func (tr *tracer) connected(ctx context.Context) error {
	first := tr.connections == 0
	found := make(keyspace)
	if !first {
		var err error
		if found, err = tr.snapshot(ctx); err != nil {
			return err
		}
	}
	tr.mu.Lock()
	defer tr.unlock()
	now := time.Now().Add(tr.node.clock.offset())
	tr.names, tr.script = make(map[string]string), nil
	clear(tr.events)
	for _, name := range sortedKeys(tr.keys) {
		if k := tr.keys[name]; found[name] == nil {
			cmd := history.Lostkeys
			if k.expire != 0 && k.expire <= now.UnixMilli() {
				cmd = history.Expired
			}
			tr.emit(command{name: cmd, shown: now}, "", name, nil, "")
		}
	}
	tr.keys = found
	tr.connections++
	return nil
}

// snapshot asks for the lock keys of a node.
func (tr *tracer) snapshot(ctx context.Context) (keyspace, error) {
	direct := tr.node.direct
	all, err := direct.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	found := make(keyspace)
	for _, name := range all {
		if !tr.isLock(name) {
			continue
		}
		k, err := tr.ask(ctx, name)
		at, errExpire := direct.PExpireTime(ctx, name).Result()
		switch {
		case errors.Is(err, redis.Nil) || at == -2:
			continue // it expired while it was looked at
		case err != nil || errExpire != nil:
			return nil, errors.Join(err, errExpire)
		}
		k.expire = max(0, at.Milliseconds())
		found[name] = k
	}
	return found, nil
}

// ask reads one key without its expiry.
func (tr *tracer) ask(ctx context.Context, name string) (*key, error) {
	direct := tr.node.direct
	kindOf, err := direct.Type(ctx, name).Result()
	if err != nil {
		return nil, err
	}
	k := &key{kind: other}
	switch kindOf {
	case "none":
		return nil, redis.Nil
	case "string":
		k.kind = text
		if old := tr.keys[name]; old != nil && old.kind == counter {
			k.kind = counter
		}
		k.value, err = direct.Get(ctx, name).Result()
	case "hash":
		k.kind = hash
		k.fields, err = direct.HGetAll(ctx, name).Result()
	case "zset":
		k.kind, k.fields = sorted, make(map[string]string)
		var members []redis.Z
		members, err = direct.ZRangeWithScores(ctx, name, 0, -1).Result()
		for _, m := range members {
			k.fields[fmt.Sprint(m.Member)] = strconv.FormatFloat(m.Score, 'g', -1, 64)
		}
	}
	return k, err
}

func (tr *tracer) isLock(name string) bool { return strings.Contains(name, tr.trace.w.cfg.LockName) }

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
			tr.takeCommand(c)
		} else {
			tr.trace.w.cfg.Log.Warn("a line of MONITOR is not understood", "node", tr.node.name, "line", line)
		}
	}
	if pause {
		tr.endScript()
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
	cmd := history.Expired
	if event == "evicted" {
		cmd = history.Lostkeys
	}
	delete(tr.keys, name)
	tr.emit(command{name: cmd, shown: time.Now().Add(tr.node.clock.offset())}, "", name, nil, "")
}

func (tr *tracer) takeCommand(c command) {
	if c.from == "lua" {
		tr.takeInner(c)
		return
	}
	tr.endScript()
	client, own := tr.sender(c)
	switch {
	case c.name == "ECHO" && len(c.args) == 2 && tr.syncs[c.args[1]] != nil:
		tr.synced = append(tr.synced, tr.syncs[c.args[1]])
		delete(tr.syncs, c.args[1])
	case c.name == "FLUSHALL" || c.name == "FLUSHDB":
		for _, name := range sortedKeys(tr.keys) {
			delete(tr.keys, name)
			tr.emit(command{name: history.Lostkeys, shown: c.shown}, client, name, nil, "")
		}
	case own: // reads of ours
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
	if name == directName || slices.Contains(tr.trace.w.clientNames, name) {
		tr.names[c.from] = name
	}
	known := tr.names[c.from]
	return strings.TrimPrefix(known, directName), known == directName
}

// emit reports one key after one command.
func (tr *tracer) emit(c command, client, name string, k *key, reply string) {
	owner, value := tr.trace.owners.of(tr.trace.ctx, k, client)
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

// sync waits until a command of ours has come back through the stream.
func (tr *tracer) sync(ctx context.Context) error {
	done := make(chan error, 1)
	tr.mu.Lock()
	tr.syncCount++
	mark := fmt.Sprintf("%s-%s-%d", directName, tr.node.name, tr.syncCount)
	tr.syncs[mark] = done
	tr.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
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
