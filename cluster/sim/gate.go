package sim

import (
	"sync"
	"time"
)

// gate is where a paused client stops. Everything that a client does to the
// outside world passes it: reads that return, writes, dials, and the steps of
// its workload.
type gate struct {
	mu      sync.Mutex
	shut    bool
	waiting []chan struct{}
}

// apart is how long after one another the goroutines of a client go on after
// a pause. Let go together they would race for what they share, and the same
// seed would give two histories.
const apart = time.Microsecond

// pass returns at once while the gate is open, and otherwise when it opens.
func (g *gate) pass() {
	for {
		g.mu.Lock()
		if !g.shut {
			g.mu.Unlock()
			return
		}
		turn := make(chan struct{})
		g.waiting = append(g.waiting, turn)
		g.mu.Unlock()
		<-turn
	}
}

// close stops whoever comes. It says whether the gate was open.
func (g *gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := !g.shut
	g.shut = true
	return was
}

// open lets everybody go on, in the order in which they came.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
	for i, turn := range g.waiting {
		if i == 0 {
			close(turn)
			continue
		}
		time.AfterFunc(time.Duration(i)*apart, func() { close(turn) })
	}
	g.waiting = nil
}
