package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// relay takes connections at an address of its own and leads each on to where
// it belongs.
type relay struct {
	what string // for errors: junction of n2
	ln   net.Listener
	// lead says where a connection goes, and what is sent there ahead of it. An
	// error refuses it.
	lead func(c net.Conn) (addr string, ahead []byte, err error)

	ctx    context.Context // bounds the dials
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
}

// startRelay listens on a free port of a host.
func startRelay(what, host string, lead func(c net.Conn) (addr string, ahead []byte, err error)) (*relay, error) {
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	r := &relay{what: what, ln: ln, lead: lead, conns: make(map[net.Conn]struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.ln.Addr().String() }

func (r *relay) accept() {
	for {
		c, err := r.ln.Accept()
		if err != nil {
			return // closed
		}
		if r.keep(c) {
			r.wg.Go(func() { r.serve(c) })
		}
	}
}

// keep notes a connection, so that close can end it. It refuses one that came
// too late.
func (r *relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close() // nobody is left to be told
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *relay) drop(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	_ = c.Close() // its peer learns of it, which is all there is to say
}

// serve leads one connection on. Where nobody takes it the caller is refused too.
func (r *relay) serve(c net.Conn) {
	defer r.drop(c)
	addr, ahead, err := r.lead(c)
	if err != nil {
		reset(c)
		return
	}
	dialer := net.Dialer{Timeout: waitBound}
	out, err := dialer.DialContext(r.ctx, "tcp", addr)
	if err != nil {
		reset(c)
		return
	}
	if !r.keep(out) {
		return
	}
	defer r.drop(out)
	if _, err := out.Write(ahead); err != nil {
		reset(c)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pour(out, c) })
	both.Go(func() { pour(c, out) })
	both.Wait()
}

// pour copies one direction to its end. What ends in order is passed on as an
// end of that direction only; anything else ends both.
func pour(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(*net.TCPConn)
	if err == nil && ok && half.CloseWrite() == nil {
		return
	}
	reset(to)
	reset(from)
}

// reset closes a connection so that its peer sees an RST.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // at worst the peer sees an orderly end
	}
	_ = c.Close() // given up
}

func (r *relay) close() error {
	r.mu.Lock()
	r.closed = true
	err := r.ln.Close()
	for c := range r.conns {
		_ = c.Close() // its goroutines notice and end
	}
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%s: %w", r.what, err)
	}
	return nil
}
