// Package mutants has locks with one classic mistake each. Every mutant is one
// of the other locks (its twin) with the mistake switched on; the harness must
// tell it from its twin, by a named scenario and check.
//
// They are for the harness's own tests. Some twins have weaknesses of their
// own, and a mutant has those too.
package mutants

import (
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/redlock"
	"github.com/holdfast-io/holdfast/impl/reentrant"
	"github.com/holdfast-io/holdfast/impl/reference"
	"github.com/holdfast-io/holdfast/impl/watchdog"
)

// Mutant is a lock with one mistake.
type Mutant struct {
	Name   string // as the catalogue knows it
	TwinOf string // the lock without the mistake
	About  string // the mistake, and what it leads to
	New    impl.New
}

// All is the table of mutants, in the order in which reports show them.
func All() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{
		releases(), ttls(), identifiers(), answers(), renewals(), leases(), quorums(), advanced(),
	} {
		all = append(all, part...)
	}
	return all
}

func withBasic(m basic.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return basic.NewWith(env, m) }
}

func withReentrant(m reentrant.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return reentrant.NewWith(env, m) }
}

func withWatchdog(m watchdog.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return watchdog.NewWith(env, m) }
}

func withRedlock(m redlock.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return redlock.NewWith(env, m) }
}

func withReference(m reference.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return reference.NewWith(env, m) }
}
