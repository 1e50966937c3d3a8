package reference

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

// Mistakes are classic mistakes that can be switched on, one at a time, to see
// that the harness catches them. They exist for the harness's own tests
// (impl/mutants) and for nothing else. The zero value makes none.
type Mistakes struct {
	// ExtendBySet lengthens by writing the key anew, whoever has it now.
	ExtendBySet bool
	// ExtendByBarePExpire lengthens without asking whose key it is.
	ExtendByBarePExpire bool
	// ExtendBySetNX makes a key that is gone again, although others may have
	// had the lock in between.
	ExtendBySetNX bool
	// RenewalStopsAtFirstError gives up though the lease has time left.
	RenewalStopsAtFirstError bool
	// RenewerNotJoined releases without stopping the renewer; it ends when a
	// renewal is refused.
	RenewerNotJoined bool
	// CleanUpOnCallersContext cleans up after a failed acquire on the context
	// whose end was the failure.
	CleanUpOnCallersContext bool
	// ServersClock reads the end of the lease off the server's wall clock, which
	// can be set.
	ServersClock bool
	// IdentifierPerObject gives every acquisition of one object the same name.
	IdentifierPerObject bool
	// DriftAdded adds the allowance for drift to the validity instead of taking
	// it off.
	DriftAdded bool
	// UntilFromReply counts the lease from the reply, not from the request.
	UntilFromReply bool
	// ElapsedInOtherUnit takes a third of the time that has passed for all of it.
	ElapsedInOtherUnit bool
	// FlagOnly tells its holder that the lease goes on until a renewal is
	// refused.
	FlagOnly bool
	// KeepsLateGrant does not undo a grant that came too late to be used.
	KeepsLateGrant bool
	// NoCleanUp undoes nothing that a failed acquire may have left.
	NoCleanUp bool
	// RenewsNoMore renews no later lease of the same object after one error.
	RenewsNoMore bool
	// RenewsAfterLoss tells the loss at the first error and goes on renewing, also
	// after a release that says that nothing is held.
	RenewsAfterLoss bool
	// LossWaitsForReader sends the loss notice to somebody who must be there to
	// take it; nothing goes on until then.
	LossWaitsForReader bool
	// ReleaseTriesOnce leaves the key where its one request was lost.
	ReleaseTriesOnce bool
	// RefusedExtendIsYes compares the reply with a 0 of another type.
	RefusedExtendIsYes bool
	// GrantsOnDoubt takes an unknown outcome of acquire for a yes.
	GrantsOnDoubt bool
}

// forAges, in TTLs, is longer than anybody waits. It is not for ever, so that a
// run ends.
const forAges = 100

func (l *Lock) releaseTries() int {
	if l.wrong.ReleaseTriesOnce {
		return 1
	}
	return tries
}

func (m Mistakes) renewsOtherwise() bool {
	return m.RenewalStopsAtFirstError || m.RenewsNoMore || m.RenewsAfterLoss
}

// renewWrongly is what a renewal with a mistake does after its first error.
func (s *lease) renewWrongly(ctx context.Context) {
	l := s.lock
	l.dead.Store(l.wrong.RenewsNoMore)
	if !l.wrong.RenewsAfterLoss {
		return
	}
	s.mu.Lock()
	if !s.ended {
		close(s.lost)
		s.ended, s.until = true, time.Now()
	}
	s.mu.Unlock()
	for wait.For(ctx, l.ttl/3) == nil {
		bounded, cancel := context.WithTimeout(ctx, l.patience)
		_, _ = l.extend(bounded, s.id)
		cancel()
	}
}

// until is the end of a lease that was asked for at start and granted now.
func (l *Lock) until(start time.Time) time.Time {
	now := time.Now()
	switch {
	case l.wrong.DriftAdded:
		return start.Add(l.ttl + (l.ttl - l.usable))
	case l.wrong.UntilFromReply:
		return now.Add(l.usable)
	case l.wrong.ElapsedInOtherUnit:
		return now.Add(l.usable - now.Sub(start)/3)
	case l.wrong.ServersClock:
		ctx, cancel := context.WithTimeout(context.Background(), l.patience)
		defer cancel()
		if at, err := l.client.Time(ctx).Result(); err == nil {
			// Without a monotonic reading it is compared as a time of day.
			return at.Add(l.usable - now.Sub(start))
		}
	}
	return start.Add(l.usable)
}

// extendBlindly asks for a longer lease and takes every answer for a yes.
func (l *Lock) extendBlindly(ctx context.Context, id string) (bool, error) {
	err := extendScript.Run(ctx, l.client, []string{l.key}, id, l.ttl.Milliseconds()).Err()
	return err == nil, err
}

func (m Mistakes) extendsAnotherWay() bool {
	return m.ExtendBySet || m.ExtendByBarePExpire || m.ExtendBySetNX || m.RefusedExtendIsYes
}

func (l *Lock) extendWrongly(ctx context.Context, id string) (bool, error) {
	ms := l.ttl.Milliseconds()
	switch {
	case l.wrong.RefusedExtendIsYes:
		return l.extendBlindly(ctx, id)
	case l.wrong.ExtendBySet:
		err := l.client.Do(ctx, "SET", l.key, id, "PX", ms).Err()
		return err == nil, err
	case l.wrong.ExtendByBarePExpire:
		return l.client.PExpire(ctx, l.key, l.ttl).Result()
	}
	// ExtendBySetNX
	n, err := extendScript.Run(ctx, l.client, []string{l.key}, id, ms).Int64()
	if err != nil || n == 1 {
		return n == 1, err
	}
	err = l.client.Do(ctx, "SET", l.key, id, "NX", "PX", ms).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}
