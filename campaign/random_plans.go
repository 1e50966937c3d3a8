package campaign

import (
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// mostTroubles is how many faults a plan of [RandomPlan] holds.
const mostTroubles = 3

// RandomPlan makes up a scenario with one to three faults of any kind, the
// same one for the same seed and topology. Unlike [RandomScenario] it breaks
// what no lock with a lease survives too: a clock that jumps, a node that
// loses data, a failover, a plain resource that takes every late write. A
// correct lock may break under it, but only by what the plan breaks, so every
// finding has to be explained by one of its faults.
func RandomPlan(seed uint64, topology cluster.Topology) *scenarios.Scenario {
	d := &dice{rng: rand.New(rand.NewPCG(seed, 0xd1342543de82ef95)), topology: topology}
	s := d.contest(fmt.Sprintf("plan-%d", seed), "One to three random faults of any kind.",
		d.crowd(), pick(d, scenarios.Plain, scenarios.Guarded))
	if d.rng.IntN(3) == 0 {
		s.Workload.Extend = d.span(0.1, 0.9)
	}
	d.breakIt(s, mostTroubles, d.trouble)
	return s
}

// trouble draws one fault of any kind: half of the time what a correct lock
// must survive, otherwise what it need not, or a blow at a single command.
func (d *dice) trouble() (nemesis.Step, bool) {
	if d.rng.IntN(2) == 0 {
		return d.step()
	}
	s := nemesis.Step{When: d.trigger(), For: d.span(0.05, 2.5)}
	switch d.rng.IntN(6) {
	case 0, 1:
		s.For = nemesis.Span{}
		s.Fault = nemesis.Strike{
			Client: d.client(), Node: d.endpoint(), Nth: 1 + d.rng.IntN(4), By: d.span(0.01, 2),
			Deed: pick(d, cluster.LoseRequest, cluster.LoseReply, cluster.DelayRequest, cluster.DelayReply),
		}
	case 2:
		s.For = nemesis.Span{}
		s.Fault = nemesis.Cancel{Client: d.client()}
		if s.When.At.TTLs == 0 {
			s.When.At = d.span(0.01, 3) // at 0 nobody has called anything
		}
	case 3:
		return d.jump(s)
	case 4:
		return d.amnesia(s)
	default:
		if d.topology != cluster.Replicated {
			return d.amnesia(s)
		}
		ok := !d.downed
		d.downed = true
		s.For = nemesis.Span{} // a promotion is not undone
		s.Fault = nemesis.Failover{Alive: d.rng.IntN(3) == 0}
		return s, ok
	}
	return s, true
}

// jump lets a clock step forward or back, or run at a rate far from real time.
func (d *dice) jump(s nemesis.Step) (nemesis.Step, bool) {
	by := d.span(0.05, 2)
	switch d.rng.IntN(3) {
	case 0:
		by.TTLs = -by.TTLs
	case 1:
		s.Fault = nemesis.Clock{Node: []string{d.node()}, Rate: pick(d, 0.5, 0.9, 1.1, 2)}
	}
	if s.Fault == nil {
		s.Fault = nemesis.Clock{Node: []string{d.node()}, Jump: by}
	}
	ok := !d.skewed
	d.skewed = true
	return s, ok
}

// amnesia lets a node lose its keys: a flush, or a restart without data or as
// of the last fsync.
func (d *dice) amnesia(s nemesis.Step) (nemesis.Step, bool) {
	node := []string{d.node()}
	if d.rng.IntN(3) == 0 {
		s.For, s.Fault = nemesis.Span{}, nemesis.Flush{Node: node}
		return s, true
	}
	s.Fault = nemesis.Kill{Node: node, Data: pick(d, cluster.Lose, cluster.Fsynced)}
	ok := !d.downed
	d.downed = true
	return s, ok
}
