package harness

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/scenarios"
)

// Client is one client process with its workload. The same code runs as a
// group of goroutines in the simulator and as a process of its own on real
// servers; what differs is handed in.
type Client struct {
	Name     string
	Index    int // from 0
	Clients  int
	TTL      time.Duration
	Seed     uint64
	Workload scenarios.Workload
	// Locks are one object for each of the workload's names. All threads of the
	// client share them.
	Locks []impl.Lock
	// Start of the run on this process's clock, and the time since then.
	Start time.Time
	Clock func() int64
	// Record hands an event on; it returns when the client may go on.
	Record func(history.Event)
	// Step stands still while the client is paused (simulator only; a real
	// process is stopped by the kernel).
	Step func()
	// Least is the shortest wait outside the lock: virtual time goes on only while
	// clients wait, and a real one needs none.
	Least time.Duration
	// Dial connects to the protected resource.
	Dial func(ctx context.Context) (net.Conn, error)
	// Stop says that no new round shall begin.
	Stop func() bool

	mu sync.Mutex
	// calls are those to a lock that are under way, of every thread.
	calls []*call
}

// call is one call to a lock, within reach of [Client.Cancel].
type call struct{ cancel context.CancelFunc }

// Run plays rounds until Stop says so or the context ends. Each further thread
// begins a stagger after the one before it, and a few microseconds, so that no
// two threads of a run begin at the same instant.
func (c *Client) Run(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	for number := 1; number < c.Workload.Wide(); number++ {
		late := time.Duration(number) * (c.span(c.Workload.Stagger) + time.Duration(c.Clients)*time.Microsecond)
		others.Go(func() {
			a := c.actor(number)
			a.pause(ctx, late)
			a.run(ctx)
		})
	}
	c.actor(0).run(ctx)
}

// actor makes one thread of the client. Process numbers, acquisition numbers
// and random streams of all threads of a run are apart.
func (c *Client) actor(number int) *actor {
	all := c.Clients * c.Workload.Wide()
	first := number*c.Clients + c.Index
	a := &actor{
		Client: c, all: all, first: first, store: storage{dial: c.Dial},
		rng: rand.New(rand.NewPCG(c.Seed, uint64(first)+1)),
		thread: &thread{
			client: c.Name, number: number, process: first, retire: all, clock: c.Clock, record: c.Record,
		},
	}
	for i, name := range c.Workload.Names() {
		a.locks = append(a.locks, &recorded{lock: c.Locks[i], name: name, start: c.Start, thread: a.thread})
	}
	return a
}

// span is a duration of the workload for this run's TTL.
func (c *Client) span(s interface {
	Of(time.Duration) time.Duration
}) time.Duration {
	return s.Of(c.TTL)
}

// in is the moment a timeout from now, as nanoseconds of the run. The call
// itself begins a little later, or much later if the client is paused first;
// whoever judges by it allows for both.
func (c *Client) in(timeout time.Duration) *int64 {
	at := c.Clock() + timeout.Nanoseconds()
	return &at
}

// call makes the context of one call to the lock, with a deadline and within
// reach of [Client.Cancel].
func (c *Client) call(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	its := &call{cancel: cancel}
	c.mu.Lock()
	c.calls = append(c.calls, its)
	c.mu.Unlock()
	return ctx, func() {
		cancel()
		c.mu.Lock()
		c.calls = slices.DeleteFunc(c.calls, func(x *call) bool { return x == its })
		c.mu.Unlock()
	}
}

// Cancel cancels the contexts of the calls to the lock that are under way, as a
// user does who gives up: a request that ends, a shutdown.
func (c *Client) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, its := range c.calls {
		its.cancel()
	}
}
