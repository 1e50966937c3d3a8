// Package postgres holds the two locks that people build on PostgreSQL, over
// pgx: a row with an expiry in a table, and the server's own advisory lock. They
// are baselines: what people run instead of a lock on Redis.
//
// The row ([New]) is taken by one conditional statement:
//
//   - The server's clock decides (clock_timestamp, not now: that is the
//     beginning of the transaction, which may have waited for the row).
//   - The row is never deleted, and the fence comes from a sequence in the
//     branch that has the row's lock. So it grows with every grant. Drawn
//     before that, or into a new row each time, an earlier number could be
//     granted after a later one.
//   - Acquire asks again every 50 ms until ctx ends. Nobody is told of a
//     release, and no order is kept.
//   - The holder is not told of the end of its lease. It may lengthen it.
//
// The advisory lock ([NewAdvisory]) belongs to a session, so to a connection: it
// has no TTL and no fence.
//
//   - Acquire waits in the server, in the order of arrival, until a lock_timeout
//     a little before the context's deadline. When the context ends otherwise,
//     pgx closes the connection and sends a cancel request over another one.
//   - The holder asks over its connection every third of the TTL whether it is
//     still there, and takes no answer within a third for a loss. The server
//     may keep the lock longer than that.
//
// Weaknesses of the row, and the scenario that shows each:
//
//   - A holder that is paused past the TTL goes on beside the next one
//     (kleppmann-gc-pause).
//   - A late write reaches the resource after the next holder's
//     (delayed-write). Writes that are guarded by the fence do not.
//   - Work longer than the TTL goes on without the lock (slow-work).
//   - The server's clock frees a held lock early when it jumps
//     (kleppmann-clock-jump).
//   - One server: while it is away there is no lock (node-stall).
//
// Weaknesses of the advisory lock:
//
//   - A holder that is cut off keeps the lock until the server's TCP gives the
//     connection up, two hours with the defaults of Linux (partition-holder).
//   - A server that restarts frees all locks, and a holder that is paused does
//     not see it (crash-restart-amnesia).
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-io/holdfast/impl"
)

// User is whom the locks connect as, and Database what they connect to. Every
// connection is trusted: it is the server of a test.
const (
	User     = "postgres"
	Database = "postgres"
)

// connect makes a pool on the environment's first node, which dials with the
// first use.
func connect(env impl.Env) (*pgxpool.Pool, error) {
	node := env.Nodes[0]
	// The name stands for the address: the dialer below finds the way.
	config, err := pgxpool.ParseConfig(fmt.Sprintf("host=%s port=5432 user=%s dbname=%s sslmode=disable", node.Name, User, Database))
	if err != nil {
		return nil, fmt.Errorf("lock %q of client %q: %w", env.Name, env.Client, err)
	}
	config.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.ConnConfig.DialFunc = func(ctx context.Context, _, address string) (net.Conn, error) {
		return env.DialNode(ctx, address)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config) // dials nothing yet
	if err != nil {
		return nil, fmt.Errorf("lock %q of client %q: %w", env.Name, env.Client, err)
	}
	return pool, nil
}

// typed types an error of pgx. Where the connection could not be made, or
// nothing was sent, it is definite; and so is a server's own error, since a
// statement that failed changes nothing, but for the classes of errors that end
// the session: they may come after the statement was committed. Everything else
// is an unknown outcome.
// Source: Appendix A of PostgreSQL's documentation.
func typed(op, node, key string, err error) error {
	var connect *pgconn.ConnectError
	var reply *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &connect) || pgconn.SafeToRetry(err):
		return impl.ErrUnreachable.With(op, node, key, err)
	case errors.As(err, &reply) && !endsSession(reply.Code):
		return impl.ErrScript.With(op, node, key, err)
	}
	return impl.ErrUnknownOutcome.With(op, node, key, err)
}

// endsSession: 08 connection exception, 57 operator intervention, 58 system
// error, XX internal error.
func endsSession(code string) bool {
	for _, class := range []string{"08", "57", "58", "XX"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}
