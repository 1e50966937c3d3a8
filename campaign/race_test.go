//go:build race

package campaign

import "testing"

// raced says that the race detector is on, which makes a run several times
// slower: sweeps are shorter then.
const raced = true

// sweeping skips a sweep of hundreds of runs under the race detector, where it
// would take ten times as long; make test plays it without.
func sweeping(t *testing.T) {
	t.Helper()
	t.Skip("a long sweep: make test plays it without the race detector")
}
