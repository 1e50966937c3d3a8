package holdfast

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-io/holdfast/scenarios"
)

// suites lists what each built-in suite plays. A scenario that a careful lock
// cannot survive (a node that forgets, a clock that jumps, a pause before the
// write to a resource that checks nothing) is in none: ask for it by name in
// Config.Scenarios to see it.
var suites = map[string][]string{
	SuiteLease: {
		"calm", "slow-work", "partition-holder", "renewal-blip", "pause-during-acquire", "node-stall",
		"node-refuses", "out-of-memory", "script-flush", "shared-lock-object", "extend-too-late",
	},
	SuiteFenced: {
		"calm", "slow-work", "partition-holder", "renewal-blip", "pause-during-acquire", "node-stall",
		"node-refuses", "out-of-memory", "script-flush", "shared-lock-object", "extend-too-late", "kleppmann-fencing",
	},
	SuiteQuorum: {
		"calm", "slow-work", "partition-holder", "partition-minority", "majority-down", "delayed-restart",
		"pause-during-acquire", "node-stall", "extend-too-late",
	},
}

// Suites lists the built-in suites by name.
func Suites() []string { return slices.Sorted(maps.Keys(suites)) }

// load reads the scenarios of a configuration. What they expect of the locks
// that they know is left out: the lock under test is none of them, and nothing
// is expected of it but that it holds.
func (c Config) load() ([]*scenarios.Scenario, error) {
	names := c.Scenarios
	if len(names) == 0 {
		var ok bool
		if names, ok = suites[c.Suite]; !ok {
			return nil, fmt.Errorf("there is no suite %q: there are %q, or name scenarios in Config.Scenarios", c.Suite, Suites())
		}
	}
	var all []*scenarios.Scenario
	for _, name := range names {
		s, err := scenarios.Load(name)
		if err != nil {
			return nil, err
		}
		s.Expect, s.Locks = nil, nil
		all = append(all, s)
	}
	return all, nil
}
