package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/scenarios"
)

// WorkerVerb is the hidden verb with which the program starts itself as one
// client process.
const WorkerVerb = "worker"

// The lines between the harness and a worker. The harness sends an assignment
// as JSON, and the worker says ready: it takes some fifty milliseconds to come
// up, on a busy machine several times that, and a client that came up late
// would start in another's place. Once all are ready and the faults of time
// zero have struck, the harness sends the beginning as JSON, the same to all.
//
// From then on the worker sends its events, a line of JSON each. Where a fault
// may strike at an event it waits for an ack: the harness stops the process,
// where the fault wants it stopped, before it sends the ack, so a pause falls
// exactly after the event. After any other event it goes on at once, or the
// harness would be most of what a fast lock is measured by:
//
//	worker   records "write invoke", waits
//	harness  the trigger fires: SIGSTOP, waits until the process stands still
//	harness  sends the ack into the pipe of the stopped process
//	         ... the pause ...
//	harness  SIGCONT
//	worker   reads the ack and sends the write
const (
	wordReady = "ready"
	wordAck   = "ack"
	wordStop  = "stop"
)

// assignment tells a worker who it is.
type assignment struct {
	Client   string             `json:"client"`
	Index    int                `json:"index"`
	Clients  int                `json:"clients"`
	Lock     string             `json:"lock"`
	TTL      time.Duration      `json:"ttl_ns"`
	Seed     uint64             `json:"seed"`
	Workload scenarios.Workload `json:"workload"`
	// Mark comes before the names of the locks in their keys.
	Mark string `json:"mark,omitempty"`
	// Nodes and their addresses, in order; Resource is the resource's.
	Nodes    []endpoint `json:"nodes"`
	Resource string     `json:"resource"`
	// Cluster: the nodes are one Redis Cluster, and the lock gets a client for
	// it in place of them.
	Cluster bool `json:"cluster,omitempty"`
	// Await are the events after which it waits for an ack.
	Await moments `json:"await,omitempty"`
	// Watched stands where sentinels say where the primary is.
	Watched *watched `json:"watched,omitempty"`
	// Wait between the beginning and the first round.
	Wait time.Duration `json:"wait_ns"`
}

// beginning is when everything begins, in nanoseconds on the machine's
// monotonic clock.
type beginning struct {
	// Start of the run: the zero of the history.
	Start int64 `json:"start"`
	// Clients is the instant from which clients count their Wait. It lies
	// behind Start by as long as the faults of time zero took.
	Clients int64 `json:"clients"`
}

// moments are the events at which a fault may strike.
type moments []moment

// moment is one of them; what is empty is any.
type moment struct {
	F    string       `json:"f,omitempty"`
	Type history.Type `json:"type,omitempty"`
}

// momentsOf are those of a plan's triggers.
func momentsOf(p nemesis.Plan) moments {
	var out moments
	for _, step := range p {
		if step.When.Op != "" {
			out = append(out, moment{F: step.When.Op, Type: step.When.Type})
		}
	}
	return out
}

// have says whether an event is one of them.
func (m moments) have(ev history.Event) bool {
	return ev.Op != nil && slices.ContainsFunc(m, func(one moment) bool {
		return (one.F == "" || one.F == ev.Op.F) && (one.Type == "" || one.Type == ev.Op.Type)
	})
}

type endpoint struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
	// Known is the address under which the nodes of a Redis Cluster name this
	// one; empty elsewhere.
	Known string `json:"known,omitempty"`
	// Existing says how to log in to a server that is not ours.
	Existing *process.Existing `json:"existing,omitempty"`
}

// options of a client's connections. The name lets the server trace tell clients
// apart.
func (e endpoint) options(client string) *redis.Options {
	o := &redis.Options{Addr: e.Addr}
	if e.Existing != nil {
		o = e.Existing.Options(e.Addr)
	}
	o.ClientName, o.PoolSize = client, 10
	return o
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
	var a assignment
	if err := readJSON(lines, "assignment", &a); err != nil {
		return err
	}
	entry, ok := catalogue.Find(a.Lock)
	if !ok {
		return fmt.Errorf("worker: there is no lock %q", a.Lock)
	}
	if _, err := io.WriteString(out, wordReady+"\n"); err != nil {
		return fmt.Errorf("worker: say ready: %w", err)
	}
	var b beginning
	if err := readJSON(lines, "beginning", &b); err != nil {
		return err
	}
	// The lock is built after the beginning, since some dial at once, and
	// the faults of time zero must be there before.
	locks, err := buildLocks(entry, a.Workload, a.Mark, impl.Env{
		Client: a.Client, Nodes: a.endpoints(), TTL: a.Workload.LockTTL.Of(a.TTL),
		Retries: impl.Retries(a.Workload.LockRetries), Token: a.Workload.TokenOf(a.Index),
	})
	if err != nil {
		return fmt.Errorf("worker: build lock %s: %w", a.Lock, err)
	}
	told := ctx
	ctx, cancel := context.WithCancel(told)
	defer cancel()
	p := &pipe{out: bufio.NewWriter(out), await: a.Await, acks: make(chan struct{}, 1), gone: ctx.Done()}
	go p.listen(lines, cancel) // ends with its input, at the latest with the process
	if wait(ctx, time.Duration(b.Clients-monotonic())+a.Wait) {
		a.client(locks, p, b.Start).Run(ctx)
	}
	p.flush()
	errs := []error{p.failure()}
	if !p.stopped.Load() && told.Err() != nil {
		// With exit status 0 it would look as if the lock had ended it.
		errs = append(errs, errors.New("worker: told by a signal to end before its work was over"))
	}
	for _, lock := range locks {
		if c, ok := lock.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// readJSON reads one line into v.
func readJSON(lines *bufio.Reader, what string, v any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("worker: no %s came in: %w", what, err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("worker: %s: %w", what, err)
	}
	return nil
}

// wait says whether the time passed before the context ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// endpoints are the nodes as the lock gets them: each behind this client's own
// proxies.
func (a *assignment) endpoints() []impl.Node {
	if a.Cluster {
		return []impl.Node{a.whole()}
	}
	var out []impl.Node
	for _, n := range a.Nodes {
		if a.Watched != nil {
			out = append(out, a.Watched.node(n.Name, a.Client))
			continue
		}
		out = append(out, a.node(n))
	}
	return out
}

// node is a plain node as the lock gets it.
func (a *assignment) node(n endpoint) impl.Node {
	return impl.Node{
		Name:    n.Name,
		Options: func() *redis.Options { return n.options(a.Client) },
		Dial:    func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, n.Addr) },
	}
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// client makes the workload of this process.
func (a *assignment) client(locks []impl.Lock, p *pipe, start int64) *Client {
	return &Client{
		Name: a.Client, Index: a.Index, Clients: a.Clients, TTL: a.TTL,
		Seed: a.Seed, Workload: a.Workload, Locks: locks,
		Start:  time.Now().Add(-time.Duration(monotonic() - start)),
		Clock:  func() int64 { return monotonic() - start },
		Record: p.send,
		Step:   func() {},
		Dial:   func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, a.Resource) },
		Stop:   p.stopped.Load,
	}
}

// pipe is the worker's side of the conversation.
type pipe struct {
	out     *bufio.Writer
	await   moments
	acks    chan struct{}
	gone    <-chan struct{}
	stopped atomic.Bool

	// talking is held from an event to its ack: an ack names no event, so
	// threads take turns.
	talking sync.Mutex

	mu  sync.Mutex
	err error
}

// send hands an event on, and waits for its ack if a fault may strike there.
func (p *pipe) send(ev history.Event) {
	p.talking.Lock()
	defer p.talking.Unlock()
	line, err := json.Marshal(ev)
	if err == nil {
		_, err = p.out.Write(append(line, '\n'))
	}
	// A note tells of no call: it may wait for the next event, which says the
	// same of an end of this process as a note that was lost.
	if err == nil && (p.await.have(ev) || ev.Op == nil || ev.Op.Type != history.Note) {
		err = p.out.Flush()
	}
	if err != nil {
		p.fail(fmt.Errorf("worker: send an event: %w", err))
		return
	}
	if !p.await.have(ev) {
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
			select {
			case p.acks <- struct{}{}:
			default: // blocking here would leave the rest unread, the end too
				p.fail(errors.New("worker: the harness sent an ack that nobody waits for"))
			}
		case wordStop + "\n":
			p.stopped.Store(true)
		default:
			p.fail(fmt.Errorf("worker: the harness said %q", line))
		}
	}
}

// flush sends the notes that still wait.
func (p *pipe) flush() {
	p.talking.Lock()
	defer p.talking.Unlock()
	if err := p.out.Flush(); err != nil {
		p.fail(fmt.Errorf("worker: send an event: %w", err))
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
