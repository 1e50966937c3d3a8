package etcd

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-io/holdfast/impl"
)

// lease is one acquisition.
type lease struct {
	lock    *Lock
	session *session
	mutex   *concurrency.Mutex
	fence   uint64

	lost     chan struct{}
	released chan struct{}
	once     sync.Once // closes released
}

// hold starts to watch a session that has the lock.
func (l *Lock) hold(s *session, m *concurrency.Mutex) *lease {
	h := &lease{
		lock: l, session: s, mutex: m, fence: uint64(m.Header().GetRevision()),
		lost: make(chan struct{}), released: make(chan struct{}),
	}
	l.sessions.Go(h.watch)
	return h
}

// watch hands the end of the session on. A channel of the lease's own is needed
// because the session lives on after a release, and ends some day.
func (h *lease) watch() {
	select {
	case <-h.session.Done():
	case <-h.lock.closing: // nobody renews any more
	case <-h.released:
		return
	}
	close(h.lost)
}

// Fence is the revision at which this acquisition was seen to have the lock.
func (h *lease) Fence() uint64 { return h.fence }

// Lost is closed when the session has ended before the release.
func (h *lease) Lost() <-chan struct{} { return h.lost }

// Release unlocks. After an error the session is given up, and with it the key.
// Errors: [impl.ErrNotHeld] when the key was not this acquisition's any more,
// [impl.ErrUnknownOutcome] otherwise.
func (h *lease) Release(ctx context.Context) error {
	l := h.lock
	first := false
	h.once.Do(func() { first = true; close(h.released) })
	if !first {
		return impl.ErrNotHeld.With("release", l.nodes, l.key, nil)
	}
	if !l.sessions.Alive(h.session) {
		l.sessions.Drop(h.session)
		return impl.ErrNotHeld.With("release", l.nodes, l.key, concurrency.ErrSessionExpired)
	}
	owner, err := h.isOwner(ctx)
	if err == nil && !owner {
		l.sessions.Drop(h.session)
		return impl.ErrNotHeld.With("release", l.nodes, l.key, nil)
	}
	if err == nil {
		err = h.mutex.Unlock(ctx)
	}
	if err != nil {
		l.sessions.Drop(h.session)
		return impl.ErrUnknownOutcome.With("release", l.nodes, l.key, err)
	}
	l.sessions.Back(h.session)
	return nil
}

// isOwner asks whether the key is this acquisition's. The read in the
// transaction is what makes the answer a fresh one: a transaction of a condition
// alone is answered by a member from what it has, which may not have the key yet.
// Source: isTxnSerializable in etcd's server.
func (h *lease) isOwner(ctx context.Context) (bool, error) {
	fresh := clientv3.OpGet(h.mutex.Key(), clientv3.WithCountOnly())
	answer, err := h.lock.client.Txn(ctx).If(h.mutex.IsOwner()).Then(fresh).Commit()
	if err != nil {
		return false, err
	}
	return answer.Succeeded, nil
}
