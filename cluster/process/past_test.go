package process

import (
	"context"
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// TestTheStreamBeforeTheAnswer: what a node did before it was asked what it
// holds names the tokens, and is not taken for what came after.
func TestTheStreamBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	var told []history.Server
	w := &World{cfg: Config{LockNames: []string{"lock"}, LockKeys: []string{"lock"}}, clientNames: []string{"c1", "c2"}}
	w.cfg.OnServer = func(ev history.Server, _ int64) { told = append(told, ev) }
	tr := newTracer(&trace{w: w, owners: newOwners(), ctx: t.Context(), cancel: context.CancelFunc(func() {})},
		&node{name: "n1", clock: newClock("")})
	tr.keys = keyspace{"lock": {kind: text, value: "token-of-c2"}} // the answer
	tr.past = &past{mark: "now", keys: make(keyspace)}
	set := []string{"pmessage", "p", "__keyevent@0__:set", "lock"}
	for _, item := range []struct {
		line string
		push []string
	}{
		{line: `1700000000.000001 [0 10.0.0.1:1] "hello" "3" "setname" "c1"`},
		{line: `1700000000.000002 [0 10.0.0.1:2] "hello" "3" "setname" "c2"`},
		{push: set},
		{line: `1700000000.000003 [0 10.0.0.1:1] "set" "lock" "token-of-c1" "nx" "px" "1000"`},
		{push: []string{"pmessage", "p", "__keyevent@0__:expired", "lock"}},
		{line: `1700000001.000001 [0 10.0.0.1:1] "evalsha" "abc" "1" "lock" "token-of-c1"`},
		{push: set},
		{line: `1700000001.000002 [0 10.0.0.1:2] "set" "lock" "token-of-c2" "nx" "px" "1000"`},
		{line: `1700000001.000003 [0 10.0.0.1:9] "echo" "now"`},
		{line: `1700000001.000004 [0 10.0.0.1:1] "set" "lock" "token-of-c1-again" "nx" "px" "1000"`},
	} {
		tr.take(item.line, item.push, false)
	}
	if len(told) != 1 || told[0].Client != "c1" || told[0].Owner != "c2#1" || told[0].Reply != "nil" {
		t.Errorf("told %+v, want one refused SET of c1 on a key of c2", told)
	}
	if tr.past != nil {
		t.Error("the mark did not end the past")
	}
}
