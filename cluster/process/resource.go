package process

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
)

// maxLine is the longest request that the protected resource reads.
const maxLine = 1 << 20

// resourceServer serves the protected resource to one client. Each client has
// a listener of its own, so that the server knows who is calling without
// having to trust what it is told.
type resourceServer struct {
	client  string
	session func(client string) func(line []byte) []byte
	ln      net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
	err    error // the first that was not the end of the server
}

func newResourceServer(host, client string, session func(string) func([]byte) []byte) (*resourceServer, error) {
	ln, err := net.Listen("tcp", host+":0")
	if err != nil {
		return nil, fmt.Errorf("resource of %s: %w", client, err)
	}
	r := &resourceServer{client: client, session: session, ln: ln, conns: make(map[net.Conn]struct{})}
	r.wg.Go(r.accept)
	return r, nil
}

func (r *resourceServer) addr() string { return r.ln.Addr().String() }

func (r *resourceServer) accept() {
	for {
		c, err := r.ln.Accept()
		if err != nil {
			r.mu.Lock()
			if !r.closed {
				r.err = fmt.Errorf("resource of %s: %w", r.client, err)
			}
			r.mu.Unlock()
			return
		}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			_ = c.Close() // nobody is left to be told
			return
		}
		r.conns[c] = struct{}{}
		r.wg.Go(func() { r.serve(c) })
		r.mu.Unlock()
	}
}

// serve ends with its connection. A client that is cut off, killed or hangs up
// is nothing to report: that is what the world is for.
func (r *resourceServer) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		r.mu.Lock()
		delete(r.conns, c)
		r.mu.Unlock()
	}()
	answer := r.session(r.client)
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		reply := answer(lines.Bytes())
		if reply == nil {
			return // there will be no answer
		}
		if len(reply) == 0 || reply[len(reply)-1] != '\n' {
			reply = append(reply[:len(reply):len(reply)], '\n')
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

func (r *resourceServer) close() error {
	r.mu.Lock()
	r.closed = true
	err := r.ln.Close()
	for c := range r.conns {
		_ = c.Close() // its server notices and ends
	}
	r.mu.Unlock()
	r.wg.Wait()
	return errors.Join(err, r.err)
}
