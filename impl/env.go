package impl

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"time"
)

// Check says what a lock cannot be built without. Every lock calls it first,
// so that a wrong environment fails at once and with a reason, never as a lock
// that behaves oddly: a TTL below one millisecond would reach Redis as
// "PX 0", which some commands refuse and others take as "delete now".
func (e Env) Check() error {
	if err := e.CheckNodes(); err != nil {
		return err
	}
	if e.Retries.Given && e.Retries.N < 0 {
		return fmt.Errorf("lock %q of client %q: %d retries, the least is none", e.Name, e.Client, e.Retries.N)
	}
	if e.TTL < time.Millisecond {
		return fmt.Errorf("lock %q of client %q: the TTL is %v, the least that Redis can keep is 1ms",
			e.Name, e.Client, e.TTL)
	}
	return nil
}

// Retries is a number of retries that may be given or not; zero is one to try.
type Retries struct {
	Given bool
	N     int
}

// Or is the number, or a lock's own where none is given.
func (r Retries) Or(own int) int {
	if r.Given {
		return r.N
	}
	return own
}

// CheckNodes is [Env.Check] without the TTL and the retries. Adapters of libraries call it:
// what a library makes of an odd TTL is the library's own, and to refuse it in
// its place would hide that.
func (e Env) CheckNodes() error {
	if len(e.Nodes) == 0 {
		return fmt.Errorf("lock %q of client %q: no nodes to keep it on", e.Name, e.Client)
	}
	for i, node := range e.Nodes {
		if node.Options == nil {
			return fmt.Errorf("lock %q of client %q: node %d (%q) has no Options", e.Name, e.Client, i, node.Name)
		}
	}
	return nil
}

// CheckDial is [Env.Check] for a lock whose store is not Redis: it goes through
// the nodes' Dial alone, so their Options may be nil. Least is the shortest TTL
// that the store can keep.
func (e Env) CheckDial(least time.Duration) error {
	if len(e.Nodes) == 0 {
		return fmt.Errorf("lock %q of client %q: no nodes to keep it on", e.Name, e.Client)
	}
	seen := map[string]bool{}
	for i, node := range e.Nodes {
		switch {
		case node.Dial == nil:
			return fmt.Errorf("lock %q of client %q: node %d (%q) has no Dial", e.Name, e.Client, i, node.Name)
		case node.Name == "" || seen[node.Name]:
			// They are dialled by name.
			return fmt.Errorf("lock %q of client %q: node %d has no name of its own but %q", e.Name, e.Client, i, node.Name)
		}
		seen[node.Name] = true
	}
	if e.TTL < least {
		return fmt.Errorf("lock %q of client %q: the TTL is %v, the least that the store can keep is %v",
			e.Name, e.Client, e.TTL, least)
	}
	return nil
}

// DialNode opens a connection to the node of that name. Clients of other stores
// think in addresses; a node's name is the address that they are given. It may
// have a port behind it, which some insist on.
func (e Env) DialNode(ctx context.Context, address string) (net.Conn, error) {
	name, _, _ := strings.Cut(address, ":")
	for _, node := range e.Nodes {
		if node.Name == name {
			return node.Dial(ctx)
		}
	}
	return nil, fmt.Errorf("lock %q of client %q: there is no node %q to dial", e.Name, e.Client, address)
}

// NewIdentifier returns 128 random bits in hex, from crypto/rand. It is the
// value by which a lock recognises its own key, so it must not repeat between
// clients, and must not be a process id, a host name or a counter: two
// containers easily share all three.
func NewIdentifier() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // documented never to fail: the runtime ends the process first
	return hex.EncodeToString(bits[:])
}
