package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// checkLeak is what a lock has left running, which no check of a history sees.
const checkLeak = "leak"

// Group is all that went wrong in one way for one cause.
type Group struct {
	// Check and Kind of the gravest violation of each of its runs.
	Check string `json:"check"`
	Kind  string `json:"kind"`
	// Cause is the fault and what it struck: "lost reply at SET in acquire".
	Cause string `json:"cause"`
	// Faults of the shortest plan, and the plan in words.
	Faults int    `json:"faults"`
	Plan   string `json:"plan"`
	// Summary is the sentence of the violation in the shortest plan's run.
	Summary string `json:"summary"`
	// Plans that fell into the group.
	Plans int `json:"plans"`
	// Also are further violations in runs of the group, with how many.
	Also map[string]int `json:"also,omitempty"`
	// Excused groups have a cause that no lock on the topology survives.
	Excused bool `json:"excused"`
	// Remark says what is known about the cause.
	Remark string `json:"remark,omitempty"`
	// Stack of a lock that panicked.
	Stack string `json:"stack,omitempty"`
	// File has the shortest plan as a scenario, Repeat is the command that
	// plays it again.
	File   string `json:"file,omitempty"`
	Repeat string `json:"repeat,omitempty"`

	best plan
}

// Remarks on causes.
const (
	remarkData  = "the node has lost the key; no lock on one node survives that"
	remarkMost  = "a majority of the nodes has lost its data, or its clocks jumped; no quorum lock survives that"
	remarkPair  = "a node has lost its data while something else was broken; Redis' own documentation of Redlock asks for nodes that sync each write or stay away for a TTL"
	remarkClock = "leases end by the node's clock; no lock on one node survives that it jumps"
	remarkSkew  = "a node's clock jumped while something else was broken; Redlock assumes that clocks do not jump"
	remarkPause = "no lease survives a pause that is longer than it, unless the lock tells its end and the resource heeds fences"
)

// violation is one thing that went wrong in a run.
type violation struct{ check, kind, summary, stack string }

// reading is what a run says about the lock.
type reading struct {
	found   []violation // gravest first
	excused bool
	refused bool
	failure string
}

// sorter puts runs into groups.
type sorter struct {
	lock     catalogue.Entry
	topology cluster.Topology
	nodes    int

	// usual is what goes wrong with nothing broken: no fault is its cause.
	usual  map[violation]bool
	told   map[string]bool
	groups map[string]*Group
}

func newSorter(e Exploration, topology cluster.Topology, nodes int) *sorter {
	lock, _ := FindLock(e.Lock) // Run has looked
	return &sorter{lock: lock, topology: topology, nodes: nodes,
		usual: map[violation]bool{}, told: map[string]bool{}, groups: map[string]*Group{}}
}

// habit keeps what a run with nothing broken has shown.
func (s *sorter) habit(got reading) {
	for _, v := range got.found {
		s.usual[violation{check: v.check, kind: v.kind}] = true
	}
}

// read finds what went wrong in a run.
func (s *sorter) read(p plan, r reports.Run) reading {
	var out reading
	for _, c := range reports.Violated(r.Checks) {
		v := violation{check: c.Name, kind: cmp.Or(c.Kind, c.Name)}
		for _, f := range c.Violations {
			if f.Kind == v.kind || v.summary == "" {
				v.summary = f.Summary
			}
			if f.Kind == v.kind {
				break
			}
		}
		if c.Name == conductName {
			v.stack = c.Reason
		}
		out.found = append(out.found, v)
	}
	for _, leak := range r.Leaks {
		first, _, _ := strings.Cut(leak, "\n")
		out.found = append(out.found, violation{check: checkLeak, kind: checkLeak, summary: first, stack: leak})
	}
	switch {
	case (p.refusable || p.barren) && strings.Contains(r.Error, harness.BuildLock):
		out.refused = true
	case r.Error != "":
		out.failure = r.Error
	}
	switch {
	case p.refusable:
		indulge(r, &out)
	case p.barren && grants(r) == 0 && !slices.ContainsFunc(out.found, func(v violation) bool { return v.kind != checker.NoGrant }):
		out.found, out.refused = nil, out.failure == ""
	}
	for _, c := range r.Checks {
		if c.Applies && c.Verdict == checker.Error && out.failure == "" {
			out.failure = c.Name + ": " + c.Reason
		}
	}
	out.found = slices.DeleteFunc(out.found, func(v violation) bool {
		return s.usual[violation{check: v.check, kind: v.kind}]
	})
	s.excuse(p, &out)
	return out
}

// grants is how many acquires of a run were granted.
func grants(r reports.Run) float64 {
	for _, c := range r.Checks {
		if c.Name == "coverage" {
			return c.Figures["acquires_before"] + c.Figures["acquires_during"] + c.Figures["acquires_after"]
		}
	}
	return 0
}

// indulge takes out of a run with a TTL that no lock can keep what follows from
// the TTL itself. A lock that never grants anything has refused it, if late. One
// that takes a TTL of its own instead has one that the checks do not know, and
// whoever holds for half a millisecond has lost the lock before it hears of it.
// What stays is what no choice of a TTL explains.
func indulge(r reports.Run, out *reading) {
	granted := grants(r)
	broken := slices.ContainsFunc(out.found, func(v violation) bool { return v.check == "exclusion" && v.kind == checker.Broken })
	out.found = slices.DeleteFunc(out.found, func(v violation) bool {
		switch v.check {
		case conductName, checkLeak, "load", "deadline":
			return false
		case "liveness":
			return granted == 0 && v.kind == checker.NoGrant
		case "ttl":
			return v.kind != checker.NoTTL && v.kind != checker.Gone
		case "exclusion", "updates":
			return !broken
		}
		return true
	})
	out.refused = out.refused || granted == 0 && r.Error == "" && len(out.found) == 0
}

// explained are the checks whose violation lost data explains, and a clock that
// jumped, which ends leases early: somebody else is let in, and what follows from that. To delete the other's key then, to say
// yes to an extend, or to say nothing of the loss is a mistake all the same.
var explained = []string{"exclusion", "updates", "fencing", "linearizability", "lease"}

// excuse takes out of a run with lost data what that explains. Where nothing
// else is left, the whole run is excused. A lock on several nodes is there to
// survive the loss of a minority of them, whatever else is broken.
func (s *sorter) excuse(p plan, out *reading) {
	if p.losers() <= s.spare() {
		return
	}
	own := slices.DeleteFunc(slices.Clone(out.found), func(v violation) bool { return slices.Contains(explained, v.check) })
	if len(own) > 0 {
		out.found = own
		return
	}
	out.excused = len(out.found) > 0
}

// spare is how many nodes may be lost before a majority is.
func (s *sorter) spare() int {
	if s.topology != cluster.Independent {
		return 0
	}
	return (s.nodes - 1) / 2
}

// causeOf is the fault and what it struck. Of lost data it does not matter what
// was under way, and of pairs, which are many, it would only tell the same story
// over and over.
func causeOf(p plan, got reading) string {
	if !got.excused && !p.paired() {
		return p.cause()
	}
	var kinds []string
	for _, b := range p.blows {
		kinds = append(kinds, b.kind)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " and ")
}

// groupKey is the same for what is told as one: the same violation for the same
// cause or, of a lock that panics or hangs, at the same place in its code.
func groupKey(p plan, got reading) string {
	v := got.found[0]
	key := v.check + "\x00" + v.kind + "\x00"
	if v.check == conductName {
		return key + place(v.stack)
	}
	return key + causeOf(p, got)
}

// stream tells of a group the first time that it is seen.
func (s *sorter) stream(p plan, r reports.Run, tell func(Group)) {
	got := s.read(p, r)
	if len(got.found) == 0 {
		return
	}
	key := groupKey(p, got)
	if !s.told[key] {
		s.told[key] = true
		tell(s.group(p, got))
	}
}

func (s *sorter) group(p plan, got reading) Group {
	v := got.found[0]
	g := Group{
		Check: v.check, Kind: v.kind, Cause: causeOf(p, got), Faults: len(p.blows), Plan: p.words(),
		Summary: v.summary, Stack: v.stack, Plans: 1, Excused: got.excused, best: p,
	}
	late := v.kind == checker.Overrun || v.check == "updates" || v.check == "fencing"
	quorum := s.topology == cluster.Independent
	switch {
	case p.jumps() && got.excused && (!quorum || s.nodes == 1):
		g.Remark = remarkClock
	case p.jumps() && !got.excused && len(p.blows) > 1 && quorum && slices.Contains(explained, v.check):
		g.Remark = remarkSkew
	case got.excused && quorum && s.nodes > 1:
		g.Remark = remarkMost
	case p.losers() > 0 && len(p.blows) > 1 && quorum && slices.Contains(explained, v.check):
		g.Remark = remarkPair
	case got.excused:
		g.Remark = remarkData
	case p.stops() && late:
		g.Remark = remarkPause
	}
	return g
}

// add puts a run into its group.
func (s *sorter) add(p plan, got reading) {
	if len(got.found) == 0 {
		return
	}
	key := groupKey(p, got)
	g, ok := s.groups[key]
	switch {
	case !ok:
		made := s.group(p, got)
		g = &made
		s.groups[key] = g
	case shorter(p, g.best):
		made := s.group(p, got)
		made.Plans, made.Also = g.Plans+1, g.Also
		*g = made
	default:
		g.Plans++
	}
	for _, v := range got.found[1:] {
		word := v.check
		if v.kind != v.check {
			word += " " + v.kind
		}
		if g.Also == nil {
			g.Also = map[string]int{}
		}
		g.Also[word]++
	}
}

// shorter orders plans: fewer faults, then smaller ones, then earlier ones. Of
// equals the one that was planned first stays.
func shorter(a, b plan) bool {
	return cmp.Or(cmp.Compare(len(a.blows), len(b.blows)), cmp.Compare(a.size(), b.size()),
		cmp.Compare(a.place(), b.place())) < 0
}

// sorted gives the groups, the gravest first and the excused last.
func (s *sorter) sorted() []Group {
	out := []Group{}
	for _, key := range slices.Sorted(maps.Keys(s.groups)) {
		out = append(out, *s.groups[key])
	}
	weight := func(g Group) int {
		switch {
		case g.Excused:
			return 2000
		case g.Check == checkLeak:
			return 1000
		}
		return reports.Gravity(g.Check)
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Faults, b.Faults), cmp.Compare(a.best.size(), b.best.size()), cmp.Compare(a.best.place(), b.best.place()))
	})
	return out
}

// exploreDir is where the plans of a lock's exploration are saved.
func exploreDir(e Exploration) string { return filepath.Join(e.Out, "explore", e.Lock) }

// forget removes the plans of a former exploration, which would be taken for
// findings of this one.
func forget(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "[0-9][0-9]*-*.yaml"))
	if err != nil {
		return fmt.Errorf("look for former plans: %w", err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove a former plan: %w", err)
		}
	}
	return nil
}

// save writes the group's shortest plan and fills in how to repeat it.
func (g *Group) save(dir string, number int, e Exploration) error {
	name := fmt.Sprintf("%02d-%s", number, nameOf(g.Kind+" "+g.Cause))
	s := *g.best.scenario
	s.Name = name
	text, err := scenarios.Encode(&s)
	if err != nil {
		return err
	}
	g.File = filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(g.File, text, 0o644); err != nil {
		return fmt.Errorf("save a plan: %w", err)
	}
	ttl := cmp.Or(g.best.ttl, e.TTL)
	if ttl == harness.DefaultSimTTL {
		ttl = time.Duration(0)
	}
	g.Repeat = Repeat(store.Job{Scenario: g.File, Lock: e.Lock, Seed: e.Seed, TTL: ttl})
	return nil
}
