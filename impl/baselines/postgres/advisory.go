package postgres

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/wait"
)

// The key of an advisory lock is a number.
const (
	patienceStatement = "SELECT set_config('lock_timeout', $1, false)"
	lockStatement     = "SELECT pg_advisory_lock(hashtextextended($1, 0))"
	unlockStatement   = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
)

// lockNotAvailable is the server's error code for a lock_timeout.
const lockNotAvailable = "55P03"

// Advisory is one client's lock object on a session-level advisory lock.
type Advisory struct {
	pool  *pgxpool.Pool
	node  string
	name  string
	every time.Duration // between two questions of a holder

	closing context.Context // ends with Close; the parent of every watch
	close   context.CancelFunc
	mu      sync.Mutex // orders Add before Wait
	held    sync.WaitGroup
}

// NewAdvisory builds the lock on the environment's first node. The TTL is only
// the measure of the loss notice. It fails only for an environment that
// [impl.Env.CheckDial] refuses.
func NewAdvisory(env impl.Env) (impl.Lock, error) {
	if err := env.CheckDial(LeastTTL); err != nil {
		return nil, err
	}
	pool, err := connect(env)
	if err != nil {
		return nil, err
	}
	closing, cancel := context.WithCancel(context.Background())
	return &Advisory{
		pool: pool, node: env.Nodes[0].Name, name: env.Name, every: env.TTL / 3,
		closing: closing, close: cancel,
	}, nil
}

// Acquire waits in the server until ctx ends. The server is told to give up a
// little before the deadline (lock_timeout), so that it says so itself. The
// connection is the lease's own until its release. Errors:
// [impl.ErrNotObtained] when the server gave up, [impl.ErrUnreachable],
// [impl.ErrScript] for another error of the server, [impl.ErrUnknownOutcome]
// when ctx ended before there was an answer; then the connection is closed, and
// a lock that it got goes with it as soon as the server notices.
func (l *Advisory) Acquire(ctx context.Context) (impl.Lease, error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, impl.ErrUnreachable.With("acquire", l.node, l.name, err)
	}
	both := &pgx.Batch{} // one message, one transaction
	both.Queue(patienceStatement, patience(ctx))
	both.Queue(lockStatement, l.name)
	err = conn.SendBatch(ctx, both).Close()
	if err == nil {
		return l.hold(conn)
	}
	var reply *pgconn.PgError
	if errors.As(err, &reply) && reply.Code == lockNotAvailable {
		conn.Release()
		return nil, impl.ErrNotObtained.With("acquire", l.node, l.name, err)
	}
	abandon(conn)
	return nil, typed("acquire", l.node, l.name, err)
}

// patience is how long the server is to wait, as lock_timeout wants it: until a
// tenth of the time before the deadline, or at most 100 ms, is left. 0 is for
// ever.
func patience(ctx context.Context) string {
	at, ok := ctx.Deadline()
	if !ok {
		return "0"
	}
	left := time.Until(at)
	left -= min(left/10, 100*time.Millisecond)
	return strconv.FormatInt(max(left.Milliseconds(), 1), 10)
}

// abandon closes a connection, bounded in time, and gives its place in the pool
// back.
func abandon(conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Conn().Close(ctx) // whether the goodbye arrives does not matter
	conn.Release()
}

// hold starts to watch the connection.
func (l *Advisory) hold(conn *pgxpool.Conn) (impl.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closing.Err(); err != nil {
		abandon(conn)
		return nil, impl.ErrUnreachable.With("acquire", l.node, l.name, err)
	}
	ctx, stop := context.WithCancel(l.closing)
	s := &advisoryLease{lock: l, conn: conn, stop: stop, lost: make(chan struct{}), watched: make(chan struct{})}
	l.held.Add(1)
	go func() {
		defer l.held.Done()
		defer close(s.watched)
		s.watch(ctx)
	}()
	return s, nil
}

// Close ends the leases that were not released, and closes the connections.
func (l *Advisory) Close() error {
	l.mu.Lock()
	l.close()
	l.mu.Unlock()
	l.held.Wait()
	l.pool.Close()
	return nil
}

// advisoryLease is one acquisition. Its connection is used by one goroutine at
// a time: the watch, and after its end the release.
type advisoryLease struct {
	lock    *Advisory
	conn    *pgxpool.Conn
	stop    context.CancelFunc
	lost    chan struct{}
	watched chan struct{} // closed when the watch has ended

	mu    sync.Mutex
	ended bool // lost or released: the connection is not the lease's any more
}

// watch asks whether the connection is still there.
func (s *advisoryLease) watch(ctx context.Context) {
	for wait.For(ctx, s.lock.every) == nil {
		// Not ctx: a release must find the connection whole.
		bounded, cancel := context.WithTimeout(context.Background(), s.lock.every)
		err := s.conn.Ping(bounded)
		cancel()
		if err != nil {
			s.lose()
			return
		}
	}
	if s.lock.closing.Err() != nil {
		s.lose()
	}
}

// lose tells the loss and closes the connection, so that it is one.
func (s *advisoryLease) lose() {
	if s.end() {
		close(s.lost)
		abandon(s.conn)
	}
}

// end says whether the lease had not ended before.
func (s *advisoryLease) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.ended
	s.ended = true
	return first
}

// Lost is closed when the connection is gone before the release.
func (s *advisoryLease) Lost() <-chan struct{} { return s.lost }

// Release unlocks, or closes the connection where that fails. Errors:
// [impl.ErrNotHeld] when the connection was lost before or the server says that
// the lock was not held, [impl.ErrUnknownOutcome] when there was no answer.
func (s *advisoryLease) Release(ctx context.Context) error {
	l := s.lock
	s.stop()
	<-s.watched // bounded: a question takes a third of the TTL at most
	if !s.end() {
		return impl.ErrNotHeld.With("release", l.node, l.name, nil)
	}
	var held bool
	if err := s.conn.QueryRow(ctx, unlockStatement, l.name).Scan(&held); err != nil {
		abandon(s.conn)
		return impl.ErrUnknownOutcome.With("release", l.node, l.name, err)
	}
	s.conn.Release()
	if !held {
		return impl.ErrNotHeld.With("release", l.node, l.name, nil)
	}
	return nil
}
