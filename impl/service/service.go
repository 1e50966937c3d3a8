// Package service is the lock as a service wraps it: a hash with owner and
// hold count, a few attempts, and a background renewal.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation; impl/reference is what it should have been.
//
// Weaknesses, and the scenario that shows each:
//
//   - It promises re-entrancy and has the count for it, but each acquire makes
//     a new identifier, so the holder's second acquire is refused like a
//     stranger's (reentry).
//   - Since go-redis retries by itself, the one way to meet its own identifier
//     is a retried grant: it counts 2, the release takes 1 off, and the key
//     stays until its TTL with nobody behind it (partition-holder).
//   - The renewal gives up for good at the first error, though the lease has
//     time for more tries (renewal-blip, node-stall).
//   - Nobody tells the holder that the renewal has ended or that the lease is
//     gone (renewal-blip, partition-holder, kleppmann-gc-pause).
//   - A pause stops the renewal with everything else; on resume the late write
//     goes out (kleppmann-gc-pause, delayed-write). [NewFenced] has a fence
//     with which a resource can refuse it (kleppmann-fencing).
//   - Acquire does not measure its own duration (pause-during-acquire), and
//     leaves behind what an attempt with a lost reply has taken.
//   - One node's memory and clock decide (crash-restart-amnesia,
//     failover-before-replication, kleppmann-clock-jump).
package service

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/renewer"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

const (
	attempts  = 3
	pause     = 200 * time.Millisecond
	joinLimit = 2 * time.Second
)

//go:embed grant.lua
var grantSource string

//go:embed grant_with_fence.lua
var grantWithFenceSource string

//go:embed extend_if_mine.lua
var extendIfMineSource string

//go:embed release.lua
var releaseSource string

var (
	grant          = redis.NewScript(grantSource)
	grantWithFence = redis.NewScript(grantWithFenceSource)
	extendIfMine   = redis.NewScript(extendIfMineSource)
	release        = redis.NewScript(releaseSource)
)

// Lock is one client's lock object.
type Lock struct {
	client   redis.UniversalClient
	node     string
	key      string
	ttl      time.Duration
	tries    int
	fence    string // key of the fence counter, empty without fences
	renewers renewer.Owner
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) {
	l, err := build(env)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// NewFenced is New with a fence per grant, counted up in the granting script.
// Its leases implement [impl.Fencer].
func NewFenced(env impl.Env) (impl.Lock, error) {
	l, err := build(env)
	if err != nil {
		return nil, err
	}
	l.fence = "fence:" + env.Name
	return l, nil
}

func build(env impl.Env) (*Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	return &Lock{
		client: env.Nodes[0].Client(env.Nodes[0].Options()),
		node:   env.Nodes[0].Name,
		key:    "lock_service:" + env.Name,
		ttl:    env.TTL,
		tries:  env.Retries.Or(attempts-1) + 1,
	}, nil
}

// Acquire makes 3 attempts, unless the environment says otherwise, 200 ms apart. Errors: [impl.ErrNotObtained] when
// all are refused; otherwise what [impl.FromRedis] makes of the first failure,
// an ended ctx included.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	id := impl.NewIdentifier()
	for attempt := 1; ; attempt++ {
		granted, err := l.ask(ctx, id)
		if err != nil {
			return nil, impl.FromRedis("acquire", l.node, l.key, err)
		}
		if granted > 0 {
			return l.lease(id, granted), nil
		}
		if attempt == l.tries {
			return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
		}
		if err := wait.For(ctx, pause); err != nil {
			return nil, impl.FromRedis("acquire", l.node, l.key, err)
		}
	}
}

// ask returns the hold count or the fence, 0 for a refusal.
func (l *Lock) ask(ctx context.Context, id string) (uint64, error) {
	if l.fence != "" {
		return grantWithFence.Run(ctx, l.client, []string{l.key, l.fence}, id, l.ttl.Milliseconds()).Uint64()
	}
	return grant.Run(ctx, l.client, []string{l.key}, id, l.ttl.Milliseconds()).Uint64()
}

func (l *Lock) lease(id string, granted uint64) impl.Lease {
	s := lease{lock: l, id: id}
	s.renewer = l.renewers.Start(l.ttl/3, func(ctx context.Context) error { return l.renew(ctx, id) })
	if l.fence != "" {
		return &fencedLease{lease: s, fence: granted}
	}
	return &s
}

func (l *Lock) renew(ctx context.Context, id string) error {
	extended, err := extendIfMine.Run(ctx, l.client, []string{l.key}, id, l.ttl.Milliseconds()).Int64()
	if err == nil && extended == 1 {
		return nil
	}
	return impl.ErrRenewalFailed.With("renew", l.node, l.key, err)
}

// Close stops the renewals of leases that were not released, closes the
// client's connections and waits for the renewals to end.
func (l *Lock) Close() error {
	l.renewers.Cancel()
	err := l.client.Close()
	l.renewers.Wait()
	return err
}

type lease struct {
	lock    *Lock
	id      string
	renewer *renewer.Renewer
}

// RenewalErr is what ended the renewal before the release, if anything did.
func (s *lease) RenewalErr() error { return s.renewer.Failed() }

// Release stops the renewal and takes this hold off. Errors:
// [impl.ErrNotHeld] when the lock is not this acquisition's, otherwise what
// [impl.FromRedis] makes of it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	// A renewal that hangs longer than the limit can do no harm to the next
	// holder: its script asks whose lock it is.
	s.renewer.Stop(joinLimit)
	left, err := release.Run(ctx, l.client, []string{l.key}, s.id, l.ttl.Milliseconds()).Int64()
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if left < 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}

type fencedLease struct {
	lease
	fence uint64
}

// Fence is the number that the granting script counted up for this lease.
func (s *fencedLease) Fence() uint64 { return s.fence }
