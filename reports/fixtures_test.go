package reports

import (
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// The stories that the tests tell, small enough to check by hand. Times are in
// seconds, the TTL is 10 s.

// script builds a history line by line.
type script struct{ h *history.History }

func newScript(scenario, lock string) *script {
	return &script{h: &history.History{Header: history.Header{
		Schema: history.Schema, Scenario: scenario, Lock: lock, World: "sim", Topology: "single",
		Nodes: 1, Clients: 2, Seed: 7, TTL: 10 * time.Second, Abilities: []string{},
	}}}
}

func (s *script) at(t float64, e history.Event) int {
	e.T = int64(t * 1e9)
	s.h.Events = append(s.h.Events, e)
	return len(s.h.Events) - 1
}

func (s *script) op(t float64, client string, acq int, f string, typ history.Type) int {
	process := int(client[len(client)-1] - '0')
	return s.at(t, history.Event{Op: &history.Op{Process: process, Client: client, F: f, Type: typ, Lock: "demo", Acq: acq}})
}

func (s *script) node(t float64, node, cmd, client, owner string) {
	pttl := int64(-2)
	if owner != "" {
		pttl = 10_000
	}
	s.at(t, history.Event{Server: &history.Server{Node: node, Client: client, Cmd: cmd, Key: "lock:demo", Owner: owner, PTTL: pttl}})
}

func (s *script) write(t float64, client string, acq int, seen, before int64) int {
	return s.at(t, history.Event{Resource: &history.Resource{
		Client: client, Acq: acq, F: history.Write, Seen: seen, Before: before, Version: before + 1, Applied: true,
	}})
}

func (s *script) read(t float64, client string, acq int, version int64) {
	s.at(t, history.Event{Resource: &history.Resource{Client: client, Acq: acq, F: history.Read, Version: version}})
}

func (s *script) fault(t float64, id int, phase, kind, what string, on ...string) {
	s.at(t, history.Event{Nemesis: &history.Nemesis{ID: id, Fault: kind, Phase: phase, On: on, What: what}})
}

func baseRun(h *history.History, about string) Run {
	return Run{
		Scenario: h.Header.Scenario, About: about, Lock: h.Header.Lock, World: "sim", Topology: "single", Seed: 7,
		TTLNanos: int64(h.Header.TTL), Expected: map[string]string{},
		HistorySHA256: "9f2c1e6d0b7a4c5f8e3d2b1a0f9e8d7c6b5a49382716051423324150697887a6",
		History:       "runs/" + h.Header.Scenario + "/" + h.Header.Lock + "/sim-7/history.jsonl",
		Ops:           len(h.Events), VirtualSeconds: 31.5, WallSeconds: 0.021,
		Repeat: "holdfast run " + h.Header.Scenario + " --lock " + h.Header.Lock + " --on sim --seed 7",
	}
}

func pass(name string) checker.Result {
	return checker.Result{Name: name, Verdict: checker.Pass, Applies: true}
}

// judged completes a run from its checks as a harness does.
func judged(r Run, checks ...checker.Result) Run {
	r.Checks = checks
	r.Verdict = checker.Overall(checks)
	if r.Error != "" {
		r.Verdict = checker.Worst(r.Verdict, checker.Error)
	}
	r.Outcome = Outcome(checks, r.Verdict)
	r.Matched, r.Mismatches = Match(checks, r.Expected)
	return r
}

// kleppmann: c1 reads and is paused for 15 s; its lease runs out; c2 gets the
// lock, reads, writes; c1 wakes up and writes over it.
func kleppmann() (Run, *history.History) {
	s := newScript("kleppmann-gc-pause", "basic")
	s.op(1.0, "c1", 1, history.Acquire, history.Invoke)
	s.node(1.1, "n1", "SET", "c1", "c1#1")
	s.op(1.15, "c2", 2, history.Acquire, history.Invoke)
	first := s.op(1.2, "c1", 1, history.Acquire, history.OK)
	s.op(1.4, "c2", 2, history.Acquire, history.Fail)
	s.read(2.0, "c1", 1, 1)
	s.fault(2.1, 1, history.Start, "pause", "c1 paused", "c1")
	for i := range 5 {
		t := 2.4 + 2*float64(i)
		s.op(t, "c2", 3+i, history.Acquire, history.Invoke)
		s.op(t+0.2, "c2", 3+i, history.Acquire, history.Fail)
	}
	s.node(11.1, "n1", history.Expired, "", "")
	s.op(12.0, "c2", 8, history.Acquire, history.Invoke)
	s.node(12.1, "n1", "SET", "c2", "c2#1")
	second := s.op(12.2, "c2", 8, history.Acquire, history.OK)
	s.read(13.0, "c2", 8, 1)
	s.write(15.0, "c2", 8, 1, 1)
	s.fault(17.1, 1, history.Stop, "pause", "", "c1")
	lost := s.write(17.3, "c1", 1, 1, 2)
	s.op(18.0, "c1", 1, history.Release, history.Invoke)
	s.node(18.1, "n1", "EVALSHA", "c1", "c2#1")
	s.op(18.2, "c1", 1, history.Release, history.Fail)
	s.op(19.0, "c2", 8, history.Release, history.Invoke)
	s.node(19.1, "n1", "EVALSHA", "c2", "")
	s.op(19.2, "c2", 8, history.Release, history.OK)
	run := baseRun(s.h, "A holder is paused past its TTL before it writes; a second client gets the lock; both write.")
	run.Expected = map[string]string{"exclusion": "overrun", "updates": "violation"}
	fault := "pause (c1 paused, 2.10s to 17.10s)"
	return judged(run,
		pass("assumptions"),
		checker.Result{Name: "exclusion", Verdict: checker.Violation, Applies: true, Kind: checker.Overrun, Violations: []checker.Found{{
			Kind: checker.Overrun, Ops: []int{first, second}, Fault: fault,
			Summary: "c2 was granted the lock at 12.20s while c1 still believed it held it (granted at 1.20s, its lease ended at 11.10s): c1 outlived its lease by 6.90s (0.69 TTL).",
		}}},
		checker.Result{Name: "updates", Verdict: checker.Violation, Applies: true, Kind: "lost-update", Violations: []checker.Found{{
			Kind: "lost-update", Ops: []int{lost}, Fault: fault,
			Summary: "c1 wrote version 3 at 17.30s over version 2, but it had read version 1: the update by c2 at 15.00s was lost.",
		}}, Figures: map[string]float64{"writes": 2, "lost": 1, "lost_percent": 50}},
		checker.Result{Name: "fencing", Verdict: checker.Unknown, Reason: "the lock has no fences: it cannot be fenced"},
		pass("linearizability"), pass("liveness"), pass("coverage"),
	), s.h
}

// clockJump: the node's clock jumps ahead while c1 holds, so the key is gone
// 8 s early and c2 is granted the lock inside c1's guaranteed lease.
func clockJump() (Run, *history.History) {
	s := newScript("clock-jump", "basic")
	s.op(0.5, "c1", 1, history.Acquire, history.Invoke)
	s.node(0.6, "n1", "SET", "c1", "c1#1")
	first := s.op(0.7, "c1", 1, history.Acquire, history.OK)
	s.op(1.0, "c2", 2, history.Acquire, history.Invoke)
	s.op(1.2, "c2", 2, history.Acquire, history.Fail)
	s.fault(2.5, 1, history.Start, "clock", "n1 clock jumps 2 TTL forward", "n1")
	s.node(2.5, "n1", history.Expired, "", "")
	s.op(3.0, "c2", 3, history.Acquire, history.Invoke)
	s.node(3.1, "n1", "SET", "c2", "c2#1")
	second := s.op(3.2, "c2", 3, history.Acquire, history.OK)
	s.op(6.0, "c2", 3, history.Release, history.Invoke)
	s.node(6.1, "n1", "EVALSHA", "c2", "")
	s.op(6.2, "c2", 3, history.Release, history.OK)
	s.op(8.0, "c1", 1, history.Release, history.Invoke)
	s.op(8.2, "c1", 1, history.Release, history.Fail)
	s.fault(12.0, 1, history.Stop, "clock", "", "n1")
	run := baseRun(s.h, "The node's clock jumps forward while a client holds the lock.")
	return judged(run, pass("assumptions"),
		checker.Result{Name: "exclusion", Verdict: checker.Violation, Applies: true, Kind: checker.Broken, Violations: []checker.Found{{
			Kind: checker.Broken, Ops: []int{first, second}, Fault: "clock (n1 clock jumps 2 TTL forward, 2.50s to 12.00s)",
			Summary: "c2 was granted the lock at 3.20s while c1 still believed it held it (granted at 0.70s), although c1's lease was guaranteed until 8.00s: the lock service broke its promise.",
		}}},
		pass("updates"), pass("liveness"), pass("coverage")), s.h
}

// calm: two clients take turns.
func calm() (Run, *history.History) {
	s := newScript("calm", "redlock")
	for i := range 4 {
		t, c := float64(i)*5, []string{"c1", "c2"}[i%2]
		s.op(t+0.5, c, i+1, history.Acquire, history.Invoke)
		for _, n := range []string{"n1", "n2", "n3"} {
			s.node(t+0.6, n, "SET", c, c+"#1")
		}
		s.op(t+0.9, c, i+1, history.Acquire, history.OK)
		s.read(t+1.5, c, i+1, int64(i))
		s.write(t+2.5, c, i+1, int64(i), int64(i))
		s.op(t+4, c, i+1, history.Release, history.Invoke)
		for _, n := range []string{"n1", "n2", "n3"} {
			s.node(t+4.1, n, "EVALSHA", c, "")
		}
		s.op(t+4.2, c, i+1, history.Release, history.OK)
	}
	return judged(baseRun(s.h, ""), pass("assumptions"), pass("exclusion"), pass("updates"),
		checker.Result{Name: "fencing", Verdict: checker.Unknown, Reason: "the lock has no fences: it cannot be fenced"},
		pass("linearizability"), pass("liveness"), pass("coverage")), s.h
}

// died: the harness failed before anything happened.
func died() (Run, *history.History) {
	s := newScript("partition-minority", "redlock")
	run := baseRun(s.h, "")
	run.Error = "heal partition on [n4 n5]: context deadline exceeded"
	run.Leaks = []string{"goroutine 12: github.com/redis/go-redis/v9.(*conn).reader"}
	return judged(run, checker.Result{Name: "assumptions", Verdict: checker.Error, Applies: true, Reason: "the history has no events"}), s.h
}

// unproven: the fault never met an op, so the run shows nothing.
func unproven() (Run, *history.History) {
	s := newScript("kleppmann-gc-pause", "watchdog")
	s.op(0.5, "c1", 1, history.Acquire, history.Invoke)
	s.node(0.6, "n1", "SET", "c1", "c1#1")
	s.op(0.7, "c1", 1, history.Acquire, history.OK)
	s.op(2, "c1", 1, history.Extend, history.Invoke)
	s.op(2.1, "c1", 1, history.Extend, history.OK)
	s.op(3, "c1", 1, history.Release, history.Invoke)
	s.node(3.1, "n1", "EVALSHA", "c1", "")
	s.op(3.2, "c1", 1, history.Release, history.OK)
	run := baseRun(s.h, "A holder is paused past its TTL before it writes; a second client gets the lock; both write.")
	run.Expected = map[string]string{"exclusion": "overrun"}
	return judged(run, pass("assumptions"), pass("exclusion"), pass("updates"),
		checker.Result{Name: "coverage", Verdict: checker.Unknown, Applies: true, Reason: "no holder stayed in its critical section for longer than the TTL"}), s.h
}
