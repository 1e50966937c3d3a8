//go:build !race

package campaign

import "testing"

// raced says that the race detector is on.
const raced = false

// sweeping skips a sweep under the race detector only.
func sweeping(*testing.T) {}
