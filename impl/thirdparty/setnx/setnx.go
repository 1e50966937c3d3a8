// Package setnx is the recipe of countless articles, with go-redis as it comes:
// SetNX with a random value, and a script that deletes the key if the value is
// still the same.
//
// It is what people paste into their programs, so it is kept beside the
// libraries and not beside impl/basic. What differs from basic: go-redis's
// SetNX sends whole seconds as EX, the value belongs to the acquisition, and
// the script goes out with EVAL each time.
//
// Weaknesses, and the scenario that shows each:
//
//   - Nothing tells the holder that its lease has ended, and nothing renews it
//     (slow-work, kleppmann-gc-pause, delayed-write).
//   - SetNX does not measure its own duration: a reply that comes after the
//     TTL still means yes (pause-during-acquire).
//   - go-redis sends a SetNX whose reply was lost again, and the second one
//     meets the first one's key: "not obtained", and the key stays for a TTL
//     (partition-holder).
//   - One node's memory and clock decide (crash-restart-amnesia,
//     failover-before-replication, kleppmann-clock-jump).
package setnx

import (
	"context"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

//go:embed unlock.lua
var unlock string

// Lock is one client's lock object.
type Lock struct {
	client redis.UniversalClient
	node   string
	key    string
	ttl    time.Duration
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.CheckNodes] refuses.
func New(env impl.Env) (impl.Lock, error) {
	if err := env.CheckNodes(); err != nil {
		return nil, err
	}
	return &Lock{
		client: env.Nodes[0].Client(env.Nodes[0].Options()),
		node:   env.Nodes[0].Name,
		key:    "setnx:" + env.Name,
		ttl:    env.TTL,
	}, nil
}

// Acquire asks once. Errors: [impl.ErrNotObtained] when the key exists,
// otherwise what [impl.FromRedis] makes of it.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	value := impl.NewIdentifier()
	ok, err := l.client.SetNX(ctx, l.key, value, l.ttl).Result() //nolint:staticcheck // the recipe's own call
	if err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	if !ok {
		return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
	}
	return &lease{lock: l, value: value}, nil
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.client.Close() }

type lease struct {
	lock  *Lock
	value string
}

// Release deletes the key if it has this acquisition's value. Errors:
// [impl.ErrNotHeld] when it does not, otherwise what [impl.FromRedis] makes of
// it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	deleted, err := l.client.Eval(ctx, unlock, []string{l.key}, s.value).Int64()
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if deleted == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}
