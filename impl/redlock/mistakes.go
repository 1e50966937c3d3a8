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
	// CleanUpOnCallersContext gives votes back on the caller's context, which
	// has often ended by then.
	CleanUpOnCallersContext bool
}

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	l, err := build(env, wrong)
	if err != nil {
		return nil, err
	}
	return l, nil
}
