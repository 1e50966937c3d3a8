package campaign

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// Odd parameters. A lock does right if it refuses the first ones when it is
// built; the others are ordinary, but not whole seconds.
var (
	badTTLs = []time.Duration{-5 * time.Second, 0, 500 * time.Microsecond}
	oddTTLs = []time.Duration{800 * time.Millisecond, 1500 * time.Millisecond}
)

// mostParamNodes is how many nodes a quorum lock is tried with at most.
const mostParamNodes = 7

// params are the plans with odd parameters.
func (e Exploration) params() []plan {
	var out []plan
	for _, ttl := range badTTLs {
		for _, crash := range []bool{false, true} {
			out = append(out, e.badTTL(ttl, crash))
		}
	}
	if entry, _ := FindLock(e.Lock); slices.Contains(entry.Abilities, catalogue.AbilityExtendFor) {
		for _, ttl := range badTTLs {
			out = append(out, e.badExtend(ttl))
		}
	}
	for _, ttl := range oddTTLs {
		base := e.longWork()
		base.Name += "-" + nameOf(ttl.String())
		p := with(base, blow{kind: fmt.Sprintf("a TTL of %v", ttl)})
		p.scenario.Nemesis = nil
		p.ttl = ttl
		p.scenario.About = fmt.Sprintf("Work of almost a TTL, with %s; nothing is broken.", p.words())
		out = append(out, p)
	}
	out = append(out, e.choices()...)
	if topology, _ := e.topology(); topology == cluster.Independent {
		for n := 1; n <= mostParamNodes; n++ {
			out = append(out, e.nodeCounts(n)...)
		}
	}
	return out
}

// oddRetries are numbers that users write who mean "never" or "once".
var oddRetries = []int{-1, 0, 1}

// choices are the plans with what a lock lets its users choose beside the TTL:
// the number of retries, in peace and with all clients at once, and the values
// of its keys. The lock should keep what it promises with all of them; where it
// never grants anything, it has refused the number, if late.
func (e Exploration) choices() []plan {
	lock, _ := FindLock(e.Lock) // Run has looked
	var out []plan
	if lock.Retries {
		for _, n := range oddRetries {
			for _, what := range []string{"nothing broken", "all clients at once"} {
				s := e.baseRun(calm)
				s.Name += "-retries-" + nameOf(what)
				s.Workload.LockRetries = scenarios.LockRetries{Given: true, N: n}
				p := with(s, blow{kind: fmt.Sprintf("retries set to %d, %s", n, what)})
				if p.scenario.Nemesis = nil; what != "nothing broken" {
					p.scenario.Workload.Stagger = nemesis.Span{}
				}
				p.barren = n < 1
				p.scenario.About = fmt.Sprintf("The locks are built with %s.", p.words())
				out = append(out, p)
			}
		}
	}
	if lock.Tokens {
		s := e.baseRun(calm)
		s.Name += "-tokens"
		s.Workload.LockTokens = scenarios.Prefixes
		p := with(s, blow{kind: "tokens of which one is the beginning of the next"})
		p.scenario.Nemesis = nil
		p.scenario.About = fmt.Sprintf("The locks are given %s.", p.words())
		out = append(out, p)
	}
	return out
}

// longWork fills nearly the whole lease, so that one which ends early shows.
func (e Exploration) longWork() *scenarios.Scenario {
	s := e.baseRun(calm)
	s.Workload.Hold, s.Workload.Extend = nemesis.TTLs(0.9), nemesis.Span{}
	return s
}

// badTTL builds the lock with a TTL that it should refuse. A lock that takes
// it must still be free again after a holder has died.
func (e Exploration) badTTL(ttl time.Duration, crash bool) plan {
	s := e.baseRun(calm)
	s.Name += "-bad-ttl"
	p := with(s, blow{kind: fmt.Sprintf("a TTL of %v", ttl)})
	p.refusable = true
	p.scenario.Workload.LockTTL = scenarios.LockTTL{Given: true, TTL: ttl}
	p.scenario.Nemesis = nil
	p.scenario.About = fmt.Sprintf("The locks are built with %s; nothing is broken.", p.words())
	if crash {
		p.scenario.Name += "-crash"
		p.blows = append(p.blows, blow{kind: "client crash", at: point{
			struck: history.Read + " ok", client: "c1", when: nemesis.Trigger{Nth: 1}}})
		p.scenario.Nemesis = nemesis.Plan{{
			When:  nemesis.Trigger{Op: history.Read, Type: history.OK, Client: "c1"},
			Fault: nemesis.Crash{Client: "c1"},
		}}
		p.scenario.About = fmt.Sprintf("The locks are built with a TTL of %v, and a holder dies.", ttl)
	}
	return p
}

// badExtend lengthens a good lease by a length that no lease can have. A lock
// that says yes must still have its key.
func (e Exploration) badExtend(ttl time.Duration) plan {
	s := e.baseRun(calm)
	s.Name += "-bad-extend"
	p := with(s, blow{kind: fmt.Sprintf("an extend by %v", ttl)})
	p.scenario.Workload.ExtendTTL = scenarios.LockTTL{Given: true, TTL: ttl}
	p.scenario.Nemesis = nil
	p.scenario.About = fmt.Sprintf("Holders ask for %s; nothing is broken.", p.words())
	return p
}

func nodesOf(n int) string {
	if n == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// nodeCounts tries a number of nodes: in peace, with everybody asking at once,
// with as many nodes down as leave a majority, and with the nodes in halves of
// which each client reaches one.
func (e Exploration) nodeCounts(n int) []plan {
	build := func(what string, steps ...nemesis.Step) plan {
		s := e.baseRun(calm)
		s.Name = fmt.Sprintf("%s-n%d-%s", s.Name, n, nameOf(what))
		s.Nodes[cluster.Independent] = n
		p := with(s, blow{kind: fmt.Sprintf("%s, %s", nodesOf(n), what)})
		p.scenario.Nemesis = steps
		p.scenario.About = fmt.Sprintf("The lock on %s.", p.words())
		return p
	}
	start := nemesis.Trigger{}
	calm := build("nothing broken")
	rush := build("all clients at once")
	rush.scenario.Workload.Stagger = nemesis.Span{}
	out := []plan{calm, rush}
	if n > 2 {
		var down []string
		for i := range (n - 1) / 2 {
			down = append(down, cluster.NodeName(n-i))
		}
		out = append(out, build("a minority down", nemesis.Step{
			When: start, For: nemesis.TTLs(2), Fault: nemesis.Kill{Node: down, Data: cluster.Keep}}))
	}
	if n > 1 {
		left, right := []string{"c1"}, []string{}
		for i := 2; i <= e.Clients; i++ {
			right = append(right, cluster.ClientName(i))
		}
		for i := 1; i <= n; i++ {
			if i <= n/2 {
				left = append(left, cluster.NodeName(i))
			} else {
				right = append(right, cluster.NodeName(i))
			}
		}
		out = append(out, build("in two halves", nemesis.Step{
			When: start, For: nemesis.TTLs(2), Fault: nemesis.Partition{Groups: [][]string{left, right}}}))
	}
	return out
}
