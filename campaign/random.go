package campaign

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// How much a random plan holds.
const (
	mostFaults  = 4
	mostClients = 4
)

// RandomScenario makes up a scenario with one to four faults that a correct
// lock must survive on a guarded resource, the same one for the same seed and
// topology. Whatever comes out as a violation of such a lock is a mistake of
// the lock, of the simulator or of the checks.
//
// It leaves out what no lock with a lease survives: a clock that jumps, a node
// that loses data, a failover.
func RandomScenario(seed uint64, topology cluster.Topology) *scenarios.Scenario {
	d := &dice{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), topology: topology}
	s := d.contest(fmt.Sprintf("random-%d", seed), "One to four random faults that a correct lock survives on a guarded resource.",
		d.crowd(), scenarios.Guarded)
	d.breakIt(s, mostFaults, d.step)
	return s
}

// crowd draws how many clients contend.
func (d *dice) crowd() int { return 2 + d.rng.IntN(mostClients-1) }

// contest draws a scenario in which nothing is broken yet.
func (d *dice) contest(name, about string, clients int, resource string) *scenarios.Scenario {
	return &scenarios.Scenario{
		Name:     name,
		About:    about,
		Topology: map[string]cluster.Topology{scenarios.Default: d.topology},
		Clients:  clients,
		Workload: scenarios.Workload{
			Kind: scenarios.Update, Resource: resource,
			Hold: d.span(0.02, 1.5), Think: d.span(0.01, 0.4), Retry: d.span(0.02, 0.2),
			Stagger: d.span(0, 0.3), AcquireTimeout: d.span(0.3, 4),
			CallTimeout: d.span(0.3, 1.5), WriteTimeout: d.span(0.3, 4),
		},
		Length: nemesis.TTLs(4),
		Final:  scenarios.Final{Heal: true, Wait: nemesis.TTLs(2)},
	}
}

// breakIt draws one to most faults for a scenario.
func (d *dice) breakIt(s *scenarios.Scenario, most int, draw func() (nemesis.Step, bool)) {
	d.clients = s.Clients
	d.nodes = s.NodesOf(d.topology)
	d.free = d.rng.Perm(s.Clients)
	for range 1 + d.rng.IntN(most) {
		if step, ok := draw(); ok {
			s.Nemesis = append(s.Nemesis, step)
		}
	}
}

// dice draws the parts of a plan.
type dice struct {
	rng            *rand.Rand
	topology       cluster.Topology
	clients, nodes int
	// free are the clients that no fault has stopped yet. A client is paused
	// or crashed once: what is stopped already cannot be stopped, and the
	// injection would fail the run.
	free []int
	// downed and skewed: one node is killed or stalled, and one clock runs at
	// another rate, at most once in a plan, for the same reason and for the
	// bound at [dice.rate].
	downed, skewed bool
}

// span draws a length in whole hundredths of a TTL.
func (d *dice) span(from, to float64) nemesis.Span {
	return nemesis.TTLs(math.Round((from+d.rng.Float64()*(to-from))*100) / 100)
}

func pick[T any](d *dice, among ...T) T { return among[d.rng.IntN(len(among))] }

func (d *dice) client() string { return cluster.ClientName(1 + d.rng.IntN(d.clients)) }

// node names one node; the others may be replicas that no client talks to.
func (d *dice) node() string {
	if d.topology == cluster.Independent {
		return cluster.NodeName(1 + d.rng.IntN(d.nodes))
	}
	return cluster.NodeName(1)
}

// endpoint is where the requests of clients go.
func (d *dice) endpoint() string {
	if d.topology == cluster.Replicated {
		return cluster.Primary
	}
	return d.node()
}

// trigger draws the moment of a fault.
func (d *dice) trigger() nemesis.Trigger {
	t := nemesis.Trigger{At: d.span(0, 3)}
	switch d.rng.IntN(4) {
	case 0:
		return t
	case 1:
		t = nemesis.Trigger{Command: nemesis.AnyCommand}
	case 2:
		t = nemesis.Trigger{
			Op:   pick(d, history.Acquire, history.Read, history.Write, history.Release),
			Type: pick(d, history.Invoke, history.OK),
		}
	case 3:
		t = nemesis.Trigger{Op: history.Worked, Type: history.Note}
	}
	t.Nth = 1 + d.rng.IntN(5)
	if d.rng.IntN(2) == 0 {
		t.Client = d.client()
	}
	if d.rng.IntN(2) == 0 {
		t.After = d.span(0, 0.5)
	}
	return t
}

// step draws one fault. It says no where the plan has had its share of that
// kind.
func (d *dice) step() (nemesis.Step, bool) {
	s := nemesis.Step{When: d.trigger(), For: d.span(0.05, 2.5)}
	switch d.rng.IntN(12) {
	case 0, 1, 2:
		return d.pause(s)
	case 3:
		s.Fault = d.cut()
	case 4:
		s.Fault = nemesis.Partition{
			Groups:     [][]string{{d.client()}, {pick(d, "nodes", d.node())}},
			Asymmetric: d.rng.IntN(2) == 0, Mode: pick(d, cluster.Drop, cluster.Reset),
		}
	case 5, 6:
		from, to := d.pair()
		s.Fault = nemesis.Delay{
			From: from, To: to, By: d.span(0.01, 2),
			Direction: pick(d, nemesis.Requests, nemesis.Replies, nemesis.Both),
		}
	case 7:
		s.For = nemesis.Span{}
		s.Fault = nemesis.LoseReply{
			Client: d.client(), Node: d.endpoint(), Command: pick(d, "", "EVALSHA"), Nth: 1 + d.rng.IntN(4),
		}
	case 8:
		return d.down(s)
	case 9:
		return d.rate(s)
	case 10:
		return d.crash(s)
	default:
		s.Fault = d.answer(&s)
	}
	return s, true
}

// stopped takes a client that no other fault stops.
func (d *dice) stopped() (string, bool) {
	if len(d.free) == 0 {
		return "", false
	}
	name := cluster.ClientName(d.free[0] + 1)
	d.free = d.free[1:]
	return name, true
}

func (d *dice) pause(s nemesis.Step) (nemesis.Step, bool) {
	client, ok := d.stopped()
	s.Fault = nemesis.Pause{Client: client}
	if s.When.Op != "" || s.When.Command != "" {
		s.When.Client = client // a pause is worth most in the middle of something
	}
	return s, ok
}

// crash ends a client, but never the last one.
func (d *dice) crash(s nemesis.Step) (nemesis.Step, bool) {
	if len(d.free) < 2 {
		return s, false
	}
	client, ok := d.stopped()
	s.Fault, s.For = nemesis.Crash{Client: client}, nemesis.Span{}
	return s, ok
}

// pair draws whose links are hit: to the nodes or to the resource.
func (d *dice) pair() (from, to []string) {
	return []string{pick(d, "clients", d.client())}, []string{pick(d, "nodes", d.node(), cluster.Resource)}
}

func (d *dice) cut() nemesis.Fault {
	from, to := d.pair()
	return nemesis.Cut{
		From: from, To: to, Mode: pick(d, cluster.Drop, cluster.Reset),
		Direction: pick(d, nemesis.Requests, nemesis.Replies, nemesis.Both),
	}
}

// down stops a node: killed and started again with all its data, or stalled.
func (d *dice) down(s nemesis.Step) (nemesis.Step, bool) {
	node := []string{d.node()}
	s.Fault = pick(d, nemesis.Fault(nemesis.Kill{Node: node, Data: cluster.Keep}), nemesis.Fault(nemesis.Stall{Node: node}))
	ok := !d.downed
	d.downed = true
	return s, ok
}

// rate lets a clock run up to half a percent off. The heal puts the clock back
// to real time at once. After 1.5 TTL at a rate of 0.995 that is a step of
// 0.0075 TTL forward, and a key of that moment lives so much shorter, which is
// within the one percent that a lock with an allowance for drift allows for.
// After 3 TTL it would not be.
func (d *dice) rate(s nemesis.Step) (nemesis.Step, bool) {
	s.For = d.span(0.1, 1.5)
	s.Fault = nemesis.Clock{Node: []string{d.node()}, Rate: 0.995 + 0.01*d.rng.Float64()}
	ok := !d.skewed
	d.skewed = true
	return s, ok
}

// answer is a node that answers, but not with what was asked for.
func (d *dice) answer(s *nemesis.Step) nemesis.Fault {
	node := []string{d.node()}
	if d.rng.IntN(3) == 0 {
		s.For = nemesis.Span{} // a flush is over at once
		return nemesis.Flush{Node: node, Scripts: true}
	}
	return nemesis.ErrorReply{Node: node, Reply: pick(d,
		"OOM command not allowed when used memory > 'maxmemory'.",
		"LOADING Redis is loading the dataset in memory",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	)}
}
