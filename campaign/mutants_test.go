package campaign

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// storyPath gives the name of a built-in scenario, or the file of one of the
// stories that are too special to be one.
func storyPath(name string) string {
	path := filepath.Join("testdata", "stories", name+".yaml")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return name
}

// complaints are what the checks hold against a run, by check and kind.
func complaints(run reports.Run) map[string]bool {
	out := map[string]bool{}
	for _, c := range run.Checks {
		switch {
		case !c.Applies:
		case c.Verdict == checker.Violation:
			for _, v := range c.Violations {
				out[c.Name+" "+v.Kind] = true
			}
			out[c.Name+" "+c.Kind] = true
		case c.Verdict != checker.Pass:
			out[c.Name+" "+string(c.Verdict)] = true
		}
	}
	return out
}

// unexpected are the violations that a run's scenario does not expect. A check
// without an answer is no violation: a story for one lock need not prove
// anything about another.
func unexpected(run reports.Run) []string {
	var out []string
	for _, c := range run.Checks {
		if !c.Applies || c.Verdict != checker.Violation {
			continue
		}
		want := run.Expected[c.Name]
		if want != string(checker.Violation) && want != "any" && want != c.Kind {
			out = append(out, fmt.Sprintf("%s: %s %s: %s", run.Repeat, c.Name, c.Kind, c.Violations[0].Summary))
		}
	}
	return out
}

// mutantSeeds is within how many seeds a mutant must be caught.
const mutantSeeds = 3

// hunt plays a mutant and its twin, and says with which seed the mutant was
// caught, 0 if with none. What the twin must not do fails the test.
func hunt(t *testing.T, c catch) uint64 {
	mutant, ok := catalogue.Find(c.mutant)
	if !ok {
		t.Fatal("there is no such mutant")
	}
	first, twins := uint64(0), map[string]bool{}
	var all []string
	for seed := uint64(1); seed <= mutantSeeds; seed++ {
		j := store.Job{Scenario: storyPath(c.scenario), Lock: mutant.TwinOf, World: string(cluster.Sim), Seed: seed, TTL: c.ttl}
		twin, _ := mustPlay(t, j)
		for _, u := range unexpected(twin) {
			t.Errorf("the twin is not as expected: %s", u)
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
		t.Errorf("not caught by %s under %s within %d seeds: %v", c.check, c.scenario, mutantSeeds, all)
	}
	return first
}

// tableRow is a mutant's row of the README.
func tableRow(c catch, seed uint64) string {
	name := c.scenario
	if storyPath(name) != name {
		name = fmt.Sprintf("[%s](campaign/testdata/stories/%s.yaml)", name, name)
	}
	if c.ttl > 0 {
		name += fmt.Sprintf(" `--ttl %dms`", c.ttl.Milliseconds())
	}
	m, _ := catalogue.Find(c.mutant)
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d |", c.mutant, c.rows, m.TwinOf, name, c.check, seed)
}

// TestMutantsAreCaught holds the table, and the README's copy of it. With
// HOLDFAST_MUTANTS it writes the table into that file, as "make mutants" wants.
func TestMutantsAreCaught(t *testing.T) {
	sweeping(t)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := []string{"| mutant | kind, row | told from | by scenario | and check | seed |", "|---|---|---|---|---|---|"}
	for _, c := range caught {
		t.Run(c.mutant, func(t *testing.T) {
			row := tableRow(c, hunt(t, c))
			table = append(table, row)
			if !strings.Contains(string(readme), row+"\n") {
				t.Errorf("README.md lacks the row %s", row)
			}
		})
	}
	table = append(table, "", accounted())
	if path := os.Getenv("HOLDFAST_MUTANTS"); path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(table, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(readme), accounted()) {
		t.Errorf("README.md does not say %q", accounted())
	}
}

// accounted is how many are caught, and what the others need.
func accounted() string {
	s := fmt.Sprintf("%d of %d are caught.", len(caught), len(catalogue.Mutants()))
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(notYet)) {
		parts = append(parts, fmt.Sprintf("%s (needs %s)", name, notYet[name]))
	}
	if len(parts) > 0 {
		s += " Not yet: " + strings.Join(parts, "; ") + "."
	}
	return s
}

// TestMutantsScenariosClearTheReference: what catches the mutants accuses no
// lock that has none of their mistakes.
func TestMutantsScenariosClearTheReference(t *testing.T) {
	sweeping(t)
	done := map[string]bool{}
	for _, c := range caught {
		id := c.scenario + c.ttl.String()
		if done[id] {
			continue
		}
		done[id] = true
		for seed := uint64(1); seed <= mutantSeeds; seed++ {
			run, h := Play(t.Context(), store.Job{Scenario: storyPath(c.scenario), Lock: "reference", World: string(cluster.Sim), Seed: seed, TTL: c.ttl}, "")
			if run.Error != "" {
				t.Errorf("%s: %s", run.Repeat, run.Error)
			}
			if h == nil {
				continue // it wants readers, permits or re-entrance, which the reference does not have
			}
			for _, u := range unexpected(run) {
				t.Error(u)
			}
		}
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

// TestTheCatalogueNamesItsMutants: the rows that the table claims are rows of
// docs/mutants.md, which name the mutant.
func TestTheCatalogueNamesItsMutants(t *testing.T) {
	b, err := os.ReadFile("../docs/mutants.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range caught {
		kind := ""
		for _, part := range strings.Split(c.rows, ", ") {
			row := part
			if k, n, ok := strings.Cut(part, " "); ok {
				kind, row = k, n
			}
			if strings.HasPrefix(row, "K") {
				continue // a classic of that kind, and of no row
			}
			i := strings.Index(string(b), "\n| "+row+" | ")
			if i < 0 || !strings.Contains(string(b), "## "+kind+": ") {
				t.Errorf("%s: docs/mutants.md has no row %s of %s", c.mutant, row, kind)
				continue
			}
			line, _, _ := strings.Cut(string(b)[i+1:], "\n")
			if !strings.Contains(line, c.mutant) {
				t.Errorf("row %s of docs/mutants.md does not name %s: %s", row, c.mutant, line)
			}
		}
	}
}
