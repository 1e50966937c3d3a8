// Package reentrant is the lock whose holder may take it again: a hash of owner
// to hold count, and a second count in the client that saves the question.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation; impl/reference is what it should have been (it does not
// re-enter: ownership is per acquisition there).
//
// Weaknesses, and the scenario that shows each:
//
//   - While the local count is above zero a re-acquire says yes without asking
//     Redis, also after the TTL, when another client may hold the lock
//     (slow-work, kleppmann-gc-pause).
//   - Local re-acquires do not raise the count in Redis but their releases
//     lower it, so it falls below the real one. It does not lead to an early
//     delete, since only the last local release deletes, but anybody who reads
//     the key is misled (reentry).
//   - A re-acquire does not lengthen the lease: the inner section may begin a
//     millisecond before the key expires (slow-work, with a nested acquire).
//   - The owner is the lock object: threads that share it are all let in
//     together (shared-lock-object).
//   - A grant that go-redis has sent twice counts 2 in Redis; the key outlives
//     the release until its TTL (partition-holder).
//   - No loss notice, no validity, and acquire does not measure its own
//     duration (kleppmann-gc-pause, pause-during-acquire, delayed-write).
//   - One node's memory and clock decide (crash-restart-amnesia,
//     failover-before-replication, kleppmann-clock-jump).
package reentrant

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

//go:embed grant.lua
var grantSource string

//go:embed take_one_off.lua
var takeOneOffSource string

//go:embed release.lua
var releaseSource string

var (
	grant      = redis.NewScript(grantSource)
	takeOneOff = redis.NewScript(takeOneOffSource)
	release    = redis.NewScript(releaseSource)
)

// Mistakes are classic mistakes that can be switched on, one at a time, to see
// that the harness catches them. They exist for the harness's own tests
// (impl/mutants) and for nothing else. The zero value makes none.
type Mistakes struct {
	// DoesNotCount forgets how often it was acquired: the first release lets
	// go of the lock though an outer section still needs it.
	DoesNotCount bool
	// CountsInClientOnly keeps the holds in the client, and takes one off only
	// when Redis confirms it. Inner releases do not ask Redis at all; a last
	// release that fails leaves a hold behind, and every later acquire says
	// yes without asking.
	CountsInClientOnly bool
	// InnerShortens sets a fifth of the TTL with each inner acquire: the outer
	// section's lease ends with the inner one's.
	InnerShortens bool
	// InnerCountStays does not take inner holds off: the last release is never
	// the last.
	InnerCountStays bool
}

// Lock is one client's lock object.
type Lock struct {
	client redis.UniversalClient
	node   string
	key    string
	id     string
	ttl    time.Duration
	wrong  Mistakes

	mu    sync.Mutex
	count int // holds of this object, as the client counts them
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Mistakes{}) }

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	return &Lock{
		client: env.Nodes[0].Client(env.Nodes[0].Options()),
		node:   env.Nodes[0].Name,
		key:    "reentrant_lock:" + env.Name,
		id:     impl.NewIdentifier(),
		ttl:    env.TTL,
		wrong:  wrong,
	}, nil
}

// Acquire says yes at once if this object already holds the lock as far as it
// knows, and otherwise asks once and does not wait. Errors:
// [impl.ErrNotObtained] when somebody else holds it; otherwise what
// [impl.FromRedis] makes of it.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	if l.enter() {
		if l.wrong.InnerShortens {
			_ = l.client.PExpire(ctx, l.key, l.ttl/5).Err()
		}
		return &lease{lock: l}, nil
	}
	count, err := grant.Run(ctx, l.client, []string{l.key}, l.id, l.ttl.Milliseconds()).Int64()
	if err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	if count == 0 {
		return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
	}
	l.mu.Lock()
	l.count++
	l.mu.Unlock()
	return &lease{lock: l}, nil
}

// enter adds a hold locally if there is one already, and says whether it did.
// It does not look at the time: the lease may have ended long ago.
func (l *Lock) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		return false
	}
	if !l.wrong.DoesNotCount {
		l.count++
	}
	return true
}

// leave takes a hold off locally and says how many there were before.
func (l *Lock) leave() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.count
	if l.wrong.InnerCountStays && before > 1 {
		return before
	}
	l.count = max(l.count-1, 0)
	return before
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.client.Close() }

type lease struct{ lock *Lock }

// Release takes one hold off, in the client and in Redis, and deletes the key
// with the client's last one. The client counts the hold as gone also when
// Redis cannot be asked. Errors: [impl.ErrNotHeld] when the key is not this
// object's, otherwise what [impl.FromRedis] makes of it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	if l.wrong.CountsInClientOnly {
		return s.releaseOwnCount(ctx)
	}
	script, args := release, []any{l.id, l.ttl.Milliseconds()}
	if l.leave() > 1 {
		script, args = takeOneOff, []any{l.id}
	}
	done, err := script.Run(ctx, l.client, []string{l.key}, args...).Int64()
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if done == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}

// releaseOwnCount is Release with Mistakes.CountsInClientOnly.
func (s *lease) releaseOwnCount(ctx context.Context) error {
	l := s.lock
	l.mu.Lock()
	inner := l.count > 1
	if inner {
		l.count--
	}
	l.mu.Unlock()
	if inner {
		return nil
	}
	done, err := release.Run(ctx, l.client, []string{l.key}, l.id, l.ttl.Milliseconds()).Int64()
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if done == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	l.leave()
	return nil
}
