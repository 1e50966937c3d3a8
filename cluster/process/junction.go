package process

import (
	"fmt"
	"net"

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
	*relay
	w        *World
	endpoint string // n2, or n2:bus
}

// buildJunctions makes one for every port of every server, where servers dial
// each other.
func (w *World) buildJunctions() error {
	if !w.layout.meshed {
		return nil
	}
	for _, name := range w.servers() {
		for i, port := range w.nodes[name].runs.ports() {
			j := &junction{w: w, endpoint: name}
			if i > 0 {
				j.endpoint = endpointOf(name, port)
			}
			var err error
			if j.relay, err = startRelay("junction of "+j.endpoint, w.place.Gateway(), j.lead); err != nil {
				return err
			}
			w.junctions[j.endpoint] = j
		}
	}
	return nil
}

// lead finds the proxy of a pair. One that is cut by resets refuses.
func (j *junction) lead(c net.Conn) (addr string, hello []byte, err error) {
	caller := ""
	if j.isElection() {
		if hello, caller, err = j.electionHello(c); err != nil {
			return "", nil, err
		}
	} else {
		caller = j.w.caller(c)
	}
	p := j.w.proxies[cluster.Link{From: caller, To: j.endpoint}]
	if p == nil {
		j.w.cfg.Log.Warn("a connection from nobody that is known", "to", j.endpoint, "from", c.RemoteAddr().String(), "caller", caller)
		return "", nil, fmt.Errorf("nobody that is known dials %s", j.endpoint)
	}
	return p.addr, hello, nil
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
