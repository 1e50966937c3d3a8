package zookeeper

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// session is one session with the servers, over as many connections as it takes.
type session struct {
	conn *zk.Conn
	// gone is closed when the session has ended, or must be taken for ended.
	gone chan struct{}
	// first is closed when there is a session.
	first chan struct{}
	life  time.Duration // after the last request that was answered

	mu     sync.Mutex
	timer  *time.Timer // runs to the end of life
	wire   net.Conn    // the present connection
	ended  bool
	begun  bool
	closed bool
}

// open makes a session, or gives up with ctx.
func (l *Lock) open(ctx context.Context) (*session, error) {
	s := &session{
		gone:  make(chan struct{}),
		first: make(chan struct{}),
		life:  l.env.TTL - l.env.TTL/6,
	}
	conn, _, err := zk.Connect(l.names, l.env.TTL,
		zk.WithDialer(l.dial(s)), zk.WithHostProvider(&inTurn{}), zk.WithEventCallback(s.event),
		zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	select {
	case <-s.first:
		return s, nil
	case <-ctx.Done():
	case <-l.closing:
	}
	l.sessions.Go(s.close)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return nil, zk.ErrClosing
}

// event hears of the session's states. The library calls it and waits.
func (s *session) event(e zk.Event) {
	switch {
	case e.Type != zk.EventSession:
	case e.State == zk.StateExpired:
		s.end()
	case e.State == zk.StateHasSession:
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.begun {
			s.begun = true
			close(s.first)
		}
	}
}

// answered says that a request which left at that moment has been answered, so
// that a server has seen the session no earlier.
func (s *session) answered(left time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Until(left.Add(s.life))
	switch {
	case s.ended:
	case s.timer == nil:
		s.timer = time.AfterFunc(until, s.end)
	default:
		// An end that has come already is waiting for the mutex.
		if s.timer.Stop() {
			s.timer.Reset(until)
		}
	}
}

// end says that the session must not be believed in any more.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.gone)
	}
}

func (s *session) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// close ends the session at the servers, or gives up after a second or two: then
// it ends by its timeout. To that end the connection is closed here, since the
// library goes on to renew a session whose last request had no answer.
func (s *session) close() {
	s.end()
	s.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.wire != nil {
		_ = s.wire.Close() // as a rule the server has closed it
	}
}

// connected keeps the present connection, and refuses one after the end.
func (s *session) connected(wire net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = wire.Close()
		return zk.ErrClosing
	}
	s.wire = wire
	return nil
}

// watched is a connection that notes when requests left and were answered. Of
// several requests that are open it counts the oldest: a moment that is too
// early makes the session end too early here, never too late.
type watched struct {
	net.Conn
	answered func(left time.Time)

	mu   sync.Mutex
	open time.Time // when the oldest request left that has no answer; zero for none
}

// Write notes the moment before.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.open.IsZero() {
		w.open = time.Now()
	}
	w.mu.Unlock()
	return w.Conn.Write(p)
}

// Read counts an answer where the library begins to read one, with its length.
// It must not count the rest: a request may have left in between. An event that
// a server sends by itself would be taken for an answer, but a holder watches
// nothing.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 && len(p) == lengthOfLength {
		w.mu.Lock()
		left := w.open
		w.open = time.Time{}
		w.mu.Unlock()
		if !left.IsZero() {
			w.answered(left)
		}
	}
	return n, err
}

// lengthOfLength is that of the number before each packet, in bytes.
const lengthOfLength = 4

// inTurn gives the library the nodes in the same order and with the same pauses
// as its own provider, which would look for their names in the DNS.
// Source: zk.DNSHostProvider.
type inTurn struct {
	mu      sync.Mutex
	servers []string
	at      int // the last that was given
	mark    int // where the round began: at the server of the last connection
}

// Init takes the servers, which the library has shuffled.
func (h *inTurn) Init(servers []string) error {
	h.servers, h.at, h.mark = servers, -1, -1
	return nil
}

// Len is the number of servers.
func (h *inTurn) Len() int { return len(h.servers) }

// Next gives the next server, and says whether a round is over without a
// connection: then the library waits for a second.
func (h *inTurn) Next() (server string, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = (h.at + 1) % len(h.servers)
	over = h.at == h.mark
	if h.mark < 0 {
		h.mark = 0
	}
	return h.servers[h.at], over
}

// Connected begins a new round.
func (h *inTurn) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mark = h.at
}

// quiet drops what the library logs: refused dials are what a test is about.
type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}
