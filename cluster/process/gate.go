package process

import (
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"

	"github.com/holdfast-io/holdfast/cluster"
)

// gateType is the name of our toxic. Every proxy has one per direction from
// its start to its end. Toxiproxy's own toxics are added and removed while
// connections run, and a chunk that arrives while one is taken away can block
// its chain for good; they also cannot tell which two directions belong to one
// connection, which a lost reply needs.
const gateType = "holdfast_gate"

var registerGate = sync.OnceFunc(func() { toxics.Register(gateType, new(gate)) })

// gates finds the proxy of a gate, since toxiproxy builds toxics from JSON.
var gates sync.Map // proxy id (string) to *proxy

// gate is a toxic that asks its link what to do with each chunk. The fields
// are set by toxiproxy from JSON.
type gate struct {
	Proxy string `json:"proxy"`
	Up    bool   `json:"up"`
}

// NewState is called once per connection and direction, upstream first, by
// the one goroutine that accepts the proxy's connections: this is what pairs
// the two directions.
func (g *gate) NewState() any {
	found, ok := gates.Load(g.Proxy)
	if !ok {
		return (*side)(nil) // the proxy is being closed
	}
	return found.(*proxy).newSide(g.Up)
}

// Pipe runs until the connection is over. It ignores interrupts: they come
// only when toxics are changed, which never happens to these proxies.
func (g *gate) Pipe(stub *toxics.ToxicStub) {
	if s, ok := stub.State.(*side); ok && s != nil {
		s.run(stub)
	}
	stub.Close()
	// Whoever feeds us may be blocked on a chunk, and must come to its end.
	for range stub.Input { //nolint:revive // drained for its effect only
	}
}

// direction is the state of one link, shared by all connections over it.
type direction struct {
	mu      sync.Mutex
	cut     cluster.CutMode // empty while whole
	off     int             // ends that are off the network
	delay   time.Duration
	losses  []*loss
	changed chan struct{} // closed at each change
}

// loss is a reply that is to be lost.
type loss struct {
	command string
	left    int // matching commands up to and including the one that is hit
}

func newDirection() *direction { return &direction{changed: make(chan struct{})} }

func (d *direction) state() (cut cluster.CutMode, delay time.Duration, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cut = d.cut
	if cut == "" && d.off > 0 {
		cut = cluster.Drop
	}
	return cut, d.delay, d.changed
}

func (d *direction) change(f func(d *direction)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
	close(d.changed)
	d.changed = make(chan struct{})
}

// hit counts a command and says whether its reply is to be lost.
func (d *direction) hit(command string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	lose := false
	kept := d.losses[:0]
	for _, l := range d.losses {
		if l.command == "" || strings.EqualFold(l.command, command) {
			l.left--
		}
		if l.left > 0 {
			kept = append(kept, l)
		} else {
			lose = true
		}
	}
	d.losses = kept
	return lose
}

// conn is one connection through a proxy: what its two sides share.
type conn struct {
	dead chan struct{} // closed when either side is over
	once sync.Once

	mu       sync.Mutex
	requests int // sent on so far
	lose     int // number of the request whose reply is lost; 0 for none
}

func (c *conn) die() { c.once.Do(func() { close(c.dead) }) }

// side is one direction of a connection.
type side struct {
	conn *conn
	dir  *direction
	up   bool
	resp bool // the stream is Redis requests and replies, and is counted

	requests requestScanner
	replies  replyScanner
	lost     bool // bytes have been dropped: TCP cannot go on
}

// waiting is a chunk on its way.
type waiting struct {
	chunk *stream.StreamChunk
	due   time.Time
}

// run moves chunks until the connection is over. The state of the link is read
// after a chunk has arrived and never before, so nothing that is sent after a
// cut has been made gets through.
func (s *side) run(stub *toxics.ToxicStub) {
	defer s.conn.die()
	var queue []waiting
	input, ended := stub.Input, false
	for {
		cut, _, changed := s.dir.state()
		if cut != "" && len(queue) > 0 {
			s.lost, queue = true, nil
		}
		// While the link drops, its end of stream is lost like any other
		// byte: a peer that dies behind a cut is not seen to die.
		if cut == cluster.Reset || cut == "" && (s.lost || ended && len(queue) == 0) {
			return
		}
		var due <-chan time.Time
		if len(queue) > 0 {
			wait := time.Until(queue[0].due)
			if wait <= 0 {
				if !s.forward(stub, queue[0].chunk) {
					return
				}
				queue = queue[1:]
				continue
			}
			due = time.After(wait)
		}
		select {
		case chunk := <-input:
			if chunk == nil {
				input, ended = nil, true
			} else {
				// What is sent under a delay is late, healed or not, as a
				// packet on its way is.
				_, delay, _ := s.dir.state()
				queue = append(queue, waiting{chunk: chunk, due: chunk.Timestamp.Add(delay)})
			}
		case <-due:
		case <-changed:
		case <-s.conn.dead:
			return
		}
	}
}

// forward sends a chunk on. It says no when the connection is over.
func (s *side) forward(stub *toxics.ToxicStub, chunk *stream.StreamChunk) bool {
	data, goOn := chunk.Data, true
	if s.resp && s.up {
		s.count(data)
	} else if s.resp {
		data, goOn = s.filter(data)
	}
	if len(data) == 0 {
		return goOn
	}
	select {
	case stub.Output <- &stream.StreamChunk{Data: data, Timestamp: chunk.Timestamp}:
		return goOn
	case <-s.conn.dead:
		return false
	}
}

// count notes the requests in a chunk before it is sent on, so that the reply
// cannot be there first.
func (s *side) count(data []byte) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	for _, command := range s.requests.feed(data) {
		s.conn.requests++
		if s.dir.hit(command) && s.conn.lose == 0 {
			s.conn.lose = s.conn.requests
		}
	}
}

// filter gives the replies that may pass. Replies pass whole, so that a lost
// one leaves nothing of itself behind.
func (s *side) filter(data []byte) (pass []byte, goOn bool) {
	s.conn.mu.Lock()
	lose := s.conn.lose
	s.conn.mu.Unlock()
	return s.replies.feed(data, lose)
}
