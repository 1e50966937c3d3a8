// Package orders has a lock as many services have one: SET NX PX with a random
// token, and a release that deletes only its own token. It is here to be
// tested; lock_test.go shows what it takes, and what comes of it.
package orders

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrTaken says that somebody else holds the lock.
var ErrTaken = errors.New("orders: the lock is taken")

// ErrGone says that the lock was not ours any more when it was to be unlocked.
var ErrGone = errors.New("orders: the lock was lost")

var deleteIfMine = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// Locker locks one name.
type Locker struct {
	client *redis.Client
	key    string
	ttl    time.Duration
}

// NewLocker makes a locker for a name.
func NewLocker(client *redis.Client, name string, ttl time.Duration) *Locker {
	return &Locker{client: client, key: "orders:" + name, ttl: ttl}
}

// Lock tries once and returns the token to unlock with.
func (l *Locker) Lock(ctx context.Context) (token string, err error) {
	token = rand.Text()
	err = l.client.Do(ctx, "SET", l.key, token, "NX", "PX", l.ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return "", ErrTaken
	}
	return token, err
}

// Unlock gives the lock back.
func (l *Locker) Unlock(ctx context.Context, token string) error {
	deleted, err := deleteIfMine.Run(ctx, l.client, []string{l.key}, token).Int()
	if err == nil && deleted == 0 {
		return ErrGone
	}
	return err
}
