// Package impl holds the contract that every lock under test fulfils: how a
// lock is built, the one method it must have, the abilities it may have, and
// the errors it may return.
//
// Lock code is plain production code. It uses time, context, goroutines and a
// Redis client as any user would; nothing here injects a clock or a hook, and
// nothing below impl knows that a simulator exists.
//
// It is not a lock library: the five locks in the folders below are ports of
// designs that people copy, weaknesses included. impl/reference shows what
// they should have been. The table of all locks is impl/catalogue.
package impl

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lock is a lock as one client sees it: one object per client and name.
type Lock interface {
	// Acquire tries to get the lock and returns the handle of this one
	// acquisition. Whether it waits, and for how long, is the lock's own
	// policy. Errors are classified by [Classify]; [ErrNotObtained] says that
	// somebody else holds the lock.
	Acquire(ctx context.Context) (Lease, error)
}

// RWLock is a lock that any number of readers may share, or one writer has for
// itself. Its Acquire is AcquireWrite, so that it can stand in for a mutex.
type RWLock interface {
	AcquireRead(ctx context.Context) (Lease, error)
	AcquireWrite(ctx context.Context) (Lease, error)
}

// Semaphore is a lock that up to Permits holders have at the same time.
type Semaphore interface {
	Permits() int
}

// Lease is one acquisition. Ownership is per acquisition, never per client.
type Lease interface {
	// Release gives the lock back. [ErrNotHeld] says that this acquisition
	// did not hold it any more.
	Release(ctx context.Context) error
}

// Fencer is a lease that carries a fencing token: a number that is meant to
// grow with every grant, so that a resource can refuse a late holder.
// Source: Kleppmann, "How to do distributed locking" (2016).
type Fencer interface {
	Fence() uint64
}

// Extender is a lease whose holder can lengthen it by hand. After a nil
// error the lease runs for the lock's TTL from the call on.
type Extender interface {
	Extend(ctx context.Context) error
}

// ExtenderFor is a lease that can be lengthened by another length than the
// lock's TTL. Its user chooses the length, and may choose one that no lease can
// have: 0, less than a millisecond, less than nothing.
type ExtenderFor interface {
	ExtendFor(ctx context.Context, ttl time.Duration) error
}

// Validity is a lease that tells its holder when it ends. The answer may move
// on while a lock renews itself, so holders ask again.
type Validity interface {
	// Until is on the client's own clock. After it the holder must assume
	// that somebody else holds the lock.
	Until() time.Time
}

// LossNotifier is a lease that tells its holder when it has been lost before
// it was released. The channel is closed once and stays open after a clean
// release.
type LossNotifier interface {
	Lost() <-chan struct{}
}

// SelfRenewing is a lease that is renewed in the background and can be asked how
// that goes. A holder that does not ask learns nothing.
type SelfRenewing interface {
	// RenewalErr is the error that ended the renewal while the lease was still
	// held; nil as long as it goes on, and after a clean release. Its code is
	// [CodeRenewalFailed].
	RenewalErr() error
}

// Node is one Redis endpoint as one client reaches it.
type Node struct {
	// Name is for messages: n1, n2, ... or "primary" where the endpoint
	// follows a failover.
	Name string

	// Options returns fresh go-redis options with the address and a dialer
	// that goes through this client's own links. Every other option is the
	// lock author's to set, defaults included.
	Options func() *redis.Options

	// Connect makes a client where one address does not do: for a primary that
	// sentinels name, or for a Redis Cluster. It heeds the time-outs, the
	// retries and the pool of the options and takes the addresses from the
	// environment. It is nil for a plain node.
	Connect func(*redis.Options) redis.UniversalClient

	// Dial opens a raw connection, for clients other than go-redis.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Client makes the client of this node with options from [Node.Options], which
// the caller may have changed.
func (n Node) Client(o *redis.Options) redis.UniversalClient {
	if n.Connect != nil {
		return n.Connect(o)
	}
	return redis.NewClient(o)
}

// Env is what a lock is built from.
type Env struct {
	// Client names the client, for messages only.
	Client string

	// Nodes has one entry for a lock on one Redis, N for Redlock.
	Nodes []Node

	// Name of the lock; locks put their own prefix before it.
	Name string

	// TTL of the lease.
	TTL time.Duration

	// Retries is how often Acquire tries again, where a lock lets its users
	// choose that. It is the number that the lock's own option takes, which may
	// count the first try or not.
	Retries Retries

	// Token is the value that its user chose for the lock's key, where a lock
	// lets its users choose; empty lets it draw one.
	Token string

	_ struct{} // named fields only
}

// New builds a lock for one client. A lock that has something to close
// implements [io.Closer]; the caller closes it after its last use.
type New func(Env) (Lock, error)
