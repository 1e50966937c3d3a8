package orders

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast"
	"github.com/holdfast-io/holdfast/impl/reference"
)

// TestLocker fails: work that outlives the TTL lets a second client in, and
// nothing tells the first one. That is what the test is for.
func TestLocker(t *testing.T) {
	holdfast.Test(t, holdfast.SuiteLease, newAdapter)
}

// TestReference plays the same suite against a lock that renews its lease and
// tells its holder when it ends. It passes.
func TestReference(t *testing.T) {
	holdfast.Test(t, holdfast.SuiteLease, reference.New)
}

// adapter fits the locker to the two methods that holdfast asks for, and says
// what its errors mean.
type adapter struct {
	client *redis.Client
	locker *Locker
}

func newAdapter(env holdfast.Env) (holdfast.Lock, error) {
	client := redis.NewClient(env.Nodes[0].Options())
	return &adapter{client: client, locker: NewLocker(client, env.Name, env.TTL)}, nil
}

func (a *adapter) Acquire(ctx context.Context) (holdfast.Lease, error) {
	token, err := a.locker.Lock(ctx)
	if errors.Is(err, ErrTaken) {
		return nil, fmt.Errorf("%w: %w", holdfast.ErrNotObtained, err)
	}
	if err != nil {
		return nil, err
	}
	return &lease{locker: a.locker, token: token}, nil
}

func (a *adapter) Close() error { return a.client.Close() }

type lease struct {
	locker *Locker
	token  string
}

func (l *lease) Release(ctx context.Context) error {
	err := l.locker.Unlock(ctx, l.token)
	if errors.Is(err, ErrGone) {
		return fmt.Errorf("%w: %w", holdfast.ErrNotHeld, err)
	}
	return err
}
