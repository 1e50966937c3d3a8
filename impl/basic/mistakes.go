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
}

func (m Mistakes) takesAnotherWay() bool {
	return m.NoTTL || m.ZeroTTL || m.ExpireSeparately || m.BlindRetry
}

func (l *Lock) acquireWrongly(ctx context.Context) (impl.Lease, error) {
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
	default: // BlindRetry
		set := func() error {
			return l.client.Do(ctx, "SET", l.key, l.id, "NX", "PX", l.ttl.Milliseconds()).Err()
		}
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
	}
}

func (m Mistakes) releasesAnotherWay() bool {
	return m.ReleaseWithoutOwnerCheck || m.ReleaseGetThenDel || m.IdentifierByPrefix || m.NoEvalFallback
}

func (l *Lock) deleteWrongly(ctx context.Context) (int64, error) {
	switch {
	case l.wrong.ReleaseWithoutOwnerCheck:
		return l.client.Del(ctx, l.key).Result()
	case l.wrong.NoEvalFallback:
		return l.deleteWithoutFallback(ctx)
	}
	owner, err := l.client.Get(ctx, l.key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	mine := owner == l.id
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
