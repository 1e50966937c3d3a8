// Package zookeeper is the lock of ZooKeeper's own documentation, sequential
// ephemeral nodes of which the lowest has the lock, over go-zookeeper/zk. It is
// a baseline: what people run instead of a lock on Redis.
//
// The client library has a Lock type. It is not used: its Lock cannot be given
// up, its node's path, and so the czxid, is not to be had, and it takes itself
// for the holder when its own node is gone and no lower one is there. The
// recipe here is the documented one, with the unique name that the library's
// CreateProtectedEphemeralSequential adds against lost replies.
// Source: "ZooKeeper Recipes and Solutions", Locks and Recoverable Errors.
//
// How the recipe is used here:
//
//   - An acquisition has a session for itself. A session that ended cleanly
//     serves the next acquisition of the same client; one with a doubt is
//     closed, and its node goes with it.
//   - The session timeout is the TTL. The server moves it into its own bounds,
//     2 and 20 ticks unless it is told otherwise.
//   - The fence is the czxid of the lock's node, the number of the transaction
//     that made it. Nodes get the lock in the order in which they were made,
//     and each once, so it grows with every grant.
//   - The loss notice: at once when a server says that the session has expired,
//     and otherwise 5/6 of the TTL after the last request left that was
//     answered. A client that is cut off is never told by a server, so it must
//     count for itself, as Curator does. It counts from the request, since the
//     answer may have waited while the client was paused, and a sixth less,
//     since the leader hears of a session from the other servers every half
//     tick and one of them may die before it has told. A lost connection alone
//     is no loss: the session lives on at the next server.
//
// Weaknesses, and the scenario that shows each:
//
//   - A holder that is paused past the TTL goes on beside the next one
//     (kleppmann-gc-pause).
//   - A late write reaches the resource after the next holder's
//     (delayed-write). Writes that are guarded by the czxid do not.
//   - With one server, or after a round in vain, the library waits for a second
//     before it dials again, which is a long time for a short TTL
//     (crash-restart-amnesia).
//   - The library waits up to 6.7 TTL for the first answer of a server that
//     accepts connections and says nothing, so a client that turned to a stalled
//     node loses its session (node-stall).
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/sessions"
)

// LeastTTL is the shortest session that is asked for. What a server allows is
// its own affair, two ticks as a rule.
const LeastTTL = 100 * time.Millisecond

// KeyPrefix comes before the lock's name. The lock is a node with the waiting
// ones below it.
const KeyPrefix = "/holdfast/"

// Lock is one client's lock object.
type Lock struct {
	env      impl.Env
	sessions *sessions.Pool[*session]
	names    []string // of the nodes
	nodes    string   // the same for messages
	dir      string
	grace    time.Duration // for clean-up after a context has ended

	close   sync.Once
	closing chan struct{}
}

// New builds the lock on all of the environment's nodes, which are the servers
// of one ensemble. It dials with the first Acquire, and fails only for an
// environment that [impl.Env.CheckDial] refuses.
func New(env impl.Env) (impl.Lock, error) {
	if err := env.CheckDial(LeastTTL); err != nil {
		return nil, err
	}
	l := &Lock{
		env:     env,
		dir:     KeyPrefix + env.Name,
		grace:   min(env.TTL/4, time.Second),
		closing: make(chan struct{}),
	}
	for _, node := range env.Nodes {
		l.names = append(l.names, node.Name)
	}
	l.nodes = strings.Join(l.names, ",")
	l.sessions = &sessions.Pool[*session]{
		Open:  l.open,
		Alive: func(s *session) bool { return !s.isGone() },
		Close: func(s *session) { s.close() },
	}
	return l, nil
}

// Acquire waits for its turn, in the order of arrival, until ctx ends. Errors:
// [impl.ErrNotObtained] when it gave up waiting and its node is gone, or its
// session ended while it waited; [impl.ErrUnreachable] when there was no session
// to ask with; [impl.ErrUnknownOutcome] otherwise, and then the session is given
// up, and a node that it has goes with it, at the latest after the TTL.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	s, _, err := l.sessions.Take(ctx)
	if err != nil {
		return nil, impl.ErrUnreachable.With("acquire", l.nodes, l.dir, err)
	}
	try := &attempt{conn: s.conn, dir: l.dir, gone: s.gone, closing: l.closing}
	// No call of the library can be given up, so it has a goroutine.
	if !l.sessions.Run(ctx, l.grace, func() { err = try.run(ctx) }, func() {}) {
		l.sessions.Drop(s)
		return nil, impl.ErrUnknownOutcome.With("acquire", l.nodes, l.dir, context.Cause(ctx))
	}
	switch {
	case err == nil:
		return l.hold(s, try), nil
	case errors.Is(err, errGaveUp):
		l.sessions.Back(s)
		return nil, impl.ErrNotObtained.With("acquire", l.nodes, l.dir, context.Cause(ctx))
	}
	l.sessions.Drop(s)
	if errors.Is(err, errOwnNodeGone) || errors.Is(err, zk.ErrSessionExpired) {
		return nil, impl.ErrNotObtained.With("acquire", l.nodes, l.dir, err)
	}
	return nil, impl.ErrUnknownOutcome.With("acquire", l.nodes, l.dir, err)
}

// Close ends all sessions. Leases that were not released are lost, and end at
// once if a server can be reached.
func (l *Lock) Close() error {
	l.close.Do(func() {
		close(l.closing)
		// Nothing needs to be hastened: a try ends when its session is closed,
		// and sessions close by themselves or because their lease has seen
		// closing.
		l.sessions.End(l.grace, func() {})
	})
	return nil
}

// dial opens a connection for the library, which counts what passes.
func (l *Lock) dial(s *session) zk.Dialer {
	return func(_, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		conn, err := l.env.DialNode(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		if err := s.connected(conn); err != nil {
			return nil, err
		}
		return &watched{Conn: conn, answered: s.answered}, nil
	}
}
