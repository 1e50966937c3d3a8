package basic

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// waitShare is the share of the TTL for which a grant waits for its replica:
// a holder should have most of its lease left when it begins.
const waitShare = 10

// NewWaiting is New with a WAIT after each grant: it counts only if one replica
// has acknowledged it, and is taken back otherwise. It needs a primary with
// replicas: without one nobody ever gets the lock.
func NewWaiting(env impl.Env) (impl.Lock, error) {
	l, err := build(env, Mistakes{})
	if err != nil {
		return nil, err
	}
	l.replicas = 1
	return l, nil
}

// acquireWaiting sends SET and WAIT in one pipeline, since WAIT is about what its
// own connection has written. Errors are those of Acquire; a grant that no replica
// acknowledged in time is deleted again and is [impl.ErrNotObtained].
func (l *Lock) acquireWaiting(ctx context.Context) (impl.Lease, error) {
	var set, wait *redis.Cmd
	// The commands' own errors say more than the pipeline's, which is the first
	// of them.
	_, _ = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		set = p.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Milliseconds())
		wait = p.Do(ctx, "WAIT", l.replicas, max(1, (l.ttl/waitShare).Milliseconds()))
		return nil
	})
	lease, err := l.granted(set.Err())
	if err != nil {
		return nil, err
	}
	acknowledged, err := wait.Int()
	if err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	if acknowledged >= l.replicas {
		return lease, nil
	}
	// Until it is deleted, or its TTL is over, the key refuses everybody: if
	// that cannot be done, the caller has to know.
	if _, err := l.delete(ctx); err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, errNoReplica)
}

var errNoReplica = errors.New("no replica acknowledged the grant in time")
