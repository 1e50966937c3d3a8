// Package rwlock is a lock for readers and writers: a hash with one count of
// readers and one TTL, and a string for the writer.
//
// It is a port of a design that people copy, weaknesses included. It is not a
// recommendation.
//
// Weaknesses, and the scenario that shows each; the package's tests show all:
//
//   - Readers have no names. One whose lease has ended takes away another's
//     count when it releases, and a writer enters beside that other
//     (reader-outlives-lease):
//
//     t=0    A acquires for reading; the count is 1
//     t=1    the TTL is over and the count is gone; B acquires for reading
//     t=1.1  A releases: the count is 0 and the key is deleted
//     t=1.2  C acquires for writing while B reads
//
//   - One TTL for all readers: each new reader lengthens the count of those
//     that crashed, and while readers keep coming, no writer ever enters.
//
//   - The writer writes its key first and looks for readers in a second step.
//     While it looks, readers are turned away although nobody writes; when it
//     crashes in between, for a TTL. A writer that is paused in between finds
//     no readers, and does not see that its own key has ended.
//
//   - go-redis repeats a read acquire whose reply was lost: the reader is
//     counted twice and releases once.
//
//   - As basic: no loss notice, no validity, no fence, acquire does not measure
//     its own duration, one node's memory and clock decide.
package rwlock

import (
	"context"
	_ "embed"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// undoLimit bounds the second half of a write acquire that found readers.
const undoLimit = time.Second

//go:embed acquire_read.lua
var acquireReadSource string

//go:embed release_read.lua
var releaseReadSource string

//go:embed delete_if_mine.lua
var deleteIfMineSource string

var (
	acquireRead  = redis.NewScript(acquireReadSource)
	releaseRead  = redis.NewScript(releaseReadSource)
	deleteIfMine = redis.NewScript(deleteIfMineSource)
)

// Mistakes are classic mistakes that can be switched on, one at a time, to see
// that the harness catches them. They exist for the harness's own tests
// (impl/mutants) and for nothing else. The zero value makes none.
type Mistakes struct {
	// FirstReadersTTL sets the TTL with the first reader only: all readers
	// share it, and a later one reads on when the count has expired.
	FirstReadersTTL bool
	// EntryStays leaves an entry behind when a reader goes, and lets the same
	// object read again without a look at the writer.
	EntryStays bool
	// WriterDoesNotLook takes the writer's key for enough.
	WriterDoesNotLook bool
}

// Lock is one client's lock object. It implements [impl.RWLock].
type Lock struct {
	client  redis.UniversalClient
	node    string
	writer  string
	readers string
	ttl     time.Duration
	wrong   Mistakes
	entry   atomic.Bool // for Mistakes.EntryStays
}

// New builds the lock on the environment's first node. It fails only for an
// environment that [impl.Env.Check] refuses.
func New(env impl.Env) (impl.Lock, error) { return NewWith(env, Mistakes{}) }

// NewWith is [New] with mistakes, for the harness's own tests.
func NewWith(env impl.Env, wrong Mistakes) (impl.Lock, error) {
	if err := env.Check(); err != nil {
		return nil, err
	}
	return &Lock{
		client:  env.Nodes[0].Client(env.Nodes[0].Options()),
		node:    env.Nodes[0].Name,
		writer:  "rwlock:" + env.Name,
		readers: "rwlock_readers:" + env.Name,
		ttl:     env.TTL,
		wrong:   wrong,
	}, nil
}

// Acquire is AcquireWrite.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) { return l.AcquireWrite(ctx) }

// AcquireRead asks once. Errors: [impl.ErrNotObtained] when there is a writer,
// or one that looks for readers; otherwise what [impl.FromRedis] makes of it.
func (l *Lock) AcquireRead(ctx context.Context) (impl.Lease, error) {
	each := 1
	if l.wrong.FirstReadersTTL {
		each = 0
	}
	writer := l.writer
	if l.wrong.EntryStays && l.entry.Swap(true) {
		writer += ":none"
	}
	count, err := acquireRead.Run(ctx, l.client, []string{writer, l.readers}, l.ttl.Milliseconds(), each).Int64()
	if err != nil {
		return nil, impl.FromRedis("acquire-read", l.node, l.readers, err)
	}
	if count == 0 {
		return nil, impl.ErrNotObtained.With("acquire-read", l.node, l.readers, nil)
	}
	return &reader{lock: l}, nil
}

// AcquireWrite writes the writer's key, then looks for readers, and takes the
// key back if there are any. Errors: [impl.ErrNotObtained] when there is a
// writer or a reader; otherwise what [impl.FromRedis] makes of it.
func (l *Lock) AcquireWrite(ctx context.Context) (impl.Lease, error) {
	id := impl.NewIdentifier()
	err := l.client.Do(ctx, "SET", l.writer, id, "NX", "PX", l.ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return nil, impl.ErrNotObtained.With("acquire-write", l.node, l.writer, nil)
	}
	if err != nil {
		return nil, impl.FromRedis("acquire-write", l.node, l.writer, err)
	}
	readers, err := l.client.Exists(ctx, l.readers).Result()
	if err == nil && (readers == 0 || l.wrong.WriterDoesNotLook) {
		return &writer{lock: l, id: id}, nil
	}
	undone := l.undo(ctx, id)
	switch {
	case err != nil:
		return nil, impl.FromRedis("acquire-write", l.node, l.readers, err)
	case undone != nil:
		// Nobody writes, but the key is there: "definite" would be too much.
		return nil, impl.ErrUnknownOutcome.With("acquire-write", l.node, l.writer, undone)
	}
	return nil, impl.ErrNotObtained.With("acquire-write", l.node, l.writer, nil)
}

// undo takes the writer's key back, also when the caller's ctx has ended.
func (l *Lock) undo(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return deleteIfMine.Run(ctx, l.client, []string{l.writer}, id).Err()
}

// Close closes the client's connections. Leases end by their TTL.
func (l *Lock) Close() error { return l.client.Close() }

type reader struct{ lock *Lock }

// Release counts one reader less, whichever it is. Errors: [impl.ErrNotHeld]
// when there are no readers, otherwise what [impl.FromRedis] makes of it.
func (s *reader) Release(ctx context.Context) error {
	l := s.lock
	done, err := releaseRead.Run(ctx, l.client, []string{l.readers}).Int64()
	if err != nil {
		return impl.FromRedis("release-read", l.node, l.readers, err)
	}
	if done == 0 {
		return impl.ErrNotHeld.With("release-read", l.node, l.readers, nil)
	}
	return nil
}

type writer struct {
	lock *Lock
	id   string
}

// Release deletes the writer's key if it carries this acquisition's
// identifier. Errors: [impl.ErrNotHeld] when it does not, otherwise what
// [impl.FromRedis] makes of it.
func (s *writer) Release(ctx context.Context) error {
	l := s.lock
	deleted, err := deleteIfMine.Run(ctx, l.client, []string{l.writer}, s.id).Int64()
	if err != nil {
		return impl.FromRedis("release-write", l.node, l.writer, err)
	}
	if deleted == 0 {
		return impl.ErrNotHeld.With("release-write", l.node, l.writer, nil)
	}
	return nil
}
