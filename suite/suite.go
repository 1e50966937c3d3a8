// Package suite says what a gate plays: which locks, in which scenarios, with
// which seeds. A suite has a name and is built in, or is read from a file
// whose mistakes are told with their line. It also cuts a suite into shards,
// and keeps the baseline: the findings that are known and accepted.
//
// It plays nothing and judges nothing; package campaign does.
package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// MaxRuns bounds a suite: the list of its runs is made before the first.
const MaxRuns = 1_000_000

// Suite is what to play.
type Suite struct {
	// Name of a built-in suite, or of the file's own choice.
	Name string
	// File it was read from; empty where it is built in. Paths in it are
	// relative to the file's folder, and are stored here as they can be opened.
	File string
	// World is sim or process.
	World string
	// Resource is where the protected resource lives; zero is the harness.
	Resource resource.Place
	// Baseline is the path of the known findings; empty where there is none.
	Baseline string
	Entries  []Entry
	// Only narrows the suite to some locks. Where an entry names no locks,
	// each of these plays the scenarios that are about it, or all of them if
	// the suite has none about it: a lock of one's own, or a library's.
	Only []string

	_ struct{} // named fields only
}

// Entry is locks against scenarios.
type Entry struct {
	// Locks by name; empty means all that each scenario is about.
	Locks []string
	// Scenarios are built-in names or paths.
	Scenarios []string
	// Fitting leaves out the scenarios that are about other locks than the one
	// at hand, unless the suite has none about it.
	Fitting bool
	// Topology replaces the scenarios' own; empty keeps it.
	Topology string
	// Seed is the first of Seeds.
	Seed  uint64
	Seeds int
	// TTL of the leases; zero is the world's own.
	TTL time.Duration

	_ struct{} // named fields only
}

// The built-in suites.
const (
	Quick    = "quick"    // a few stories, one seed: for every save
	Standard = "standard" // every scenario, three seeds: for every change
	Thorough = "thorough" // every scenario, fifty seeds: for every night
)

// Names lists the built-in suites, the shortest first.
func Names() []string { return []string{Quick, Standard, Thorough} }

// Named gives a built-in suite, in the simulator.
func Named(name string) (*Suite, error) {
	e := Entry{Scenarios: scenarios.NamesIn(cluster.Sim), Seed: 1}
	switch name {
	case Quick:
		e.Scenarios = []string{"calm", "kleppmann-fencing", "kleppmann-gc-pause", "partition-holder", "partition-minority", "slow-work"}
		e.Seeds = 1
	case Standard:
		e.Seeds = 3
	case Thorough:
		e.Seeds = 50
	default:
		return nil, fmt.Errorf("there is no suite %q", name)
	}
	return &Suite{Name: name, World: string(cluster.Sim), Entries: []Entry{e}}, nil
}

// Job is one run of a suite.
type Job struct {
	store.Job
	// Index is its place in the whole suite, counted from 0.
	Index int
	// Name of the scenario, which for a file is not its path.
	Name string
	// Round is 0 for the first seed of its entry, 1 for the second, and so on.
	Round int
}

// Jobs lists the runs in the order of the suite. A run that stands in two
// entries is played once.
func (s *Suite) Jobs(load func(string) (*scenarios.Scenario, error)) ([]Job, error) {
	l := &lister{suite: s, seen: map[store.Job]bool{}}
	if err := l.load(load); err != nil {
		return nil, err
	}
	for i, e := range s.Entries {
		for _, sc := range l.scenarios[i] {
			if err := l.add(e, sc); err != nil {
				return nil, err
			}
		}
	}
	return l.jobs, nil
}

// named is a scenario with the name or path by which it was asked for.
type named struct {
	asked string
	*scenarios.Scenario
}

type lister struct {
	suite     *Suite
	scenarios [][]named // of each entry
	jobs      []Job
	seen      map[store.Job]bool
}

func (l *lister) load(load func(string) (*scenarios.Scenario, error)) error {
	folders := map[string]string{} // where runs are stored, to the scenario
	for _, e := range l.suite.Entries {
		var of []named
		for _, asked := range e.Scenarios {
			sc, err := load(asked)
			if err != nil {
				return err
			}
			// Runs of one folder would overwrite each other, and findings
			// of one name would be taken for each other.
			for _, key := range []string{store.Job{Scenario: asked}.Dir(""), "name " + sc.Name} {
				if other, taken := folders[key]; taken && other != asked {
					return fmt.Errorf("%s and %s have the same name", other, asked)
				}
				folders[key] = asked
			}
			of = append(of, named{asked, sc})
		}
		l.scenarios = append(l.scenarios, of)
	}
	return nil
}

// add lists the runs of one scenario.
func (l *lister) add(e Entry, sc named) error {
	locks := l.locks(e, sc)
	// Counted before the list is made: a long one fills the memory.
	if n := len(l.jobs) + len(locks)*e.Seeds; n > MaxRuns {
		return fmt.Errorf("that is %d runs or more: at most %d at a time", n, MaxRuns)
	}
	for _, lock := range locks {
		for round := range e.Seeds {
			j := store.Job{
				Scenario: sc.asked, Lock: lock, World: l.suite.World, Topology: e.Topology, Resource: l.suite.Resource,
				Seed: e.Seed + uint64(round), TTL: e.TTL, //nolint:gosec // a count is not negative
			}
			if l.seen[j] {
				continue
			}
			l.seen[j] = true
			l.jobs = append(l.jobs, Job{Job: j, Index: len(l.jobs), Name: sc.Name, Round: round})
		}
	}
	return nil
}

// locks that play a scenario.
func (l *lister) locks(e Entry, sc named) []string {
	only := l.suite.Only
	switch {
	case len(e.Locks) == 0 && len(only) == 0:
		return Known(sc.Scenario)
	case len(e.Locks) == 0:
		return l.fitting(only, sc)
	}
	out := e.Locks
	if len(only) > 0 {
		out = slices.DeleteFunc(slices.Clone(out), func(lock string) bool { return !slices.Contains(only, lock) })
	}
	if e.Fitting {
		out = l.fitting(out, sc)
	}
	return out
}

// fitting are the locks that a scenario is about, and those that none is about.
func (l *lister) fitting(locks []string, sc named) []string {
	return slices.DeleteFunc(slices.Clone(locks), func(lock string) bool { return !sc.Knows(lock) && l.isKnown(lock) })
}

// isKnown says whether any scenario of the suite is about a lock.
func (l *lister) isKnown(lock string) bool {
	return slices.ContainsFunc(l.scenarios, func(of []named) bool {
		return slices.ContainsFunc(of, func(sc named) bool { return sc.Knows(lock) })
	})
}

// Known lists the locks of the catalogue that a scenario is about, the advanced
// ones among them. One that needs more than a plain server is there only where
// the scenario names it: elsewhere it would answer "unknown".
func Known(sc *scenarios.Scenario) []string {
	var out []string
	for _, e := range append(catalogue.All(), catalogue.Advanced()...) {
		if sc.Knows(e.Name) && (len(e.Needs) == 0 || sc.Names(e.Name)) {
			out = append(out, e.Name)
		}
	}
	return out
}
