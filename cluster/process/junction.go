package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/holdfast-io/holdfast/cluster"
)

// junction is one port of a server as the others know it: the address that it
// announces. Servers tell each other such addresses, so all of them dial the
// same one; the junction finds out who calls and leads the connection through
// the proxy of that pair, so that any pair can still be cut by itself.
//
//	n1 --dials--> junction of n2 --> proxy n1->n2 --> n2
//	s1 --dials--> junction of n2 --> proxy s1->n2 --> n2
type junction struct {
	w        *World
	endpoint string // n2, or n2:bus
	ln       net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
}

// buildJunctions makes one for every port of every server, where servers dial
// each other.
func (w *World) buildJunctions() error {
	if !w.layout.meshed {
		return nil
	}
	for _, name := range w.servers() {
		for i, port := range w.nodes[name].runs.ports() {
			endpoint := name
			if i > 0 {
				endpoint = endpointOf(name, port)
			}
			ln, err := net.Listen("tcp", net.JoinHostPort(w.place.Gateway(), "0"))
			if err != nil {
				return fmt.Errorf("junction of %s: %w", endpoint, err)
			}
			j := &junction{w: w, endpoint: endpoint, ln: ln, conns: make(map[net.Conn]struct{})}
			w.junctions[endpoint] = j
			j.wg.Go(j.accept)
		}
	}
	return nil
}

// addr is what the server announces.
func (j *junction) addr() string { return j.ln.Addr().String() }

func (j *junction) accept() {
	for {
		c, err := j.ln.Accept()
		if err != nil {
			return // closed
		}
		if j.keep(c) {
			j.wg.Go(func() { j.serve(c) })
		}
	}
}

// keep notes a connection, so that close can end it. It refuses one that came
// too late.
func (j *junction) keep(c net.Conn) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		_ = c.Close() // nobody is left to be told
		return false
	}
	j.conns[c] = struct{}{}
	return true
}

func (j *junction) drop(c net.Conn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.conns, c)
	_ = c.Close() // its peer learns of it, which is all there is to say
}

// serve leads one connection on. A pair that is cut by resets refuses: the
// caller is refused too.
func (j *junction) serve(c net.Conn) {
	defer j.drop(c)
	caller, hello := "", []byte(nil)
	if j.isElection() {
		var err error
		if hello, caller, err = j.electionHello(c); err != nil {
			reset(c)
			return
		}
	} else {
		caller = j.w.caller(c)
	}
	p := j.w.proxies[cluster.Link{From: caller, To: j.endpoint}]
	if p == nil {
		j.w.cfg.Log.Warn("a connection from nobody that is known", "to", j.endpoint, "from", c.RemoteAddr().String(), "caller", caller)
		reset(c)
		return
	}
	dialer := net.Dialer{Timeout: waitBound}
	out, err := dialer.DialContext(j.w.ctx, "tcp", p.addr)
	if err != nil {
		reset(c)
		return
	}
	if !j.keep(out) {
		return
	}
	defer j.drop(out)
	if _, err := out.Write(hello); err != nil {
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

func (j *junction) close() error {
	j.mu.Lock()
	j.closed = true
	err := j.ln.Close()
	for c := range j.conns {
		_ = c.Close() // its goroutines notice and end
	}
	j.mu.Unlock()
	j.wg.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("junction of %s: %w", j.endpoint, err)
	}
	return nil
}

// caller names the server or the client at the other end of a connection.
func (w *World) caller(c net.Conn) string {
	if name := w.bySource(c); name != "" {
		return name
	}
	if name := w.place.Caller(c); name != "" {
		return name
	}
	w.clientMu.Lock()
	pids := make(map[string]int, len(w.clients))
	for name, client := range w.clients {
		if !client.gone() {
			pids[name] = client.pid
		}
	}
	w.clientMu.Unlock()
	return callerAmong(c, pids)
}

// announced is the host and the port under which the others know a port of a
// server; i counts its ports from 0.
func (w *World) announced(server string, i int) (host, port string, err error) {
	endpoint := server
	if i > 0 {
		endpoint = endpointOf(server, w.nodes[server].runs.ports()[i])
	}
	j := w.junctions[endpoint]
	if j == nil {
		return "", "", fmt.Errorf("%s announces nothing in topology %s", endpoint, w.cfg.Topology)
	}
	return net.SplitHostPort(j.addr())
}

// Announced are the addresses under which clients hear of the nodes from the
// nodes themselves, and the node of each. It is empty where nodes do not name
// one another.
func (w *World) Announced() map[string]string {
	found := make(map[string]string)
	for _, name := range w.servers() {
		if host, port, err := w.announced(name, 0); err == nil {
			found[net.JoinHostPort(host, port)] = name
		}
	}
	return found
}
