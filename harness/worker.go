package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/scenarios"
)

// WorkerVerb is the hidden verb with which the program starts itself as one
// client process.
const WorkerVerb = "worker"

// The lines from the harness to a worker: first an assignment as JSON, then
// words. The worker sends its events, a line of JSON each, and waits for an
// ack after every one. The harness stops the process, where a fault wants it
// stopped, before it sends the ack, so a pause falls exactly after the event:
//
//	worker   records "write invoke", waits
//	harness  the trigger fires: SIGSTOP, waits until the process stands still
//	harness  sends the ack into the pipe of the stopped process
//	         ... the pause ...
//	harness  SIGCONT
//	worker   reads the ack and sends the write
const (
	wordAck  = "ack"
	wordStop = "stop"
)

// assignment tells a worker who it is.
type assignment struct {
	Client   string             `json:"client"`
	Index    int                `json:"index"`
	Clients  int                `json:"clients"`
	Lock     string             `json:"lock"`
	LockName string             `json:"lock_name"`
	TTL      time.Duration      `json:"ttl_ns"`
	Seed     uint64             `json:"seed"`
	Workload scenarios.Workload `json:"workload"`
	// Nodes and their addresses, in order; Resource is the resource's.
	Nodes    []endpoint `json:"nodes"`
	Resource string     `json:"resource"`
	// Start of the run on the machine's monotonic clock, in nanoseconds.
	Start int64 `json:"start"`
	// Wait before the first round.
	Wait time.Duration `json:"wait_ns"`
}

type endpoint struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
}

// monotonic is the machine's monotonic clock, the same for all processes.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return ts.Nano()
}

// Work is the whole life of a worker process.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	silence.Do(func() { redis.SetLogger(quiet{}) })
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("worker: no assignment came in: %w", err)
	}
	var a assignment
	if err := json.Unmarshal(first, &a); err != nil {
		return fmt.Errorf("worker: assignment: %w", err)
	}
	entry, ok := catalogue.Find(a.Lock)
	if !ok {
		return fmt.Errorf("worker: there is no lock %q", a.Lock)
	}
	lock, err := entry.New(impl.Env{Client: a.Client, Nodes: a.endpoints(), Name: a.LockName, TTL: a.TTL})
	if err != nil {
		return fmt.Errorf("worker: build lock %s: %w", a.Lock, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pipe{out: bufio.NewWriter(out), acks: make(chan struct{}, 1), gone: ctx.Done()}
	go p.listen(lines, cancel) // ends with its input, at the latest with the process
	a.client(lock, p).Run(ctx)
	if c, ok := lock.(io.Closer); ok {
		return errors.Join(p.failure(), c.Close())
	}
	return p.failure()
}

// endpoints are the nodes as the lock gets them: each behind this client's own
// proxies.
func (a *assignment) endpoints() []impl.Node {
	var out []impl.Node
	for _, n := range a.Nodes {
		out = append(out, impl.Node{
			Name: n.Name,
			Options: func() *redis.Options {
				// The name lets the server trace tell clients apart.
				return &redis.Options{Addr: n.Addr, ClientName: a.Client, PoolSize: 10}
			},
			Dial: func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, n.Addr) },
		})
	}
	return out
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// client makes the workload of this process.
func (a *assignment) client(lock impl.Lock, p *pipe) *Client {
	now := time.Now()
	start := now.Add(-time.Duration(monotonic() - a.Start))
	time.Sleep(time.Until(start.Add(a.Wait)))
	return &Client{
		Name: a.Client, Index: a.Index, Clients: a.Clients, LockName: a.LockName, TTL: a.TTL,
		Seed: a.Seed, Workload: a.Workload, Lock: lock, Start: start,
		Clock:  func() int64 { return monotonic() - a.Start },
		Record: p.send,
		Step:   func() {},
		Dial:   func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, a.Resource) },
		Stop:   p.stopped.Load,
	}
}

// pipe is the worker's side of the conversation.
type pipe struct {
	out     *bufio.Writer
	acks    chan struct{}
	gone    <-chan struct{}
	stopped atomic.Bool

	mu  sync.Mutex
	err error
}

// send hands an event on and waits for its ack.
func (p *pipe) send(ev history.Event) {
	line, err := json.Marshal(ev)
	if err == nil {
		_, err = p.out.Write(append(line, '\n'))
	}
	if err == nil {
		err = p.out.Flush()
	}
	if err != nil {
		p.fail(fmt.Errorf("worker: send an event: %w", err))
		return
	}
	select {
	case <-p.acks:
	case <-p.gone:
	}
}

// listen reads the harness's words. When they end, so does the worker: its
// harness is gone.
func (p *pipe) listen(lines *bufio.Reader, cancel context.CancelFunc) {
	defer cancel()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch line {
		case wordAck + "\n":
			p.acks <- struct{}{}
		case wordStop + "\n":
			p.stopped.Store(true)
		default:
			p.fail(fmt.Errorf("worker: the harness said %q", line))
		}
	}
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
	p.stopped.Store(true)
}

func (p *pipe) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
