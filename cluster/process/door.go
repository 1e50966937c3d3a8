package process

import (
	"fmt"
	"net"
)

// buildDoors makes one for every port of every server, where the address of a
// server goes away with it. A proxy leads there instead of to the server: of a
// server that is down the door refuses connections at once, as the machine of a
// process that has died does. Without, whoever dials one waits for seconds, and
// so does everybody behind him at the same proxy.
func (w *World) buildDoors() error {
	if !w.place.OwnAddresses() {
		return nil
	}
	for _, name := range w.servers() {
		n := w.nodes[name]
		for _, port := range n.runs.ports() {
			door, err := startRelay("door of "+endpointOf(name, port), w.host, func(net.Conn) (string, []byte, error) {
				if s := n.serving.Load(); s == nil || over(*s) {
					return "", nil, fmt.Errorf("node %s: %w", n.name, errDown)
				}
				return n.addrs[port], nil, nil
			})
			if err != nil {
				return err
			}
			w.doors[endpointOf(name, port)] = door
		}
	}
	return nil
}

// way is the address at which a proxy reaches a port of a server.
func (w *World) way(n *node, port string) string {
	if door := w.doors[endpointOf(n.name, port)]; door != nil {
		return door.addr()
	}
	return n.addrs[port]
}
