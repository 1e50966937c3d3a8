package reference

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
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
	// WallClock measures leases on a clock that can be set.
	WallClock bool
}

func (m Mistakes) extendsAnotherWay() bool {
	return m.ExtendBySet || m.ExtendByBarePExpire || m.ExtendBySetNX
}

func (l *Lock) extendWrongly(ctx context.Context, id string) (bool, error) {
	ms := l.ttl.Milliseconds()
	switch {
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
