package harness

import (
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// liveness watches the final phase: it is over as soon as every client that
// lives has been granted the lock once, which is all there is to show.
type liveness struct {
	mu      sync.Mutex
	final   bool
	waiting map[string]bool
}

func newLiveness(clients []string) *liveness {
	l := &liveness{waiting: map[string]bool{}}
	for _, c := range clients {
		l.waiting[c] = true
	}
	return l
}

// observe is called with every event.
func (l *liveness) observe(ev history.Event) {
	if ev.Op == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch op := ev.Op; {
	case op.F == history.Crash:
		delete(l.waiting, op.Client)
	case op.F == history.Phase && op.Error == history.Final:
		l.final = true
	case l.final && op.F == history.Acquire && op.Type == history.OK:
		delete(l.waiting, op.Client)
	}
}

// shown says that nothing more can be learned.
func (l *liveness) shown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.final && len(l.waiting) == 0
}

// finalEvent is the note that begins the phase.
func finalEvent() history.Event {
	return history.Event{Op: &history.Op{Process: -1, F: history.Phase, Type: history.Note, Error: history.Final}}
}

// finalLength is how long the phase may last: a little longer than the bound,
// or a gap that is longer than the bound could not be seen.
func (c Config) finalLength() time.Duration {
	return c.Scenario.Final.Wait.Of(c.TTL) + c.TTL/2
}

// look is how often a phase asks whether it is over.
func (c Config) look() time.Duration { return (c.TTL / checks).Truncate(time.Microsecond) }
