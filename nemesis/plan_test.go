package nemesis

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]Span{
		"1.5ttl": {TTLs: 1.5}, "-2ttl": {TTLs: -2}, "0ttl": {}, " 1ttl ": {TTLs: 1}, "1e-2ttl": {TTLs: 0.01},
		"300ms": {Fixed: 300 * time.Millisecond}, "1m30s": {Fixed: 90 * time.Second}, "0": {}, "-1s": {Fixed: -time.Second},
	} {
		got, err := ParseSpan(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "ttl", "1 ttl", "5", "1.5TTL", "nanttl", "infttl", "1e7ttl", "-1e7ttl", "2ttls", "1d"} {
		if got, err := ParseSpan(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q is %+v, error %v: want an error that quotes it", text, got, err)
		}
	}
}

func TestSpanOf(t *testing.T) {
	for _, c := range []struct {
		span Span
		ttl  time.Duration
		want time.Duration
	}{
		{TTLs(1.5), 10 * time.Second, 15 * time.Second},
		{TTLs(-2), time.Second, -2 * time.Second},
		{Span{Fixed: 3 * time.Millisecond}, time.Hour, 3 * time.Millisecond},
		{Span{TTLs: 1, Fixed: time.Millisecond}, time.Second, 1001 * time.Millisecond},
		// A third of a TTL has no nanoseconds: the simulator needs those.
		{TTLs(1.0 / 3), time.Second, 333333 * time.Microsecond},
	} {
		if got := c.span.Of(c.ttl); got != c.want {
			t.Errorf("%v of %v is %v, want %v", c.span, c.ttl, got, c.want)
		}
	}
	if !(Span{}).IsZero() || TTLs(1).IsZero() || (Span{Fixed: 1}).IsZero() {
		t.Error("only a span of nothing is zero")
	}
}

func TestSpanTextComesBack(t *testing.T) {
	for _, text := range []string{"1.5ttl", "-2ttl", "300ms", "1m30s", "0s"} {
		var s Span
		if err := s.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if back, err := s.MarshalText(); err != nil || string(back) != text {
			t.Errorf("%q comes back as %q, %v", text, back, err)
		}
	}
	s := TTLs(3)
	if err := s.UnmarshalText([]byte("much")); err == nil || s != TTLs(3) {
		t.Errorf("a bad text gave %v and changed the span to %v", err, s)
	}
}

func TestGrudge(t *testing.T) {
	for _, c := range []struct {
		name       string
		groups     [][]string
		asymmetric bool
		want       string
	}{
		{"halves", [][]string{{"c1", "n1"}, {"n2"}}, false, "c1->n2 n1->n2 n2->c1 n2->n1"},
		{"three", [][]string{{"a"}, {"b"}, {"c"}}, false, "a->b a->c b->a b->c c->a c->b"},
		{"bridge", [][]string{{"a", "m"}, {"m", "b"}}, false, "a->b b->a"},
		{"asymmetric", [][]string{{"a"}, {"b", "c"}}, true, "a->b a->c"},
		{"asymmetric with a third group", [][]string{{"a"}, {"b"}, {"c"}}, true, "a->b a->c"},
		{"asymmetric bridge", [][]string{{"a", "m"}, {"m", "b"}}, true, "a->b"},
		{"one group", [][]string{{"a", "b"}}, false, ""},
		{"the same group twice", [][]string{{"a", "b"}, {"a", "b"}}, false, ""},
		{"nobody", nil, false, ""},
	} {
		var got []string
		for _, l := range Grudge(c.groups, c.asymmetric) {
			got = append(got, l.String())
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: cuts %q, want %q", c.name, s, c.want)
		}
	}
}

func TestPlanFor(t *testing.T) {
	everywhere := Step{Fault: Pause{}}
	quorum := Step{Fault: Stall{}, Topologies: []cluster.Topology{cluster.Independent}}
	both := Step{Fault: Kill{}, Topologies: []cluster.Topology{cluster.Single, cluster.Independent}}
	plan := Plan{everywhere, quorum, both}
	for topology, want := range map[cluster.Topology]Plan{
		cluster.Single: {everywhere, both}, cluster.Independent: {everywhere, quorum, both}, cluster.Replicated: {everywhere},
	} {
		if got := plan.For(topology); !reflect.DeepEqual(got, want) {
			t.Errorf("%s plays %v, want %v", topology, got, want)
		}
	}
	if len(plan) != 3 || plan[1].Fault.Kind() != "stall" {
		t.Errorf("the plan itself has changed: %v", plan)
	}
}

func TestPlanMissing(t *testing.T) {
	plan := Plan{
		{When: Trigger{Command: "SET"}, Fault: Pause{}},
		{When: Trigger{Op: "acquire"}, Fault: Kill{Data: cluster.Fsynced}},
		{Fault: Kill{Data: cluster.Lose}},
		{Fault: Clock{Rate: 2}},
		{Fault: Clock{Jump: TTLs(1)}},
	}
	all := []cluster.Ability{cluster.CanPauseClient, cluster.CanPauseAtStep, cluster.CanKill,
		cluster.CanRestartSync, cluster.CanRateClock, cluster.CanJumpClock}
	if got := plan.Missing(nil); !slices.Equal(got, all) {
		t.Errorf("a world without abilities lacks %v, want %v", got, all)
	}
	if got := plan.Missing(all); got != nil {
		t.Errorf("a world with all of them lacks %v", got)
	}
	if got := plan.Missing([]cluster.Ability{cluster.CanPauseClient, cluster.CanKill}); !slices.Equal(got,
		[]cluster.Ability{cluster.CanPauseAtStep, cluster.CanRestartSync, cluster.CanRateClock, cluster.CanJumpClock}) {
		t.Errorf("got %v", got)
	}
}

func op(client, f string, typ history.Type) history.Event {
	return history.Event{Op: &history.Op{Client: client, F: f, Type: typ}}
}

func served(client, node, cmd string) history.Event {
	return history.Event{Server: &history.Server{Client: client, Node: node, Cmd: cmd, Reply: "OK"}}
}

func TestTriggerMatches(t *testing.T) {
	noscript := served("c1", "n1", "EVALSHA")
	noscript.Server.Reply = "NOSCRIPT No matching script."
	for _, c := range []struct {
		when Trigger
		ev   history.Event
		want bool
	}{
		{Trigger{Op: "acquire", Type: history.OK}, op("c1", "acquire", history.OK), true},
		{Trigger{Op: "acquire", Type: history.OK}, op("c1", "acquire", history.Invoke), false},
		{Trigger{Op: "acquire", Type: history.OK}, op("c1", "release", history.OK), false},
		{Trigger{Op: "acquire"}, op("c1", "acquire", history.Fail), true},
		{Trigger{Op: "acquire", Client: "c2"}, op("c1", "acquire", history.OK), false},
		{Trigger{Op: "acquire", Client: "c2"}, op("c2", "acquire", history.OK), true},
		{Trigger{Op: "worked", Type: history.Note}, op("c1", "worked", history.Note), true},
		{Trigger{Op: "acquire"}, served("c1", "n1", "SET"), false},
		{Trigger{Command: "SET"}, served("c1", "n1", "SET"), true},
		{Trigger{Command: "set"}, served("c1", "n1", "SET"), true},
		{Trigger{Command: "SET"}, served("c1", "n1", "SETEX"), false},
		{Trigger{Command: "EVAL"}, served("c1", "n1", "EVALSHA"), true},
		{Trigger{Command: "EVALSHA"}, served("c1", "n1", "EVAL"), true},
		{Trigger{Command: "SET", Node: "n2"}, served("c1", "n1", "SET"), false},
		{Trigger{Command: "SET", Client: "c2"}, served("c1", "n1", "SET"), false},
		{Trigger{Command: "SET", Node: "n1", Client: "c1"}, served("c1", "n1", "SET"), true},
		{Trigger{Command: "SET"}, op("c1", "acquire", history.OK), false},
		{Trigger{Command: "any"}, served("c1", "n1", "SET"), true},
		{Trigger{Command: "Any"}, served("c1", "n1", "EVALSHA"), true},
		{Trigger{Command: "*"}, served("c1", "n1", "DEL"), true},
		{Trigger{Command: "any", Client: "c1"}, served("c2", "n1", "SET"), false},
		{Trigger{Command: "any", Node: "n1"}, served("c1", "n2", "SET"), false},
		// Not a client's: expiries and what replication and the harness do.
		{Trigger{Command: "any"}, served("", "n1", history.Expired), false},
		{Trigger{Command: "SET"}, served("", "n1", "SET"), false},
		// Refused for want of the script: it comes again as EVAL.
		{Trigger{Command: "any"}, noscript, false},
		{Trigger{Command: "EVAL"}, noscript, false},
	} {
		if got := c.when.matches(c.ev); got != c.want {
			t.Errorf("%v matches %v: %v, want %v", c.when, c.ev, got, c.want)
		}
	}
}

func TestTriggerString(t *testing.T) {
	for want, when := range map[string]Trigger{
		"at 1.5ttl":                             {At: TTLs(1.5)},
		"at 0s":                                 {},
		"acquire ok number 1":                   {Op: "acquire", Type: history.OK},
		"acquire ok number 2 of c1, 1ttl later": {Op: "acquire", Type: history.OK, Nth: 2, Client: "c1", After: TTLs(1)},
		"SET number 3 on n1 of c1":              {Command: "set", Node: "n1", Client: "c1", Nth: 3},
		"command number 3 of c1":                {Command: "any", Client: "c1", Nth: 3},
	} {
		if got := when.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
