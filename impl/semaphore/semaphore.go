// Package semaphore is a lock with several holders: at most N permits in a
// sorted set, each with its expiry as the score. Whoever wants one sweeps the
// expired ones first.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation. Whose clock makes the scores is a choice: [New] takes the
// server's, [NewWithClientTime] the clients', as most articles do.
//
// Weaknesses, and the scenario that shows each; the package's tests show all:
//
//   - With client time, a client whose clock is ahead sweeps permits that are
//     alive, and there are more holders than permits; one whose clock is
//     behind is granted permits that the others sweep early. No world can skew
//     the clock of a client: lock code reads the clock of the machine. A client
//     whose requests are late looks the same to the others (permits); the
//     package's tests send the script such a client's time.
//   - The same happens with both times on a server whose clock jumps
//     (permits-clock-jump).
//   - go-redis repeats an acquire whose reply was lost: by then the permit is
//     there, under its own name. With one permit left the answer is no, and
//     the permit is gone for a TTL; with more it is granted again, as it should
//     be.
//   - A permit that has expired and that nobody has swept yet is released with
//     a yes.
//   - As basic: no loss notice, no validity, no fence, acquire does not measure
//     its own duration, one node's memory decides.
package semaphore

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// DefaultPermits is how many permits [New] has.
const DefaultPermits = 2

//go:embed acquire.lua
var acquireSource string

var acquire = redis.NewScript(acquireSource)

// Options of the lock.
type Options struct {
	// Permits is how many holders there may be; [DefaultPermits] if it is zero.
	// All clients must agree on it.
	Permits int
	// ClientTime takes the clients' wall clocks for the scores.
	ClientTime bool

	// The rest are classic mistakes, for the harness's own tests.

	// NamelessRelease gives back the oldest permit, whoever has it.
	NamelessRelease bool
	// ResetsAtStart makes all permits anew with a client's first acquire.
	ResetsAtStart bool
	// OneTooMany compares the count with the limit in the wrong direction.
	OneTooMany bool
}

// Lock is one client's lock object. It implements [impl.Semaphore].
type Lock struct {
	client  redis.UniversalClient
	node    string
	key     string
	ttl     time.Duration
	options Options
	reset   sync.Once // for Options.ResetsAtStart
}

// New builds the lock on the environment's first node, with server time. It
// fails only for an environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Options{}) }

// NewWithClientTime is [New] with the clients' clocks.
func NewWithClientTime(env impl.Env) (impl.Lock, error) {
	return NewWith(env, Options{ClientTime: true})
}

// NewWith is [New] with options. It also fails for less than no permits.
func NewWith(env impl.Env, o Options) (impl.Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	if o.Permits < 0 {
		return nil, fmt.Errorf("lock %q of client %q: %d permits", env.Name, env.Client, o.Permits)
	}
	if o.Permits == 0 {
		o.Permits = DefaultPermits
	}
	return &Lock{
		client:  env.Nodes[0].Client(env.Nodes[0].Options()),
		node:    env.Nodes[0].Name,
		key:     "semaphore:" + env.Name,
		ttl:     env.TTL,
		options: o,
	}, nil
}

// Permits is how many holders there may be.
func (l *Lock) Permits() int { return l.options.Permits }

// Acquire asks once for a permit. Errors: [impl.ErrNotObtained] when all are
// taken; otherwise what [impl.FromRedis] makes of it.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	id := impl.NewIdentifier()
	if l.options.ResetsAtStart {
		l.reset.Do(func() { _ = l.client.Del(ctx, l.key).Err() })
	}
	limit := l.options.Permits
	if l.options.OneTooMany {
		limit++
	}
	granted, err := acquire.Run(ctx, l.client, []string{l.key},
		id, limit, l.ttl.Milliseconds(), l.now()).Int64()
	if err != nil {
		return nil, impl.FromRedis("acquire", l.node, l.key, err)
	}
	if granted == 0 {
		return nil, impl.ErrNotObtained.With("acquire", l.node, l.key, nil)
	}
	return &lease{lock: l, id: id}, nil
}

// now is the time that the script is to use, empty for the server's own.
func (l *Lock) now() string {
	if !l.options.ClientTime {
		return ""
	}
	return strconv.FormatInt(time.Now().UnixMilli(), 10)
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.client.Close() }

type lease struct {
	lock *Lock
	id   string
}

// Release gives the permit back. Errors: [impl.ErrNotHeld] when it has been
// swept, otherwise what [impl.FromRedis] makes of it.
func (s *lease) Release(ctx context.Context) error {
	l := s.lock
	removed, err := l.remove(ctx, s.id)
	if err != nil {
		return impl.FromRedis("release", l.node, l.key, err)
	}
	if removed == 0 {
		return impl.ErrNotHeld.With("release", l.node, l.key, nil)
	}
	return nil
}

func (l *Lock) remove(ctx context.Context, id string) (int64, error) {
	if l.options.NamelessRelease {
		popped, err := l.client.ZPopMin(ctx, l.key).Result()
		return int64(len(popped)), err
	}
	return l.client.ZRem(ctx, l.key, id).Result()
}
