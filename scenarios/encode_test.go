package scenarios

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

// mustReadBack encodes a scenario and reads it back.
func mustReadBack(t *testing.T, s *Scenario) *Scenario {
	t.Helper()
	text, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(s.Name+".yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return back
}

func TestEmbeddedScenariosReadBackEqual(t *testing.T) {
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if back := mustReadBack(t, s); !reflect.DeepEqual(back, s) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, back, s)
		}
	}
}

// everyFault has each fault with each of its parameters.
func everyFault() []nemesis.Fault {
	return []nemesis.Fault{
		nemesis.Pause{Client: "c2"}, nemesis.Pause{}, nemesis.Crash{Client: "holder"}, nemesis.Cancel{Client: "c1"},
		nemesis.Stall{Node: []string{"n1", "n2"}},
		nemesis.Cut{From: []string{"c1"}, To: []string{"n1"}, Direction: nemesis.Replies, Mode: cluster.Reset},
		nemesis.Partition{Groups: [][]string{{"c1", "n1"}, {"c2", "n2", "n3"}}, Asymmetric: true, Mode: cluster.Drop},
		nemesis.Delay{From: []string{"clients"}, To: []string{"nodes"}, By: nemesis.TTLs(0.3)},
		nemesis.LoseReply{Client: "c1", Node: "n1", Command: "SET", Nth: 2},
		nemesis.Strike{Client: "c1", Node: "n1", Command: "EVALSHA", Nth: 3, Deed: cluster.DelayReply, By: nemesis.Span{Fixed: 1500 * time.Microsecond}},
		nemesis.Clock{Node: []string{"n1"}, Jump: nemesis.TTLs(-1.5)}, nemesis.Clock{Node: []string{"n1"}, Rate: 1.0025},
		nemesis.Kill{Node: []string{"n1"}, Data: cluster.Lose}, nemesis.Kill{Node: []string{"n1"}},
		nemesis.Flush{Node: []string{"n2"}, Scripts: true}, nemesis.Flush{Node: []string{"n2"}},
		nemesis.ErrorReply{Node: []string{"n1"}, Reply: "OOM command not allowed when used memory > 'maxmemory'."},
	}
}

func TestFaultsAndTriggersReadBackEqual(t *testing.T) {
	s, err := Load("calm")
	if err != nil {
		t.Fatal(err)
	}
	made := *s
	made.About = "yes: #1, \"quoted\"\nand 'more' - 0x1"
	made.Clients = 2
	made.Topology = map[string]cluster.Topology{Default: cluster.Independent}
	made.Locks = []string{"basic+fence", "no", "1e3"}
	made.Workload.Extend, made.Workload.Stagger = nemesis.Span{}, nemesis.Span{}
	made.Workload.LockTTL, made.Workload.ExtendTTL = LockTTL{Given: true}, LockTTL{Given: true, TTL: -5 * time.Second}
	made.Workload.LockRetries, made.Workload.LockTokens = LockRetries{Given: true}, Prefixes
	made.Final.Heal = false
	made.Expect = Expect{"no": {"exclusion": "overrun", "liveness": "any"}, Default: {}}
	triggers := []nemesis.Trigger{
		{}, {At: nemesis.TTLs(1.25)},
		{Op: history.Acquire, Type: history.OK, Client: "c1", Nth: 2, After: nemesis.Span{Fixed: time.Second}},
		{Op: history.Worked, Type: history.Note},
		{Command: nemesis.AnyCommand, Node: "n3", Client: "c2", Nth: 7}, {Command: "*"},
	}
	made.Nemesis = nil
	for i, f := range everyFault() {
		made.Nemesis = append(made.Nemesis, nemesis.Step{
			When: triggers[i%len(triggers)], Fault: f, For: nemesis.TTLs(float64(i%3) / 2),
		})
	}
	made.Nemesis[0].Topologies = []cluster.Topology{cluster.Independent}
	if back := mustReadBack(t, &made); !reflect.DeepEqual(back, &made) {
		t.Errorf("\n got %+v\nwant %+v", back, &made)
	}
}

func TestEncodeRefusesWhatNoFileHolds(t *testing.T) {
	s, err := Load("calm")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Scenario){
		"two parts": func(s *Scenario) { s.Length = nemesis.Span{TTLs: 1, Fixed: time.Second} },
		"no fault":  func(s *Scenario) { s.Nemesis = nemesis.Plan{{}} },
	} {
		made := *s
		change(&made)
		if _, err := Encode(&made); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLockTTL(t *testing.T) {
	for text, want := range map[string]LockTTL{
		"-5s": {Given: true, TTL: -5 * time.Second}, "0s": {Given: true}, "500us": {Given: true, TTL: 500 * time.Microsecond},
	} {
		file := "name: odd\nabout: A TTL that a lock should refuse.\nworkload: {lock-ttl: " + text + ", extend-ttl: " + text + "}\n"
		s, err := Parse("odd.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Workload.LockTTL; got != want || got.Of(time.Minute) != want.TTL {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		back := mustReadBack(t, s)
		if s.Workload.ExtendTTL != want || back.Workload.ExtendTTL != want || back.Workload.LockTTL != want {
			t.Errorf("%s: to extend by %+v, read back as %+v", text, s.Workload.ExtendTTL, back.Workload)
		}
	}
	if got := (LockTTL{}).Of(time.Minute); got != time.Minute {
		t.Errorf("without one: %v", got)
	}
	if _, err := Parse("odd.yaml", []byte("name: odd\nabout: x\nworkload: {lock-ttl: 1ttl}\n")); err == nil ||
		!strings.Contains(err.Error(), "is not a duration") {
		t.Errorf("1ttl: %v", err)
	}
}

// TestLockRetries: a number in the file, and none is not zero.
func TestLockRetries(t *testing.T) {
	const head = "name: odd\nabout: x\nworkload: {lock-retries: "
	for text, want := range map[string]int{"-1": -1, "0": 0, "3": 3} {
		s, err := Parse("odd.yaml", []byte(head+text+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := mustReadBack(t, s).Workload.LockRetries; got != (LockRetries{Given: true, N: want}) || got != s.Workload.LockRetries {
			t.Errorf("%s: %+v", text, got)
		}
	}
	calm, err := Load("calm")
	if err != nil || calm.Workload.LockRetries.Given || calm.Workload.TokenOf(1) != "" {
		t.Errorf("%v %+v", err, calm.Workload)
	}
	for text, says := range map[string]string{"once": "write -1, 0 or 3", "1, lock-tokens: odd": "prefixes"} {
		if _, err := Parse("odd.yaml", []byte(head+text+"}\n")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	prefixes := Workload{LockTokens: Prefixes}
	if a, b := prefixes.TokenOf(0), prefixes.TokenOf(1); a == b || !strings.HasPrefix(b, a) {
		t.Errorf("%q and %q", a, b)
	}
}
