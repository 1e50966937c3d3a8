package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// traced says whether the server trace shows a key.
func (w *World) traced(key string) bool {
	return slices.ContainsFunc(w.cfg.LockNames, func(name string) bool { return strings.Contains(key, name) })
}

// describe tells what a key holds now.
func (n *node) describe(client, key string) history.Server {
	now := n.clock.now(time.Now())
	ev := history.Server{Node: n.name, Clock: now.Sub(n.world.start).Nanoseconds(), Key: key, PTTL: -2}
	switch n.db.Type(key) {
	case "":
		return ev
	case "string":
		v, err := n.db.Get(key)
		if err != nil {
			return ev
		}
		if isCounter(v) && !slices.Contains(n.world.cfg.LockKeys, key) {
			ev.Value = v
		} else {
			ev.Owner = n.world.aliasOf(client, v)
		}
	case "hash":
		fields, err := n.db.HKeys(key)
		if err != nil {
			return ev
		}
		tokens, count := hashOwners(fields, func(field string) string { return n.db.HGet(key, field) })
		ev.Owner, ev.Value = n.world.aliasesOf(client, tokens), count
	case "zset":
		members, err := n.db.ZMembers(key)
		if err != nil {
			return ev
		}
		ev.Owner = n.world.aliasesOf(client, members)
	}
	ev.PTTL = -1
	if at, ok := n.deadlines[key]; ok {
		// A replica keeps a key until its primary says DEL, and a node that
		// comes back with old data has keys whose time was up meanwhile.
		ev.PTTL = max(0, at-now.UnixMilli())
	}
	return ev
}

// hashOwners says whom a hash names, and the one number in it. There are two
// ways to write an owner and a count: a field named after the owner that holds
// the count, and a field that holds the owner beside one that holds the count.
func hashOwners(fields []string, get func(string) string) (tokens []string, count string) {
	numbers := 0
	for _, f := range fields {
		if v := get(f); isCounter(v) {
			numbers++
			count = v
		} else {
			tokens = append(tokens, v)
		}
	}
	if len(tokens) == 0 {
		tokens = fields
	}
	if numbers != 1 {
		count = ""
	}
	return tokens, count
}

// isCounter tells a number from a token: a fence or a count has no owner. On the
// lock's own key every value is a token, whatever it looks like.
func isCounter(v string) bool {
	_, err := strconv.ParseInt(v, 10, 64)
	return err == nil && len(v) < 20
}

func (w *World) aliasesOf(client string, tokens []string) string {
	out := make([]string, len(tokens))
	for i, t := range slices.Sorted(slices.Values(tokens)) {
		out[i] = w.aliasOf(client, t)
	}
	return strings.Join(out, ",")
}

// aliasOf gives the name that stands for a token in the history: the client
// that first wrote it and a count. Histories are the same bytes for the same
// seed although tokens are random, and a person can read them.
func (w *World) aliasOf(client, token string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.aliases[token]; ok {
		return a
	}
	if client == "" {
		client = "?"
	}
	w.tokens[client]++
	a := fmt.Sprintf("%s#%d", client, w.tokens[client])
	w.aliases[token] = a
	return a
}

// shortReply is a reply as the trace shows it.
func shortReply(b []byte) string {
	line, _, _ := strings.Cut(string(b[:min(len(b), 200)]), "\r\n")
	if line == "" {
		return ""
	}
	switch line[0] {
	case '+', ':', '-', '_', ',', '#':
		if line == "_" {
			return "nil"
		}
		return line[1:]
	case '$':
		if line == "$-1" {
			return "nil"
		}
		return "bulk"
	}
	return "array"
}

// emit hands events to the run, outside all locks: an event may fire a fault
// that acts on this very node.
func (w *World) emit(events []history.Server) {
	if w.cfg.OnServer == nil {
		return
	}
	for _, ev := range events {
		w.cfg.OnServer(ev)
	}
}

// Leftovers are the lock keys that are still there, as the last events of a
// run.
func (w *World) Leftovers() []history.Server {
	var out []history.Server
	for _, n := range w.nodes {
		out = append(out, n.every(history.Left)...)
	}
	return out
}

// every describes each traced key of a node under a pseudo command.
func (n *node) every(cmd string) []history.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down.Load() {
		return nil
	}
	return n.everyLocked(cmd)
}

func (n *node) everyLocked(cmd string) []history.Server {
	var out []history.Server
	for _, k := range n.db.Keys() { // sorted
		if n.world.traced(k) {
			ev := n.describe("", k)
			ev.Cmd = cmd
			out = append(out, ev)
		}
	}
	return out
}
