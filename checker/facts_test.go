package checker

import (
	"fmt"
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

func TestBelief(t *testing.T) {
	const acquire = history.Acquire
	told := []history.Event{invoke(0, "c1", acquire, 1), until(ok(1, "c1", acquire, 1), 9)}
	untold := []history.Event{invoke(0, "c1", acquire, 1), ok(1, "c1", acquire, 1)}
	end := note(40, "c1", history.Worked, 1)
	for _, tt := range []struct {
		name   string
		events []history.Event
		want   []Interval
		why    string
		index  int
	}{
		{"without end", join(untold, end), []Interval{{ns(1), ns(40)}}, EndHistory, -1},
		{"release invoked", join(untold, invoke(5, "c1", history.Release, 1), ok(6, "c1", history.Release, 1)), []Interval{{ns(1), ns(5)}}, EndRelease, 2},
		{"told validity", join(told, end), []Interval{{ns(1), ns(9)}}, EndUntil, -1},
		{"told a later one in time", join(told, until(note(8, "c1", history.Check, 1), 18), end), []Interval{{ns(1), ns(18)}}, EndUntil, -1},
		{"told a later one too late", join(told, until(note(13, "c1", history.Check, 1), 20), end), []Interval{{ns(1), ns(9)}, {ns(13), ns(20)}}, EndUntil, -1},
		{"told at the very end", join(told, until(note(9, "c1", history.Check, 1), 18), end), []Interval{{ns(1), ns(18)}}, EndUntil, -1},
		{"told that it is over already", join(told, until(note(5, "c1", history.Check, 1), 3), end), []Interval{{ns(1), ns(5)}}, EndUntil, 2},
		{"told an earlier end", join(told, until(note(5, "c1", history.Check, 1), 7), end), []Interval{{ns(1), ns(7)}}, EndUntil, -1},
		{"granted when it was over", join(invoke(0, "c1", acquire, 1), until(ok(12, "c1", acquire, 1), 10), end), nil, EndUntil, 1},
		{"lost, whatever is told later", join(told, note(5, "c1", history.Lost, 1), until(note(6, "c1", history.Check, 1), 18), end), []Interval{{ns(1), ns(5)}}, EndLost, 2},
		{"a loss notice before the grant", join(invoke(0, "c1", acquire, 1), note(0.5, "c1", history.Lost, 1), ok(1, "c1", acquire, 1), end), []Interval{{ns(1), ns(40)}}, EndHistory, -1},
		{"abandoned after the end", join(told, note(12, "c1", history.Abandon, 1), end), []Interval{{ns(1), ns(9)}}, EndUntil, -1},
		{"crash", join(untold, note(5, "c1", history.Crash, 0), note(50, "c1", history.Crash, 0)), []Interval{{ns(1), ns(5)}}, EndCrash, 2},
	} {
		a := Gather(story(tt.events...)).ByAcq[1]
		if fmt.Sprint(a.Belief) != fmt.Sprint(tt.want) || a.BeliefWhy != tt.why || a.BeliefEndIndex != tt.index {
			t.Errorf("%s: believed %v, ended by %s (event %d), want %v, %s (%d)", tt.name, a.Belief, a.BeliefWhy, a.BeliefEndIndex, tt.want, tt.why, tt.index)
		}
	}
}

func TestGuaranteedLease(t *testing.T) {
	const acquire, extend, release = history.Acquire, history.Extend, history.Release
	set := join(invoke(0.9, "c1", acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), ok(1, "c1", acquire, 1))
	end := note(40, "c1", history.Worked, 1)
	reply := func(e history.Event, r string) history.Event {
		e.Server.Reply = r
		return e
	}
	for _, tt := range []struct {
		name   string
		events []history.Event
		want   []Interval
		lease  float64 // LeaseEnd
	}{
		{"ops alone", join(grant(1, "c1", 1), end), []Interval{{ns(1), ns(10.9)}}, 10.9},
		{"the command's own time", join(set, end), []Interval{{ns(1), ns(10.95)}}, 10.95},
		{"extend", join(grant(1, "c1", 1), invoke(8, "c1", extend, 1), ok(9, "c1", extend, 1), end), []Interval{{ns(1), ns(18)}}, 18},
		{"extend of unknown outcome", join(grant(1, "c1", 1), invoke(8, "c1", extend, 1), info(9, "c1", extend, 1), note(40, "c1/2", history.Worked, 1)), []Interval{{ns(1), ns(10.9)}}, 10.9},
		{"extend after the end says nothing about the time between", join(grant(1, "c1", 1), invoke(14, "c1", extend, 1), ok(15, "c1", extend, 1), end), []Interval{{ns(1), ns(10.9)}, {ns(15), ns(24)}}, 10.9},
		{"renewal", join(set, server(8, "n1", "c1", "EVALSHA", "c1#1", 10), end), []Interval{{ns(1), ns(18)}}, 18},
		{"a renewal to less than half a TTL is none", join(set, server(9, "n1", "c1", "EVALSHA", "c1#1", 4.9), end), []Interval{{ns(1), ns(10.95)}}, 10.95},
		{"a refused script leaves what remained", join(set, server(2, "n1", "c1", "EVALSHA", "c1#1", 8.95), end), []Interval{{ns(1), ns(10.95)}}, 10.95},
		{"a slow clock is no renewal", join(set, server(2, "n1", "c1", "EVALSHA", "c1#1", 9.2), end), []Interval{{ns(1), ns(10.95)}}, 10.95},
		{"an extend confirmed after the release does not count", join(grant(1, "c1", 1), invoke(2, "c1/2", extend, 1), invoke(3, "c1", release, 1), ok(4, "c1/2", extend, 1), ok(5, "c1", release, 1)), []Interval{{ns(1), ns(3)}}, 10.9},
		{"an error renews nothing", join(set, reply(server(8, "n1", "c1", "EVALSHA", "c1#1", 10), "READONLY You can't write"), end), []Interval{{ns(1), ns(10.95)}}, 10.95},
		{"another client's command neither", join(set, server(8, "n1", "c2", "PEXPIRE", "c1#1", 10), end), []Interval{{ns(1), ns(10.95)}}, 10.95},
		{"nor a command after the end, before a late extend", join(set, server(13, "n1", "c1", "EVALSHA", "c1#1", 10), invoke(14, "c1", extend, 1), ok(15, "c1", extend, 1), end),
			[]Interval{{ns(1), ns(10.95)}, {ns(15), ns(24)}}, 10.95},
		{"release ends the guarantee, not the lease", join(grant(1, "c1", 1), invoke(3, "c1", release, 1), info(4, "c1", release, 1)), []Interval{{ns(1), ns(3)}}, 10.9},
		{"a renewal after the release does not count", join(set, invoke(3, "c1", release, 1), server(8, "n1", "c1", "EVALSHA", "c1#1", 10), ok(9, "c1", release, 1)), []Interval{{ns(1), ns(3)}}, 10.95},
		{"heard of when it was over", join(invoke(0, "c1", acquire, 1), ok(15, "c1", acquire, 1), end), nil, 10},
	} {
		a := Gather(story(tt.events...)).ByAcq[1]
		if fmt.Sprint(a.Guaranteed) != fmt.Sprint(tt.want) || a.LeaseEnd != ns(tt.lease) {
			t.Errorf("%s: guaranteed %v, lease until %d, want %v and %d", tt.name, a.Guaranteed, a.LeaseEnd, tt.want, ns(tt.lease))
		}
	}
}

// TestQuorumLease: with five nodes, a lease lasts as long as three of them
// carry the token.
func TestQuorumLease(t *testing.T) {
	renewed := func(granting int, nodes ...string) *history.History {
		events := join(invoke(0, "c1", history.Acquire, 1))
		for i := range granting {
			events = append(events, server(0.1+float64(i)/10, fmt.Sprintf("n%d", i+1), "c1", "SET", "c1#1", 10))
		}
		events = append(events, ok(1, "c1", history.Acquire, 1))
		for _, n := range nodes {
			events = append(events, server(8, n, "c1", "EVALSHA", "c1#1", 10))
		}
		return with(story(append(events, note(30, "c1", history.Worked, 1))...), func(h *history.Header) { h.Topology, h.Nodes = "independent", 5 })
	}
	for _, tt := range []struct {
		name string
		h    *history.History
		want float64
	}{
		{"five nodes: the round's first vote counts", renewed(5), 10.1},
		{"four nodes", renewed(4), 10.1},
		{"renewed on the latest two, which changes nothing", renewed(5, "n4", "n5"), 10.1},
		{"renewed on three", renewed(5, "n1", "n2", "n4"), 18},
		{"two nodes are no quorum: the invoke counts", renewed(2), 10},
	} {
		a := Gather(tt.h).ByAcq[1]
		if a.GuaranteedEnd != ns(tt.want) || a.Alias != "c1#1" {
			t.Errorf("%s: guaranteed until %d (alias %q), want %d", tt.name, a.GuaranteedEnd, a.Alias, ns(tt.want))
		}
	}
}

// TestAlias: the holder's own token, not one that its refused attempts saw.
func TestAlias(t *testing.T) {
	a := Gather(story(
		invoke(0, "c1", history.Acquire, 1),
		server(0.1, "n1", "c1", "SET", "c2#1", 3),
		server(0.2, "n1", "c1", "SET", "c1#1", 3),
		server(5, "n1", "c1", "SET", "c1#2", 10),
		ok(5.1, "c1", history.Acquire, 1))).ByAcq[1]
	if a.Alias != "c1#2" || a.LeaseStart != ns(5) {
		t.Errorf("alias %q from %d, want c1#2 from %d", a.Alias, a.LeaseStart, ns(5))
	}
}
