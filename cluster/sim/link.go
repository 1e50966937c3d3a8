package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// Latency of a link, before any delay: uniform between the two, drawn per
// chunk from the connection's own random stream.
const (
	minLatency = 100 * time.Microsecond
	maxLatency = 500 * time.Microsecond
)

// slots is how many links can have instants of their own: the last three
// digits of a delivery's nanosecond are the link's number.
const slots = 1000

// link is one direction between two parties. Two deliveries never happen at
// the same instant: across links because their last digits differ, on one
// link because busy refuses. With that the order of everything that follows
// is fixed by construction and not by the scheduler.
type link struct {
	id    cluster.Link
	slot  int64
	cut   cluster.CutMode // empty while whole; settle says what it is
	asked cluster.CutMode // by Cut
	off   int             // ends that are off the network
	delay time.Duration
	busy  map[int64]bool
	// cuts counts how often the link was cut, so that a connection can tell
	// whether it lost something since.
	cuts int
}

// settle says how the link is cut now: as it was asked to be, or because one of
// its ends is off the network.
func (l *link) settle() {
	l.cut = l.asked
	if l.cut == "" && l.off > 0 {
		l.cut = cluster.Drop
	}
}

// arrival gives the instant, in nanoseconds of the bubble's clock, at which a
// chunk sent now arrives: after the one before it on the same stream.
func (l *link) arrival(now time.Time, rng *rand.Rand, after int64) int64 {
	lat := minLatency + time.Duration(rng.Int64N(int64(maxLatency-minLatency)))
	at := now.Add(lat + l.delay).UnixNano()
	at = max(at, after)
	at += slots - at%slots + l.slot
	for l.busy[at] {
		at += slots
	}
	l.busy[at] = true
	return at
}

// arrived frees the instant.
func (l *link) arrived(at int64) { delete(l.busy, at) }

// link finds a direction by name.
func (w *World) link(id cluster.Link) (*link, error) {
	l, ok := w.links[id]
	if !ok {
		return nil, fmt.Errorf("there is no link %v", id)
	}
	return l, nil
}

// addLinks makes both directions of a pair.
func (w *World) addLinks(a, b string) {
	for _, id := range []cluster.Link{{From: a, To: b}, {From: b, To: a}} {
		w.links[id] = &link{id: id, slot: int64(len(w.links)+1) % slots, busy: map[int64]bool{}}
	}
}
