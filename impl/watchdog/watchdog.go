// Package watchdog is the lock that renews itself: SET NX PX, polled until it
// succeeds, then a background renewal every third of the TTL until release.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation; impl/reference is what it should have been.
//
// Weaknesses, and the scenario that shows each:
//
//   - The renewal gives up for good at the first error, though the lease has
//     time for more tries (renewal-blip, node-stall).
//   - Nobody tells the holder that the renewal has ended or that the lease is
//     gone: it works on beside the next holder (renewal-blip,
//     partition-holder, kleppmann-gc-pause).
//   - A pause stops the renewal with everything else; on resume the late write
//     goes out (kleppmann-gc-pause, delayed-write).
//   - Acquire does not measure its own duration, as basic does not
//     (pause-during-acquire).
//   - One node's memory and clock decide (crash-restart-amnesia,
//     failover-before-replication, kleppmann-clock-jump).
//   - Its author calls it re-entrant; its code is not. A second acquire by the
//     holder waits for itself until the wait limit (calm, with a nested
//     acquire).
//   - A renewed lease of a holder that is stuck never ends: the lock is
//     renewed for as long as the process lives (slow-work shows the good side
//     of the same thing).
package watchdog

import (
	"context"
	_ "embed"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/renewer"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

const (
	pollEvery = 100 * time.Millisecond
	joinLimit = 2 * time.Second
)

// WaitLimit is how long Acquire waits.
const WaitLimit = 30 * time.Second

//go:embed delete_if_mine.lua
var deleteIfMineSource string

//go:embed extend_if_mine.lua
var extendIfMineSource string

var (
	deleteIfMine = redis.NewScript(deleteIfMineSource)
	extendIfMine = redis.NewScript(extendIfMineSource)
)

// Lock is one client's lock object.
type Lock struct {
	client   redis.UniversalClient
	node     string
	key      string
	id       string
	ttl      time.Duration
	interval time.Duration
	renewers renewer.Owner
	wrong    Mistakes

	pollEvery time.Duration
	waitLimit time.Duration
	renewed   time.Duration // what a renewal asks for
	refused   atomic.Bool   // for Mistakes.NotRestartedAfterLoss
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Mistakes{}) }

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	l := &Lock{
		client:   env.Nodes[0].Client(env.Nodes[0].Options()),
		node:     env.Nodes[0].Name,
		key:      "watchdog_lock:" + env.Name,
		id:       impl.NewIdentifier(),
		ttl:      env.TTL,
		interval: env.TTL / 3,
		wrong:    wrong,

		pollEvery: pollEvery,
		waitLimit: WaitLimit,
		renewed:   env.TTL,
	}
	wrong.shape(l)
	return l, nil
}

// Acquire polls every 100 ms and waits for 30 s at most, or until ctx ends.
// Errors: [impl.ErrNotObtained] when the wait limit passes; otherwise what
// [impl.FromRedis] makes of the first failure, an ended ctx included.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	for start := time.Now(); ; {
		err := l.client.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Milliseconds()).Err()
		if err == nil {
			return l.granted(), nil
		}
		if !errors.Is(err, redis.Nil) {
			if l.wrong.RenewsWithoutOwner {
				l.granted()
			}
			return nil, impl.FromRedis("acquire", l.node, l.key, err)
		}
		if time.Since(start)+l.pollEvery > l.waitLimit {
			if l.wrong.EntersAfterTheWait {
				return l.granted(), nil
			}
			return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
		}
		if err := wait.For(ctx, l.pollEvery); err != nil {
			if l.wrong.CancelledWaitIsYes {
				return l.granted(), nil
			}
			return nil, impl.FromRedis("acquire", l.node, l.key, err)
		}
	}
}

// granted is the lease of a key that was set, with its renewal.
func (l *Lock) granted() *lease {
	if l.wrong.NotRestartedAfterLoss && l.refused.Load() {
		return &lease{lock: l, renewer: l.renewers.Start(time.Hour, l.renew)}
	}
	return &lease{lock: l, renewer: l.renewers.Start(l.interval, l.renew)}
}

func (l *Lock) renew(ctx context.Context) error {
	extended, err := extendIfMine.Run(ctx, l.client, []string{l.key}, l.id, l.renewed.Milliseconds()).Int64()
	if err == nil && extended == 1 {
		return nil
	}
	if err == nil {
		l.refused.Store(true)
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
	renewer *renewer.Renewer
}

// RenewalErr is what ended the renewal before the release, if anything did.
func (s *lease) RenewalErr() error { return s.renewer.Failed() }

// Release stops the renewal, waits for it (2 s at most) and deletes the key if
// it carries this object's identifier. Errors: [impl.ErrNotHeld] when it does
// not, otherwise what [impl.FromRedis] makes of it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	if !l.wrong.NeverStops && !l.wrong.StopsAfterRelease {
		// A renewal that hangs longer than the limit can do no harm to the
		// next holder: its script asks whose key it is.
		s.renewer.Stop(joinLimit)
	}
	deleted, err := deleteIfMine.Run(ctx, l.client, []string{l.key}, l.id).Int64()
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if deleted == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	if l.wrong.StopsAfterRelease {
		s.renewer.Stop(joinLimit)
	}
	return nil
}
