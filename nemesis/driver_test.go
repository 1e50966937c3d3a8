package nemesis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

const ttl = 10 * time.Second

// play runs f in virtual time with a driver over a fake cluster of three
// clients.
func play(t *testing.T, topology cluster.Topology, nodes int, plan Plan, f func(*testing.T, *fake, *Driver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newFake(topology, nodes, 3)
		f(t, c, NewDriver(plan, c, ttl, c.record))
	})
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, strings.Join(got, "; "), strings.Join(want, "; "))
	}
}

func TestTimedStepsStartAndHealOnTime(t *testing.T) {
	plan := Plan{
		{When: Trigger{At: TTLs(0.5)}, For: TTLs(1), Fault: Stall{Node: []string{"n1"}}},
		{Fault: Pause{Client: "c1"}, For: TTLs(0.2)}, // at time zero
	}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Start()
		same(t, "before Start returns", c.log(), "0s pause c1")
		time.Sleep(2 * ttl)
		same(t, "calls", c.log(), "0s pause c1", "2s resume c1", "5s stall n1", "15s unstall n1")
		same(t, "events", c.phases(), "start 1 pause [c1]", "stop 1 pause [c1]", "start 2 stall [n1]", "stop 2 stall [n1]")
		if err := d.HealAll(); err != nil {
			t.Error(err)
		}
		if len(c.log()) != 4 {
			t.Errorf("something was healed twice: %v", c.log())
		}
	})
}

func TestEventsStartStepsBeforeTheClientGoesOn(t *testing.T) {
	plan := Plan{
		{When: Trigger{Op: "acquire", Type: history.OK, Nth: 2}, Fault: Pause{Client: "caller"}},
		{When: Trigger{Op: "acquire", Type: history.OK, Nth: 1, After: TTLs(0.3)}, Fault: Stall{}},
	}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Start()
		d.Observe(op("c1", "acquire", history.OK))
		same(t, "after the first", c.log())
		same(t, "unfired after the first", d.Unfired(), "pause (acquire ok number 2)", "stall (acquire ok number 1, 0.3ttl later)")
		d.Observe(op("c2", "acquire", history.OK))
		same(t, "after the second", c.log(), "0s pause c2")
		d.Observe(op("c3", "acquire", history.OK))
		time.Sleep(ttl)
		same(t, "calls", c.log(), "0s pause c2", "3s stall n1")
		same(t, "unfired", d.Unfired())
		if why := c.events[0].Nemesis.Why; why != "acquire ok number 2" {
			t.Errorf("why: %s", why)
		}
		if err := d.HealAll(); err != nil {
			t.Error(err)
		}
		same(t, "the newest heals first", c.log()[2:], "10s unstall n1", "10s resume c2")
	})
}

// TestFaultsThatComeTooLateAreUnfired: a time after the end, and a wait after
// an event that outlasts the run, are faults that never happened.
func TestFaultsThatComeTooLateAreUnfired(t *testing.T) {
	plan := Plan{
		{When: Trigger{At: TTLs(10)}, Fault: Stall{}},
		{When: Trigger{Op: "acquire", Type: history.OK, After: TTLs(10)}, Fault: Pause{Client: "c1"}},
		{When: Trigger{At: TTLs(0.1)}, Fault: Clock{Jump: TTLs(1)}},
	}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Start()
		d.Observe(op("c1", "acquire", history.OK))
		time.Sleep(ttl)
		if err := d.HealAll(); err != nil {
			t.Error(err)
		}
		same(t, "unfired", d.Unfired(), "stall (at 10ttl)", "pause (acquire ok number 1, 10ttl later)")
	})
}

func TestTheDriverIgnoresItsOwnEvents(t *testing.T) {
	plan := Plan{{When: Trigger{Command: "any"}, Fault: Stall{}}}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Observe(history.Event{Nemesis: &history.Nemesis{ID: 1}})
		d.Observe(history.Event{Resource: &history.Resource{Client: "c1"}})
		same(t, "calls", c.log())
		d.Observe(served("c1", "n1", "EVAL"))
		same(t, "calls", c.log(), "0s stall n1")
	})
}

func TestOnlyTheTopologysStepsArePlayed(t *testing.T) {
	plan := Plan{
		{Fault: Stall{Node: []string{"n1"}}, Topologies: []cluster.Topology{cluster.Single}},
		{Fault: Stall{Node: []string{"n3"}}, Topologies: []cluster.Topology{cluster.Independent}},
	}
	play(t, cluster.Independent, 5, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Start()
		same(t, "calls", c.log(), "0s stall n3")
	})
}

func TestHealAllLetsNothingStartAnyMore(t *testing.T) {
	plan := Plan{
		{When: Trigger{At: TTLs(2)}, Fault: Stall{}},
		{When: Trigger{Op: "read"}, Fault: Pause{Client: "caller"}},
		{When: Trigger{Op: "write", After: TTLs(1)}, Fault: Pause{Client: "caller"}},
	}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Start()
		d.Observe(op("c1", "write", history.Invoke))
		if err := d.HealAll(); err != nil {
			t.Error(err)
		}
		d.Observe(op("c1", "read", history.Invoke))
		d.Observe(op("c1", "write", history.Invoke))
		time.Sleep(3 * ttl)
		same(t, "calls", c.log())
	})
}

func TestHealAllWaitsForAnInjectionUnderWay(t *testing.T) {
	plan := Plan{{When: Trigger{At: TTLs(0.1)}, For: TTLs(5), Fault: Stall{}}}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		c.slow(time.Second)
		d.Start()
		time.Sleep(1500 * time.Millisecond) // the injection began at 1s and lasts until 2s
		if err := d.HealAll(); err != nil {
			t.Error(err)
		}
		same(t, "calls", c.log(), "2s stall n1", "3s unstall n1")
		time.Sleep(10 * ttl)
		same(t, "calls later", c.log(), "2s stall n1", "3s unstall n1")
		same(t, "events", c.phases(), "start 1 stall [n1]", "stop 1 stall [n1]")
	})
}

func TestHealAllWaitsForAHealUnderWay(t *testing.T) {
	plan := Plan{{For: TTLs(0.1), Fault: Stall{}}}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		d.Start()
		c.slow(time.Second)
		time.Sleep(1500 * time.Millisecond) // the heal began at 1s and lasts until 2s
		if err := d.HealAll(); err != nil {
			t.Error(err)
		}
		same(t, "calls", c.log(), "0s stall n1", "2s unstall n1")
	})
}

func TestAFailedHealIsReported(t *testing.T) {
	plan := Plan{{Fault: Stall{}}, {Fault: Pause{Client: "c1"}}}
	play(t, cluster.Single, 1, plan, func(t *testing.T, c *fake, d *Driver) {
		broken := errors.New("no such process")
		c.fail["resume"] = broken
		d.Start()
		err := d.HealAll()
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "heal pause on [c1]") {
			t.Errorf("got %v", err)
		}
		same(t, "the other fault heals all the same", c.log(), "0s stall n1", "0s pause c1", "0s resume c1", "0s unstall n1")
		if got := c.events[2].Nemesis; got.Fault != "pause" || got.Error != "no such process" {
			t.Errorf("the history has %+v", got)
		}
	})
}

func TestAFailedInjectionIsReportedAndLeavesNothing(t *testing.T) {
	broken := errors.New("no route")
	for name, c := range map[string]struct {
		fault Fault
		fail  string
		want  []string
	}{
		"cut": {Cut{From: []string{"c1"}, To: []string{"n1", "n2"}}, "cut n1->c1",
			[]string{"0s cut c1->n1 drop", "0s cut n1->c1 drop", "0s mend c1->n1"}},
		"stall": {Stall{Node: []string{"n1", "n2", "n3"}}, "stall n2",
			[]string{"0s stall n1", "0s stall n2", "0s unstall n1"}},
		"delay": {Delay{From: []string{"c1"}, To: []string{"n1"}, Direction: Requests, By: TTLs(1)}, "delay c1->n1 10s",
			[]string{"0s delay c1->n1 10s", "0s delay c1->n1 0s"}},
		"pause": {Pause{Client: "c1"}, "pause", []string{"0s pause c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, cluster.Independent, 3, Plan{{Fault: c.fault}}, func(t *testing.T, f *fake, d *Driver) {
				f.fail[c.fail] = broken
				d.Start()
				same(t, "calls", f.log(), c.want...)
				if err := d.HealAll(); !errors.Is(err, broken) || !strings.Contains(err.Error(), "inject "+name+" (at 0s)") {
					t.Errorf("got %v", err)
				}
				same(t, "calls after HealAll", f.log(), c.want...)
				same(t, "events", f.phases())
			})
		})
	}
}

// TestHolder: the caller where it holds, else the newest holder, and an error
// where nobody does.
func TestHolder(t *testing.T) {
	step := Step{When: Trigger{Op: "read"}, Fault: Pause{}}
	for _, c := range []struct {
		name   string
		before []history.Event
		reader string
		want   []string
	}{
		{"the caller holds", []history.Event{op("c1", "acquire", history.OK), op("c2", "acquire", history.OK)}, "c1", []string{"0s pause c1"}},
		{"another holds", []history.Event{op("c1", "acquire", history.OK), op("c2", "acquire", history.OK)}, "c3", []string{"0s pause c2"}},
		{"released", []history.Event{op("c1", "acquire", history.OK), op("c2", "acquire", history.OK), op("c2", "release", history.Invoke)},
			"c3", []string{"0s pause c1"}},
		{"refused", []history.Event{op("c1", "acquire", history.OK), op("c2", "acquire", history.Fail)}, "c3", []string{"0s pause c1"}},
		{"lost", []history.Event{op("c1", "acquire", history.OK), op("c1", history.Lost, history.Note)}, "c1", nil},
		{"abandoned", []history.Event{op("c1", "acquire", history.OK), op("c1", history.Abandon, history.Note)}, "c1", nil},
		{"crashed", []history.Event{op("c1", "acquire", history.OK), op("c1", history.Crash, history.Note)}, "c2", nil},
		{"nobody", nil, "c1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, cluster.Single, 1, Plan{step}, func(t *testing.T, f *fake, d *Driver) {
				for _, ev := range c.before {
					d.Observe(ev)
				}
				d.Observe(op(c.reader, "read", history.Invoke))
				same(t, "calls", f.log(), c.want...)
				err := d.Err()
				if (err == nil) != (c.want != nil) {
					t.Errorf("error: %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "no client holds the lock") {
					t.Errorf("error: %v", err)
				}
			})
		})
	}
}

func TestWords(t *testing.T) {
	f := newFake(cluster.Replicated, 5, 3)
	f.primary = "n2"
	s := Scene{Cluster: f, TTL: ttl, Holder: "c2", Caller: "c1"}
	for word, want := range map[string]string{
		"holder": "c2", "caller": "c1", "others": "c1 c3", "clients": "c1 c2 c3", "nodes": "n1 n2 n3 n4 n5",
		"minority": "n4 n5", "majority": "n3 n4 n5", "primary": "n2", "replicas": "n1 n3 n4 n5",
		"resource": "resource", "n3": "n3", "c1": "c1",
	} {
		got, err := s.resolve([]string{word, word})
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s is %v, %v, want %s", word, got, err, want)
		}
	}
	for _, word := range []string{"n6", "c4", "boss", ""} {
		if got, err := s.resolve([]string{word}); err == nil {
			t.Errorf("%q is %v, want an error", word, got)
		}
	}
	if _, err := (Scene{Cluster: f}).resolve([]string{"caller"}); err == nil {
		t.Error("a scene without a caller has one")
	}
	if _, err := s.one("nodes", ""); err == nil {
		t.Error("a fault that hits one hit five")
	}
}

// TestFaultsAndTheirHeals: what each fault asks of a world, and what its heal
// undoes.
func TestFaultsAndTheirHeals(t *testing.T) {
	for _, c := range []struct {
		fault  Fault
		inject string
		heal   string
	}{
		{Migrate{}, "open slot n1 to n2, move keys n1 to n2", "move keys n1 to n2, close slot n1 to n2"},
		{Migrate{To: "n3", Pause: TTLs(100)}, "open slot n1 to n3", "move keys n1 to n3, close slot n1 to n3"},
		{Pause{}, "pause c1", "resume c1"},
		{Stall{}, "stall n1", "unstall n1"},
		{Disconnect{Node: []string{"n2", "n1"}}, "disconnect n2, disconnect n1", "reconnect n2, reconnect n1"},
		{Cut{From: []string{"c2"}, To: []string{"n1"}, Direction: Replies, Mode: cluster.Reset}, "cut n1->c2 reset", "mend n1->c2"},
		{Partition{Groups: [][]string{{"c1", "c2"}, {"n1"}}, Asymmetric: true}, "cut c1->n1 drop, cut c2->n1 drop", "mend c1->n1, mend c2->n1"},
		{Delay{From: []string{"caller"}, To: []string{"resource"}, Direction: Requests, By: TTLs(1.2)},
			"delay c3->resource 12s", "delay c3->resource 0s"},
		{LoseReply{Command: "set"}, `lose c1 n1 "SET" 1`, ""},
		{Clock{Node: []string{"n2"}, Jump: TTLs(-2)}, "jump n2 -20s", "reset n2"},
		{Clock{Rate: 1.5}, "rate n1 1.5", "reset n1"},
		{Kill{Node: []string{"n1", "n2"}, Data: cluster.Lose}, "kill n1, kill n2", "restart n1 lose, restart n2 lose"},
		{Kill{}, "kill n1", "restart n1 keep"},
		{Failover{}, "kill n1, promote n2", ""},
		{Failover{Alive: true, To: "n2"}, "promote n2", ""},
		{Crash{}, "crash c1", ""},
		{Cancel{}, "cancel c3", ""},
		{Strike{Command: "set", Deed: cluster.DelayReply, By: TTLs(1.2)}, `strike c1 n1 "set" 1 delay-reply 12s`, ""},
		{Flush{Scripts: true}, "flush n1 scripts=true", ""},
		{ErrorReply{Reply: "OOM no"}, `error n1 "OOM no"`, `error n1 ""`},
	} {
		f := newFake(cluster.Replicated, 2, 3)
		calls := func() string {
			var out []string
			for _, call := range f.log() {
				_, what, _ := strings.Cut(call, " ")
				out = append(out, what)
			}
			f.calls = nil
			return strings.Join(out, ", ")
		}
		e, err := c.fault.Inject(context.Background(), Scene{Cluster: f, TTL: ttl, Holder: "c1", Caller: "c3"})
		if err != nil {
			t.Errorf("%s: %v", c.fault.Kind(), err)
			continue
		}
		if got := calls(); got != c.inject {
			t.Errorf("%+v: asked for %q, want %q", c.fault, got, c.inject)
		}
		if len(e.On) == 0 || e.What == "" {
			t.Errorf("%s does not say what it did on whom: %+v", c.fault.Kind(), e)
		}
		if e.Heal != nil {
			if err := e.Heal(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if got := calls(); got != c.heal {
			t.Errorf("%+v: its heal asked for %q, want %q", c.fault, got, c.heal)
		}
	}
}

// Where the nodes elect another primary by themselves, a failover takes the old
// one away and gives it back, and is over in the history only then.
func TestElectedFailover(t *testing.T) {
	for _, c := range []struct {
		fault        Failover
		inject, heal string
		what, wrong  string
	}{
		{fault: Failover{}, inject: "kill n1", heal: "restart n1 keep", what: "n1 killed, the others elect a primary"},
		{fault: Failover{Alive: true}, what: "n1 is out of reach of all servers and runs on, the others elect a primary",
			inject: "cut s1->n1 drop, cut n1->s1 drop, cut s2->n1 drop, cut n1->s2 drop, cut s3->n1 drop, cut n1->s3 drop, cut n2->n1 drop, cut n1->n2 drop",
			heal:   "mend s1->n1, mend n1->s1, mend s2->n1, mend n1->s2, mend s3->n1, mend n1->s3, mend n2->n1, mend n1->n2"},
		{fault: Failover{To: "n2"}, wrong: "nobody can say which node is elected"},
	} {
		f := newFake(cluster.Sentinel, 2, 1)
		f.fail["promote"] = errors.New("nobody promotes here")
		asked := func() string {
			var out []string
			for _, call := range f.log() {
				_, what, _ := strings.Cut(call, " ")
				out = append(out, what)
			}
			f.calls = nil
			return strings.Join(out, ", ")
		}
		e, err := c.fault.Inject(t.Context(), Scene{Cluster: f, TTL: ttl})
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || asked() != "" {
				t.Errorf("%+v: %v", c.fault, err)
			}
			continue
		}
		if got := asked(); err != nil || got != c.inject || e.What != c.what || !slices.Equal(e.On, []string{"n1"}) {
			t.Errorf("%+v asked for %q, says %+v: %v", c.fault, got, e, err)
		}
		if err := e.Heal(t.Context()); err != nil || asked() != c.heal {
			t.Errorf("%+v: its heal is not %q: %v", c.fault, c.heal, err)
		}
	}
}

// Sentinels are targets like nodes, where there are any.
func TestSentinelsAreTargets(t *testing.T) {
	s := Scene{Cluster: newFake(cluster.Sentinel, 3, 1)}
	if got, err := s.resolve([]string{"sentinels", "s2", "primary"}); err != nil || !slices.Equal(got, []string{"s1", "s2", "s3", "n1"}) {
		t.Errorf("%v %v", got, err)
	}
	none := Scene{Cluster: newFake(cluster.Replicated, 2, 1)}
	for _, target := range []string{"sentinels", "s1"} {
		if got, err := none.resolve([]string{target}); err == nil {
			t.Errorf("without sentinels %s is %v", target, got)
		}
	}
}

// TestAWorldWithoutTheVerbs cannot be broken, and says so.
func TestAWorldWithoutTheVerbs(t *testing.T) {
	bare := struct{ cluster.Cluster }{newFake(cluster.Single, 1, 1)}
	unsupported := func(f Fault) {
		t.Helper()
		_, err := f.Inject(context.Background(), Scene{Cluster: bare, TTL: ttl, Holder: "c1"})
		if !errors.Is(err, cluster.ErrUnsupported) {
			t.Errorf("%s: %v", f.Kind(), err)
		}
	}
	for _, f := range Kinds() {
		switch f.(type) {
		case Cut, Partition, Delay, ErrorReply: // want parameters, with which they are tried below
			continue
		}
		unsupported(f)
	}
	ends := []string{"c1", "n1"}
	unsupported(Cut{From: ends[:1], To: ends[1:]})
	unsupported(Partition{Groups: [][]string{ends[:1], ends[1:]}})
	unsupported(Delay{From: ends[:1], To: ends[1:]})
	unsupported(ErrorReply{Reply: "OOM"})
}

// TestFailoverInAShard: nobody is promoted from outside.
func TestFailoverInAShard(t *testing.T) {
	for mode, want := range map[string]string{
		"": "kill n1", "kill": "kill n1", "force": "depose for n4 by force", "takeover": "depose for n4 by takeover",
	} {
		f := newFake(cluster.RedisCluster, 6, 2)
		e, err := Failover{Mode: mode}.Inject(t.Context(), Scene{Cluster: f, TTL: ttl})
		if err != nil || !slices.Equal(e.On, []string{"n1", "n4"}) || e.Heal != nil {
			t.Errorf("mode %q: %+v, %v", mode, e, err)
		}
		if got := f.log(); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("mode %q asked for %q, want %q", mode, got, want)
		}
	}
	f := newFake(cluster.RedisCluster, 6, 2)
	if _, err := (Failover{To: "n5"}).Inject(t.Context(), Scene{Cluster: f, TTL: ttl}); err == nil {
		t.Error("n5, which copies another, was made the primary")
	}
	if got, err := (Scene{Cluster: f}).resolve([]string{"primary", "replicas"}); err != nil || strings.Join(got, " ") != "n1 n4" {
		t.Errorf("the primary and the replicas of the shard are %v, %v", got, err)
	}
}
