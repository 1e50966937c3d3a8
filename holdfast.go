// Package holdfast tests a lock of your own from go test: it plays scenarios
// (pauses, partitions, lost replies, failovers) against the lock's unmodified
// code in virtual time, and fails with a sentence that says what broke, a
// picture, and the line that repeats it.
//
//	func TestOrdersLock(t *testing.T) {
//		holdfast.Test(t, holdfast.SuiteLease, func(env holdfast.Env) (holdfast.Lock, error) {
//			return orders.NewLock(redis.NewClient(env.Nodes[0].Options()), env.Name, env.TTL), nil
//		})
//	}
//
// Every scenario is a subtest, so -run picks one; -short plays one seed of
// each; -count, -race, -json and parallel tests work as always, though runs of
// one process take turns. What a failed run leaves (its history, its verdict,
// and a report.html to look at) is in the test's artifact folder: go test
// -artifacts keeps it.
//
// The command line (cmd/holdfast) does more: real servers, the search for
// faults, gates with a baseline. docs/go-test.md tells how a lock is adapted.
package holdfast

import (
	"time"

	"github.com/holdfast-io/holdfast/impl"
)

// What a lock is built from, and what it has to be. These are the harness's own
// types: [impl.Lock] and its neighbours say more about each, and about the
// abilities that a lease may have besides (Fence, Until, Lost, Extend).
type (
	// Env gives one client its connections to the nodes, the lock's name and
	// the TTL.
	Env = impl.Env
	// Node is one Redis as one client reaches it: go-redis options with an
	// address and a dialer, or a bare dial function.
	Node = impl.Node
	// Lock is one client's lock object.
	Lock = impl.Lock
	// Lease is one acquisition.
	Lease = impl.Lease
)

// Errors that a lock wraps, so that the harness knows what an error means. An
// error that wraps none of them counts as "may or may not have happened", which
// is always sound, and lets some mistakes pass.
var (
	// ErrNotObtained: somebody else holds the lock.
	ErrNotObtained error = impl.ErrNotObtained
	// ErrNotHeld: a release or extend of a lease that is gone.
	ErrNotHeld error = impl.ErrNotHeld
)

// The built-in suites, each a list of scenarios without a known weakness: a
// lock that is written with care has no violation in them.
const (
	// SuiteLease is for a lock with a TTL on one Redis: contention, work that
	// outlives the TTL, a holder that is cut off, a renewal that fails once, a
	// pause inside acquire, servers that stall, refuse or have no memory, and
	// two threads that share a lock object. impl/reference passes.
	SuiteLease = "lease"
	// SuiteFenced is SuiteLease and Kleppmann's pause with a resource that
	// refuses older fences. impl/reference passes.
	SuiteFenced = "fenced"
	// SuiteQuorum is for a lock on five independent nodes: a minority or a
	// majority away, a node that comes back empty after a TTL, work that
	// outlives the TTL.
	SuiteQuorum = "quorum"
)

// Config says more than [Test] asks for.
type Config struct {
	// Suite is one of the built-in suites.
	Suite string
	// Scenarios are built-in names or paths of files, in place of a suite.
	Scenarios []string
	// New builds a lock for one client. A lock that has something to close
	// implements io.Closer.
	New func(Env) (Lock, error)
	// Quorum says that the lock wants five independent nodes, not one.
	// SuiteQuorum implies it.
	Quorum bool
	// Fair says that the lock promises to grant in the order of arrival.
	Fair bool
	// Reentrant says that a holder may acquire again through its lock object.
	Reentrant bool
	// Drift is the share of the TTL that the lock takes off its promise, as
	// Redlock does for clocks that run at different rates.
	Drift float64
	// TTL of the leases in virtual time; 10 s if it is zero.
	TTL time.Duration
	// Seeds is how many runs each scenario gets; 3 if it is zero, and one with
	// -short.
	Seeds int

	_ struct{} // named fields only
}
