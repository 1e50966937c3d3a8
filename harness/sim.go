package harness

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	mrand "math/rand"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/sim"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
)

// Two sources of randomness belong to the whole process: math/rand, which
// go-redis and several lock libraries use for back-off, and crypto/rand, for
// tokens. Both are seeded for a run, so runs in one process go one after the
// other; a campaign that wants all cores uses child processes.
var oneAtATime sync.Mutex

// seedGlobals makes both sources a function of the seed, and returns what puts
// the true one back. It needs GODEBUG randseednop=0, which go.mod sets.
func seedGlobals(seed uint64) (restore func()) {
	//lint:ignore SA1019 this is the very source that libraries draw from
	mrand.Seed(int64(seed))
	before := crand.Reader
	var key [32]byte
	for i := range key {
		key[i] = byte(seed >> (8 * (i % 8)))
	}
	crand.Reader = &lockedReader{src: rand.NewChaCha8(key)}
	return func() { crand.Reader = before }
}

type lockedReader struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (r *lockedReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(b)
}

// How long the wall clock may show before a simulation is given up, and how
// long a finished one may take to drain before what is left is a leak.
const (
	simWallLimit  = 2 * time.Minute
	simDrainLimit = 3 * time.Second
)

// simDrainTime of virtual time is left to what ends by itself: go-redis dials
// in the background, up to five times 100 ms apart and five seconds each, and
// Close does not wait for that. When a bubble's first goroutine has ended its
// clock stands still, and a back-off that waits for it would look like a leak.
const simDrainTime = 10 * time.Second

// runSim plays a run in a bubble of its own.
func runSim(ctx context.Context, cfg Config) *Result {
	if why := cfg.missing(sim.Topologies(), sim.Abilities()); why != "" {
		return &Result{Skipped: why}
	}
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	store, err := cfg.openStore(ctx)
	if err != nil {
		return &Result{Err: err}
	}
	if cfg.Resource.Kind() == resource.KindBuiltin { // a bubble may as well have it inside
		return bubbleSim(ctx, cfg, store)
	}
	desk := newDesk(store)
	r := bubbleSim(ctx, cfg, desk)
	desk.end()
	r.Err = errors.Join(r.Err, closeStore(store))
	return r
}

// bubbleSim plays the run. The store was opened before and is closed after it,
// so that what drivers draw from the process's random sources is not drawn from
// those of the run.
func bubbleSim(ctx context.Context, cfg Config, store Store) *Result {
	defer seedGlobals(cfg.Seed)()
	pools.before()

	played := make(chan *Result, 1)
	drained := make(chan error, 1)
	var v vitals
	go func() {
		drained <- sim.Bubble(func() { played <- newSimRun(ctx, cfg, store, &v).play() })
	}()
	wall := cmp.Or(cfg.WallLimit, simWallLimit)
	limit := time.NewTimer(wall)
	defer limit.Stop()
	look := time.NewTicker(beat)
	defer look.Stop()
	for {
		select {
		case r := <-played:
			r = awaitDrain(r, drained)
			pools.after(v.crowded.Load())
			return r
		case err := <-drained: // ended without a result: it panicked
			select {
			case r := <-played:
				return r
			default:
			}
			return v.saved(fmt.Errorf("%w: %w", ErrEndedEarly, orUnknown(err)))
		case <-limit.C:
			return v.saved(fmt.Errorf("%w within %v of wall time", ErrHangs, wall))
		case <-look.C:
			if !v.still() {
				continue
			}
			if stack := stuckInLock(false); stack != "" {
				return v.saved(fmt.Errorf("%w: its code let no virtual time go on for %v\n%s", ErrLockHangs, standstill*beat, stack))
			}
		}
	}
}

// A lock that spins, or that waits for a mutex for ever, lets virtual time
// stand. It is given up after so many looks at a history to which nothing was
// added; looks are counted and not time, so that a machine that was stopped
// itself blames nobody.
const (
	beat       = 250 * time.Millisecond
	standstill = 12
)

// vitals are what is seen of a run from outside its bubble.
type vitals struct {
	rec   atomic.Pointer[history.Recorder]
	beats atomic.Int64 // events and steps of the run
	// crowded says that callers may have waited for a connection; see pools.
	crowded atomic.Bool
	last    int64
	count   int
}

// still says that the run has not moved for too long.
func (v *vitals) still() bool {
	if now := v.beats.Load(); now != v.last {
		v.last, v.count = now, 0
		return false
	}
	v.count++
	return v.count >= standstill
}

// BuildLock begins the error of a lock that refused to be built.
const BuildLock = "build lock"

// What a lock can do to a simulation.
var (
	ErrHangs      = errors.New("the simulation did not finish")
	ErrEndedEarly = errors.New("the simulation ended early")
	// ErrLockHangs: the stacks of the lock's goroutines follow.
	ErrLockHangs = errors.New("the lock hangs")
)

func orUnknown(err error) error {
	if err == nil {
		return errors.New("no reason given")
	}
	return err
}

// saved keeps the history of a run that broke.
func (v *vitals) saved(err error) *Result {
	r := &Result{Err: err}
	if p := v.rec.Load(); p != nil {
		r.History = p.Finish()
	}
	return r
}

// awaitDrain waits for what the lock may have left running.
func awaitDrain(r *Result, drained <-chan error) *Result {
	limit := time.NewTimer(simDrainLimit)
	defer limit.Stop()
	select {
	case err := <-drained:
		if err != nil {
			r.Leaks = append(r.Leaks, err.Error())
		}
	case <-limit.C:
		r.Leaks = append(r.Leaks, fmt.Sprintf("something of the lock still runs %v after everything was closed", simDrainLimit))
	}
	return r
}

// simRun is one run inside its bubble.
type simRun struct {
	ctx      context.Context // of the caller: outside the bubble, only polled
	cfg      Config
	store    Store
	resource *Resource
	world    *sim.World
	rec      *history.Recorder
	vitals   *vitals
	driver   *nemesis.Driver
	live     *liveness
	start    time.Time
	stopping atomic.Bool
	locks    []impl.Lock
	clients  sync.WaitGroup
	running  atomic.Int32
}

func newSimRun(ctx context.Context, cfg Config, store Store, v *vitals) *simRun {
	r := &simRun{ctx: ctx, cfg: cfg, store: store, start: time.Now(), vitals: v}
	r.rec = history.NewRecorder(r.clock)
	v.rec.Store(r.rec)
	return r
}

// clock is nanoseconds since the start of the run.
func (r *simRun) clock() int64 { return time.Since(r.start).Nanoseconds() }

// record keeps an event; its own clock gives the time.
func (r *simRun) record(ev history.Event) {
	r.vitals.beats.Add(1)
	r.rec.Record(ev)
}

// play is the whole run.
func (r *simRun) play() *Result {
	res := &Result{}
	if res.Err = r.setUp(); res.Err != nil {
		return res
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.driver.Start()
	cancels, err := r.startClients(ctx)
	if err != nil {
		res.Err = errors.Join(err, r.tearDown(cancels))
		return res
	}
	interrupted := r.sleep(r.cfg.Scenario.Length.Of(r.cfg.TTL))
	if r.cfg.Scenario.Final.Heal {
		// What goes wrong here is told once, by the last call below.
		if healed := r.driver.HealAll(); healed == nil && !interrupted {
			interrupted = r.final()
		}
	}
	r.finish(cancels)
	res.Err = errors.Join(res.Err, r.driver.HealAll(), r.resource.Err()) // what had no final phase
	unfired(append(r.driver.Unfired(), r.world.Pending()...), r.rec)
	for _, ev := range r.world.Leftovers() {
		r.record(history.Event{Server: &ev})
	}
	res.Virtual = time.Since(r.start)
	res.History = r.rec.Finish()
	if interrupted {
		res.Err = errors.Join(res.Err, ErrInterrupted)
	}
	res.Err = errors.Join(res.Err, r.tearDown(cancels))
	return res
}

// final is the liveness phase.
func (r *simRun) final() (interrupted bool) {
	r.record(finalEvent())
	step := r.cfg.look()
	for left := r.cfg.finalLength(); left > 0 && !r.live.shown(); left -= step {
		if r.sleep(step) {
			return true
		}
	}
	return false
}

// sleep lets virtual time go on. It looks out for Ctrl-C once in a TTL.
func (r *simRun) sleep(d time.Duration) (interrupted bool) {
	for d > 0 && r.ctx.Err() == nil {
		nap := min(d, r.cfg.TTL)
		time.Sleep(nap)
		r.vitals.beats.Add(1)
		d -= nap
	}
	return r.ctx.Err() != nil
}

func (r *simRun) setUp() error {
	cfg := r.cfg
	nodes := cfg.nodes()
	r.rec.SetHeader(cfg.header(nodes, r.store))
	r.resource = NewResource(r.store, r.record, nil)
	world, err := sim.New(sim.Config{
		Topology: cfg.Topology, Nodes: nodes, Clients: cfg.Scenario.Clients, Seed: cfg.Seed,
		LockNames: cfg.Scenario.Workload.Names(), LockKeys: cfg.lockKeys(), Resource: r.resource.Session, Fsync: wantsFsync(cfg.plan()),
		OnServer: func(ev history.Server) { r.record(history.Event{Server: &ev}) },
	})
	if err != nil {
		return fmt.Errorf("build the world: %w", err)
	}
	r.world = world
	r.driver = nemesis.NewDriver(cfg.plan(), world, cfg.TTL, r.record)
	r.live = newLiveness(world.Clients())
	r.rec.Observe(r.live.observe)
	r.rec.Observe(r.driver.Observe)
	return nil
}

// wantsFsync says whether a node restarts as of its last fsync.
func wantsFsync(p nemesis.Plan) bool {
	for _, s := range p {
		if k, ok := s.Fault.(nemesis.Kill); ok && k.Data == cluster.Fsynced {
			return true
		}
	}
	return false
}

// buildLocks builds one lock object for each name of the workload, with a mark
// before it, and returns those that it has built, also beside an error.
func buildLocks(entry catalogue.Entry, w scenarios.Workload, mark string, env impl.Env) ([]impl.Lock, error) {
	var locks []impl.Lock
	for _, name := range w.Names() {
		env.Name = mark + name
		lock, err := entry.New(env)
		if err != nil {
			return locks, err
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

// startClients starts one goroutine a client. Each has a context of its own,
// so that the end reaches one after the other.
func (r *simRun) startClients(ctx context.Context) ([]context.CancelFunc, error) {
	w := r.cfg.Scenario.Workload
	var cancels []context.CancelFunc
	for i, name := range r.world.Clients() {
		locks, err := buildLocks(r.cfg.Lock, w, "", impl.Env{
			Client: name, Nodes: r.world.Endpoints(name), TTL: w.LockTTL.Of(r.cfg.TTL),
			Retries: impl.Retries(w.LockRetries), Token: w.TokenOf(i),
		})
		r.locks = append(r.locks, locks...)
		if err != nil {
			return cancels, fmt.Errorf("%s %s for %s: %w", BuildLock, r.cfg.Lock.Name, name, err)
		}
		c := &Client{
			Name: name, Index: i, Clients: r.cfg.Scenario.Clients, TTL: r.cfg.TTL,
			Seed: r.cfg.Seed, Workload: w, Locks: locks, Start: r.start, Clock: r.clock,
			// Step before and after: timers of the lock's code fire in a client
			// that is paused or dead, but what follows from them is seen by
			// nobody before it goes on, and never if it died.
			Record: func(ev history.Event) { r.world.Step(name); r.record(ev); r.world.Step(name) },
			Step:   func() { r.world.Step(name) },
			Dial:   func(ctx context.Context) (net.Conn, error) { return r.world.DialResource(ctx, name) },
			Stop:   r.stopping.Load,
			Least:  time.Microsecond,
		}
		r.world.OnCancel(name, c.Cancel)
		cctx, cancel := context.WithCancel(ctx)
		cancels = append(cancels, cancel)
		// Clients start at instants of their own, microseconds apart even
		// without a stagger.
		wait := time.Duration(i)*(w.Stagger.Of(r.cfg.TTL)+time.Microsecond) + time.Microsecond
		r.running.Add(1)
		r.clients.Go(func() {
			defer r.running.Add(-1)
			time.Sleep(wait)
			c.Run(cctx)
		})
	}
	return cancels, nil
}

// finish lets clients end their rounds, and then ends their contexts one
// after the other.
func (r *simRun) finish(cancels []context.CancelFunc) {
	r.stopping.Store(true)
	step := r.cfg.look()
	for left := r.cfg.grace(); left > 0 && r.running.Load() > 0; left -= step {
		time.Sleep(step)
		r.vitals.beats.Add(1)
	}
	for _, cancel := range cancels {
		cancel()
		time.Sleep(time.Microsecond)
	}
}

// tearDown closes what the run opened, the locks last: a lock may want to say
// good-bye, and finds the network gone. The error is of a lock that never comes
// back to its caller.
func (r *simRun) tearDown(cancels []context.CancelFunc) error {
	for _, cancel := range cancels {
		cancel()
	}
	if err := r.world.Close(); err != nil {
		return nil
	}
	if !r.clientsEnd() {
		// Its connections are closed and its contexts have ended.
		return fmt.Errorf("%w: a call to it had not returned %v after everything was closed\n%s",
			ErrLockHangs, farewell, stuckInLock(true))
	}
	for _, l := range r.locks {
		if c, ok := l.(io.Closer); ok {
			_ = c.Close() // the run is over and its history is closed
		}
	}
	time.Sleep(simDrainTime)
	r.vitals.crowded.Store(r.world.Crowded())
	return nil
}

// farewell is how long a call to the lock may go on, in virtual time, when all
// that it could wait for has ended.
const farewell = 10 * time.Minute

// clientsEnd waits for the clients, and says whether they have ended.
func (r *simRun) clientsEnd() bool {
	ended := make(chan struct{})
	go func() { // ends with the clients, or is left behind with them
		r.clients.Wait()
		close(ended)
	}()
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
