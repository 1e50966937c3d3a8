// Package redsync puts go-redsync/redsync, unmodified, behind the contract of
// package impl, so that the harness can try it. Source:
// https://github.com/go-redsync/redsync, v4.18.1.
//
// It repairs nothing. What the library does to its users it does here: its
// options are those of its README (a go-redis client and a pool for each node,
// everything else a default), except for what the harness sets: the expiry and,
// where it chooses them, the number of tries and the value of the key; and the
// one option after which a variant is named. Each acquisition has a
// Mutex of its own, as in the README, where one function makes, locks and
// unlocks it; the Mutex keeps the value of its latest Lock only.
//
// Lock tries 32 times, 50 to 250 ms apart (drawn from the global math/rand),
// each time for a twentieth of the expiry. A Lock whose ctx ends while it
// waits says "failed", which does not tell whether an earlier try that was
// given back may still be on its way: that is an unknown outcome here.
//
// Weaknesses, and the scenario that shows each:
//
//   - Until tells the end of the lease, and nothing tells that it has come: a
//     holder that is paused acts beside the next one (kleppmann-gc-pause,
//     delayed-write), and so does one whose work is long and that does not ask
//     (slow-work).
//   - A voter that restarts without its data, or whose clock jumps, frees its
//     vote, and the next client finds a majority (crash-restart-amnesia,
//     kleppmann-clock-jump); on one node the same frees the lock, and so does
//     a failover (failover-before-replication).
//   - All tries of one Lock have one value. A delete of an earlier try that the
//     network held up takes away what a later try was granted (explore finds
//     it).
//   - What a failed Lock has taken is given back on the caller's context: when
//     that has ended, nothing is, and a vote stays for a TTL (node-stall).
//   - With [NewFailFast] the calls to nodes that have not answered are given up
//     with the quorum: the lock has a bare quorum of keys even when all nodes
//     are well, and the loss of one frees it (crash-restart-amnesia). A slow
//     node may run its grant after its release, and keep the key for a TTL.
//   - With [NewSetNXOnExtend] an extend after the end of the lease takes the
//     lock anew and says that it was extended, although others may have had it
//     in between (slow-work, once holders extend).
package redsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// Drift is the share of the expiry that the library takes off its validity by
// default.
const Drift = 0.01

// Lock is one client's way to the library.
type Lock struct {
	clients []redis.UniversalClient
	rs      *redsync.Redsync
	key     string
	options []redsync.Option
	quorum  int
}

// New builds the lock on all the environment's nodes, with the library's
// defaults. It fails only for an environment that [impl.Env.CheckNodes] refuses.
func New(env impl.Env) (impl.Lock, error) { return build(env) }

// NewSingle is [New] on the environment's first node, as the README shows it.
func NewSingle(env impl.Env) (impl.Lock, error) {
	if len(env.Nodes) > 1 {
		env.Nodes = env.Nodes[:1]
	}
	return build(env)
}

// NewFailFast is [New] with WithFailFast: calls return with the quorum and do
// not wait for the other nodes.
func NewFailFast(env impl.Env) (impl.Lock, error) { return build(env, redsync.WithFailFast(true)) }

// NewSetNXOnExtend is [New] with WithSetNXOnExtend: extend sets a key that is
// not there.
func NewSetNXOnExtend(env impl.Env) (impl.Lock, error) {
	return build(env, redsync.WithSetNXOnExtend())
}

func build(env impl.Env, options ...redsync.Option) (impl.Lock, error) {
	if err := env.CheckNodes(); err != nil {
		return nil, err
	}
	l := &Lock{
		key:     "redsync:" + env.Name,
		options: append(options, redsync.WithExpiry(env.TTL)),
		quorum:  len(env.Nodes)/2 + 1,
	}
	if env.Retries.Given {
		l.options = append(l.options, redsync.WithTries(env.Retries.N))
	}
	if env.Token != "" {
		l.options = append(l.options, redsync.WithGenValueFunc(func() (string, error) { return env.Token, nil }))
	}
	var pools []redsyncredis.Pool
	for _, node := range env.Nodes {
		client := node.Client(node.Options())
		l.clients = append(l.clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	l.rs = redsync.New(pools...)
	return l, nil
}

// Acquire locks a new Mutex. Errors: [impl.ErrNotObtained] when the last try
// met others' keys on a quorum of nodes, otherwise [impl.ErrUnknownOutcome].
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	mutex := l.rs.NewMutex(l.key, l.options...)
	if err := mutex.LockContext(ctx); err != nil {
		return nil, l.typed("acquire", err)
	}
	return &lease{lock: l, mutex: mutex}, nil
}

// Close closes the connections to all nodes. Leases end by their TTL.
func (l *Lock) Close() error {
	var errs []error
	for _, c := range l.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// lease is a locked Mutex. The Mutex guards neither its value nor its end:
// calls on one lease must not overlap.
type lease struct {
	lock  *Lock
	mutex *redsync.Mutex
}

// Release unlocks the Mutex. Errors: [impl.ErrNotHeld] when too many nodes say
// that the key is gone or another's, otherwise [impl.ErrUnknownOutcome].
func (s *lease) Release(ctx context.Context) error {
	ok, err := s.mutex.UnlockContext(ctx)
	return s.done("release", ok, err)
}

// Extend sets the expiry anew. Errors as for Release; an extension that took
// so long that nothing is left of it has taken effect, and is an unknown
// outcome.
func (s *lease) Extend(ctx context.Context) error {
	ok, err := s.mutex.ExtendContext(ctx)
	return s.done("extend", ok, err)
}

func (s *lease) done(op string, ok bool, err error) error {
	switch {
	case err != nil:
		return s.lock.typed(op, err)
	case !ok:
		return impl.ErrUnknownOutcome.With(op, "", s.lock.key, errors.New("redsync says no and gives no reason"))
	}
	return nil
}

// Until is the library's own: the expiry from before the last Lock or Extend,
// less a hundredth.
func (s *lease) Until() time.Time { return s.mutex.Until() }

// typed is the table of the library's errors:
//
//	acquire          ErrTaken: a quorum of nodes has others' keys    not obtained
//	release, extend  so many nodes say "not yours" that no quorum
//	                 can be left: ErrTaken, ErrLockAlreadyExpired    not held
//	anything else    ErrFailed, ErrExtendFailed, RedisError          unknown
//
// One node's ErrLockAlreadyExpired among five proves nothing about the other
// four, so the nodes are counted.
func (l *Lock) typed(op string, err error) error {
	var taken *redsync.ErrTaken
	switch {
	case op == "acquire" && errors.As(err, &taken):
		return impl.ErrNotObtained.With(op, "", l.key, err)
	case op != "acquire" && notMine(err) > len(l.clients)-l.quorum:
		return impl.ErrNotHeld.With(op, "", l.key, err)
	}
	return impl.ErrUnknownOutcome.With(op, "", l.key, fmt.Errorf("redsync: %w", err))
}

// notMine counts the nodes that say that the key is gone or another's. The
// library joins the errors of its nodes one by one, so they form a tree.
func notMine(err error) int {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		n := 0
		for _, part := range e.Unwrap() {
			n += notMine(part)
		}
		return n
	case *redsync.ErrTaken:
		return len(e.Nodes)
	case *redsync.ErrNodeTaken:
		return 1
	}
	if err == redsync.ErrLockAlreadyExpired { //nolint:errorlint // a leaf
		return 1
	}
	return 0
}
