package campaign

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
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
	// size of the parameter in TTLs, for the shortest plan.
	size float64
	// loses says that data is gone afterwards, stops that a client stands
	// still for longer than a lease.
	loses, stops bool
	// brief blows are over at once: the liveness phase may follow directly. A
	// slow request is none: it may set a key after everybody has given it up,
	// which no lock can prevent.
	brief bool
}

func (b blow) cause() string {
	if b.at.struck == "" {
		return b.kind
	}
	return b.kind + " at " + b.at.struck
}

// words tell the blow exactly: "slow reply by 1.2 TTL at SET 1 from c1 to n1".
func (b blow) words() string {
	var out strings.Builder
	out.WriteString(b.kind)
	if b.size > 0 {
		fmt.Fprintf(&out, " of %g TTL", b.size)
	}
	if b.at.struck != "" {
		out.WriteString(" at " + b.at.where())
	}
	return out.String()
}

// The lengths that are tried, in TTLs: one that a lease survives and one that
// it does not.
var (
	slows  = []float64{0.3, 1.2}
	stalls = []float64{0.5, 1.2}
)

// outOfMemory is an error that go-redis does not hide by asking again.
const outOfMemory = "OOM command not allowed when used memory > 'maxmemory'."

// downtime is how long a restarted node is away, and one in trouble answers with
// errors, in TTLs.
const downtime = 0.1

// blowsAt lists the single faults for a point. Connections that are cut after
// the command was applied lose its reply and are not told apart from that.
func blowsAt(p point) []blow {
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
	for _, length := range stalls {
		at(blow{kind: "client pause", size: length, stops: length >= 1}, nemesis.Pause{Client: p.client}, length)
	}
	if p.calling || p.invoke {
		at(blow{kind: "cancelled context", brief: true}, nemesis.Cancel{Client: p.client}, 0)
	}
	at(blow{kind: "client crash"}, nemesis.Crash{Client: p.client}, 0)
	if p.cmd == "" {
		return out
	}
	node := []string{p.node}
	for _, length := range stalls {
		at(blow{kind: "node stall", size: length}, nemesis.Stall{Node: node}, length)
	}
	at(blow{kind: "node restart with its data"}, nemesis.Kill{Node: node, Data: cluster.Keep}, downtime)
	at(blow{kind: "node restart without data", loses: true}, nemesis.Kill{Node: node, Data: cluster.Lose}, downtime)
	at(blow{kind: "error replies"}, nemesis.ErrorReply{Node: node, Reply: outOfMemory}, downtime)
	at(blow{kind: "script flush"}, nemesis.Flush{Node: node, Scripts: true}, 0)
	at(blow{kind: "deleted keys", loses: true}, nemesis.Flush{Node: node}, 0)
	return out
}

// strikesAt are the faults of one command on its way.
func strikesAt(p point) []blow {
	var out []blow
	strike := func(kind string, deed cluster.Deed, by float64) {
		out = append(out, blow{kind: kind, at: p, size: by, brief: by < 1 && deed != cluster.DelayRequest, step: nemesis.Step{Fault: nemesis.Strike{
			Client: p.client, Node: p.node, Command: p.cmd, Nth: p.nth, Deed: deed, By: nemesis.TTLs(by),
		}}})
	}
	strike("lost reply", cluster.LoseReply, 0)
	strike("lost request", cluster.LoseRequest, 0)
	for _, by := range slows {
		strike("slow request", cluster.DelayRequest, by)
	}
	for _, by := range slows {
		strike("slow reply", cluster.DelayReply, by)
	}
	return out
}

// plan is one run of an exploration.
type plan struct {
	scenario *scenarios.Scenario
	blows    []blow
	// ttl of the run; zero takes the exploration's.
	ttl time.Duration
	// refusable plans build a lock in a way that it is right to refuse.
	refusable bool
}

func (p plan) cause() string {
	var out []string
	for _, b := range p.blows {
		out = append(out, b.cause())
	}
	return strings.Join(out, " and ")
}

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

func (p plan) loses() bool {
	for _, b := range p.blows {
		if b.loses {
			return true
		}
	}
	return false
}

func (p plan) stops() bool {
	for _, b := range p.blows {
		if b.stops {
			return true
		}
	}
	return false
}

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
func singles(base *scenarios.Scenario, points []point, ttl time.Duration, hurried bool) []plan {
	var out []plan
	for _, pt := range points {
		for _, b := range blowsAt(pt) {
			deadline := b.kind == "cancelled context" || strings.HasPrefix(b.kind, "lost") ||
				strings.HasPrefix(b.kind, "slow") || b.kind == "node stall"
			if hurried && !deadline {
				continue // a deadline makes no difference to the others
			}
			out = append(out, with(base, b))
			if b.brief {
				out = append(out, impatient(base, b, ttl))
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
