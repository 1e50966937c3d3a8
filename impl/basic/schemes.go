package basic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// The mistakes that are whole schemes of their own.

// stamped is an identifier with a moment of expiry behind it.
func (l *Lock) stamped(expiry time.Time) string {
	name, _, _ := strings.Cut(l.id, "@")
	return fmt.Sprintf("%s@%d", name, expiry.UnixMilli())
}

// expiryIn reads the moment of expiry in a value, in milliseconds; 0 if there
// is none.
func expiryIn(value string) int64 {
	_, at, _ := strings.Cut(value, "@")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

// acquireStamped is the acquire that belongs to Mistakes.ReleaseByExpiry.
func (l *Lock) acquireStamped(ctx context.Context) (impl.Lease, error) {
	id := l.stamped(time.Now().Add(l.ttl))
	got, err := l.granted(l.client.Do(ctx, "SET", l.key, id, "NX", "PX", l.ttl.Milliseconds()).Err())
	if err == nil {
		l.id = id
	}
	return got, err
}

// acquireByGetSet is the scheme of Mistakes.GetSet. Two that find the same
// expired value both send GETSET; the slower one has overwritten the faster
// one's value by the time it learns that it has lost.
func (l *Lock) acquireByGetSet(ctx context.Context) (impl.Lease, error) {
	now := time.Now()
	id := l.stamped(now.Add(l.ttl))
	won := func() (impl.Lease, error) { l.id = id; return &lease{lock: l}, nil }
	if err := l.client.Do(ctx, "SET", l.key, id, "NX").Err(); !errors.Is(err, redis.Nil) {
		if err != nil {
			return l.granted(err)
		}
		return won()
	}
	held, err := l.client.Get(ctx, l.key).Result()
	if err != nil || expiryIn(held) > now.UnixMilli() {
		return l.granted(redis.Nil)
	}
	before, err := l.client.Do(ctx, "GETSET", l.key, id).Text()
	if err != nil && !errors.Is(err, redis.Nil) {
		return l.granted(err)
	}
	if before == held {
		return won()
	}
	return l.granted(redis.Nil)
}

// acquireLocally is the acquire that belongs to Mistakes.LocalHoldStays.
func (l *Lock) acquireLocally(set func() error) (impl.Lease, error) {
	if l.held.Load() {
		return l.granted(redis.Nil)
	}
	got, err := l.granted(set())
	l.held.Store(err == nil)
	return got, err
}

// acquireWithSlot is the acquire that belongs to Mistakes.LeaksSlots.
func (l *Lock) acquireWithSlot(ctx context.Context, set func() error) (impl.Lease, error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, impl.FromRedis("acquire", l.node, l.key, ctx.Err())
	}
	got, err := l.granted(set())
	if err == nil {
		<-l.slots
	}
	return got, err
}
