// Package rueidislock puts rueidis's lock, unmodified, behind the contract of
// package impl, so that the harness can try it. Source:
// https://github.com/redis/rueidis, folder rueidislock, v1.0.79.
//
// It repairs nothing. [New] has the README's options for one Redis: a majority
// of one key, and no notices of a client's own writes (CLIENT TRACKING with
// NOLOOP). [NewWithLoop] is told of its own writes too, which is the library's
// default; [NewWithoutCache] is the README's way for servers that have no
// client-side caching, and polls.
//
// New and NewWithLoop need a server that has CLIENT TRACKING and sends what it
// has to say unasked (RESP3). Without it they fail when they are built.
//
// The library hands out a context that ends with the lock: that is the notice
// of loss. Its waiting ends with the caller's context, and so does the lock it
// grants; the contract here gives a context to Acquire alone, so the lock
// lives on a context of its own, which the caller's ends only while Acquire
// waits. Release is the library's cancel: it waits for the deletion, and
// has no result, so it says yes always.
//
// Weaknesses, and the scenario that shows each:
//
//   - Keys carry an absolute end by the client's wall clock (PXAT): clients
//     and servers whose clocks disagree make leases of the wrong length
//     (kleppmann-clock-jump).
//   - A holder that is paused past the end acts beside the next one, before
//     its context ends (kleppmann-gc-pause, delayed-write).
//   - A renewal is tried until the end that it asks for and not until the end
//     that the key has. Begun at half the TTL it goes on to 1.5 TTL, and so
//     long the holder believes: the notice of loss comes half a TTL after the
//     key has ended (partition-holder).
//   - The scripts are marked as safe to be sent again. One whose reply was lost
//     with its connection meets its own key, which reads as somebody else's:
//     the answer is no, and the key stays (explore finds it).
//   - One node's memory decides (crash-restart-amnesia,
//     failover-before-replication).
//   - Identifiers come from math/rand/v2, whose global source cannot be
//     seeded: runs do not repeat byte for byte.
package rueidislock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-io/holdfast/impl"
)

// Lock is one client's locker.
type Lock struct {
	locker rueidislock.Locker
	name   string
	node   string
}

// New builds the lock on the environment's first node with the README's
// options. It connects at once. Errors: an environment that [impl.Env.CheckNodes]
// refuses, a node that cannot be reached, a server without CLIENT TRACKING.
func New(env impl.Env) (impl.Lock, error) {
	return build(env, rueidislock.LockerOption{NoLoopTracking: true})
}

// NewWithLoop is [New] without NoLoopTracking.
func NewWithLoop(env impl.Env) (impl.Lock, error) { return build(env, rueidislock.LockerOption{}) }

// NewWithoutCache is [New] without client-side caching: waiters poll every
// 20 ms, and a loss is noticed at the next renewal only.
func NewWithoutCache(env impl.Env) (impl.Lock, error) {
	return build(env, rueidislock.LockerOption{ClientOption: rueidis.ClientOption{DisableCache: true}})
}

func build(env impl.Env, option rueidislock.LockerOption) (impl.Lock, error) {
	if err := env.CheckNodes(); err != nil {
		return nil, err
	}
	node := env.Nodes[0]
	option.KeyMajority = 1
	option.KeyValidity = env.TTL
	option.ClientOption.InitAddress = []string{node.Options().Addr}
	option.ClientOption.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		// The library's own way to dial has this limit, 5 s by default, and
		// nothing else ends a dial into a black hole.
		ctx, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		return node.Dial(ctx)
	}
	locker, err := rueidislock.NewLocker(option)
	if err != nil {
		return nil, fmt.Errorf("lock %q of client %q: rueidis on %s: %w", env.Name, env.Client, node.Name, err)
	}
	return &Lock{locker: locker, name: env.Name, node: node.Name}, nil
}

// Acquire waits for the lock until ctx ends. Errors: see typed.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, end)
	held, release, err := l.locker.WithContext(own, l.name)
	if err != nil {
		keep()
		end()
		return nil, l.typed("acquire", errors.Join(err, ctx.Err()))
	}
	if !keep() { // ctx ended while the grant was on its way back
		release()
		end()
		return nil, l.typed("acquire", ctx.Err())
	}
	s := &lease{release: release, end: end, lost: make(chan struct{})}
	context.AfterFunc(held, s.over)
	return s, nil
}

// Close ends the leases that were not released, and closes the connections.
func (l *Lock) Close() error {
	l.locker.Close()
	return nil
}

// typed is the table of the library's errors:
//
//	acquire          ErrNotLocked       not obtained
//	anything else    ErrLockerClosed,
//	                 an ended ctx       unknown
func (l *Lock) typed(op string, err error) error {
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return impl.ErrNotObtained.With(op, l.node, l.name, err)
	}
	return impl.ErrUnknownOutcome.With(op, l.node, l.name, err)
}

type lease struct {
	release context.CancelFunc
	end     context.CancelFunc
	lost    chan struct{}

	mu       sync.Mutex
	released bool
}

// over is called when the library has ended the lock's context: by itself, or
// because Release asked for it.
func (s *lease) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.released {
		close(s.lost)
	}
}

// Lost is closed when the library ends the lock's context before Release.
func (s *lease) Lost() <-chan struct{} { return s.lost }

// Release ends the lock's context and waits until the library has tried to
// delete the key, at most until the key's end. It says yes always, as the
// library has no result for it.
func (s *lease) Release(context.Context) error {
	s.mu.Lock()
	s.released = true
	s.mu.Unlock()
	s.release()
	s.end()
	return nil
}
