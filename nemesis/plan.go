package nemesis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// Step is one fault of a plan with the moment at which it starts and ends.
type Step struct {
	When Trigger
	// Topologies in which the step is part of the plan; empty means all.
	Topologies []cluster.Topology
	Fault      Fault
	// For is how long it lasts; zero means until everything heals.
	For Span
}

// Plan is all that will be broken in a run.
type Plan []Step

// For is the part of the plan that a topology plays.
func (p Plan) For(t cluster.Topology) Plan {
	return slices.DeleteFunc(slices.Clone(p), func(s Step) bool {
		return len(s.Topologies) > 0 && !slices.Contains(s.Topologies, t)
	})
}

// Missing lists what the plan needs and a world lacks.
func (p Plan) Missing(have []cluster.Ability) []cluster.Ability {
	var missing []cluster.Ability
	for _, s := range p {
		needs := s.Fault.Needs()
		if s.When.Command != "" {
			needs = append(slices.Clone(needs), cluster.CanPauseAtStep)
		}
		for _, n := range needs {
			if !slices.Contains(have, n) && !slices.Contains(missing, n) {
				missing = append(missing, n)
			}
		}
	}
	return missing
}

// Trigger says when a step starts: at a time, or at the nth event that
// matches. The event's own client has not gone on when the fault strikes.
type Trigger struct {
	// At is a time since the start of the run. It is used when nothing below
	// is set.
	At Span
	// Op and Type match client events: {op: acquire, type: ok}. Steps inside
	// the critical section are notes: worked, check, abandon, lost.
	Op   string
	Type history.Type
	// Command matches a command of a client on a lock's key, as a node has
	// executed it and before its reply is read: SET, EVALSHA (which EVAL
	// matches too), or [AnyCommand], since locks differ in how they ask.
	Command string
	Node    string
	// Client restricts either kind of event.
	Client string
	// Nth counts matches from 1; 0 means the first.
	Nth int
	// After waits between the event and the fault.
	After Span
}

// AnyCommand in a trigger matches every command; "*" says the same.
const AnyCommand = "any"

// timed says that the trigger is a time and no event.
func (t Trigger) timed() bool { return t.Op == "" && t.Command == "" }

// Matches says whether an event counts for the trigger, for programs that
// count in a history what a trigger would.
func (t Trigger) Matches(ev history.Event) bool { return !t.timed() && t.matches(ev) }

// matches says whether an event counts for the trigger.
func (t Trigger) matches(ev history.Event) bool {
	switch {
	case t.Op != "" && ev.Op != nil:
		return ev.Op.F == t.Op && (t.Type == "" || ev.Op.Type == t.Type) &&
			(t.Client == "" || ev.Op.Client == t.Client)
	case t.Command != "" && ev.Server != nil:
		return ev.Server.Client != "" && t.commands(*ev.Server) &&
			(t.Node == "" || ev.Server.Node == t.Node) &&
			(t.Client == "" || ev.Server.Client == t.Client)
	}
	return false
}

// commands says whether a server event is one of the trigger's commands. A
// script that the node did not know has done nothing and comes again as EVAL:
// counted twice, the "first command" of a lock would fall before its grant.
func (t Trigger) commands(ev history.Server) bool {
	if strings.HasPrefix(ev.Reply, "NOSCRIPT") {
		return false
	}
	return t.any() || sameCommand(t.Command, ev.Cmd)
}

func (t Trigger) any() bool { return t.Command == "*" || strings.EqualFold(t.Command, AnyCommand) }

// sameCommand treats EVAL and EVALSHA as one: which of them is sent depends
// on what the script cache holds, and a scenario should not.
func sameCommand(want, got string) bool {
	trim := func(s string) string { return strings.TrimSuffix(strings.ToUpper(s), "SHA") }
	return trim(want) == trim(got)
}

// String says why a fault starts now, for the history.
func (t Trigger) String() string {
	var b strings.Builder
	nth := max(t.Nth, 1)
	switch {
	case t.timed():
		fmt.Fprintf(&b, "at %v", t.At)
	case t.Command != "":
		what := strings.ToUpper(t.Command)
		if t.any() {
			what = "command"
		}
		fmt.Fprintf(&b, "%s number %d", what, nth)
		if t.Node != "" {
			fmt.Fprintf(&b, " on %s", t.Node)
		}
	default:
		fmt.Fprintf(&b, "%s %s number %d", t.Op, t.Type, nth)
	}
	if t.Client != "" {
		fmt.Fprintf(&b, " of %s", t.Client)
	}
	if !t.After.IsZero() {
		fmt.Fprintf(&b, ", %v later", t.After)
	}
	return b.String()
}
