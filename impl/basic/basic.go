// Package basic is the lock that most articles show first: SET NX PX with a
// random value, and a script that deletes the key if the value is still ours.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation; impl/reference is what it should have been.
//
// Weaknesses, and the scenario that shows each:
//
//   - No loss notice and no validity: a holder that is paused, or whose work is
//     longer than the TTL, goes on beside the next one (slow-work,
//     kleppmann-gc-pause). Articles call its tolerance of GC pauses high; no
//     lock with a TTL has any.
//   - Acquire does not measure its own duration: a reply that comes after the
//     TTL still means yes (pause-during-acquire).
//   - A holder's late write reaches the resource after the next holder's
//     (delayed-write); without a fence the resource cannot tell. [NewFenced]
//     has one, and a resource that checks it refuses that write
//     (kleppmann-fencing).
//   - Its safety is the one node's memory and clock: a restart without data, a
//     promotion of a replica that lags, or a clock that jumps give the lock to
//     two (crash-restart-amnesia, failover-before-replication,
//     kleppmann-clock-jump).
//   - go-redis retries by itself. When the first SET NX was applied and its
//     reply lost, the second finds its own key and the caller is told that
//     somebody else holds the lock; the key stays until its TTL. In the same
//     way a retried release may say "not held" after its first try deleted the
//     key (partition-holder).
//   - [NewWaiting] asks the primary, after each grant, to wait until a replica has
//     it. That narrows the gap of a failover and does not close it: the replica
//     that is elected may be another one (sentinel-lagging-replica).
//   - The identifier belongs to the lock object, not to the acquisition: a
//     release of an old lease deletes a newer one of the same object
//     (slow-work, with threads that share one object).
package basic

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

//go:embed delete_if_mine.lua
var deleteIfMineSource string

//go:embed grant_with_fence.lua
var grantWithFenceSource string

var (
	deleteIfMine   = redis.NewScript(deleteIfMineSource)
	grantWithFence = redis.NewScript(grantWithFenceSource)
)

// Lock is one client's lock object.
type Lock struct {
	client redis.UniversalClient
	node   string
	key    string
	id     string
	ttl    time.Duration
	fence  string // key of the fence counter, empty without fences
	// replicas that must have a grant before it counts; 0 waits for none.
	replicas int

	wrong    Mistakes
	loadOnce sync.Once     // for Mistakes.NoEvalFallback
	held     atomic.Bool   // for Mistakes.LocalHoldStays
	slots    chan struct{} // for Mistakes.LeaksSlots
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Mistakes{}) }

// NewFenced is New with a fence per grant, counted up in the granting script.
// Its leases implement [impl.Fencer].
func NewFenced(env impl.Env) (impl.Lock, error) {
	l, err := build(env, Mistakes{})
	if err != nil {
		return nil, err
	}
	l.fence = "fence:" + env.Name
	return l, nil
}

func build(env impl.Env, wrong Mistakes) (*Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	l := &Lock{
		client: env.Nodes[0].Client(env.Nodes[0].Options()),
		node:   env.Nodes[0].Name,
		key:    "lock:" + env.Name,
		id:     impl.NewIdentifier(),
		ttl:    env.TTL,
		wrong:  wrong,
	}
	wrong.shape(l)
	return l, nil
}

// Acquire asks once and does not wait. Errors: [impl.ErrNotObtained] when the
// key exists, whoever wrote it; otherwise what [impl.FromRedis] makes of it.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	if l.fence != "" {
		return l.acquireFenced(ctx)
	}
	if l.replicas > 0 {
		return l.acquireWaiting(ctx)
	}
	if l.wrong.takesAnotherWay() {
		return l.acquireWrongly(ctx)
	}
	// A raw SET, since SetNX sends EX for whole seconds and the TTL is to go
	// out in milliseconds.
	err := l.client.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Milliseconds()).Err()
	return l.granted(err)
}

// granted turns the reply to a SET NX into a lease or an error.
func (l *Lock) granted(err error) (impl.Lease, error) {
	if errors.Is(err, redis.Nil) {
		return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
	}
	if err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	return &lease{lock: l}, nil
}

func (l *Lock) acquireFenced(ctx context.Context) (impl.Lease, error) {
	fence, err := grantWithFence.Run(ctx, l.client, []string{l.key, l.fence}, l.id, l.ttl.Milliseconds()).Uint64()
	if err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	if fence == 0 {
		return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
	}
	return &fencedLease{lease: lease{lock: l}, fence: fence}, nil
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.client.Close() }

type lease struct{ lock *Lock }

// Release deletes the key if it carries this object's identifier. Errors:
// [impl.ErrNotHeld] when it does not, otherwise what [impl.FromRedis] makes
// of it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	deleted, err := l.delete(ctx)
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if deleted == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}

func (l *Lock) delete(ctx context.Context) (int64, error) {
	if l.wrong.releasesAnotherWay() {
		return l.deleteWrongly(ctx)
	}
	return deleteIfMine.Run(ctx, l.client, []string{l.key}, l.id).Int64()
}

type fencedLease struct {
	lease
	fence uint64
}

// Fence is the number that the granting script counted up for this lease.
func (s *fencedLease) Fence() uint64 { return s.fence }
