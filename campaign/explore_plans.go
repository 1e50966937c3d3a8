package campaign

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// blow is one fault at one point.
type blow struct {
	// kind in words: "lost reply".
	kind string
	// where it strikes; the cause of what follows is the kind and what was
	// struck there.
	at   point
	step nemesis.Step
	// whom the fault strikes beside what stands in at, in words.
	whom string
	// size of the parameter in TTLs, for the shortest plan.
	size float64
	// loses says that data is gone afterwards, jumps that a lease ended early
	// because a clock jumped, which is as good as gone, and stops that a client
	// stands still for longer than a lease.
	loses, jumps, stops bool
	// brief blows are over at once: the liveness phase may follow directly. A
	// slow request is none: it may set a key after everybody has given it up,
	// which no lock can prevent.
	brief bool
}

func (b blow) cause() string {
	return b.tell(b.at.struck)
}

// tell puts the kind before what it strikes.
func (b blow) tell(struck string) string {
	switch {
	case struck == "":
		return b.kind
	case b.kind == cutBefore || b.kind == cutAfter:
		return b.kind + " " + struck
	}
	return b.kind + " at " + struck
}

// words tell the blow exactly: "slow reply of 1.2 TTL at SET 1 from c1 to n1".
func (b blow) words() string {
	exact := b
	exact.kind += b.whom
	if b.size > 0 {
		word := " of"
		if b.whom != "" {
			word = " for"
		}
		exact.kind += fmt.Sprintf("%s %g TTL", word, b.size)
	}
	if b.at.struck == "" {
		return exact.kind
	}
	return exact.tell(b.at.where())
}

// The lengths that are tried, in TTLs: one that a lease survives and one that
// it does not.
var (
	slows  = []float64{0.3, 1.2}
	stalls = []float64{0.5, 1.2}
)

// afterwards are delays of an extend or a renewal after which it finds the lease
// over, and the next holder there and gone: counted from the call, which the
// last one precedes by a while, and from the command.
//
//	0      extend is called, 0.15 TTL after the last
//	0.85   the lease ends; another is granted the lock
//	1.3    the other gives it back
//	1.35   the command arrives, and finds a lock that nobody holds
var afterwards = []float64{1.35, 1.5}

// delays are the lengths for a moment.
func (p point) delays(usual []float64) []float64 {
	if strings.Contains(p.struck, history.Extend) || strings.Contains(p.struck, background) {
		return slices.Concat(usual, afterwards)
	}
	return usual
}

// downtime is how long a restarted node is away, and one in trouble answers with
// errors, in TTLs. One that loses its data is back sooner, as long as the lease
// still runs that it has forgotten. silence is how long replies vanish: long
// enough for the one that is on its way.
const (
	downtime = 0.1
	amnesia  = 0.02
	silence  = 0.02
)

// blowsAt lists the single faults for a point, of a lock on so many nodes that
// vote; a lock on one node has none.
func blowsAt(p point, voters int) []blow {
	var out []blow
	if p.cmd != "" {
		out = append(out, strikesAt(p)...)
	}
	if !p.fires {
		return out
	}
	at := func(b blow, fault nemesis.Fault, length float64) {
		b.at = p
		b.step = nemesis.Step{When: p.when, Fault: fault, For: nemesis.TTLs(length)}
		out = append(out, b)
	}
	for _, length := range p.delays(stalls) {
		at(blow{kind: "client pause", size: length, stops: length >= 1}, nemesis.Pause{Client: p.client}, length)
	}
	if p.calling || p.invoke {
		at(blow{kind: "cancelled context", brief: true}, nemesis.Cancel{Client: p.client}, 0)
	}
	at(blow{kind: "client crash"}, nemesis.Crash{Client: p.client}, 0)
	if p.cmd == "" {
		if p.invoke {
			cutsAt(p, voters, at)
		}
		if p.struck == granted {
			out = append(out, jumpsAt(p, max(voters, 1))...)
			out = append(out, lossesAt(p, voters)...)
		}
		return out
	}
	node := []string{p.node}
	// Only the reply is lost, and the connection stays: its sender hears
	// nothing until it stops waiting.
	at(blow{kind: "lost reply"},
		nemesis.Cut{From: []string{p.client}, To: node, Direction: nemesis.Replies, Mode: cluster.Drop}, silence)
	for _, length := range stalls {
		at(blow{kind: "node stall", size: length}, nemesis.Stall{Node: node}, length)
		if others := others(p.node, voters); len(others) > 0 {
			at(blow{kind: "stall of the other nodes", size: length}, nemesis.Stall{Node: others}, length)
		}
	}
	at(blow{kind: "node restart with its data"}, nemesis.Kill{Node: node, Data: cluster.Keep}, downtime)
	at(blow{kind: "node restart without data", loses: true}, nemesis.Kill{Node: node, Data: cluster.Lose}, amnesia)
	for _, reply := range troubles {
		word, _, _ := strings.Cut(reply, " ")
		at(blow{kind: "error replies", whom: " (" + word + ")"}, nemesis.ErrorReply{Node: node, Reply: reply}, downtime)
	}
	at(blow{kind: "script flush"}, nemesis.Flush{Node: node, Scripts: true}, 0)
	at(blow{kind: "deleted keys", loses: true}, nemesis.Flush{Node: node}, 0)
	return out
}

// granted is the step at which a client is told that it has the lock.
const granted = history.Acquire + " " + string(history.OK)

// others are the nodes beside one.
func others(node string, voters int) []string {
	var out []string
	for i := 1; i <= voters; i++ {
		if name := cluster.NodeName(i); name != node {
			out = append(out, name)
		}
	}
	return out
}

// cutsAt cuts a client off as it asks for votes: from as many nodes as leave it
// a majority, at either end of the list, and from so many that they do not.
// These are faults of which a minority is no harm, but it leaves a bare quorum
// to a second fault.
func cutsAt(p point, voters int, at func(blow, nemesis.Fault, float64)) {
	minority := (voters - 1) / 2
	if minority == 0 {
		return
	}
	cut := func(what string, from, to int) {
		var nodes []string
		for i := from; i <= to; i++ {
			nodes = append(nodes, cluster.NodeName(i))
		}
		for _, length := range stalls {
			at(blow{kind: "cut off from " + what, whom: " (" + strings.Join(nodes, ", ") + ")", size: length},
				nemesis.Cut{From: []string{p.client}, To: nodes, Mode: cluster.Drop}, length)
		}
	}
	cut("a minority", 1, minority)
	cut("a minority", voters-minority+1, voters)
	cut("a majority", minority+1, voters)
}

// strikesAt are the faults of one command on its way.
func strikesAt(p point) []blow {
	var out []blow
	strike := func(kind string, deed cluster.Deed, by float64) {
		out = append(out, blow{kind: kind, at: p, size: by, brief: by < 1 && deed != cluster.DelayRequest, step: nemesis.Step{Fault: nemesis.Strike{
			Client: p.client, Node: p.node, Command: p.cmd, Nth: p.nth, Deed: deed, By: nemesis.TTLs(by),
		}}})
	}
	strike(cutAfter, cluster.LoseReply, 0)
	strike(cutBefore, cluster.LoseRequest, 0)
	for _, by := range p.delays(slows) {
		strike("slow request", cluster.DelayRequest, by)
	}
	for _, by := range slows {
		strike("slow reply", cluster.DelayReply, by)
	}
	return out
}

// The connection is closed before the node has the command, or when the node
// has executed it and before its reply.
const (
	cutBefore = "connection cut before"
	cutAfter  = "connection cut after"
)

// plan is one run of an exploration.
type plan struct {
	scenario *scenarios.Scenario
	blows    []blow
	// ttl of the run; zero takes the exploration's own.
	ttl time.Duration
	// refusable plans build a lock in a way that it is right to refuse.
	refusable bool
	// barren plans give a lock a parameter with which it may well grant nothing.
	barren bool
}

func (p plan) cause() string {
	var out []string
	for _, b := range p.blows {
		out = append(out, b.cause())
	}
	return strings.Join(out, " and ")
}

// paired says that the plan has two faults, and not a parameter and one.
func (p plan) paired() bool { return len(p.blows) > 1 && !p.refusable }

func (p plan) words() string {
	var out []string
	for _, b := range p.blows {
		out = append(out, b.words())
	}
	return strings.Join(out, ", and ")
}

// size and place order plans from the shortest on.
func (p plan) size() float64 {
	sum := 0.0
	for _, b := range p.blows {
		sum += b.size
	}
	return sum
}

func (p plan) place() int {
	at := 0
	for _, b := range p.blows {
		at = max(at, b.at.at)
	}
	return at
}

// losers counts the nodes that lose data, or leases to a clock.
func (p plan) losers() int {
	nodes := map[string]bool{}
	for _, b := range p.blows {
		if b.loses || b.jumps {
			nodes[b.at.node] = true
		}
	}
	return len(nodes)
}

func (p plan) stops() bool { return slices.ContainsFunc(p.blows, func(b blow) bool { return b.stops }) }
func (p plan) jumps() bool { return slices.ContainsFunc(p.blows, func(b blow) bool { return b.jumps }) }

// with makes a plan of a base run and blows.
func with(base *scenarios.Scenario, blows ...blow) plan {
	s := *base
	p := plan{blows: blows}
	s.Nemesis = nil
	for _, b := range blows {
		s.Nemesis = append(s.Nemesis, b.step)
	}
	s.About = fmt.Sprintf("Two rounds of each client, with one moment broken: %s.", p.words())
	if len(blows) > 1 {
		s.About = fmt.Sprintf("Two rounds of each client, with %d moments broken: %s.", len(blows), p.words())
	}
	p.scenario = &s
	return p
}

// impatience is the bound of the liveness phase right after a brief fault, in
// TTLs. A key that its owner has forgotten blocks the others for a whole one.
const impatience = 0.75

// impatient asks for liveness directly after a brief fault, and for no less
// than a lock can give whose key is not left behind.
func impatient(base *scenarios.Scenario, b blow, ttl time.Duration) plan {
	p := with(base, b)
	p.scenario.Name += "-impatient"
	late := min(b.size, base.Workload.AcquireTimeout.TTLs)
	after := float64(b.at.t)/float64(ttl) + late + 0.05
	p.scenario.Length = nemesis.TTLs(math.Ceil(after*100) / 100)
	p.scenario.Final.Wait = nemesis.TTLs(impatience)
	return p
}

// singles lists all plans with one fault, each once.
func singles(base *scenarios.Scenario, points []point, voters int, ttl time.Duration, m mood) []plan {
	var out []plan
	for i, pt := range points {
		for _, b := range blowsAt(pt, voters) {
			if !m.worth(b) || len(points) > manyPoints && !inTurn(b, i) {
				continue
			}
			p := with(base, b)
			p.ttl = m.ttl(ttl)
			out = append(out, p)
			if b.brief {
				p = impatient(base, b, m.ttl(ttl))
				p.ttl = m.ttl(ttl)
				out = append(out, p)
			}
		}
	}
	return unalike(out)
}

// unalike drops plans that would play the same.
func unalike(plans []plan) []plan {
	seen := map[string]bool{}
	var out []plan
	for _, p := range plans {
		// With the types: a crash and a cancelled call of c1 have the same
		// fields.
		key := fmt.Sprintf("%#v %v %v %v %v", p.scenario.Nemesis, p.scenario.Workload, p.scenario.Length, p.scenario.Nodes, p.ttl)
		if !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	return out
}
