package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/resource"
)

// OpenStore makes the value of one run at a place. Whoever opened it closes it,
// or the value stays where it is.
func OpenStore(ctx context.Context, p resource.Place, rule resource.Rule) (Store, error) {
	switch p.Kind() {
	case resource.KindBuiltin:
		return resource.NewBuiltin(rule), nil
	case resource.KindSQLite:
		return opened(resource.OpenSQLite(ctx, p, rule))
	case resource.KindPostgres:
		return opened(resource.OpenPostgres(ctx, p, rule))
	case resource.KindRedis:
		return opened(resource.OpenRedis(ctx, p, rule))
	}
	return nil, fmt.Errorf("%w: there is no kind of store %q", resource.ErrStore, p.Kind())
}

// opened keeps a nil pointer from becoming a store that is not nil.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckStore says whether a run can have its value at a place: it makes one,
// uses it, and removes it.
func CheckStore(ctx context.Context, p resource.Place) (err error) {
	silence.Do(func() { redis.SetLogger(quiet{}) })
	s, err := OpenStore(ctx, p, resource.Guarded)
	if err != nil {
		return err
	}
	_, err = s.Do(ctx, resource.Call{Write: true, Fence: new(uint64)})
	return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}

// openStore makes the value of this run.
func (c Config) openStore(ctx context.Context) (Store, error) {
	return OpenStore(ctx, c.Resource, resource.Rule(c.Scenario.Workload.Resource))
}

// closeLimit is how long a store may take to remove its value, in real time.
const closeLimit = 10 * time.Second

// closeStore removes the value, also after Ctrl-C.
func closeStore(s Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return s.Close(ctx)
}

// desk serves a store from outside a bubble. Drivers of databases have
// deadlines and connections of the real world, and a bubble has neither: its
// clock stands in the year 2000, and moves on while its goroutines wait for
// each other. Whoever waits for a channel from outside a bubble keeps its clock
// where it is, so to the clients a call takes no time, however long it takes.
type desk struct {
	store   Store
	calls   chan resource.Call
	answers chan reply
	stop    chan struct{}
	done    chan struct{} // closed when nobody serves any more
}

// reply is what the store made of a call.
type reply struct {
	out resource.Outcome
	err error
}

// errShut is told to a client of a bubble that was given up and still runs.
var errShut = errors.New("the run is over")

// newDesk starts to serve. It must be made outside the bubble.
func newDesk(s Store) *desk {
	d := &desk{
		store: s, calls: make(chan resource.Call), answers: make(chan reply, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go d.serve()
	return d
}

func (d *desk) serve() {
	defer close(d.done)
	for {
		select {
		case c := <-d.calls:
			var r reply
			r.out, r.err = d.store.Do(context.Background(), c) // a store has a time limit of its own
			d.answers <- r
		case <-d.stop:
			return
		}
	}
}

// end waits for the goroutine that serves.
func (d *desk) end() {
	close(d.stop)
	<-d.done
}

// Do hands a call out of the bubble. The door lets one at a time through.
func (d *desk) Do(_ context.Context, c resource.Call) (resource.Outcome, error) {
	select {
	case d.calls <- c:
		r := <-d.answers
		return r.out, r.err
	case <-d.stop:
		return resource.Outcome{}, errShut
	}
}

// Version of the store.
func (d *desk) Version() string { return d.store.Version() }

// Close does nothing: the store is closed where it was opened, outside.
func (d *desk) Close(context.Context) error { return nil }
