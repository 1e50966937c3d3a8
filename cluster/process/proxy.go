package process

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/holdfast-io/holdfast/cluster"
)

// proxyIDs makes proxy ids unique in this process, over all worlds.
var proxyIDs atomic.Int64

// proxy stands between one dialer and one target.
type proxy struct {
	id     string
	dialer string // a client, or a node that replicates
	resp   bool
	toxi   *toxiproxy.Proxy
	dirs   func(cluster.Link) *direction
	addr   string // where the dialer dials; stays the same for good

	mu      sync.Mutex
	target  string // the node behind it, or the resource
	pending *conn  // its upstream side exists, its downstream side not yet
	conns   map[*conn]struct{}
}

// newProxy starts a proxy on a free port of host. The port stays its own for
// good, since no other program uses that address.
func newProxy(server *toxiproxy.ApiServer, p *proxy, host, upstream string) error {
	registerGate()
	p.id = fmt.Sprintf("%s-%s-%d", p.dialer, p.target, proxyIDs.Add(1))
	p.conns = make(map[*conn]struct{})
	p.toxi = toxiproxy.NewProxy(server, p.id, host+":0", upstream)
	gates.Store(p.id, p)
	for _, stream := range []string{"upstream", "downstream"} {
		spec := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{"proxy":%q,"up":%t}}`,
			gateType, stream, p.id, stream == "upstream")
		if _, err := p.toxi.Toxics.AddToxicJson(strings.NewReader(spec)); err != nil {
			gates.Delete(p.id)
			return fmt.Errorf("proxy %s to %s: %w", p.dialer, p.target, err)
		}
	}
	if err := p.toxi.Start(); err != nil {
		gates.Delete(p.id)
		return fmt.Errorf("proxy %s to %s: %w", p.dialer, p.target, err)
	}
	p.addr = p.toxi.Listen
	return nil
}

func newToxiServer() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
}

// newSide makes one direction of a new connection.
func (p *proxy) newSide(up bool) *side {
	p.mu.Lock()
	defer p.mu.Unlock()
	link := cluster.Link{From: p.dialer, To: p.target}
	c := p.pending
	if up {
		c = &conn{dead: make(chan struct{})}
		p.pending = c
		p.conns[c] = struct{}{}
		for old := range p.conns {
			select {
			case <-old.dead:
				delete(p.conns, old)
			default:
			}
		}
	} else {
		p.pending = nil
		link = link.Back()
	}
	return &side{conn: c, dir: p.dirs(link), up: up, resp: p.resp}
}

// pass opens or shuts the proxy. Shut, it has no connections and refuses new
// ones.
func (p *proxy) pass(open bool) error {
	p.toxi.Lock()
	enabled := p.toxi.Enabled
	p.toxi.Unlock()
	switch {
	case open && !enabled:
		return p.reopen()
	case !open && enabled:
		p.toxi.Stop()
		p.hangUp()
	}
	return nil
}

// reopen listens on the proxy's port again. A process that is just being
// started holds a copy of all our sockets until it has become another program,
// the closed listener among them, so the port may be taken for a moment.
func (p *proxy) reopen() error {
	deadline := time.Now().Add(time.Second)
	for {
		err := p.toxi.Start()
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline):
			return fmt.Errorf("proxy %s to %s: %w", p.dialer, p.target, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// hangUp ends all connections.
func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.die()
	}
	clear(p.conns)
}

// retarget ends all connections and sends new ones to another node.
func (p *proxy) retarget(node, upstream string, open bool) error {
	if err := p.pass(false); err != nil {
		return err
	}
	p.mu.Lock()
	p.target = node
	p.mu.Unlock()
	p.toxi.Lock()
	p.toxi.Upstream = upstream
	p.toxi.Unlock()
	return p.pass(open)
}

func (p *proxy) close() error {
	err := p.pass(false)
	gates.Delete(p.id)
	return err
}
