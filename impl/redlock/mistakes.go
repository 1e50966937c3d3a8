package redlock

import "github.com/holdfast-io/holdfast/impl"

// Mistakes are classic mistakes that can be switched on, one at a time, to see
// that the harness catches them. They exist for the harness's own tests
// (impl/mutants) and for nothing else. The zero value makes none.
type Mistakes struct {
	// NoElapsedCheck takes the votes however long they took to come in.
	NoElapsedCheck bool
	// DriftAdded adds the allowance for drift to the validity instead of
	// taking it off: votes that took up to 1.1 TTL still count.
	DriftAdded bool
	// HalfIsEnough takes N/2 votes for a quorum: with 5 nodes two clients may
	// have 2 each, and with one node none is needed.
	HalfIsEnough bool
	// QuorumOfReachable takes the majority of the nodes that answered: each
	// side of a partition has one.
	QuorumOfReachable bool
	// QuorumIsAll wants every node's vote: one dead node stops everybody.
	QuorumIsAll bool
	// ErrorIsYes counts a node that failed as a vote.
	ErrorIsYes bool
	// ReleaseOnlyYes gives a failed attempt's votes back only where the node
	// said yes; a node whose reply was lost keeps its key until the TTL.
	ReleaseOnlyYes bool
	// QuorumByClient takes one vote for enough in one client, as a program with
	// another configuration does.
	QuorumByClient bool
	// WaitsAtASplit never comes back from an equal split: too few votes for
	// it, and too few against.
	WaitsAtASplit bool
	// OneErrorIsFailure gives up as soon as one node fails.
	OneErrorIsFailure bool
	// KeepsLateVotes does not give back votes that came in too late.
	KeepsLateVotes bool
	// ElapsedOfAllAttempts measures from the first attempt, so that a good vote
	// after a long wait is called late.
	ElapsedOfAllAttempts bool
	// CleanUpOnCallersContext gives votes back on the caller's context, which
	// has often ended by then.
	CleanUpOnCallersContext bool
	// NoNodeTimeout lets one node cost a whole TTL, about what a client library
	// waits that nobody has told otherwise.
	NoNodeTimeout bool
}

// forAges, in TTLs, is longer than anybody waits. It is not for ever, so that a
// run ends.
const forAges = 100

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	l, err := build(env, wrong)
	if err != nil {
		return nil, err
	}
	return l, nil
}
