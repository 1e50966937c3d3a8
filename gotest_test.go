package holdfast

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/impl/reference"
	"github.com/holdfast-io/holdfast/impl/rwlock"
	"github.com/holdfast-io/holdfast/impl/semaphore"
	"github.com/holdfast-io/holdfast/impl/thirdparty/redsync"
	"github.com/holdfast-io/holdfast/scenarios"
)

// TestCarefulLocksPass also holds that tests may run at the same time, although
// their runs take turns.
func TestCarefulLocksPass(t *testing.T) {
	t.Run("reference", func(t *testing.T) {
		t.Parallel()
		Test(t, SuiteFenced, reference.New)
	})
	t.Run("redsync", func(t *testing.T) {
		t.Parallel()
		Test(t, SuiteQuorum, redsync.New)
	})
}

// TestSuitesAreWhole: every scenario of a suite exists, and has a workload for
// a mutex.
func TestSuitesAreWhole(t *testing.T) {
	for _, name := range Suites() {
		all, err := Config{Suite: name}.load()
		if err != nil {
			t.Error(err)
		}
		for _, s := range all {
			if s.Workload.Kind != scenarios.Update {
				t.Errorf("%s plays %s, whose workload is %s", name, s.Name, s.Workload.Kind)
			}
		}
	}
}

// TestAbilitiesAreFound: what a lock can do is seen, not declared.
func TestAbilitiesAreFound(t *testing.T) {
	for _, c := range []struct {
		name      string
		config    Config
		abilities []string
		kind      catalogue.Kind
		permits   int
	}{
		{name: "basic", config: Config{New: basic.New}},
		{name: "reference", config: Config{New: reference.New}, abilities: []string{catalogue.AbilityFence, catalogue.AbilityExtend, catalogue.AbilityUntil, catalogue.AbilityLost}},
		{name: "redsync", config: Config{New: redsync.New, Quorum: true}, abilities: []string{catalogue.AbilityExtend, catalogue.AbilityUntil}},
		{name: "rwlock", config: Config{New: rwlock.New}, kind: catalogue.RW},
		{name: "semaphore", config: Config{New: semaphore.New}, kind: catalogue.Semaphore, permits: semaphore.DefaultPermits},
	} {
		e, err := c.config.entry(t)
		if err != nil || !slices.Equal(e.Abilities, c.abilities) || e.Kind != c.kind || e.Permits != c.permits {
			t.Errorf("%s: %v %q %d, want %v %q %d (%v)", c.name, e.Abilities, e.Kind, e.Permits, c.abilities, c.kind, c.permits, err)
		}
	}
}

// never is a lock that refuses everybody.
type never struct{}

func (never) Acquire(context.Context) (Lease, error) { return nil, errors.New("I never do") }

// TestMistakesAreTold: what is wrong with a test itself is said before any run.
func TestMistakesAreTold(t *testing.T) {
	told := func(err error, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	_, err := Config{Suite: "leese"}.load()
	told(err, `there is no suite "leese": there are ["fenced" "lease" "quorum"]`)
	_, err = Config{Scenarios: []string{"slow-wrok"}}.load()
	told(err, "slow-work")
	_, err = Config{New: func(Env) (Lock, error) { return nil, errors.New("no config file") }}.entry(t)
	told(err, "the lock could not be built: no config file")
	_, err = Config{New: func(Env) (Lock, error) { return never{}, nil }}.entry(t)
	told(err, "never granted with nothing broken: I never do")
	_, err = Config{Suite: SuiteQuorum, New: basic.New}.entry(t)
	told(err, "this lock uses one node, n1, and a quorum of several is asked for: use SuiteLease")
	t.Setenv(seedVariable, "one")
	_, err = Config{}.seeds()
	told(err, `HOLDFAST_SEED="one" is no seed`)
}

func TestSeeds(t *testing.T) {
	all, err := Config{Seeds: 2}.seeds()
	if want := []uint64{1, 2}; err != nil || !testing.Short() && !slices.Equal(all, want) {
		t.Errorf("%v %v, want %v", all, err, want)
	}
	t.Setenv(seedVariable, "7")
	if all, err = (Config{Seeds: 2}).seeds(); err != nil || !slices.Equal(all, []uint64{7}) {
		t.Errorf("%v %v, want the one seed", all, err)
	}
}
