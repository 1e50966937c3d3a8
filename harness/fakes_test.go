package harness

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
)

// notebook keeps what a thread records.
type notebook struct {
	mu  sync.Mutex
	ops []history.Op
}

func (n *notebook) record(ev history.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ops = append(n.ops, *ev.Op)
}

// fakeLock hands out one lease or one error.
type fakeLock struct {
	lease impl.Lease
	err   error
}

func (l *fakeLock) Acquire(context.Context) (impl.Lease, error) { return l.lease, l.err }

// plainLease tells nothing.
type plainLease struct{ err error }

func (l *plainLease) Release(context.Context) error { return l.err }

// talkative tells everything that a lease can tell.
type talkative struct {
	plainLease
	fence uint64
	until time.Time
	lost  chan struct{}
}

func (l *talkative) Fence() uint64         { return l.fence }
func (l *talkative) Until() time.Time      { return l.until }
func (l *talkative) Lost() <-chan struct{} { return l.lost }

func newThread(n *notebook) *thread {
	return &thread{client: "c2", process: 1, retire: 3, clock: func() int64 { return 7 }, record: n.record}
}
