package scenarios

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

func mustParse(t *testing.T, file string) *Scenario {
	t.Helper()
	s, err := Parse("f.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryEmbeddedScenario(t *testing.T) {
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name {
			t.Errorf("%s.yaml holds the scenario %q", name, s.Name)
		}
		if !strings.HasSuffix(s.About, ".") || strings.Contains(s.About, "\n") {
			t.Errorf("%s: about is no sentence: %q", name, s.About)
		}
		if !strings.HasPrefix(s.Source, "http") {
			t.Errorf("%s has no source", name)
		}
		if s.Coverage == (history.Coverage{}) {
			t.Errorf("%s asks for no coverage: it passes even if nothing happens", name)
		}
		for _, lock := range s.Locks {
			if len(s.ExpectedOf(lock)) == 0 {
				t.Errorf("%s expects nothing of its own lock %s", name, lock)
			}
			played := s.Nemesis.For(s.TopologyOf(lock, lock == "redlock"))
			if len(s.Nemesis) > 0 && len(played) == 0 {
				t.Errorf("%s breaks nothing for %s", name, lock)
			}
		}
	}
}

// TestTheTable holds the files against the promise: what a cell says of
// exclusion and updates, where it is not a pass for both.
func TestTheTable(t *testing.T) {
	const overrun, broken, pass, violation = "overrun", "broken", "pass", "violation"
	type cell struct{ exclusion, updates string }
	ok, late := cell{pass, pass}, cell{pass, violation}
	over, broke := cell{overrun, violation}, cell{broken, violation}
	all := func(c cell) map[string]cell {
		return map[string]cell{"basic": c, "reentrant": c, "watchdog": c, "redlock": c, "service": c, "reference": c}
	}
	but := func(c cell, others map[string]cell) map[string]cell {
		m := all(c)
		maps.Copy(m, others)
		return m
	}
	single := all(broke)
	delete(single, "redlock")
	lost := maps.Clone(single)
	lost["reference"] = cell{"any", ""} // it may learn of the loss first
	held := all(ok)
	delete(held, "redlock")
	table := map[string]map[string]cell{
		"calm":                        all(ok),
		"cluster-failover":            lost,
		"cluster-takeover":            lost,
		"cluster-failover-forced":     held,
		"cluster-slot-migration":      held,
		"cluster-as-independent":      {"redlock": {"unknown", "unknown"}},
		"slow-work":                   but(over, map[string]cell{"watchdog": ok, "service": ok, "reference": ok}),
		"kleppmann-gc-pause":          but(over, map[string]cell{"reference": late}),
		"kleppmann-fencing":           {"basic+fence": {overrun, pass}, "service+fence": {overrun, pass}, "reference": ok},
		"redlock-fence":               {"redlock+fence": ok},
		"pause-during-acquire":        but(over, map[string]cell{"redlock": ok, "reference": ok}),
		"delayed-write":               all(late),
		"kleppmann-clock-jump":        all(broke),
		"crash-restart-amnesia":       all(broke),
		"crash-restart-keep":          all(ok),
		"paused-holders":              {"basic": over, "redlock": over},
		"paused-holders-guarded":      {"basic+fence": {overrun, pass}, "service+fence": {overrun, pass}, "reference": ok},
		"delayed-restart":             {"redlock": ok},
		"failover-before-replication": single,
		"partition-holder":            but(over, map[string]cell{"reference": ok}),
		"partition-minority":          {"redlock": ok},
		"extend-too-late":             {"reference": ok},
		"renewal-blip":                {"watchdog": over, "service": over, "reference": ok},
		"node-stall":                  all(ok),
		"server-killed":               all(ok),
		"server-clock-jump":           but(broke, map[string]cell{"redlock": ok, "reference": {broken, pass}}),
		"speed":                       all(ok),
		"node-disconnected":           {"watchdog": over, "service": over, "reference": ok},
		"readers-and-writers":         {"rwlock": ok},
		"reader-outlives-lease":       {"rwlock": {broken, pass}},
		"permits":                     {"semaphore": {pass, ""}, "semaphore+client-time": {overrun, ""}},
		"permits-clock-jump":          {"semaphore": {broken, ""}, "semaphore+client-time": {broken, ""}},
		"reentry":                     {"reentrant": ok, "watchdog": ok, "service": ok},
		"fair-queue-crashed-waiter":   {"fair": ok},
		"fair-queue-impatient":        {"fair": ok},
		"opposite-orders":             but(ok, map[string]cell{"fair": ok, "rwlock": ok}),
		"shared-lock-object":          but(ok, map[string]cell{"reentrant": broke, "redlock": broke}),
		"lock-key-deleted":            {"watchdog": broke, "service": broke, "reference": {broken, ""}},
		"node-refuses":                {"basic": ok, "reference": ok},
		"script-flush":                but(ok, map[string]cell{"evalsha-without-fallback": {}}),
		"majority-down":               {"redlock": ok},
		"out-of-memory":               {"basic": ok, "reference": ok},
		"redlock-slow-votes":          {"redlock": ok},
		"redlock-clock-rate-10":       {"redlock": broke},
		"redlock-clock-rate-50":       {"redlock": broke},
		"redlock-clock-slew":          {"redlock": ok},
		"redlock-fsync-always":        {"redlock": ok},
		"redlock-fsync-everysec":      {"redlock": broke},
		"redlock-partitions":          {"redlock": ok},
		"redlock-lost-vote":           {"redlock": ok},
		"check-and-set-pause":         {"basic": {overrun, pass}, "redlock": {overrun, pass}, "reference": ok},
		"check-and-set-late-write":    {"basic": ok, "redlock": ok, "reference": ok},
		"sentinel-failover":           {"basic": broke, "watchdog": broke, "reference": {"any", "any"}},
		"sentinel-lagging-replica":    {"basic": broke, "basic+wait": broke, "watchdog": broke, "reference": {"any", "any"}},
		"sentinel-split-brain":        {"basic": broke, "watchdog": broke, "reference": broke},
		"sentinel-cut-replicas":       {"basic": broke, "basic+wait": ok},
		"sentinel-min-replicas":       {"basic": ok, "basic+wait": ok},
	}
	if want := slices.Sorted(maps.Keys(table)); !slices.Equal(Names(), want) {
		t.Fatalf("the scenarios are %v, want %v", Names(), want)
	}
	for name, row := range table {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range s.Locks {
			if _, ok := row[lock]; !ok {
				t.Errorf("%s is about %s, of which the table says nothing", name, lock)
			}
		}
		for lock, want := range row {
			e := s.ExpectedOf(lock)
			if got := (cell{e["exclusion"], e["updates"]}); got != want {
				t.Errorf("%s expects %v of %s, want %v", name, got, lock, want)
			}
			if lin := e["linearizability"]; (lin == violation) != (want.exclusion == broken || e["fencing"] == violation) {
				t.Errorf("%s expects linearizability %q of %s beside exclusion %s", name, lin, lock, want.exclusion)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	s := mustParse(t, "name: x\nabout: A test.\n")
	ttls := nemesis.TTLs
	want := &Scenario{
		Name: "x", About: "A test.",
		Topology: map[string]cluster.Topology{"default": cluster.Single, "redlock": cluster.Independent},
		Nodes:    map[cluster.Topology]int{},
		Clients:  3,
		Locks:    []string{"basic", "reentrant", "watchdog", "redlock", "service"},
		Workload: Workload{
			Kind: "update", Patience: ttls(0.2), Hold: ttls(0.1), Think: ttls(0.02), Retry: ttls(0.05), Stagger: ttls(0.1),
			AcquireTimeout: ttls(4), CallTimeout: ttls(1), WriteTimeout: ttls(4), Resource: "plain",
		},
		Length: ttls(3),
		Final:  Final{Heal: true, Wait: ttls(2)},
		Expect: Expect{},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

const full = `
name: everything
about: Every key once.
source: https://example.com/
topology: {redlock: independent, primary: replicated, sharded: cluster, default: single}
nodes: {replicated: 3, independent: 7}
clients: 4
locks: [basic, redlock+fence]
workload:
  kind: permits
  readers: [c2, c4]
  read-share: 0.25
  depth: 3
  threads: 2
  locks: [orders, stock]
  order: opposite
  impatient: c3
  patience: 0.7ttl
  hold: 1.5ttl
  think: 0
  retry: 30ms
  stagger: 1s
  acquire-timeout: 1m
  call-timeout: 2s
  write-timeout: .5ttl
  resource: guarded
length: 10ttl
nemesis:
  - when: {at: 0.5ttl}
    for: 1.5ttl
    partition: {groups: [[clients], minority, [n1, n2]], asymmetric: true, mode: reset}
  - when: {op: acquire, type: ok, nth: 2, client: c4, after: 100ms}
    topologies: [single, independent]
    pause: {client: c2}
  - when: {command: set, node: n1, client: c1}
    stall: {node: n1}
  - when: {at: 2ttl}
    disconnect: {node: [minority]}
  - when: {op: worked}
    delay: {from: [caller], to: [resource], direction: requests, by: 1.2ttl}
  - when: {op: write, type: invoke}
    lose-reply: {client: holder, node: primary, command: SET, nth: 2}
  - when: {at: 0}
    clock: {node: [n1], jump: -2ttl}
  - when: {at: 1s}
    clock: {node: [nodes], rate: 2}
  - when: {at: 0}
    kill: {node: [majority], restart: fsync}
  - when: {at: 0}
    topologies: [replicated]
    failover: {to: n3, alive: true}
  - when: {at: 0}
    topologies: [cluster]
    failover: {mode: takeover}
  - when: {at: 0}
    topologies: [cluster]
    migrate: {to: n2, pause: 0.1ttl}
  - when: {op: lost, type: note}
    crash: {client: caller}
  - when: {at: 0}
    strike: {client: c1, node: n1, command: SET, nth: 2, deed: delay-request, by: 1.5ttl}
  - when: {op: acquire, type: invoke}
    cancel: {client: caller}
  - when: {at: 0}
    flush: {scripts: true}
  - when: {command: any}
    error-reply: {reply: OOM no memory}
  - when: {at: 0}
    cut: {from: [others], to: [nodes], direction: both, mode: drop}
final: {heal: false, wait: 5ttl}
expect:
  default: {exclusion: overrun}
  basic: {updates: lost-update, coverage: unknown}
coverage: {acquires-before: 1, acquires-during: 2, acquires-after: 3, contention: true, fault-overlaps-op: true, outlived: true, redirects: true}
`

func TestEveryKeyArrives(t *testing.T) {
	s := mustParse(t, full)
	ttls := nemesis.TTLs
	want := nemesis.Plan{
		{When: nemesis.Trigger{At: ttls(0.5)}, For: ttls(1.5), Fault: nemesis.Partition{
			Groups: [][]string{{"clients"}, {"minority"}, {"n1", "n2"}}, Asymmetric: true, Mode: cluster.Reset}},
		{When: nemesis.Trigger{Op: "acquire", Type: history.OK, Nth: 2, Client: "c4", After: nemesis.Span{Fixed: 100 * time.Millisecond}},
			Topologies: []cluster.Topology{cluster.Single, cluster.Independent}, Fault: nemesis.Pause{Client: "c2"}},
		{When: nemesis.Trigger{Command: "set", Node: "n1", Client: "c1"}, Fault: nemesis.Stall{Node: []string{"n1"}}},
		{When: nemesis.Trigger{At: ttls(2)}, Fault: nemesis.Disconnect{Node: []string{"minority"}}},
		{When: nemesis.Trigger{Op: "worked", Type: history.Note}, Fault: nemesis.Delay{
			From: []string{"caller"}, To: []string{"resource"}, Direction: nemesis.Requests, By: ttls(1.2)}},
		{When: nemesis.Trigger{Op: "write", Type: history.Invoke}, Fault: nemesis.LoseReply{
			Client: "holder", Node: "primary", Command: "SET", Nth: 2}},
		{Fault: nemesis.Clock{Node: []string{"n1"}, Jump: ttls(-2)}},
		{When: nemesis.Trigger{At: nemesis.Span{Fixed: time.Second}}, Fault: nemesis.Clock{Node: []string{"nodes"}, Rate: 2}},
		{Fault: nemesis.Kill{Node: []string{"majority"}, Data: cluster.Fsynced}},
		{Topologies: []cluster.Topology{cluster.Replicated}, Fault: nemesis.Failover{To: "n3", Alive: true}},
		{Topologies: []cluster.Topology{cluster.RedisCluster}, Fault: nemesis.Failover{Mode: "takeover"}},
		{Topologies: []cluster.Topology{cluster.RedisCluster}, Fault: nemesis.Migrate{To: "n2", Pause: ttls(0.1)}},
		{When: nemesis.Trigger{Op: "lost", Type: history.Note}, Fault: nemesis.Crash{Client: "caller"}},
		{Fault: nemesis.Strike{Client: "c1", Node: "n1", Command: "SET", Nth: 2, Deed: cluster.DelayRequest, By: ttls(1.5)}},
		{When: nemesis.Trigger{Op: "acquire", Type: history.Invoke}, Fault: nemesis.Cancel{Client: "caller"}},
		{Fault: nemesis.Flush{Scripts: true}},
		{When: nemesis.Trigger{Command: "any"}, Fault: nemesis.ErrorReply{Reply: "OOM no memory"}},
		{Fault: nemesis.Cut{From: []string{"others"}, To: []string{"nodes"}, Direction: nemesis.Both, Mode: cluster.Drop}},
	}
	for i := range want {
		if i >= len(s.Nemesis) || !reflect.DeepEqual(s.Nemesis[i], want[i]) {
			t.Errorf("step %d: got %+v\nwant %+v", i, s.Nemesis[i], want[i])
		}
	}
	for _, f := range nemesis.Kinds() {
		if !slices.ContainsFunc(want, func(st nemesis.Step) bool { return st.Fault.Kind() == f.Kind() }) {
			t.Errorf("this test has no %s", f.Kind())
		}
	}
	w := s.Workload
	if w.Hold != ttls(1.5) || !w.Think.IsZero() || w.Retry.Fixed != 30*time.Millisecond || w.Stagger.Fixed != time.Second ||
		w.AcquireTimeout.Fixed != time.Minute || w.CallTimeout.Fixed != 2*time.Second || w.WriteTimeout != ttls(0.5) ||
		w.Resource != Guarded {
		t.Errorf("workload: %+v", w)
	}
	if w.Kind != Permits || !slices.Equal(w.Readers, []string{"c2", "c4"}) || w.ReadShare != 0.25 || w.Deep() != 3 || w.Wide() != 2 ||
		!slices.Equal(w.Names(), []string{"orders", "stock"}) || w.Order != Opposite ||
		!slices.Equal(w.Impatient, []string{"c3"}) || w.Patience != ttls(0.7) {
		t.Errorf("workload: %+v", w)
	}
	if s.Final.Heal || s.Final.Wait != ttls(5) || s.Length != ttls(10) || s.Clients != 4 {
		t.Errorf("final %+v, length %v, clients %d", s.Final, s.Length, s.Clients)
	}
	if c := (history.Coverage{AcquiresBefore: 1, AcquiresDuring: 2, AcquiresAfter: 3, Contention: true,
		FaultOverlapsOp: true, Outlived: true, Redirects: true}); s.Coverage != c {
		t.Errorf("coverage: %+v", s.Coverage)
	}
	if n := []int{s.NodesOf(cluster.Single), s.NodesOf(cluster.Replicated), s.NodesOf(cluster.Independent)}; !slices.Equal(n, []int{1, 3, 7}) {
		t.Errorf("nodes: %v", n)
	}
}

func TestTopologyOf(t *testing.T) {
	const head = "name: x\nabout: A test.\n"
	for _, c := range []struct {
		topology, lock string
		quorum         bool
		want           cluster.Topology
	}{
		{"topology: {redlock: independent, default: replicated}", "redlock", true, cluster.Independent},
		{"topology: {redlock: independent, default: replicated}", "redlock+fence", true, cluster.Independent},
		{"topology: {redlock: independent, default: replicated}", "redsync", true, cluster.Independent},
		{"topology: {redlock: independent, default: replicated}", "basic", false, cluster.Replicated},
		{"topology: {redlock: independent, redsync: single}", "redsync", true, cluster.Single},
		{"topology: {redlock: independent, redlock+fence: single}", "redlock+fence", true, cluster.Single},
		{"topology: {redlock: independent}", "basic", false, cluster.Single},
		{"topology: {default: replicated}", "redlock", true, cluster.Replicated},
		{"topology: independent", "basic", false, cluster.Independent},
		{"", "redlock", true, cluster.Independent},
		{"", "basic", false, cluster.Single},
	} {
		s := mustParse(t, head+c.topology+"\n")
		if got := s.TopologyOf(c.lock, c.quorum); got != c.want {
			t.Errorf("%s: %s runs on %s, want %s", c.topology, c.lock, got, c.want)
		}
	}
	if s := mustParse(t, head+"nodes: 3\n"); s.NodesOf(cluster.Single) != 1 || s.NodesOf(cluster.Independent) != 3 {
		t.Errorf("nodes: 3 gives %v", s.Nodes)
	}
}

func TestKnows(t *testing.T) {
	s := &Scenario{
		Locks:  []string{"basic", "redlock+fence"},
		Expect: Expect{Default: {}, "reference": {"updates": "violation"}},
	}
	for lock, want := range map[string]bool{
		"basic": true, "basic+fence": true, "reference": true, "redlock+fence": true,
		"redlock": false, "watchdog": false, "no-ttl": false, Default: false,
	} {
		if got := s.Knows(lock); got != want {
			t.Errorf("knows %s: %v, want %v", lock, got, want)
		}
	}
}

func TestExpectedOf(t *testing.T) {
	const head = "name: x\nabout: A test.\n"
	flat, perLock := "expect: {updates: violation}\n", `expect:
  default: {exclusion: overrun, updates: violation}
  basic: {exclusion: broken}
  reference: {updates: violation}
`
	type m = map[string]string
	for _, c := range []struct {
		file, lock string
		want       m
	}{
		{flat, "basic", m{"updates": "violation"}},
		{flat, "basic+fence", m{"updates": "violation"}},
		{flat, "reference", m{}},
		{flat, "mutant:no-ttl", m{}},
		{"locks: redlock\n" + flat, "redlock+fence", m{"updates": "violation"}},
		{"locks: redlock\n" + flat, "basic", m{}},
		{perLock, "basic", m{"exclusion": "broken"}},
		{perLock, "basic+fence", m{"exclusion": "broken"}},
		{perLock, "redlock", m{"exclusion": "overrun", "updates": "violation"}},
		{perLock, "reference", m{"updates": "violation"}},
		{perLock, "default", m{}},
		{perLock, "unheard-of", m{}},
		{"expect: {}\n", "basic", m{}},
		{"", "basic", m{}},
	} {
		s := mustParse(t, head+c.file)
		got := s.ExpectedOf(c.lock)
		if got == nil || !maps.Equal(got, c.want) {
			t.Errorf("%q: of %s is expected %v, want %v", c.file, c.lock, got, c.want)
		}
		got["exclusion"] = "changed"
		if again := s.ExpectedOf(c.lock); !maps.Equal(again, c.want) {
			t.Errorf("the caller's change of the answer changed the scenario: %v", again)
		}
	}
}

func TestNearest(t *testing.T) {
	among := []string{"pause", "stall", "cut", "partition", "ok", "watchdog"}
	for word, want := range map[string]string{
		"puase": "pause", "Pause": "pause", "paus": "pause", "partitoin": "partition", "partishon": "partition",
		"stal": "stall", "cuts": "cut", "zebra": "", "": "", "xy": "", "wathcdog": "watchdog", "o": "ok",
	} {
		if got := Nearest(word, among); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
	if got := Nearest("hte", []string{"hat", "the"}); got != "the" {
		t.Errorf("swapped letters are two mistakes: %q", got)
	}
	if got := Nearest("ab", nil); got != "" {
		t.Errorf("among nothing the nearest is %q", got)
	}
}

func TestTargetWordsAreThoseOfNemesis(t *testing.T) {
	got, want := slices.Clone(parties.words), nemesis.Words()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("targets are %v, package nemesis has %v", got, want)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "mine.yaml") {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("name: mine\nabout: A test.\nclients: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+":3:10: ") {
		t.Errorf("a bad file: %v", err)
	}
}
