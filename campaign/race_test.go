//go:build race

package campaign

// raced says that the race detector is on, which makes a run several times
// slower: sweeps are shorter then.
const raced = true
