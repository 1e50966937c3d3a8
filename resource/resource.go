// Package resource has the stores that a run's protected resource can live in:
// one versioned value each, in this process ([Builtin]), in SQLite, in
// PostgreSQL or in Redis.
//
// A guarded store remembers the highest fence that it has seen, on reads too,
// and refuses what is older; a checked one looks at no fence and refuses a write
// whose writer has not read the newest version; a plain one takes everything.
// The store itself
// decides, in one statement or one script, so that the decision holds against
// everybody who uses it, and not against those only who come through one door.
//
// What clients speak with the resource, and what is recorded of it, is not
// here: see package harness, whose door stands in front of the store.
package resource

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Rule says what a store refuses. Its words are those of scenarios.
type Rule string

// The rules.
const (
	Plain   Rule = "plain"
	Guarded Rule = "guarded"
	Checked Rule = "checked"
)

// fenced says whether a call is decided by its fence, and compared whether by
// the version that its caller has read.
func (r Rule) fenced(c Call) bool   { return r == Guarded && c.Fence != nil }
func (r Rule) compared(c Call) bool { return r == Checked && c.Write }

// Call is one request to the store.
type Call struct {
	// Write adds one to the version; without it the call is a read.
	Write bool
	// Fence is the caller's fencing token; nil where its lock has none. A call
	// without one is never refused: there is nothing to compare.
	Fence *uint64
	// Seen is the version that the writer has read.
	Seen int64

	_ struct{} // named fields only
}

// Outcome is what the store made of a call.
type Outcome struct {
	Applied bool
	// Before and Version are the versions before and after the call.
	Before, Version int64
	// Highest is the fence for which a call was refused.
	Highest uint64
	// Unread: a write was refused because its writer has not read Version.
	Unread bool

	_ struct{} // named fields only
}

// ErrStore begins every error of a store. Whether a call that ended in one was
// applied is not known.
var ErrStore = errors.New("the protected resource failed")

// How long one call to a store, and connecting to it, may take in real time.
// Simulated clients do not notice: their clock stands while a store works.
const (
	callLimit    = 10 * time.Second
	connectLimit = 5 * time.Second
)

// prefix begins the names of all keys that a run writes.
const prefix = "holdfast:"

// newID names the row or the key of one run.
func newID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name the resource of the run: %w", err)
	}
	return prefix + hex.EncodeToString(b[:]), nil
}

// digits writes a fence so that the order of the texts is the order of the
// numbers. Lua's numbers are exact up to 2^53 only, SQLite's up to 2^63-1, and
// a fence has 64 bits.
func digits(fence uint64) string { return fmt.Sprintf("%020d", fence) }
