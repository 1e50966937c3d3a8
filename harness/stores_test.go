package harness

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster/sim"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/resource"
)

// frail is a store that fails at its second call and would work again after it.
type frail struct {
	*resource.Builtin
	calls int
}

func (f *frail) Do(ctx context.Context, c resource.Call) (resource.Outcome, error) {
	if f.calls++; f.calls == 2 {
		return resource.Outcome{}, errors.New("the disk is full")
	}
	return f.Builtin.Do(ctx, c)
}

// TestADoorIsShutAfterAnError: nothing goes through any more, nobody is
// answered, and nothing is recorded.
func TestADoorIsShutAfterAnError(t *testing.T) {
	store := &frail{Builtin: resource.NewBuiltin(resource.Guarded)}
	var seen []history.Resource
	var told []error
	door := NewResource(store, func(ev history.Event) { seen = append(seen, *ev.Resource) }, func(err error) { told = append(told, err) })
	session := door.Session("c1")
	write := []byte(`{"f":"write","fence":1}`)
	if got := string(session(write)); got != `{"version":1}` || door.Err() != nil {
		t.Fatalf("the first: %s, %v", got, door.Err())
	}
	for range 3 {
		if got := session(write); got != nil {
			t.Errorf("answered %s", got)
		}
	}
	if door.Err() == nil || len(told) != 1 || store.calls != 2 || len(seen) != 1 {
		t.Errorf("err %v, told %v, %d calls, recorded %v", door.Err(), told, store.calls, seen)
	}
}

// TestCheckStore names the place and the reason.
func TestCheckStore(t *testing.T) {
	for _, text := range []string{"", "sqlite"} {
		p, err := resource.ParsePlace(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckStore(t.Context(), p); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	p, err := resource.ParsePlace("redis://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckStore(t.Context(), p); !errors.Is(err, resource.ErrStore) || !strings.Contains(err.Error(), ln.Addr().String()+": connect: ") {
		t.Errorf("nobody is there: %v", err)
	}
}

// slow is a store that takes real time.
type slow struct{ *resource.Builtin }

func (s slow) Do(ctx context.Context, c resource.Call) (resource.Outcome, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Builtin.Do(ctx, c)
}

// TestADeskHoldsTheClock: however long a store takes, virtual time does not go
// on, and its own clock is the real one.
func TestADeskHoldsTheClock(t *testing.T) {
	d := newDesk(slow{resource.NewBuiltin(resource.Plain)})
	defer d.end()
	s := simulateBubble(t, func() time.Duration {
		start := time.Now()
		for range 10 {
			if _, err := d.Do(context.Background(), resource.Call{Write: true}); err != nil {
				t.Error(err)
			}
		}
		return time.Since(start)
	})
	if s != 0 {
		t.Errorf("ten calls took %v of virtual time", s)
	}
	if out, err := d.Do(context.Background(), resource.Call{}); err != nil || out.Version != 10 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestADeskThatHasEnded lets nobody wait.
func TestADeskThatHasEnded(t *testing.T) {
	d := newDesk(resource.NewBuiltin(resource.Plain))
	d.end()
	if _, err := d.Do(context.Background(), resource.Call{}); !errors.Is(err, errShut) {
		t.Errorf("%v", err)
	}
}

// simulateBubble runs f in a bubble beside a goroutine that sleeps, which would
// let the clock go on if it could.
func simulateBubble(t *testing.T, f func() time.Duration) (took time.Duration) {
	t.Helper()
	err := sim.Bubble(func() {
		var sleeper sync.WaitGroup
		sleeper.Go(func() { time.Sleep(time.Minute) })
		took = f()
		sleeper.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	return took
}
