package campaign

import (
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/nemesis"
)

// troubles are what a node in trouble answers to every command, in the words of
// Redis. go-redis asks again after some and hands others on at once; a lock may
// take any for a "no".
var troubles = []string{
	"OOM command not allowed when used memory > 'maxmemory'.",
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
}

// manyPoints of one base run are so many that each command gets one of the
// troubles, in turn: commands that are alike lie side by side.
const manyPoints = 120

func inTurn(b blow, i int) bool {
	reply, ok := b.step.Fault.(nemesis.ErrorReply)
	return !ok || reply.Reply == troubles[i%len(troubles)]
}

// jumps of a node's clock, in TTLs. Each takes a fresh lease away at one of its
// two ends: the jump itself, or the way back.
//
//	forward    the key set just now has expired at once
//	back       the lease granted next is counted from the past; when the clock
//	           is put right, half a TTL later, it has expired
var jumps = []struct {
	kind     string
	by, away float64
}{
	{"clock jump forward", 1.2, 0}, // the final phase puts it right
	{"clock jump back", -1.2, 0.5},
}

// jumpsAt lets each node's clock jump just when the lock is granted.
func jumpsAt(p point, nodes int) []blow {
	var out []blow
	for i := 1; i <= nodes; i++ {
		at := p
		at.node = cluster.NodeName(i)
		for _, j := range jumps {
			out = append(out, blow{kind: j.kind, whom: " (" + at.node + ")", jumps: true, at: at, step: nemesis.Step{
				When: p.when, Fault: nemesis.Clock{Node: []string{at.node}, Jump: nemesis.TTLs(j.by)}, For: nemesis.TTLs(j.away)}})
		}
	}
	return out
}

// lossesAt lets each voter lose its data just when the lock is granted. A
// command that the same happens at may come at another time, or never, when
// something else is broken as well; the grant stays the grant.
func lossesAt(p point, voters int) []blow {
	var out []blow
	for i := 1; i <= voters; i++ {
		at := p
		at.node = cluster.NodeName(i)
		node, whom := []string{at.node}, " ("+at.node+")"
		out = append(out,
			blow{kind: "node restart without data", whom: whom, loses: true, at: at, step: nemesis.Step{
				When: p.when, Fault: nemesis.Kill{Node: node, Data: cluster.Lose}, For: nemesis.TTLs(amnesia)}},
			blow{kind: "deleted keys", whom: whom, loses: true, at: at, step: nemesis.Step{
				When: p.when, Fault: nemesis.Flush{Node: node}, For: nemesis.TTLs(0)}})
	}
	return out
}
