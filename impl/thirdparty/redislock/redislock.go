// Package redislock puts bsm/redislock, unmodified, behind the contract of
// package impl, so that the harness can try it. Source:
// https://github.com/bsm/redislock, v0.9.4.
//
// It repairs nothing. [New] is the README's: no options, so that Obtain asks
// once, unless the harness chooses a token. [NewRetrying] is the documentation's example of a retry strategy.
//
// The library can ask the server how long a lock still lives (TTL), but keeps
// no end of the lease on the client's side, so its leases implement no
// [impl.Validity]; [Remaining] asks.
//
// Weaknesses, and the scenario that shows each:
//
//   - Nothing tells the holder that its lease has ended, and nothing renews it
//     by itself: a holder that is paused, or whose work is long, goes on
//     beside the next one (slow-work, kleppmann-gc-pause, delayed-write).
//   - Obtain and Refresh do not measure their own duration: a reply that comes
//     after the TTL still means yes (pause-during-acquire).
//   - An Obtain that fails half-way (a lost reply, an ended ctx) cleans nothing
//     up: the key stays for a TTL (partition-holder).
//   - One node's memory and clock decide (crash-restart-amnesia,
//     failover-before-replication, kleppmann-clock-jump).
//   - Refresh with a TTL below one millisecond deletes the key that it is to
//     lengthen and says yes: the TTL is cut to whole milliseconds, and PEXPIRE
//     deletes for 0 (explore tries it).
//   - Whose token is the beginning of the holder's value is granted the lock:
//     Obtain compares as many bytes as its own token has. With the tokens
//     worker-1 and worker-11 ([NewWithWorkerTokens]) the first worker takes
//     what the eleventh holds (calm).
//   - With a token of the caller's own ([NewWithToken]) Obtain says yes to
//     everyone who has that token, and so two acquisitions of one client hold
//     the lock at the same time (calm, with threads that share one object).
package redislock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// Lock is one client's way to the library.
type Lock struct {
	redis  redis.UniversalClient
	client *redislock.Client
	node   string
	key    string
	ttl    time.Duration
	// options makes the options of one Obtain: a retry strategy counts its
	// tries and cannot be used again.
	options func() *redislock.Options
}

// New builds the lock on the environment's first node, without options. It
// fails only for an environment that [impl.Env.CheckNodes] refuses.
func New(env impl.Env) (impl.Lock, error) {
	if env.Token == "" {
		return build(env, func() *redislock.Options { return nil })
	}
	return build(env, func() *redislock.Options { return &redislock.Options{Token: env.Token} })
}

// NewRetrying is [New] with the retry strategy of the library's example:
// every 100 ms, up to three times.
func NewRetrying(env impl.Env) (impl.Lock, error) {
	return build(env, func() *redislock.Options {
		return &redislock.Options{
			RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), env.Retries.Or(3)),
			Token:         env.Token,
		}
	})
}

// NewWithToken is [New] with one token for all acquisitions of this object, as
// for a worker that is to get back what it held before it was restarted.
func NewWithToken(env impl.Env) (impl.Lock, error) {
	token := impl.NewIdentifier()
	return build(env, func() *redislock.Options { return &redislock.Options{Token: token} })
}

// NewWithWorkerTokens is [New] with a number for each client as its token, of
// which one is the beginning of the next: worker-1, worker-11, worker-111.
func NewWithWorkerTokens(env impl.Env) (impl.Lock, error) {
	number, err := strconv.Atoi(strings.TrimLeft(env.Client, "c"))
	if err != nil {
		number = 1 // a client of another name is the first
	}
	token := "worker-" + strings.Repeat("1", max(number, 1))
	return build(env, func() *redislock.Options { return &redislock.Options{Token: token} })
}

// NewWithMetadata is [New] with the client's name behind the random token.
func NewWithMetadata(env impl.Env) (impl.Lock, error) {
	return build(env, func() *redislock.Options { return &redislock.Options{Metadata: env.Client} })
}

func build(env impl.Env, options func() *redislock.Options) (impl.Lock, error) {
	if err := env.CheckNodes(); err != nil {
		return nil, err
	}
	client := env.Nodes[0].Client(env.Nodes[0].Options())
	return &Lock{
		redis:   client,
		client:  redislock.New(client),
		node:    env.Nodes[0].Name,
		key:     "redislock:" + env.Name,
		ttl:     env.TTL,
		options: options,
	}, nil
}

// Acquire obtains the lock. Errors: see typed.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	lock, err := l.client.Obtain(ctx, l.key, l.ttl, l.options())
	if err != nil {
		return nil, l.typed("acquire", err)
	}
	return &lease{lock: l, held: lock}, nil
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.redis.Close() }

type lease struct {
	lock *Lock
	held *redislock.Lock
}

// Release deletes the key if it has this acquisition's value.
func (s *lease) Release(ctx context.Context) error {
	return s.lock.typed("release", s.held.Release(ctx))
}

// Extend is the library's Refresh, for the lock's whole TTL.
func (s *lease) Extend(ctx context.Context) error { return s.ExtendFor(ctx, s.lock.ttl) }

// ExtendFor is the library's Refresh.
func (s *lease) ExtendFor(ctx context.Context, ttl time.Duration) error {
	return s.lock.typed("extend", s.held.Refresh(ctx, ttl, nil))
}

// Remaining is a lease that can ask the server how long it still lives.
type Remaining interface {
	// Remaining is 0 when the lease is over. The answer is as old as its way
	// back was long.
	Remaining(ctx context.Context) (time.Duration, error)
}

// Remaining is the library's TTL.
func (s *lease) Remaining(ctx context.Context) (time.Duration, error) {
	left, err := s.held.TTL(ctx)
	return left, s.lock.typed("ttl", err)
}

// typed is the table of the library's errors:
//
//	acquire          ErrNotObtained    not obtained
//	extend           ErrNotObtained    not held: Refresh found another's key or none
//	release          ErrLockNotHeld    not held
//	anything else    go-redis's own    as [impl.FromRedis] types it
//
// The library hands go-redis's errors on as they are, and after the first one
// it does nothing more. A nil error stays nil.
func (l *Lock) typed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case op == "acquire" && errors.Is(err, redislock.ErrNotObtained):
		return impl.ErrNotObtained.With(op, l.node, l.key, err)
	case errors.Is(err, redislock.ErrNotObtained), errors.Is(err, redislock.ErrLockNotHeld):
		return impl.ErrNotHeld.With(op, l.node, l.key, err)
	}
	return impl.FromRedis(op, l.node, l.key, err)
}
