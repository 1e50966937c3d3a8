// Package fair is a lock that is granted in the order of arrival: waiters stand
// in a sorted set, each with the time at which it came, and poll until they are
// first and the lock is free.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation.
//
// Weaknesses, and the scenario that shows each:
//
//   - A waiter that crashes at the head of the queue blocks everybody until the
//     queue's key expires, and every new waiter pushes that expiry out: while
//     clients keep coming, the free lock is granted to nobody
//     (fair-queue-crashed-waiter).
//   - The order is that of the waiters' own wall clocks: one whose clock is
//     behind goes before all others. No world can skew the clock of a client;
//     the package's tests put the score of such a client into the queue.
//   - go-redis repeats a grant whose reply was lost. The waiter has left the
//     queue by then, stands in it again, and waits for its own key to expire
//     (partition-holder).
//   - As basic: no loss notice, no validity, no fence, acquire does not measure
//     its own duration, one node's memory and clock decide (slow-work,
//     kleppmann-gc-pause, delayed-write, pause-during-acquire,
//     crash-restart-amnesia, failover-before-replication,
//     kleppmann-clock-jump).
package fair

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

const (
	pollEvery = 50 * time.Millisecond
	// leaveLimit bounds the farewell of a waiter that gives up. It has nobody
	// to wait for it any more, so it is short.
	leaveLimit = time.Second
)

// WaitLimit is how long Acquire waits. The queue lives for two of it after the
// last waiter has joined: a waiter that polls must not lose its place.
const WaitLimit = 30 * time.Second

//go:embed take_turn.lua
var takeTurnSource string

//go:embed delete_if_mine.lua
var deleteIfMineSource string

var (
	takeTurn     = redis.NewScript(takeTurnSource)
	deleteIfMine = redis.NewScript(deleteIfMineSource)
)

// Options of the lock.
type Options struct {
	// WaitLimit is how long Acquire waits; [WaitLimit] if it is zero.
	WaitLimit time.Duration

	// StaysQueued is a classic mistake, for the harness's own tests: a waiter
	// that gives up stays in the queue, and blocks those behind it.
	StaysQueued bool
	// QueuesTwice tries again under a new identifier after an error, and waits
	// behind its own first place.
	QueuesTwice bool
	// ForgetsWaiters drops a place after one TTL, and its waiter does not notice.
	ForgetsWaiters bool
}

// Lock is one client's lock object.
type Lock struct {
	client    redis.UniversalClient
	node      string
	key       string
	queue     string
	ttl       time.Duration
	waitLimit time.Duration
	wrong     Options
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Options{}) }

// NewWith is [New] with options.
func NewWith(env impl.Env, o Options) (impl.Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	if o.WaitLimit == 0 {
		o.WaitLimit = WaitLimit
	}
	return &Lock{
		client:    env.Nodes[0].Client(env.Nodes[0].Options()),
		node:      env.Nodes[0].Name,
		key:       "fair:" + env.Name,
		queue:     "fair_queue:" + env.Name,
		ttl:       env.TTL,
		waitLimit: o.WaitLimit,
		wrong:     o,
	}, nil
}

// Acquire queues and polls every 50 ms, until the wait limit passes or ctx
// ends; then it leaves the queue. Errors: [impl.ErrNotObtained] when the wait
// limit passes; otherwise what [impl.FromRedis] makes of the first failure, an
// ended ctx included.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	start := time.Now()
	id := impl.NewIdentifier()
	for {
		granted, err := takeTurn.Run(ctx, l.client, []string{l.key, l.queue},
			id, start.UnixMicro(), l.ttl.Milliseconds(), 2*l.waitLimit.Milliseconds()).Int64()
		if err != nil && l.wrong.QueuesTwice && ctx.Err() == nil {
			id, start = impl.NewIdentifier(), time.Now()
			continue
		}
		if err != nil {
			return nil, l.giveUp(ctx, id, impl.FromRedis("acquire", l.node, l.key, err))
		}
		if granted == 1 {
			return &lease{lock: l, id: id}, nil
		}
		if time.Since(start)+pollEvery > l.waitLimit {
			return nil, l.giveUp(ctx, id, impl.ErrNotObtained.With("acquire", l.node, l.key, nil))
		}
		if l.wrong.ForgetsWaiters && time.Since(start) > l.ttl {
			_ = l.client.ZRem(ctx, l.queue, id).Err()
			return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, wait.For(ctx, l.waitLimit-l.ttl))
		}
		if err := wait.For(ctx, pollEvery); err != nil {
			return nil, l.giveUp(ctx, id, impl.FromRedis("acquire", l.node, l.key, err))
		}
	}
}

// giveUp leaves the queue, also when the caller's ctx has ended, and returns
// why. What it cannot remove stays until the queue's key expires.
func (l *Lock) giveUp(ctx context.Context, id string, why error) error {
	if l.wrong.StaysQueued {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	_ = l.client.ZRem(ctx, l.queue, id).Err() // the caller is told why it failed, not how it left
	return why
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.client.Close() }

type lease struct {
	lock *Lock
	id   string
}

// Release deletes the key if it carries this acquisition's identifier. Errors:
// [impl.ErrNotHeld] when it does not, otherwise what [impl.FromRedis] makes of
// it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	deleted, err := deleteIfMine.Run(ctx, l.client, []string{l.key}, s.id).Int64()
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if deleted == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}
