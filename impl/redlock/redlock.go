// Package redlock is Redlock: the same key on N independent nodes, held by
// whoever has the votes of a majority before the TTL is over.
//
// Source: the algorithm's description in the Redis documentation ("Distributed
// locks with Redis") and Kleppmann, "How to do distributed locking" (2016).
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation; impl/reference is what a lock on one node should be, and a
// consensus system is what a lock on many should be.
//
// Weaknesses, and the scenario that shows each:
//
//   - A holder that is paused, or whose write is late, acts beside the next
//     one (kleppmann-gc-pause, delayed-write). The articles call its tolerance
//     of pauses high; no lock with a TTL has any.
//   - A pause in the middle of acquire is noticed only up to the check of the
//     elapsed time, not after it (pause-during-acquire).
//   - It leans on the nodes' clocks: a jump on one voter, or a restart without
//     its data, frees that vote, and the next client finds a majority
//     (kleppmann-clock-jump, crash-restart-amnesia; delayed-restart shows the
//     remedy).
//   - No allowance for drift between clocks, and the validity that is left is
//     not told to the holder (pause-during-acquire).
//   - The nodes are asked one after the other: one slow node eats the
//     validity, which is why each has a small time-out (node-stall,
//     partition-minority).
//   - The largest counter of a quorum is not a fence: it is not monotonic.
//     With [NewFenced], A gets 5, 5, 100 from its three nodes and is fenced
//     100; B then gets 6, 6, 3 from its own and is fenced 6 (redlock-fence).
//   - The identifier belongs to the lock object: a failed acquire of one
//     thread gives back the votes of another that shares the object (calm,
//     with threads that share one object).
//   - Release always says yes (slow-work).
package redlock

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

const attempts = 3

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
	nodes   []node
	key     string
	id      string
	ttl     time.Duration
	tries   int
	timeout time.Duration // of one call to one node
	fence   string        // key of the fence counters, empty without fences
	tells   bool          // its leases tell when they end, less Drift
	wrong   Mistakes

	client string // for Mistakes.QuorumByClient
}

type node struct {
	name   string
	client redis.UniversalClient
}

// New builds the lock on all of the environment's nodes. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Mistakes{}) }

// NewFenced is New with a counter on every node, counted up in the script that
// grants that node's vote. A lease's fence is the largest counter of the nodes
// that voted yes. Its leases implement [impl.Fencer].
func NewFenced(env impl.Env) (impl.Lock, error) {
	l, err := build(env, Mistakes{})
	if err != nil {
		return nil, err
	}
	l.fence = "fence:" + env.Name
	return l, nil
}

// Drift is the share of the TTL that the leases of [NewTelling] are shorter on
// the client's clock than on the nodes'. The articles' example of how far two
// clocks' rates may differ is ten percent.
const Drift = 0.1

// NewTelling is NewWith with the validity of the algorithm's description: what
// is left of the TTL when the votes are in, less an allowance for clocks of
// different rates. A lease tells its holder when it ends, and implements
// [impl.Validity].
func NewTelling(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	l, err := build(env, wrong)
	if err != nil {
		return nil, err
	}
	l.tells = true
	return l, nil
}

func build(env impl.Env, wrong Mistakes) (*Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	l := &Lock{
		key:     "redlock:" + env.Name,
		id:      impl.NewIdentifier(),
		ttl:     env.TTL,
		tries:   env.Retries.Or(attempts-1) + 1,
		timeout: nodeTimeout(env.TTL),
		wrong:   wrong,
		client:  env.Client,
	}
	if wrong.NoNodeTimeout {
		l.timeout = env.TTL
	}
	for _, n := range env.Nodes {
		l.nodes = append(l.nodes, node{name: n.Name, client: dialer(n, l.timeout)})
	}
	return l, nil
}

// nodeTimeout is what one node may cost: the algorithm's description asks for
// 5 to 50 ms with a TTL of 10 s.
func nodeTimeout(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 10*time.Millisecond), 50*time.Millisecond)
}

// dialer makes a client for which a node that cannot be dialled, or does not
// answer, costs no more than timeout.
//
// The context of each call (see [Lock.call]) bounds the wait for a connection
// and, with ContextTimeoutEnabled, the handshake of a fresh connection (HELLO,
// CLIENT MAINT_NOTIFICATIONS, CLIENT SETINFO: each has a read time-out of its
// own, and they add up) and the command. DialTimeout and DialerRetries do not
// shorten the call, they shorten what goes on after it: go-redis dials in the
// background, on a context of its own, and 5 tries of 5 s each would still be
// under way when the next acquire wants a connection. MaxRetries -1 turns off
// the retries of a command, of which the algorithm knows nothing.
func dialer(n impl.Node, timeout time.Duration) redis.UniversalClient {
	options := n.Options()
	options.DialTimeout = timeout
	options.ReadTimeout = timeout
	options.WriteTimeout = timeout
	options.DialerRetries = 1
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	return n.Client(options)
}

// call gives one call to one node its time-out.
func (l *Lock) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.timeout)
}

// Acquire makes 3 attempts, unless the environment says otherwise. Errors, from the last one: [impl.ErrQuorum] when
// nodes failed and too few voted yes, [impl.ErrNotObtained] when all nodes
// answered but others hold too many votes, [impl.ErrValidityUsedUp] when the
// votes took longer than the TTL. An ended ctx is an unknown outcome.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	first := time.Now()
	for attempt := 1; ; attempt++ {
		start := time.Now()
		if l.wrong.ElapsedOfAllAttempts {
			start = first
		}
		poll := l.poll(ctx)
		if l.wrong.WaitsAtASplit && 2*len(poll.yes) == len(l.nodes) {
			_ = wait.For(context.Background(), forAges*l.ttl)
		}
		enough := len(poll.yes) >= l.quorum(poll)
		if enough && l.validity(start) > 0 {
			return l.lease(poll, start), nil
		}
		if !enough || !l.wrong.KeepsLateVotes {
			l.giveBack(ctx, poll)
		}
		if err := ctx.Err(); err != nil {
			return nil, impl.FromRedis("acquire", "", l.key, err)
		}
		if attempt == l.tries {
			return nil, l.refusal(enough, poll)
		}
		pause := 200*time.Millisecond + time.Duration(attempt)*10*time.Millisecond
		if err := wait.For(ctx, pause); err != nil {
			return nil, impl.FromRedis("acquire", "", l.key, err)
		}
	}
}

// poll is the outcome of asking every node once.
type poll struct {
	yes    []node
	fence  uint64  // the largest counter of the nodes that said yes
	errors []error // of the nodes that failed, with their names
}

// poll asks one node after the other. An error counts as a no, although the
// node may have taken the key: that is why a failed attempt releases on all
// nodes and not only on those that said yes.
func (l *Lock) poll(ctx context.Context) poll {
	var p poll
	for _, n := range l.nodes {
		fence, err := l.ask(ctx, n)
		switch {
		case err == nil:
			p.yes = append(p.yes, n)
			p.fence = max(p.fence, fence)
		case errors.Is(err, redis.Nil):
			// Held by somebody else: a plain no.
		default:
			p.errors = append(p.errors, impl.FromRedis("acquire", n.name, l.key, err))
			if l.wrong.ErrorIsYes {
				p.yes = append(p.yes, n)
			}
		}
	}
	return p
}

// ask asks one node for its vote; redis.Nil is a no. The number is the node's
// fence counter, 0 without fences.
func (l *Lock) ask(ctx context.Context, n node) (uint64, error) {
	ctx, cancel := l.call(ctx)
	defer cancel()
	if l.fence == "" {
		return 0, n.client.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Milliseconds()).Err()
	}
	fence, err := grantWithFence.Run(ctx, n.client, []string{l.key, l.fence}, l.id, l.ttl.Milliseconds()).Uint64()
	if err == nil && fence == 0 {
		return 0, redis.Nil
	}
	return fence, err
}

// quorum is the number of votes that are enough.
func (l *Lock) quorum(p poll) int {
	n := len(l.nodes)
	switch {
	case l.wrong.HalfIsEnough:
		return n / 2
	case l.wrong.QuorumOfReachable:
		return (n-len(p.errors))/2 + 1
	case l.wrong.QuorumIsAll:
		return n
	case l.wrong.QuorumByClient && l.client == "c1":
		return 1
	case l.wrong.OneErrorIsFailure && len(p.errors) > 0:
		return n + 1
	}
	return n/2 + 1
}

// validity is what is left of the TTL, on the monotonic clock.
func (l *Lock) validity(start time.Time) time.Duration {
	elapsed := time.Since(start)
	switch {
	case l.wrong.NoElapsedCheck:
		return l.ttl
	case l.wrong.DriftAdded:
		return l.ttl - elapsed + l.ttl/10
	}
	return l.usable() - elapsed
}

// usable is how long a lease may be used, from the start of the attempt.
func (l *Lock) usable() time.Duration {
	if l.tells {
		return l.ttl - time.Duration(float64(l.ttl)*Drift)
	}
	return l.ttl
}

// giveBack releases what a failed attempt may have taken. It does so even when
// the caller's ctx has ended, since that is a common reason for the failure;
// the per-node time-out bounds it.
func (l *Lock) giveBack(ctx context.Context, p poll) {
	if !l.wrong.CleanUpOnCallersContext {
		ctx = context.WithoutCancel(ctx)
	}
	nodes := l.nodes
	if l.wrong.ReleaseOnlyYes {
		nodes = p.yes
	}
	l.releaseOn(ctx, nodes)
}

// releaseOn ignores errors, as the algorithm does: a node that cannot be
// reached frees its vote when the TTL is over.
func (l *Lock) releaseOn(ctx context.Context, nodes []node) {
	for _, n := range nodes {
		ctx, cancel := l.call(ctx)
		_ = deleteIfMine.Run(ctx, n.client, []string{l.key}, l.id).Err()
		cancel()
	}
}

func (l *Lock) refusal(enough bool, p poll) error {
	switch {
	case enough:
		return impl.ErrValidityUsedUp.With("acquire", "", l.key, nil)
	case len(p.errors) > 0:
		return impl.ErrQuorum.With("acquire", "", l.key, errors.Join(p.errors...))
	default:
		return impl.ErrNotObtained.With("acquire", "", l.key, nil)
	}
}

func (l *Lock) lease(p poll, start time.Time) impl.Lease {
	switch {
	case l.fence != "":
		return &fencedLease{lease: lease{lock: l}, fence: p.fence}
	case l.tells:
		return &tellingLease{lease: lease{lock: l}, until: start.Add(l.usable())}
	}
	return &lease{lock: l}
}

// Close closes the connections to all nodes. Leases end by their TTL.
func (l *Lock) Close() error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.client.Close())
	}
	return errors.Join(errs...)
}

type lease struct{ lock *Lock }

// Release deletes the key on every node where it carries this object's
// identifier. It always returns nil, also when no node could be reached or the
// lease was over: the algorithm does not look. An ended ctx does not stop it;
// it takes at most one time-out (10 to 50 ms) per node.
func (s *lease) Release(ctx context.Context) error {
	s.lock.releaseOn(context.WithoutCancel(ctx), s.lock.nodes)
	return nil
}

type fencedLease struct {
	lease
	fence uint64
}

// Fence is the largest of the counters of the nodes that voted yes. It is not
// monotonic; see the package comment.
func (s *fencedLease) Fence() uint64 { return s.fence }

type tellingLease struct {
	lease
	until time.Time
}

// Until is the end of the validity on the client's own monotonic clock.
func (s *tellingLease) Until() time.Time { return s.until }
