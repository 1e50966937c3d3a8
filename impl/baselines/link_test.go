package baselines_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/cluster/programs/programtest"
)

// link is one client's way to all servers.
type link struct {
	mu    sync.Mutex
	mode  mode
	conns map[*conn]bool
	// changed is closed and made anew with every change of the mode.
	changed chan struct{}
}

type mode int

const (
	open    mode = iota
	refused      // connections are closed, and no new ones are made
	silent       // nothing passes and nothing fails
)

var errRefused = errors.New("refused by the test")

func newLink() *link { return &link{conns: map[*conn]bool{}, changed: make(chan struct{})} }

// set changes the mode.
func (l *link) set(m mode) {
	l.mu.Lock()
	l.mode = m
	close(l.changed)
	l.changed = make(chan struct{})
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range conns {
		if m == refused {
			c.Conn.Close()
			continue
		}
		c.mu.Lock()
		if m == open {
			_ = c.flush() // an error shows at the next read
		}
		c.mu.Unlock()
	}
}

func (l *link) now() (mode, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, l.changed
}

// dial gives the dialer to one server.
func (l *link) dial(s *programtest.Server) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		for {
			m, changed := l.now()
			switch m {
			case refused:
				return nil, errRefused
			case silent:
				select {
				case <-changed:
					continue
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			raw, err := s.Dial(ctx)
			if err != nil {
				return nil, err
			}
			c := &conn{Conn: raw, link: l}
			l.mu.Lock()
			l.conns[c] = true
			l.mu.Unlock()
			return c, nil
		}
	}
}

// conn is one connection over the link. What is sent while the link is silent
// arrives when it is open again, as TCP does it.
type conn struct {
	net.Conn
	link *link

	mu       sync.Mutex
	waiting  []byte // to be written
	deadline time.Time
	closed   bool

	got []byte // read and held back; used by one reader at a time
}

// SetDeadline keeps the deadline for reads that are held back.
func (c *conn) SetDeadline(at time.Time) error {
	c.keep(at)
	return c.Conn.SetDeadline(at)
}

// SetReadDeadline does too.
func (c *conn) SetReadDeadline(at time.Time) error {
	c.keep(at)
	return c.Conn.SetReadDeadline(at)
}

func (c *conn) keep(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
}

// Read holds back what arrives while the link is silent.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.got) == 0 {
		buf := make([]byte, len(p))
		n, err := c.Conn.Read(buf)
		if err != nil {
			return n, err
		}
		c.got = buf[:n]
	}
	for {
		m, _ := c.link.now()
		c.mu.Lock()
		late := !c.deadline.IsZero() && time.Now().After(c.deadline)
		closed := c.closed
		c.mu.Unlock()
		switch {
		case closed:
			return 0, net.ErrClosed
		case late:
			return 0, os.ErrDeadlineExceeded
		case m != silent:
			n := copy(p, c.got)
			c.got = c.got[n:]
			return n, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Write keeps what leaves while the link is silent.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, _ := c.link.now(); m == silent {
		c.waiting = append(c.waiting, p...)
		return len(p), nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *conn) flush() error {
	_, err := c.Conn.Write(c.waiting)
	c.waiting = nil
	return err
}

// Close forgets the connection.
func (c *conn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.Conn.Close()
}
