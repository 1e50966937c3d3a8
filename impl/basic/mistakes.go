package basic

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// Mistakes are classic mistakes that can be switched on, one at a time, to see
// that the harness catches them. They exist for the harness's own tests
// (impl/mutants) and for nothing else. The zero value makes none.
type Mistakes struct {
	// ReleaseWithoutOwnerCheck deletes the key whoever wrote it.
	ReleaseWithoutOwnerCheck bool
	// ReleaseGetThenDel compares and deletes in two commands; between them the
	// key may expire and become another's.
	ReleaseGetThenDel bool
	// NoTTL sets the key for ever: a holder that dies keeps it.
	NoTTL bool
	// ExpireSeparately sets the key and its TTL in two commands; a holder that
	// dies between them keeps it for ever.
	ExpireSeparately bool
	// WholeSecondTTL cuts the TTL to whole seconds, at least one: 1.5 s
	// becomes 1 s.
	WholeSecondTTL bool
	// ZeroTTL gives the key a TTL of 0, as a conversion to a larger unit does to
	// a short one: Redis deletes the key and says that it set the TTL.
	ZeroTTL bool
	// BlindRetry sends SET NX once more after an error and takes a key that
	// is there by then for its own, without asking whose it is.
	BlindRetry bool
	// FixedIdentifier gives every client the same value.
	FixedIdentifier bool
	// IdentifierByPrefix compares only the client's part of the value,
	// and clients share it.
	IdentifierByPrefix bool
	// ReleaseByExpiry writes the moment of expiry behind the identifier, and
	// deletes a key that expires no sooner than its own would have.
	ReleaseByExpiry bool
	// ReleaseOfAnotherKey deletes a key without the prefix under which the lock
	// was taken: its own stays.
	ReleaseOfAnotherKey bool
	// ReleaseJudgedByExistence deletes its key, then asks whether there is one,
	// and says "not held" if there is: it may be the next holder's.
	ReleaseJudgedByExistence bool
	// RefusedReleaseIsYes compares the reply with a 0 of another type and says
	// yes whatever it is.
	RefusedReleaseIsYes bool
	// WrongUnit sends the TTL's nanoseconds where milliseconds belong.
	WrongUnit bool
	// GetSet keeps the moment of expiry in the value and takes over an expired
	// key with GETSET, which overwrites that of a faster one.
	GetSet bool
	// FailOpen takes an error for "nobody holds it" and goes on.
	FailOpen bool
	// ErrorIsRefusal takes an error for "somebody holds it".
	ErrorIsRefusal bool
	// LocalHoldStays notes its hold in the client too, and takes the note back
	// only when the server confirms the release.
	LocalHoldStays bool
	// DataKey uses the key under which the application keeps its data.
	DataKey bool
	// LeaksSlots gives a place of the client's own limit on calls back only
	// after a grant.
	LeaksSlots bool
	// NoEvalFallback sends EVALSHA and never EVAL, having loaded the script
	// once at its first release.
	NoEvalFallback bool
}

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	l, err := build(env, wrong)
	if err != nil {
		return nil, err // not l: a nil *Lock in an interface is not nil
	}
	return l, nil
}

//go:embed grant_for_nothing.lua
var grantForNothingSource string

var grantForNothing = redis.NewScript(grantForNothingSource)

// sharedPrefix is what IdentifierByPrefix compares.
const sharedPrefix = "worker-"

// shape applies the mistakes that are made when the lock is built.
func (m Mistakes) shape(l *Lock) {
	if m.WholeSecondTTL {
		l.ttl = max(l.ttl.Truncate(time.Second), time.Second)
	}
	if m.FixedIdentifier {
		l.id = "locked"
	}
	if m.IdentifierByPrefix {
		l.id = sharedPrefix + l.id
	}
	if m.DataKey {
		_, l.key, _ = strings.Cut(l.key, ":")
	}
	if m.LeaksSlots {
		l.slots = make(chan struct{}, slotLimit)
	}
}

// slotLimit is how many calls a client with LeaksSlots makes at a time.
const slotLimit = 10

func (m Mistakes) takesAnotherWay() bool {
	both := m.ReleaseByExpiry || m.LocalHoldStays
	return m != Mistakes{} && (both || !m.releasesAnotherWay())
}

func (l *Lock) acquireWrongly(ctx context.Context) (impl.Lease, error) {
	set := func() error {
		return l.client.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Milliseconds()).Err()
	}
	switch {
	case l.wrong.NoTTL:
		return l.granted(l.client.Do(ctx, "SET", l.key, l.id, "NX").Err())
	case l.wrong.ZeroTTL:
		set, err := grantForNothing.Run(ctx, l.client, []string{l.key}, l.id).Int64()
		if err == nil && set == 0 {
			err = redis.Nil
		}
		return l.granted(err)
	case l.wrong.ExpireSeparately:
		got, err := l.granted(l.client.Do(ctx, "SET", l.key, l.id, "NX").Err())
		if err != nil {
			return nil, err
		}
		if err := l.client.PExpire(ctx, l.key, l.ttl).Err(); err != nil {
			return nil, impl.FromRedis("acquire", l.node, l.key, err)
		}
		return got, nil
	case l.wrong.ReleaseByExpiry:
		return l.acquireStamped(ctx)
	case l.wrong.WrongUnit:
		return l.granted(l.client.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Nanoseconds()).Err())
	case l.wrong.GetSet:
		return l.acquireByGetSet(ctx)
	case l.wrong.BlindRetry:
		err := set()
		if err == nil || errors.Is(err, redis.Nil) {
			return l.granted(err)
		}
		if again := set(); again != nil && !errors.Is(again, redis.Nil) {
			return l.granted(again)
		}
		// The mistake: the key is there, so the first try must have put it
		// there. It may as well be another client's.
		return &lease{lock: l}, nil
	case l.wrong.FailOpen:
		if err := set(); errors.Is(err, redis.Nil) {
			return l.granted(err)
		}
		return &lease{lock: l}, nil
	case l.wrong.ErrorIsRefusal:
		if set() != nil {
			return l.granted(redis.Nil)
		}
		return &lease{lock: l}, nil
	case l.wrong.LocalHoldStays:
		return l.acquireLocally(set)
	case l.wrong.DataKey:
		// The application's own write, which happens to be the lock's key.
		if err := l.client.Do(ctx, "SET", l.key, "data", "NX").Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, impl.FromRedis("acquire", l.node, l.key, err)
		}
		return l.granted(set())
	case l.wrong.LeaksSlots:
		return l.acquireWithSlot(ctx, set)
	}
	return l.granted(set()) // TTL and identifier were shaped when the lock was built
}

func (m Mistakes) releasesAnotherWay() bool {
	return m.ReleaseWithoutOwnerCheck || m.ReleaseGetThenDel || m.IdentifierByPrefix || m.NoEvalFallback ||
		m.ReleaseByExpiry || m.ReleaseOfAnotherKey || m.ReleaseJudgedByExistence || m.RefusedReleaseIsYes || m.LocalHoldStays
}

func (l *Lock) deleteWrongly(ctx context.Context) (int64, error) {
	switch {
	case l.wrong.ReleaseWithoutOwnerCheck:
		return l.client.Del(ctx, l.key).Result()
	case l.wrong.NoEvalFallback:
		return l.deleteWithoutFallback(ctx)
	case l.wrong.ReleaseOfAnotherKey:
		_, bare, _ := strings.Cut(l.key, ":")
		_, err := deleteIfMine.Run(ctx, l.client, []string{bare}, l.id).Int64()
		return 1, err
	case l.wrong.LocalHoldStays:
		deleted, err := deleteIfMine.Run(ctx, l.client, []string{l.key}, l.id).Int64()
		if deleted == 1 {
			l.held.Store(false)
		}
		return deleted, err
	case l.wrong.RefusedReleaseIsYes:
		_, err := deleteIfMine.Run(ctx, l.client, []string{l.key}, l.id).Int64()
		return 1, err
	case l.wrong.ReleaseJudgedByExistence:
		if err := deleteIfMine.Run(ctx, l.client, []string{l.key}, l.id).Err(); err != nil {
			return 0, err
		}
		left, err := l.client.Exists(ctx, l.key).Result()
		return 1 - left, err
	}
	owner, err := l.client.Get(ctx, l.key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	mine := owner == l.id
	if l.wrong.ReleaseByExpiry {
		mine = owner != "" && expiryIn(owner) >= expiryIn(l.id)
	}
	if l.wrong.IdentifierByPrefix {
		mine = strings.HasPrefix(owner, sharedPrefix)
	}
	if !mine {
		return 0, nil
	}
	return l.client.Del(ctx, l.key).Result()
}

// deleteWithoutFallback loads the script once and then trusts the server to
// keep it; a restart or a SCRIPT FLUSH makes every later release fail.
func (l *Lock) deleteWithoutFallback(ctx context.Context) (int64, error) {
	var err error
	l.loadOnce.Do(func() { err = deleteIfMine.Load(ctx, l.client).Err() })
	if err != nil {
		return 0, err
	}
	return deleteIfMine.EvalSha(ctx, l.client, []string{l.key}, l.id).Int64()
}
