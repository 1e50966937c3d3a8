package postgres

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

// LeastTTL is what the server's clock can tell apart.
const LeastTTL = time.Millisecond

// poll is the pause between two tries of an Acquire that waits.
const poll = 50 * time.Millisecond

//go:embed schema.sql
var schema string

//go:embed take.sql
var takeStatement string

//go:embed extend.sql
var extendStatement string

//go:embed free.sql
var freeStatement string

// Row is one client's lock object on a row of a table.
type Row struct {
	pool *pgxpool.Pool
	node string
	name string
	ttl  time.Duration

	mu    sync.Mutex
	table bool // is known to be there
}

// New builds the lock on a row of a table on the environment's first node. It
// fails only for an environment that [impl.Env.CheckDial] refuses.
func New(env impl.Env) (impl.Lock, error) {
	if err := env.CheckDial(LeastTTL); err != nil {
		return nil, err
	}
	pool, err := connect(env)
	if err != nil {
		return nil, err
	}
	return &Row{pool: pool, node: env.Nodes[0].Name, name: env.Name, ttl: env.TTL}, nil
}

// Acquire asks every 50 ms until it gets the lock or ctx ends, and waits for the
// last answer up to a quarter of the TTL longer. Errors:
// [impl.ErrNotObtained] when ctx ended between two tries, otherwise what became
// of the last one: [impl.ErrUnreachable], [impl.ErrScript] for an error of the
// server, [impl.ErrUnknownOutcome] for a try that may have been granted. Such a
// grant lasts for one TTL.
func (l *Row) Acquire(ctx context.Context) (impl.Lease, error) {
	if err := l.create(ctx); err != nil {
		return nil, err
	}
	token := impl.NewIdentifier()
	for {
		fence, err := l.take(ctx, token)
		if err == nil {
			return &rowLease{lock: l, token: token, fence: fence}, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, typed("acquire", l.node, l.name, err)
		}
		if err := wait.For(ctx, poll); err != nil {
			return nil, impl.ErrNotObtained.With("acquire", l.node, l.name, err)
		}
	}
}

// take is one try. Its answer is waited for a little longer than ctx: most
// statements that are under way when a deadline passes have one soon, and without
// it nobody knows who has the lock.
func (l *Row) take(ctx context.Context, token string) (fence uint64, err error) {
	ctx, cancel := wait.Beyond(ctx, min(l.ttl/4, time.Second))
	defer cancel()
	err = l.pool.QueryRow(ctx, takeStatement, l.name, token, l.ttl.Microseconds()).Scan(&fence)
	return fence, err
}

// create makes the table where it is not there. Its failure is definite: no lock
// was asked for.
func (l *Row) create(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table {
		return nil
	}
	// Several statements at once are one transaction of the simple protocol.
	if _, err := l.pool.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol); err != nil {
		return impl.ErrUnreachable.With("acquire", l.node, l.name, err)
	}
	l.table = true
	return nil
}

// Close closes the connections. Leases end by their TTL.
func (l *Row) Close() error {
	l.pool.Close()
	return nil
}

// rowLease is one acquisition.
type rowLease struct {
	lock  *Row
	token string
	fence uint64
}

// Fence is the number that the granting statement drew.
func (s *rowLease) Fence() uint64 { return s.fence }

// Extend lengthens the lease to the TTL from now on. Errors:
// [impl.ErrNotHeld] when it has ended, otherwise as for Acquire.
func (s *rowLease) Extend(ctx context.Context) error {
	return s.change(ctx, "extend", extendStatement, s.lock.ttl.Microseconds())
}

// Release ends the lease. Errors: [impl.ErrNotHeld] when it had ended,
// otherwise as for Acquire.
func (s *rowLease) Release(ctx context.Context) error {
	return s.change(ctx, "release", freeStatement)
}

// change runs a statement on the row if it is this acquisition's and has time
// left.
func (s *rowLease) change(ctx context.Context, op, statement string, more ...any) error {
	l := s.lock
	done, err := l.pool.Exec(ctx, statement, append([]any{l.name, s.token}, more...)...)
	if err != nil {
		return typed(op, l.node, l.name, err)
	}
	if done.RowsAffected() == 0 {
		return impl.ErrNotHeld.With(op, l.node, l.name, nil)
	}
	return nil
}
