package campaign

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// small are stories for one mutant each, too special for the built-in ones.
var small = map[string]string{
	// c1 has read its identifier and not yet deleted it when the lease ends.
	"pause-inside-release": `
clients: 3
workload: {hold: 0.3ttl, call-timeout: 3ttl}
length: 4ttl
nemesis:
  - when: {command: any, client: c1, nth: 2}
    pause: {client: caller}
    for: 1.5ttl
`,
	// c1 has the key and dies before it says anything else.
	"crash-inside-acquire": `
clients: 3
nemesis:
  - when: {command: any, client: c1, nth: 1}
    crash: {client: caller}
`,
	"long-work": `
clients: 2
workload: {hold: 0.9ttl}
length: 4ttl
`,
	// Between the errors and the end of them, one request is tried twice.
	"loading": `
clients: 4
workload: {hold: 0.6ttl, retry: 0.02ttl}
length: 5ttl
nemesis:
  - when: {op: acquire, type: ok, nth: 1, after: 0.05ttl}
    error-reply: {node: n1, reply: LOADING Redis is loading the dataset in memory}
    for: 0.1ttl
`,
	// The scripts are gone, so that a key which is not released stays for a
	// TTL; the bound is shorter than that.
	"script-flush": `
clients: 2
length: 2ttl
final: {wait: 0.4ttl}
nemesis:
  - when: {op: release, type: ok, nth: 3}
    flush: {node: n1, scripts: true}
`,
	// The key is another's when the first renewal comes.
	"stolen-before-renewal": `
clients: 2
workload: {hold: 0.6ttl}
nemesis:
  - when: {op: acquire, type: ok, nth: 1, after: 0.02ttl}
    flush: {node: n1}
`,
	// The key was another's for a while, and is nobody's when the renewal,
	// held up by a pause that is shorter than the lease, comes.
	"stolen-and-left": `
clients: 2
workload: {hold: 0.6ttl, think: 1ttl}
nemesis:
  - when: {op: acquire, type: ok, nth: 1, after: 0.02ttl}
    flush: {node: n1}
  - when: {op: acquire, type: ok, nth: 1, after: 0.03ttl}
    pause: {client: c1}
    for: 0.87ttl
`,
	// The key is set, and its acquire is cancelled while it waits for the reply.
	"cancelled-acquire": `
clients: 2
nemesis:
  - when: {at: 0}
    strike: {client: c1, node: n1, command: EVAL, deed: delay-reply, by: 0.3ttl}
  - when: {command: any, client: c1, nth: 2}
    cancel: {client: caller}
`,
	"cancelled-vote": `
topology: independent
clients: 2
workload: {retry: 0.6ttl}
nemesis:
  - when: {at: 0}
    strike: {client: c1, node: n1, command: SET, deed: delay-reply, by: 0.3ttl}
  - when: {command: any, client: c1, nth: 1}
    cancel: {client: caller}
`,
	// c1 holds all nodes but n1. c2 has n1's vote without knowing it, and no
	// other.
	"vote-without-reply": `
topology: independent
clients: 2
workload: {hold: 0.9ttl}
length: 4ttl
nemesis:
  - when: {at: 0}
    cut: {from: [c1], to: [n1], mode: reset}
  - when: {at: 0}
    lose-reply: {client: c2, node: n1, command: SET}
`,
	// Waiters give up before the holder leaves.
	"impatient-waiters": `
clients: 4
workload: {hold: 0.5ttl, acquire-timeout: 0.3ttl}
length: 4ttl
`,
	// Nobody wants anything of the lock for most of the time.
	"idle": `
clients: 2
workload: {think: 1ttl}
length: 6ttl
`,
	// The votes come in after 1.08 TTL.
	"votes-just-too-late": `
topology: independent
clients: 2
workload: {hold: 0.7ttl}
length: 4ttl
nemesis:
  - when: {command: any, client: c1, nth: 3}
    pause: {client: caller}
    for: 1.08ttl
`,
}

// storyPath gives the name of a built-in scenario, or writes a small one.
func storyPath(t *testing.T, name, twin string) string {
	t.Helper()
	body, ok := small[name]
	if !ok {
		return name
	}
	head := "name: " + name + "\nabout: A story for one mutant.\nsource: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/\nlocks: [" + twin + "]"
	if !strings.Contains(body, "topology:") {
		head += "\ntopology: single"
	}
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte(head+body+"expect: {}\ncoverage: {contention: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// caught says by which scenario and check each mutant is told from its twin.
// A check alone means that it gives no answer where it gives one for the twin.
var caught = []struct {
	mutant, scenario, check string
	ttl                     time.Duration
}{
	{mutant: "release-without-owner-check", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "release-get-then-del", scenario: "pause-inside-release", check: "exclusion broken"},
	{mutant: "evalsha-without-fallback", scenario: "script-flush", check: "liveness no-grant"},
	{mutant: "no-ttl", scenario: "partition-holder", check: "liveness no-ttl-key"},
	{mutant: "setnx-then-pexpire", scenario: "crash-inside-acquire", check: "liveness no-ttl-key"},
	{mutant: "ttl-in-whole-seconds", scenario: "long-work", check: "exclusion broken", ttl: 1500 * time.Millisecond},
	{mutant: "fixed-identifier", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "identifier-by-prefix", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "blind-retry", scenario: "loading", check: "exclusion broken"},
	{mutant: "renewal-interval-equal-to-ttl", scenario: "slow-work", check: "exclusion overrun"},
	{mutant: "extend-as-set", scenario: "kleppmann-gc-pause", check: "exclusion broken"},
	{mutant: "extend-as-bare-pexpire", scenario: "stolen-before-renewal", check: "updates lost-update"},
	{mutant: "extend-as-set-nx", scenario: "stolen-and-left", check: "updates lost-update"},
	{mutant: "redlock-without-elapsed-check", scenario: "pause-during-acquire", check: "exclusion overrun"},
	{mutant: "redlock-drift-added", scenario: "votes-just-too-late", check: "exclusion overrun"},
	{mutant: "redlock-quorum-half", scenario: "redlock-fence", check: "exclusion broken"},
	{mutant: "redlock-quorum-of-reachable", scenario: "redlock-fence", check: "exclusion broken"},
	{mutant: "redlock-quorum-all", scenario: "partition-minority", check: "coverage unknown"},
	{mutant: "redlock-error-is-yes", scenario: "partition-holder", check: "exclusion broken"},
	{mutant: "cleanup-on-cancelled-context", scenario: "cancelled-acquire", check: "orphans orphan"},
	{mutant: "redlock-cleanup-on-cancelled-context", scenario: "cancelled-vote", check: "orphans orphan"},
	{mutant: "redlock-release-only-yes", scenario: "vote-without-reply", check: "orphans orphan"},
	{mutant: "renewal-never-stopped", scenario: "idle", check: "load after-release"},
	{mutant: "renewal-not-joined", scenario: "idle", check: "load after-release"},
	{mutant: "ttl-zero", scenario: "calm", check: "ttl gone"},
	{mutant: "waiter-left-in-queue", scenario: "impatient-waiters", check: "liveness no-grant"},
	{mutant: "count-in-client-only", scenario: "slow-work", check: "lease never-there"},
}

// notYet are the mutants whose mistake no check sees.
var notYet = map[string]string{
	"readers-share-first-ttl":       "a workload with readers",
	"permits-by-client-clocks":      "a workload with permits",
	"non-counting-reentrance":       "a workload that enters twice",
	"renewal-stops-after-one-error": "a check that a lease with time left is renewed: one that ends early, and says so, harms nobody else",
	"validity-from-wall-clock":      "a client whose wall clock can be set, which no world has",
}

// complaints are what the checks hold against a run, by check and kind.
func complaints(run reports.Run) map[string]bool {
	out := map[string]bool{}
	for _, c := range run.Checks {
		switch {
		case !c.Applies:
		case c.Verdict == checker.Violation:
			out[c.Name+" "+c.Kind] = true
		case c.Verdict != checker.Pass:
			out[c.Name+" "+string(c.Verdict)] = true
		}
	}
	return out
}

// mutantSeeds is within how many seeds a mutant must be caught.
const mutantSeeds = 3

func TestMutantsAreCaught(t *testing.T) {
	for _, c := range caught {
		t.Run(c.mutant, func(t *testing.T) {
			mutant, ok := catalogue.Find(c.mutant)
			if !ok {
				t.Fatal("there is no such mutant")
			}
			path := storyPath(t, c.scenario, mutant.TwinOf)
			first, twins := uint64(0), map[string]bool{}
			var all []string
			for seed := uint64(1); seed <= mutantSeeds; seed++ {
				j := store.Job{Scenario: path, Lock: mutant.TwinOf, World: string(cluster.Sim), Seed: seed, TTL: c.ttl}
				twin, _ := mustPlay(t, j)
				if known := twin.Expected; len(known) > 0 && !twin.Matched {
					t.Errorf("the twin is not as expected: %s: %v", twin.Repeat, twin.Mismatches)
				}
				maps.Copy(twins, complaints(twin))
				j.Lock = mutant.Name
				run, _ := mustPlay(t, j)
				got := complaints(run)
				all = append(all, slices.Sorted(maps.Keys(got))...)
				if got[c.check] && first == 0 {
					first = seed
				}
			}
			if twins[c.check] {
				t.Errorf("the twin %s has it too: %v", mutant.TwinOf, slices.Sorted(maps.Keys(twins)))
			}
			if first == 0 {
				t.Fatalf("not caught by %s under %s within %d seeds: %v", c.check, c.scenario, mutantSeeds, all)
			}
			t.Logf("caught by %s under %s at seed %d; twin: %v", c.check, c.scenario, first, slices.Sorted(maps.Keys(twins)))
		})
	}
}

// TestEveryMutantIsAccountedFor keeps a new mutant from being forgotten.
func TestEveryMutantIsAccountedFor(t *testing.T) {
	known := map[string]bool{}
	for _, c := range caught {
		known[c.mutant] = true
	}
	for _, name := range slices.Sorted(maps.Keys(notYet)) {
		if known[name] {
			t.Errorf("%s is caught and listed as not caught", name)
		}
		known[name] = true
		t.Logf("not yet caught: %s needs %s", name, notYet[name])
	}
	for _, e := range catalogue.Mutants() {
		if !known[e.Name] {
			t.Errorf("nobody has thought of %s", e.Name)
		}
		delete(known, e.Name)
	}
	for name := range known {
		t.Errorf("there is no mutant %s", name)
	}
}

// TestTheReadmeTellsTheMutants: its table is this one.
func TestTheReadmeTellsTheMutants(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range caught {
		star := ""
		if _, ok := small[c.scenario]; ok {
			star = "*"
		}
		m, _ := catalogue.Find(c.mutant)
		row := "| " + strings.Join([]string{c.mutant, m.TwinOf, c.scenario + star, c.check}, " | ") + " | "
		if !strings.Contains(string(b), row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
}
