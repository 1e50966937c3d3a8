// Package etcd is the mutex of etcd's own client, unmodified: Session and Mutex
// of go.etcd.io/etcd/client/v3/concurrency, used as "etcdctl lock" uses them and
// with its time-outs. It is a baseline: what people run instead of a lock on
// Redis.
//
// How the recipe is used here:
//
//   - An acquisition has a session for itself, since a mutex lets everybody in
//     who has its session. A session that ended cleanly serves the next
//     acquisition of the same client.
//   - The fence is the revision in the mutex's header. It grows with every grant:
//     a key is seen at the revision of its grant, it is deleted at a later one,
//     and the next grant is seen no earlier than that. Two grants on one key,
//     which would have to be told apart, do not happen: a key is named by its
//     session, and a session with a doubtful end is not used again.
//   - The loss notice is Session.Done.
//   - Release asks whether the key is still this acquisition's (Mutex.IsOwner)
//     before Unlock, whose own nil error does not say that.
//   - Leases are whole seconds. New refuses a TTL of less than one, and rounds
//     others up. A server with a longer election than 667 ms makes it more: the
//     least lease is 1.5 elections, so 2 s with etcd's defaults.
//
// Weaknesses, and the scenario that shows each:
//
//   - A holder that is paused past the TTL goes on beside the next one
//     (kleppmann-gc-pause).
//   - A late write reaches the resource after the next holder's
//     (delayed-write). Writes that are guarded by the revision do not.
//   - Session.Done comes up to a second after the end of a lease that cannot be
//     renewed: the client counts from the last answer and looks once a second.
//     Before a first answer it waits 3 s (partition-holder).
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/sessions"
)

// LeastTTL is the shortest lease that etcd has.
const LeastTTL = time.Second

// KeyPrefix comes before the lock's name. What follows it is a slash and the
// session.
const KeyPrefix = "holdfast/"

// The time-outs of etcdctl's global flags: dial-timeout, keepalive-time and
// keepalive-timeout.
const (
	dialTimeout      = 2 * time.Second
	keepAliveTime    = 2 * time.Second
	keepAliveTimeout = 6 * time.Second
)

// goneKey is what a mutex calls its key after it has deleted it.
const goneKey = "\x00"

// Lock is one client's lock object.
type Lock struct {
	client   *clientv3.Client
	sessions *sessions.Pool[*session]
	nodes    string // for messages
	key      string
	seconds  int
	grace    time.Duration // for clean-up after a context has ended

	close   sync.Once
	closing chan struct{}
}

// session is one with the end of its context.
type session struct {
	*concurrency.Session
	cancel context.CancelFunc
}

// New builds the lock on all of the environment's nodes, which are the members
// of one cluster. It dials in the background, and fails only for an environment
// that [impl.Env.CheckDial] refuses.
func New(env impl.Env) (impl.Lock, error) {
	if err := env.CheckDial(LeastTTL); err != nil {
		return nil, err
	}
	var names, endpoints []string
	for _, node := range env.Nodes {
		names = append(names, node.Name)
		endpoints = append(endpoints, "http://"+node.Name)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		Logger:               zap.NewNop(), // otherwise it writes every failed try to stderr
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return env.DialNode(ctx, address)
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("lock %q of client %q: %w", env.Name, env.Client, err)
	}
	l := &Lock{
		client:  client,
		nodes:   strings.Join(names, ","),
		key:     KeyPrefix + env.Name,
		seconds: int((env.TTL + time.Second - 1) / time.Second),
		grace:   min(env.TTL/4, time.Second),
		closing: make(chan struct{}),
	}
	l.sessions = &sessions.Pool[*session]{
		Open: l.open,
		Alive: func(s *session) bool {
			select {
			case <-s.Done():
				return false
			default:
				return true
			}
		},
		Close: func(s *session) {
			defer s.cancel()
			_ = s.Session.Close() // a lease that could not be revoked ends by itself
		},
	}
	return l, nil
}

// open makes a session. The context of a session is that of its whole life, so
// the caller's can only cancel it while it is being made.
func (l *Lock) open(ctx context.Context) (*session, error) {
	own, cancel := context.WithCancel(l.client.Ctx())
	stop := context.AfterFunc(ctx, cancel)
	s, err := concurrency.NewSession(l.client, concurrency.WithTTL(l.seconds), concurrency.WithContext(own))
	if !stop() {
		err = context.Cause(ctx) // a lease that was granted meanwhile has no key and ends by its TTL
	}
	if err == nil && s == nil {
		err = errors.New("etcd gave no session")
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &session{Session: s, cancel: cancel}, nil
}

// Acquire waits for its turn, in the order of arrival, until ctx ends. Errors:
// [impl.ErrNotObtained] when it gave up waiting and its key is gone,
// [impl.ErrUnreachable] when there was no session to ask with,
// [impl.ErrUnknownOutcome] otherwise; then the session is given up, and a key
// that it has goes with it, at the latest after the TTL.
func (l *Lock) Acquire(ctx context.Context) (impl.Lease, error) {
	for {
		s, used, err := l.sessions.Take(ctx)
		if err != nil {
			return nil, impl.ErrUnreachable.With("acquire", l.nodes, l.key, err)
		}
		lease, err := l.lock(ctx, s)
		if used && errors.Is(err, rpctypes.ErrLeaseNotFound) {
			// It ended while it was idle, during a pause for example, and
			// nobody has noticed.
			continue
		}
		return lease, err
	}
}

// lock is one try of the mutex.
func (l *Lock) lock(ctx context.Context, s *session) (impl.Lease, error) {
	m := concurrency.NewMutex(s.Session, l.key)
	var err error
	// A mutex that gives up deletes its key, and waits for that as long as the
	// client lives.
	if !l.sessions.Run(ctx, l.grace, func() { err = m.Lock(ctx) }, func() {}) {
		l.sessions.Drop(s)
		return nil, impl.ErrUnknownOutcome.With("acquire", l.nodes, l.key, context.Cause(ctx))
	}
	switch {
	case err == nil:
		return l.hold(s, m), nil
	case m.Key() == goneKey:
		l.sessions.Back(s)
		return nil, impl.ErrNotObtained.With("acquire", l.nodes, l.key, err)
	}
	l.sessions.Drop(s)
	if errors.Is(err, concurrency.ErrSessionExpired) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil, impl.ErrNotObtained.With("acquire", l.nodes, l.key, err)
	}
	return nil, impl.ErrUnknownOutcome.With("acquire", l.nodes, l.key, err)
}

// Close revokes the sessions that nobody uses and closes the connections.
// Leases that were not released are lost, and end by their TTL.
func (l *Lock) Close() error {
	var err error
	l.close.Do(func() {
		close(l.closing)
		l.sessions.End(l.grace, func() { err = l.client.Close() })
	})
	return err
}
