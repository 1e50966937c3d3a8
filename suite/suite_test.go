package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
)

func load(name string) (*scenarios.Scenario, error) {
	if strings.ContainsRune(name, '/') {
		return scenarios.ReadFile(name)
	}
	return scenarios.Load(name)
}

func jobsOf(t *testing.T, s *Suite) []Job {
	t.Helper()
	jobs, err := s.Jobs(load)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func brief(jobs []Job) string {
	var out []string
	for _, j := range jobs {
		s := fmt.Sprintf("%s/%s/%d", j.Name, j.Lock, j.Seed)
		if j.Topology != "" {
			s += "/" + j.Topology
		}
		if j.TTL != 0 {
			s += "/" + j.TTL.String()
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestAFileBecomesJobs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte("name: mine\nabout: Mine.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{"runs:\n  - locks: basic\n    scenarios: calm\n", "calm/basic/1"},
		{"seed: 7\nseeds: 2\nttl: 3s\nruns:\n  - {locks: [basic, redlock], scenarios: [calm]}\n",
			"calm/basic/7/3s calm/basic/8/3s calm/redlock/7/3s calm/redlock/8/3s"},
		{"seeds: 2\nruns:\n  - {locks: basic, scenarios: calm, seeds: 1, ttl: 100ms, topology: replicated}\n", "calm/basic/1/replicated/100ms"},
		{"runs:\n  - {locks: basic, scenarios: calm, seeds: 2}\n  - {locks: basic, scenarios: calm, seed: 2, seeds: 2}\n",
			"calm/basic/1 calm/basic/2 calm/basic/3"},
		{"runs:\n  - {locks: basic, scenarios: ./mine.yaml}\n", "mine/basic/1"},
		{"runs:\n  - {locks: basic, scenarios: mine.yaml}\n", "mine/basic/1"},
		{"runs:\n  - {scenarios: redlock-fence}\n", "redlock-fence/redlock+fence/1"},
		{"runs:\n  - {locks: semaphore}\n", "permits/semaphore/1 permits-clock-jump/semaphore/1"},
	} {
		s, err := Parse(filepath.Join(dir, "holdfast.yaml"), []byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if got := brief(jobsOf(t, s)); got != c.want {
			t.Errorf("%s: %s, want %s", c.file, got, c.want)
		}
	}
}

// TestMistakesHaveTheirPlace: and the schema refuses what it can see.
func TestMistakesHaveTheirPlace(t *testing.T) {
	for _, c := range []struct {
		file, want  string
		schemaTakes bool
	}{
		{"", "s.yaml:1:1: the file is empty", false},
		{"runs: []\n", "s.yaml:1:7: what shall be played?", false},
		{"name: x\n", "s.yaml:1:1: what shall be played?", false},
		{"rnus:\n  - {}\n", `s.yaml:1:1: there is no key "rnus"; did you mean "runs"?`, false},
		{"runs:\n  - lock: basic\n", `s.yaml:2:5: there is no key "lock" in runs; did you mean "locks"?`, false},
		{"runs:\n  - locks: [basic, redlok]\n", `s.yaml:2:20: "redlok" is not right here; did you mean "redlock"?`, true},
		{"runs:\n  - locks: al\n", `s.yaml:2:12: "al" is not right here; did you mean "all"?`, true},
		{"runs:\n  - scenarios:\n      - calm\n      - clam\n", `s.yaml:4:9: "clam" is not right here; did you mean "calm"?`, true},
		{"runs:\n  - scenarios: ./nothing.yaml\n", "s.yaml:2:16: read scenario: stat ./nothing.yaml: no such file", true},
		{"on: simm\nruns: [{}]\n", `s.yaml:1:5: "simm" is not right here; did you mean "sim"?`, false},
		{"seeds: 0\nruns: [{}]\n", "s.yaml:1:8: here belongs a number from 1 to 1000000", false},
		{"seeds: many\nruns: [{}]\n", "s.yaml:1:8: here belongs a whole number, not many", false},
		{"runs:\n  - {seed: -1}\n", "s.yaml:2:12: a seed is a whole number from 0 up", false},
		{"ttl: 10\nruns: [{}]\n", `s.yaml:1:6: "10" is not a duration: write 500ms, 10s or 2m`, false},
		{"ttl: 1ms\nruns: [{}]\n", "s.yaml:1:6: here belongs a duration from 20ms to 24h0m0s", true},
		{"runs:\n  - topology: singel\n", `s.yaml:2:15: "singel" is not right here; did you mean "single"?`, false},
		{"runs:\n  - locks: []\n", "s.yaml:2:12: the list is empty: leave locks out", false},
		{"baseline: ''\nruns: [{}]\n", "s.yaml:1:11: here belongs the path of a file", false},
		{"runs: [{}]\n---\nruns: [{}]\n", "s.yaml:3:1: this is a second document", true},
		{"runs: [\n", "this is not YAML", true},
	} {
		_, err := Parse("s.yaml", []byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.file, err, c.want)
		}
		if c.schemaTakes {
			continue
		}
		// The loader's own checks come first; without them the schema must
		// refuse the file too.
		var doc document
		err = scenarios.ReadDocument("s.yaml", []byte(c.file), &doc, compiled(), func(*scenarios.Places) {})
		if err == nil {
			t.Errorf("%q: the schema takes it", c.file)
		}
	}
	if _, err := Parse("s.yaml", bytes.Repeat([]byte("#"), 1<<20)); err == nil || !strings.Contains(err.Error(), "at most 65536 are read") {
		t.Errorf("a large file: %v", err)
	}
}

func TestSchemaNamesEveryKey(t *testing.T) {
	var doc struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for where, c := range map[string]struct {
		got  map[string]any
		want []string
	}{
		"the file": {doc.Properties, []string{"baseline", "name", "on", "runs", "seed", "seeds", "ttl"}},
		"an item":  {doc.Defs["item"].Properties, []string{"locks", "scenarios", "seed", "seeds", "topology", "ttl"}},
	} {
		if got := slices.Sorted(maps.Keys(c.got)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", where, got, c.want)
		}
	}
	file := "name: n\nbaseline: b.json\non: process\nseed: 2\nseeds: 3\nttl: 2s\nruns:\n" +
		"  - {locks: [all, libraries], scenarios: [calm], topology: single, seed: 1, seeds: 2, ttl: 1s}\n"
	s, err := Parse("dir/h.yaml", []byte(file))
	if err != nil {
		t.Fatalf("a file with every key: %v", err)
	}
	if s.Name != "n" || s.World != "process" || filepath.ToSlash(s.Baseline) != "dir/b.json" {
		t.Errorf("%+v", s)
	}
}

func TestBuiltInSuites(t *testing.T) {
	least := 0
	for _, name := range Names() {
		s, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		jobs := jobsOf(t, s)
		if len(jobs) <= least {
			t.Errorf("%s has %d runs, the one before it %d", name, len(jobs), least)
		}
		least = len(jobs)
	}
	if _, err := Named("quikc"); err == nil {
		t.Error("a suite of that name")
	}
}

// TestOnlySomeLocks: a lock that scenarios know plays those; one that none
// knows plays all; and a file's own choice is narrowed, never widened.
func TestOnlySomeLocks(t *testing.T) {
	quick, err := Named(Quick)
	if err != nil {
		t.Fatal(err)
	}
	quick.Only = []string{"redlock"}
	for _, j := range jobsOf(t, quick) {
		if sc, _ := load(j.Scenario); j.Lock != "redlock" || !sc.Knows("redlock") {
			t.Errorf("%s plays %s", j.Lock, j.Scenario)
		}
	}
	quick.Only = []string{"redislock"}
	if got, want := len(jobsOf(t, quick)), len(quick.Entries[0].Scenarios); got != want {
		t.Errorf("a lock that no scenario knows plays %d of %d", got, want)
	}
	all, err := Parse("s.yaml", []byte("runs:\n  - {locks: redislock}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(jobsOf(t, all)), len(scenarios.NamesIn(cluster.Sim)); got != want {
		t.Errorf("a lock that no scenario knows plays %d of %d from a file", got, want)
	}
	file, err := Parse("s.yaml", []byte("runs:\n  - {locks: [basic, redlock], scenarios: calm}\n"))
	if err != nil {
		t.Fatal(err)
	}
	file.Only = []string{"redlock", "watchdog"}
	if got := brief(jobsOf(t, file)); got != "calm/redlock/1" {
		t.Errorf("narrowed to %s", got)
	}
}

func TestSuitesThatCannotBePlayed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(path, []byte("name: calm\nabout: Another calm.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for say, s := range map[string]*Suite{
		"at most 1000000":    {Entries: []Entry{{Locks: []string{"basic", "redlock"}, Scenarios: []string{"calm"}, Seeds: MaxRuns}}},
		"have the same name": {Entries: []Entry{{Scenarios: []string{"calm"}, Seeds: 1}, {Scenarios: []string{path}, Seeds: 1}}},
		"no scenario":        {Entries: []Entry{{Scenarios: []string{"none"}, Seeds: 1}}},
	} {
		if _, err := s.Jobs(load); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("got %v, want %q", err, say)
		}
	}
}

// TestShardsShareOut: every run is in exactly one shard, and the sizes differ
// by one at most.
func TestShardsShareOut(t *testing.T) {
	s, err := Named(Standard)
	if err != nil {
		t.Fatal(err)
	}
	jobs := jobsOf(t, s)
	for _, of := range []int{1, 2, 3, 7, len(jobs)} {
		seen := map[int]int{}
		for i := 1; i <= of; i++ {
			cut := Shard{i, of}.Cut(jobs)
			if n := len(cut); n < len(jobs)/of || n > len(jobs)/of+1 {
				t.Errorf("shard %d of %d has %d of %d runs", i, of, n, len(jobs))
			}
			for _, j := range cut {
				seen[j.Index]++
			}
		}
		for _, j := range jobs {
			if seen[j.Index] != 1 {
				t.Fatalf("%d shards: run %d is in %d of them", of, j.Index, seen[j.Index])
			}
		}
	}
	rounds := ByRounds(jobs)
	for i := 1; i < len(rounds); i++ {
		if rounds[i].Round < rounds[i-1].Round {
			t.Fatalf("round %d comes before %d", rounds[i-1].Round, rounds[i].Round)
		}
	}
}

func TestParseShard(t *testing.T) {
	for word, want := range map[string]Shard{"": {1, 1}, "1/1": {1, 1}, "3/4": {3, 4}} {
		if got, err := ParseShard(word); err != nil || got != want {
			t.Errorf("%q: %v, %v", word, got, err)
		}
	}
	for _, word := range []string{"0/4", "5/4", "1", "1/", "/2", "a/b", "1/4/2", "-1/4", "1/0", "1/99999999"} {
		if got, err := ParseShard(word); err == nil {
			t.Errorf("%q is %v", word, got)
		}
	}
}

// TestFingerprint: another seed, and another text of a scenario of the same
// name, are another suite.
func TestFingerprint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	print := func(seeds int, clients string) string {
		if err := os.WriteFile(path, []byte("name: mine\nabout: Mine.\nclients: "+clients+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := &Suite{World: "sim", Entries: []Entry{{Locks: []string{"basic"}, Scenarios: []string{path}, Seed: 1, Seeds: seeds}}}
		got, err := Fingerprint(jobsOf(t, s), load)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := print(1, "2")
	if one != print(1, "2") {
		t.Error("the same suite has two fingerprints")
	}
	if one == print(2, "2") || one == print(1, "3") {
		t.Error("two suites have one fingerprint")
	}
}

func TestBaselineIsStable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.json")
	f := func(lock, check, kind, note string) reports.Finding {
		return reports.Finding{Lock: lock, Scenario: "calm", Check: check, Kind: kind, Note: note}
	}
	one, two, three := f("basic", "exclusion", "overrun", "accepted"), f("basic", "updates", "lost-update", ""), f("zk", "exclusion", "broken", "")
	write := func(fs ...reports.Finding) string {
		if err := (&Baseline{Findings: fs}).Write(path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if write(one, two, three) != write(three, one, two) {
		t.Error("the order of the findings changes the bytes")
	}
	b, err := ReadBaseline(path)
	if err != nil || len(b.Findings) != 3 || b.Findings[0] != one {
		t.Fatalf("%+v, %v", b, err)
	}
	bare := one
	bare.Note = ""
	g := &reports.Gate{
		Findings: []reports.GateFinding{{Finding: bare}, {Finding: f("new", "exclusion", "broken", "")}},
		Vanished: []reports.Finding{two},
	}
	got := b.Updated(g)
	if want := []reports.Finding{one, three, f("new", "exclusion", "broken", "")}; !slices.Equal(got.Findings, want) {
		t.Errorf("updated to %v, want %v: notes and what was not tested stay", got.Findings, want)
	}
	for say, text := range map[string]string{
		"unknown field": `{"schema": "holdfast/baseline/v1", "finding": []}`, "the schema is": `{"schema": "x", "findings": []}`,
		"lacks its lock": `{"schema": "holdfast/baseline/v1", "findings": [{"lock": "a"}]}`, "EOF": "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBaseline(path); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: got %v, want %q", text, err, say)
		}
	}
}

// Each group word stands for locks of its own, and none for those of another.
func TestGroups(t *testing.T) {
	of := map[string]string{}
	for _, word := range Groups() {
		group := Group(word)
		if len(group) == 0 {
			t.Errorf("%s stands for nothing", word)
		}
		for _, e := range group {
			if other, taken := of[e.Name]; taken {
				t.Errorf("%s belongs to %s and to %s", e.Name, other, word)
			}
			of[e.Name] = word
		}
	}
	names, wrong := Locks([]string{"baselines", "etcd"})
	if want := []string{"etcd", "zookeeper", "postgres", "postgres-advisory"}; wrong != "" || !slices.Equal(names, want) {
		t.Errorf("baselines are %v (wrong %q), want %v", names, wrong, want)
	}
}
