// Package reference is the lock on one node that the others should have been,
// and the harness's control for false alarms: whatever plan of faults it is run
// under, short of a node that loses data or whose clock jumps, no two holders
// may believe at the same time that they hold it.
//
// What it does that the others do not:
//
//   - An identifier per acquisition, so that nothing an old lease does can
//     touch a newer one of the same client.
//   - Acquire measures itself on the monotonic clock from before its first
//     request, and gives back what it cannot use any more.
//   - A request whose reply was lost is repeated, and the granting script
//     answers the same question with the same fence.
//   - Until tells the holder how long it may believe: the TTL from before the
//     last confirmed request left, less a hundredth for clocks that run at
//     different rates. Lost is closed no later than that.
//   - Renewal goes on until the lease ends, each try bounded in time.
//   - What may be left on the server is cleaned up, on a context that the
//     caller's does not cancel.
//   - Errors say what is known. go-redis's own retries are off, since they hide
//     whether an earlier try may have been applied.
//
// What it cannot do, as no lock with a TTL can:
//
//   - Stop a holder that is paused after it has looked at Until and before its
//     write arrives. Only a resource that checks the fence refuses that write
//     (kleppmann-gc-pause, kleppmann-fencing, delayed-write).
//   - Survive a node that loses the key or the counter, or whose clock jumps
//     (crash-restart-amnesia, failover-before-replication,
//     kleppmann-clock-jump).
//   - Prevent that a granting request which the network delays past the end of
//     its acquisition leaves the lock taken, for one TTL and by nobody
//     (partition-holder).
//   - Count time while the machine is suspended, on systems whose monotonic
//     clock stands still then.
package reference

import (
	"context"
	_ "embed"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

// Drift is the share of the TTL that a lease is shorter on the client's clock
// than on the server's.
const Drift = 0.01

// tries is how often acquire and release send a request before they give up.
const tries = 4

//go:embed grant.lua
var grantSource string

//go:embed extend.lua
var extendSource string

//go:embed release.lua
var releaseSource string

var (
	grantScript   = redis.NewScript(grantSource)
	extendScript  = redis.NewScript(extendSource)
	releaseScript = redis.NewScript(releaseSource)
)

// Lock is one client's lock object.
type Lock struct {
	client redis.UniversalClient
	node   string
	key    string
	fence  string // key of the fence counter

	ttl      time.Duration // whole milliseconds: what the server keeps
	usable   time.Duration // the TTL less the drift
	patience time.Duration // of one request
	pause    time.Duration // between two tries
	wrong    Mistakes
	id       string      // for Mistakes.IdentifierPerObject
	dead     atomic.Bool // for Mistakes.RenewsNoMore

	closing context.Context // ends with Close; the parent of every renewer
	close   context.CancelFunc
	mu      sync.Mutex // orders Add before Wait
	leases  sync.WaitGroup
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Mistakes{}) }

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	// The server counts whole milliseconds. A lease of 1.5 ms would be one of
	// 1 ms there, so it is here too.
	ttl := env.TTL.Truncate(time.Millisecond)
	closing, cancel := context.WithCancel(context.Background())
	l := &Lock{
		node:     env.Nodes[0].Name,
		key:      "reference:" + env.Name,
		fence:    "reference_fence:" + env.Name,
		ttl:      ttl,
		usable:   ttl - time.Duration(float64(ttl)*Drift),
		patience: ttl / 6, // three tries and more fit into what is left after a third
		pause:    ttl / 20,
		wrong:    wrong,
		id:       impl.NewIdentifier(),
		closing:  closing,
		close:    cancel,
	}
	l.client = env.Nodes[0].Client(l.options(env.Nodes[0]))
	return l, nil
}

// options bounds every part of a request by the request's context or by
// patience, whichever is shorter: a cancelled context does not wake a read,
// but a read's deadline does.
func (l *Lock) options(node impl.Node) *redis.Options {
	o := node.Options()
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = l.patience, l.patience, l.patience
	// After as many failed dials as the pool is large, go-redis stops dialling
	// and probes once a second, which is too seldom for a short lease. The
	// default also depends on the number of cores.
	o.PoolSize = 256
	return o
}

// Acquire asks for the lock and does not wait for a holder to leave. It takes
// less than the TTL, plus the time to clean up. Errors: [impl.ErrNotObtained]
// when somebody else holds it, [impl.ErrUnreachable] when no connection could
// be made, [impl.ErrValidityUsedUp] when the grant came too late and was given
// back, [impl.ErrUnknownOutcome] when a request may have been applied and
// whether it was cannot be told.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	id := impl.NewIdentifier()
	if l.wrong.IdentifierPerObject {
		id = l.id
	}
	start := time.Now()
	until := start.Add(l.usable)

	fence, err := l.grant(ctx, id, until)
	if err == nil && time.Now().Before(until) {
		return l.hold(id, fence, start)
	}
	if err == nil {
		// For example: the request left at 0, the client was paused until
		// 1.2 TTL, and the reply was waiting. The key is gone or about to go.
		err = impl.ErrValidityUsedUp.With("acquire", l.node, l.key, nil)
	}
	if l.wrong.GrantsOnDoubt && errors.Is(err, impl.ErrUnknownOutcome) && time.Now().Before(until) {
		return l.hold(id, 0, start)
	}
	return nil, l.undo(ctx, id, err)
}

// grant asks up to four times, until it knows. A refusal after a try whose
// fate is unknown proves nothing: that try may still be on its way, and be
// granted when the present holder has left.
func (l *Lock) grant(ctx context.Context, id string, until time.Time) (uint64, error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var doubt error
	for try := 1; ; try++ {
		fence, err := grantScript.Run(ctx, l.client, []string{l.key, l.fence}, id, l.ttl.Milliseconds()).Uint64()
		switch {
		case err == nil && fence > 0:
			return fence, nil
		case err == nil && doubt == nil:
			return 0, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
		case err == nil:
			return 0, doubt
		}
		err = l.typed("acquire", err)
		if doubt == nil && !impl.Classify(err).Definite {
			doubt = err
		}
		if try == tries || wait.For(ctx, l.pause) != nil {
			if doubt != nil {
				return 0, doubt
			}
			return 0, err
		}
	}
}

// typed types an error of one request. It knows more than [impl.FromRedis]:
// without retries inside go-redis, a dial that failed means that nothing left.
func (l *Lock) typed(op string, err error) error {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return impl.ErrUnreachable.With(op, l.node, l.key, err)
	}
	return impl.FromRedis(op, l.node, l.key, err)
}

// undo deletes what a failed acquire may have left, and returns the error that
// the caller is to see. The caller's ctx has often ended by now, so it does
// not count; patience bounds each of the two tries.
func (l *Lock) undo(ctx context.Context, id string, why error) error {
	usedUp := errors.Is(why, impl.ErrValidityUsedUp)
	if impl.Classify(why).Definite && !usedUp {
		return why // nothing was granted
	}
	if l.wrong.NoCleanUp || usedUp && l.wrong.KeepsLateGrant {
		return why
	}
	if !l.wrong.CleanUpOnCallersContext {
		ctx = context.WithoutCancel(ctx)
	}
	_, err := l.deleteMine(ctx, "acquire", request{id: id, tries: 2})
	if usedUp && err != nil {
		// The grant is known and its end is not. The key cannot be believed in
		// by anybody, but "definite" would be too much.
		return impl.ErrUnknownOutcome.With("acquire", l.node, l.key, errors.Join(why, err))
	}
	// A clean-up that failed changes nothing about an unknown outcome, nor
	// does one that worked: the request may still be on its way.
	return why
}

// request says what to delete and how hard to try.
type request struct {
	id    string
	fence uint64 // 0 if a grant is not known of
	tries int
}

// deleteMine deletes the lock if it carries the identifier, and says whether
// this acquisition held it (see release.lua).
func (l *Lock) deleteMine(ctx context.Context, op string, r request) (bool, error) {
	var doubt error
	for try := 1; ; try++ {
		bounded, cancel := context.WithTimeout(ctx, l.patience)
		deleted, err := releaseScript.Run(bounded, l.client, []string{l.key, l.fence}, r.id, r.fence).Int64()
		cancel()
		if err == nil && deleted == 0 && doubt != nil {
			// Either the try before deleted it or the lease had ended.
			return false, doubt
		}
		if err == nil {
			return deleted == 1, nil
		}
		err = l.typed(op, err)
		if doubt == nil && !impl.Classify(err).Definite {
			doubt = err
		}
		if try == r.tries || wait.For(ctx, l.pause) != nil {
			if doubt != nil {
				return false, doubt
			}
			return false, err
		}
	}
}

// Close ends the leases that were not released (they are lost), waits for
// their renewers, and closes the client's connections.
func (l *Lock) Close() error {
	l.mu.Lock()
	l.close()
	l.mu.Unlock()
	err := l.client.Close() // also wakes a renewal that hangs in a read
	l.leases.Wait()
	return err
}
