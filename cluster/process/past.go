package process

import (
	"slices"

	"github.com/holdfast-io/holdfast/history"
)

// past is what a node did after the trace had been connected anew and before
// the node was asked what it holds. It is in the stream, and in the answer too:
//
//	0     the node is back; MONITOR runs
//	0.01  c2's SET puts a token on the key          in the stream
//	0.35  KEYS, GET: the key holds that token        the answer
//	0.35  the stream is read: c1's release, which found the key of somebody
//	      else, comes first
//
// Whoever takes the answer for what was there before the stream thinks that the
// token is the first one's who touched the key, c1's here. So the stream up to a
// mark, which is set just before the question, only tells whose tokens are whose.
type past struct {
	mark   string
	keys   keyspace // as the stream alone tells it
	client string   // of the script whose commands may follow
}

// learn takes in a command of the past. It says whether it was one.
func (tr *tracer) learn(c command) bool {
	p := tr.past
	if p == nil {
		return false
	}
	client := p.client
	if c.from != "lua" {
		client, _ = tr.sender(c)
	}
	switch {
	case c.name == "ECHO" && len(c.args) == 2 && c.args[1] == p.mark:
		tr.past = nil
		tr.name(tr.keys, sortedKeys(tr.keys), unknownWriter)
	case c.name == "FLUSHALL" || c.name == "FLUSHDB":
		clear(p.keys)
	case isScript(c.name):
		p.client = client
	default:
		p.keys.apply(c, tr.events)
		clear(tr.events)
		tr.name(p.keys, keysOf(c), client)
	}
	return true
}

// name gives the tokens of lock keys the name of a writer, unless they have one.
func (tr *tracer) name(keys keyspace, names []string, client string) {
	for _, name := range names {
		if k := keys[name]; k != nil && tr.isLock(name) {
			tr.trace.owners.of(tr.trace.ctx, k, client, slices.Contains(tr.trace.w.cfg.LockKeys, name))
		}
	}
}

// vanished takes in the end of a key by itself.
func (tr *tracer) vanished(event, name string) {
	if tr.past != nil {
		delete(tr.past.keys, name)
		return
	}
	cmd := history.Expired
	if event == "evicted" {
		cmd = history.Lostkeys
	}
	delete(tr.keys, name)
	tr.gone = append(tr.gone, gone{cmd: cmd, name: name})
}
