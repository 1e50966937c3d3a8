package campaign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
)

// Words of the tables below.
type reportsFound = checker.Found

const time5 = 5 * time.Second

// violating makes a run with violations, "exclusion overrun" each.
func violating(words ...string) reports.Run {
	var r reports.Run
	for _, w := range words {
		check, kind, _ := strings.Cut(w, " ")
		r.Checks = append(r.Checks, checker.Result{
			Name: check, Verdict: checker.Violation, Applies: true, Kind: kind,
			Violations: []checker.Found{{Kind: kind, Summary: w}},
		})
	}
	return r
}

func planWith(blows ...blow) plan {
	return plan{blows: blows, scenario: &scenarios.Scenario{Name: "explore-basic"}}
}

var (
	lostKey   = blow{kind: "deleted keys", loses: true, at: point{struck: "SET in acquire", node: "n1", at: 7}}
	lostOther = blow{kind: "deleted keys", loses: true, at: point{struck: "SET in acquire", node: "n2", at: 8}}
)

func TestReadings(t *testing.T) {
	slow := blow{kind: "slow reply", size: 0.3, at: point{struck: "SET in acquire", at: 3}}
	died := Conclude(reports.Run{Error: childDied + " during the run: EOF\npanic: oh no\n\ngoroutine 1 [running]:\n" +
		"github.com/holdfast-io/holdfast/impl/basic.(*Lock).Acquire(0x1)\n\t/x/basic.go:1\n"})
	hung := Conclude(reports.Run{Error: harness.ErrLockHangs.Error() + ": why\ngoroutine 1"})
	for name, c := range map[string]struct {
		topology cluster.Topology
		nodes    int
		plan     plan
		run      reports.Run
		want     string
	}{
		"nothing":           {plan: planWith(slow), want: "excused false refused false failure "},
		"gravest first":     {plan: planWith(slow), run: violating("liveness no-grant", "exclusion broken"), want: "exclusion/broken liveness/no-grant excused false refused false failure "},
		"lost key":          {plan: planWith(lostKey), run: violating("exclusion broken"), want: "exclusion/broken excused true refused false failure "},
		"lost key, and own": {plan: planWith(lostKey), run: violating("exclusion broken", "liveness no-grant"), want: "liveness/no-grant excused false refused false failure "},
		"one of three lost": {topology: cluster.Independent, nodes: 3, plan: planWith(lostKey), run: violating("exclusion broken"), want: "exclusion/broken excused false refused false failure "},
		"one of one lost":   {topology: cluster.Independent, nodes: 1, plan: planWith(lostKey), run: violating("exclusion broken"), want: "exclusion/broken excused true refused false failure "},
		"lost and slow":     {topology: cluster.Independent, nodes: 3, plan: planWith(slow, lostKey), run: violating("exclusion broken"), want: "exclusion/broken excused false refused false failure "},
		"two of three lost": {topology: cluster.Independent, nodes: 3, plan: planWith(lostKey, lostOther), run: violating("exclusion broken"), want: "exclusion/broken excused true refused false failure "},
		"panic":             {plan: planWith(slow), run: died, want: "conduct/panic excused false refused false failure "},
		"hang":              {plan: planWith(slow), run: hung, want: "conduct/hang excused false refused false failure "},
		"slow machine":      {plan: planWith(slow), run: reports.Run{Error: harness.ErrHangs.Error() + " within 20s"}, want: "excused false refused false failure the simulation did not finish within 20s"},
		"leak":              {plan: planWith(slow), run: reports.Run{Leaks: []string{"a renewer\nstack"}}, want: "leak/leak excused false refused false failure "},
		"refused":           {plan: plan{refusable: true}, run: reports.Run{Error: harness.BuildLock + " basic for c1: no"}, want: "excused false refused true failure "},
		"not refusable":     {plan: planWith(slow), run: reports.Run{Error: harness.BuildLock + " x"}, want: "excused false refused false failure build lock x"},
		"checker": {plan: planWith(slow), run: reports.Run{Checks: []checker.Result{
			{Name: "updates", Applies: true, Verdict: checker.Error, Reason: "fell over"}}}, want: "excused false refused false failure updates: fell over"},
	} {
		s := &sorter{topology: c.topology, nodes: c.nodes}
		if c.topology == "" {
			s.topology, s.nodes = cluster.Single, 1
		}
		got := s.read(c.plan, c.run)
		var b strings.Builder
		for _, v := range got.found {
			fmt.Fprintf(&b, "%s/%s ", v.check, v.kind)
		}
		fmt.Fprintf(&b, "excused %v refused %v failure %s", got.excused, got.refused, got.failure)
		if b.String() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, b.String(), c.want)
		}
	}
}

// TestGroupsKeepTheShortestPlan: fewest faults, then the smallest, then the
// earliest; all are counted.
func TestGroupsKeepTheShortestPlan(t *testing.T) {
	s := &sorter{topology: cluster.Single, nodes: 1, told: map[string]bool{}, groups: map[string]*Group{}}
	add := func(run reports.Run, blows ...blow) {
		p := planWith(blows...)
		s.add(p, s.read(p, run))
	}
	pause := func(size float64, at int) blow {
		return blow{kind: "client pause", size: size, stops: size > 1, at: point{
			at: at, struck: "worked", client: "c1", when: nemesis.Trigger{Nth: at}}}
	}
	overrun := violating("exclusion overrun", "updates lost-update")
	add(overrun, pause(1.2, 1))
	add(overrun, pause(0.5, 9))
	add(overrun, pause(0.5, 4))
	add(violating("exclusion overrun"), pause(0.5, 6))
	add(violating("exclusion broken"), lostKey)
	add(violating("liveness no-grant"), pause(0.5, 6))
	add(reports.Run{Leaks: []string{"x"}}, pause(0.5, 6))
	add(violating("conduct panic"), pause(0.5, 6))
	var got []string
	for _, g := range s.sorted() {
		got = append(got, fmt.Sprintf("%s %s, %s, %d %v", g.Check, g.Kind, g.Plan, g.Plans, g.Also))
	}
	want := []string{
		"conduct panic, client pause of 0.5 TTL at worked 6 of c1, 1 map[]",
		"exclusion overrun, client pause of 0.5 TTL at worked 4 of c1, 4 map[updates lost-update:3]",
		"liveness no-grant, client pause of 0.5 TTL at worked 6 of c1, 1 map[]",
		"leak leak, client pause of 0.5 TTL at worked 6 of c1, 1 map[]",
		"exclusion broken, deleted keys at SET in acquire 0 of , 1 map[]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestRemarks(t *testing.T) {
	s := &sorter{topology: cluster.Single, nodes: 1}
	long := blow{kind: "client pause", size: 1.2, stops: true}
	for _, c := range []struct {
		run  string
		blow blow
		want string
	}{
		{"exclusion overrun", long, remarkPause}, {"exclusion broken", long, ""},
		{"exclusion broken", lostKey, remarkData}, {"updates lost-update", long, remarkPause},
	} {
		p := planWith(c.blow)
		if g := s.group(p, s.read(p, violating(c.run))); g.Remark != c.want {
			t.Errorf("%s after %s: %q", c.run, c.blow.kind, g.Remark)
		}
	}
}

// script is a small history: events in words.
func script(lines ...string) *history.History {
	h := &history.History{}
	for i, line := range lines {
		w := strings.Fields(line)
		ev := history.Event{T: int64(i)}
		switch {
		case w[0] == "final":
			ev.Op = &history.Op{F: history.Phase, Error: history.Final, Type: history.Note}
		case w[1] == "n1": // client node command reply key
			ev.Server = &history.Server{Client: w[0], Node: w[1], Cmd: w[2], Reply: w[3], Key: w[4]}
			if w[4] == "fence" { // the second key of the command before
				ev.T--
			}
		default:
			ev.Op = &history.Op{Client: w[0], F: w[1], Type: history.Type(w[2])}
		}
		h.Events = append(h.Events, ev)
	}
	return h
}

func places(points []point) []string {
	var out []string
	for _, p := range points {
		out = append(out, fmt.Sprintf("%s / %s / %d / %v", p.where(), p.struck, p.when.Nth, p.fires))
	}
	return out
}

func TestPoints(t *testing.T) {
	got := places(pointsOf(script(
		"c1 acquire invoke", "c1 n1 EVALSHA NOSCRIPT key", "c1 n1 EVAL 1 key", "c1 n1 EVAL 1 fence", "c1 acquire ok",
		"c1 read invoke", "c1 n1 EVALSHA 1 key", "c1 worked note", "c1 release invoke", "c1 n1 EVALSHA 1 key", "c1 release ok",
		"final", "c1 acquire invoke",
	)))
	want := []string{
		"acquire invoke 1 of c1 / acquire invoke / 1 / true",
		"EVALSHA 1 from c1 to n1 / EVAL in acquire / 0 / false",
		"EVAL 1 from c1 to n1 / EVAL in acquire / 1 / true",
		"acquire ok 1 of c1 / acquire ok / 1 / true",
		"read invoke 1 of c1 / read invoke / 1 / true",
		"EVALSHA 2 from c1 to n1 / EVAL in the background / 3 / true", // after the two keys of one EVAL
		"worked 1 of c1 / worked / 1 / true",
		"release invoke 1 of c1 / release invoke / 1 / true",
		"EVALSHA 3 from c1 to n1 / EVAL in release / 4 / true",
		"release ok 1 of c1 / release ok / 1 / true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestPointsThatAreAlike: of a row of polls, or of refused attempts, the first
// and the last are worth breaking.
func TestPointsThatAreAlike(t *testing.T) {
	polls := []string{"c2 acquire invoke"}
	for range 9 {
		polls = append(polls, "c2 n1 SET nil key")
	}
	got := places(pointsOf(script(append(polls, "c2 n1 SET OK key", "c2 acquire ok")...)))
	if len(got) != 5 || !strings.HasPrefix(got[1], "SET 1 ") || !strings.HasPrefix(got[2], "SET 9 ") || !strings.HasPrefix(got[3], "SET 10 ") {
		t.Errorf("polls: %s", strings.Join(got, "\n"))
	}
	var tries []string
	for range 6 {
		tries = append(tries, "c2 acquire invoke", "c2 n1 SET nil key", "c1 worked note", "c2 acquire fail")
	}
	got = places(pointsOf(script(tries...)))
	var own []string
	for _, g := range got {
		if strings.Contains(g, "c2") {
			own = append(own, g)
		}
	}
	if len(own) != 6 || !strings.HasPrefix(own[1], "SET 1 ") || !strings.HasPrefix(own[4], "SET 6 ") {
		t.Errorf("attempts: %s", strings.Join(own, "\n"))
	}
}

func TestBlows(t *testing.T) {
	count := func(p point) map[string]int {
		out := map[string]int{}
		for _, b := range blowsAt(p, 0) {
			out[b.kind]++
		}
		return out
	}
	command := count(point{cmd: "SET", client: "c1", node: "n1", nth: 1, fires: true, calling: true})
	for kind, n := range map[string]int{
		"lost reply": 1, cutBefore: 1, cutAfter: 1, "slow request": 2, "slow reply": 2, "client pause": 2, "cancelled context": 1,
		"client crash": 1, "node stall": 2, "node restart with its data": 1, "node restart without data": 1,
		"error replies": 5, "script flush": 1, "deleted keys": 1,
	} {
		if command[kind] != n {
			t.Errorf("a command has %d of %s, want %d", command[kind], kind, n)
		}
	}
	if unknown := count(point{cmd: "EVALSHA", client: "c1", node: "n1", nth: 1}); len(unknown) != 4 || unknown["client pause"] > 0 {
		t.Errorf("a script that the node does not know: %v", unknown)
	}
	if note := count(point{struck: "worked", client: "c1", fires: true}); len(note) != 2 || note["client pause"] != 2 {
		t.Errorf("a step: %v", note)
	}
	if call := count(point{struck: "release invoke", client: "c1", fires: true, invoke: true}); call["cancelled context"] != 1 {
		t.Errorf("an invoke: %v", call)
	}
}
