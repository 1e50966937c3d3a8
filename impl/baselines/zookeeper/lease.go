package zookeeper

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-io/holdfast/impl"
)

var (
	// errGaveUp: the context ended while others had the lock, and the node of
	// this try is gone.
	errGaveUp = errors.New("gave up waiting")
	// errOwnNodeGone: the session has ended while the try waited.
	errOwnNodeGone = errors.New("the session ended while it waited for the lock")
)

// digits is the length of the number that ZooKeeper puts behind the name of a
// sequential node.
const digits = 10

// attempt is one try to get the lock.
type attempt struct {
	conn *zk.Conn
	dir  string
	// gone is the session's end, closing the lock's.
	gone, closing <-chan struct{}

	path  string // of the own node
	fence uint64
}

// run makes the node and waits until it is the lowest. A nil error says that it
// is, and that the fence is known.
func (a *attempt) run(ctx context.Context) error {
	if err := a.create(); err != nil {
		return err
	}
	for {
		before, err := a.before()
		if err != nil {
			return err
		}
		if before == "" {
			return a.granted(ctx)
		}
		there, _, deleted, err := a.conn.ExistsW(a.dir + "/" + before)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		select {
		case event := <-deleted:
			if event.Err != nil {
				return event.Err
			}
		case <-ctx.Done():
			return a.giveUp()
		case <-a.closing:
			return a.giveUp()
		case <-a.gone:
			return errOwnNodeGone
		}
	}
}

// create makes the node, and the ones above it where they are missing.
func (a *attempt) create() error {
	acl := zk.WorldACL(zk.PermAll)
	var err error
	a.path, err = a.conn.CreateProtectedEphemeralSequential(a.dir+"/lock-", nil, acl)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for end := 1; end < len(a.dir); {
		next := strings.IndexByte(a.dir[end:], '/')
		if next < 0 {
			next = len(a.dir) - end
		}
		if _, err := a.conn.Create(a.dir[:end+next], nil, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		end += next + 1
	}
	a.path, err = a.conn.CreateProtectedEphemeralSequential(a.dir+"/lock-", nil, acl)
	return err
}

// before names the node that comes right before the own one; empty for none.
func (a *attempt) before() (string, error) {
	names, _, err := a.conn.Children(a.dir)
	if err != nil {
		return "", err
	}
	own := a.path[strings.LastIndexByte(a.path, '/')+1:]
	best, mine := "", false
	for _, name := range names {
		switch {
		case name == own:
			mine = true
		case order(name) < order(own) && (best == "" || order(name) > order(best)):
			best = name
		}
	}
	if !mine {
		return "", errOwnNodeGone
	}
	return best, nil
}

// order is the number of a node, as text of one length.
func order(name string) string { return name[max(0, len(name)-digits):] }

// granted reads the fence.
func (a *attempt) granted(ctx context.Context) error {
	there, stat, err := a.conn.Exists(a.path)
	switch {
	case err != nil:
		return err
	case !there:
		return errOwnNodeGone
	case ctx.Err() != nil:
		// In time, but nobody may wait for it any more.
		return a.giveUp()
	}
	a.fence = uint64(stat.Czxid)
	return nil
}

// giveUp takes the node away.
func (a *attempt) giveUp() error {
	if err := a.conn.Delete(a.path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return errGaveUp
}

// lease is one acquisition.
type lease struct {
	lock    *Lock
	session *session
	path    string
	fence   uint64

	lost     chan struct{}
	released chan struct{}
	once     sync.Once // closes released
}

// hold starts to watch a session that has the lock.
func (l *Lock) hold(s *session, a *attempt) *lease {
	h := &lease{
		lock: l, session: s, path: a.path, fence: a.fence,
		lost: make(chan struct{}), released: make(chan struct{}),
	}
	l.sessions.Go(h.watch)
	return h
}

// watch hands the end of the session on. A channel of the lease's own is needed
// because the session lives on after a release, and ends some day.
func (h *lease) watch() {
	select {
	case <-h.session.gone:
		close(h.lost)
	case <-h.lock.closing:
		close(h.lost) // before the node goes away
		h.session.close()
	case <-h.released:
	}
}

// Fence is the czxid of this acquisition's node.
func (h *lease) Fence() uint64 { return h.fence }

// Lost is closed when the session has ended, or must be taken for ended, before
// the release.
func (h *lease) Lost() <-chan struct{} { return h.lost }

// Release deletes the node. After an error the session is given up, and the
// node with it. Errors: [impl.ErrNotHeld] when the node was gone,
// [impl.ErrUnknownOutcome] otherwise.
func (h *lease) Release(ctx context.Context) error {
	l := h.lock
	first := false
	h.once.Do(func() { first = true; close(h.released) })
	if !first {
		return impl.ErrNotHeld.With("release", l.nodes, l.dir, nil)
	}
	var err error
	if !l.sessions.Run(ctx, 0, func() { err = h.session.conn.Delete(h.path, -1) }, func() {}) {
		l.sessions.Drop(h.session)
		return impl.ErrUnknownOutcome.With("release", l.nodes, l.dir, context.Cause(ctx))
	}
	if err == nil {
		l.sessions.Back(h.session)
		return nil
	}
	l.sessions.Drop(h.session)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
		return impl.ErrNotHeld.With("release", l.nodes, l.dir, err)
	}
	return impl.ErrUnknownOutcome.With("release", l.nodes, l.dir, err)
}
