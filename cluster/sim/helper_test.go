package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// stage is a world with what tests do in it. Its methods report with Errorf:
// a Fatal would leave the bubble's first goroutine in the middle of it.
type stage struct {
	*World
	t      testing.TB
	ctx    context.Context
	events *[]history.Server
}

// play runs f in a world with a server trace of keys that contain "lock".
func play(t testing.TB, cfg Config, f func(s stage)) {
	t.Helper()
	var mu sync.Mutex // instants are apart, which the race detector cannot know
	var events []history.Server
	cfg.LockNames = []string{"lock"}
	cfg.OnServer = func(ev history.Server) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, ev)
	}
	inWorld(t, cfg, func(w *World) {
		f(stage{World: w, t: t, ctx: context.Background(), events: &events})
	})
}

func single(clients int) Config {
	return Config{Topology: cluster.Single, Nodes: 1, Clients: clients}
}

// redis is a warm client that tries each command once and waits for 300 ms.
func (s stage) redis(client, node string) *redis.Client {
	s.t.Helper()
	cl := s.clients[client]
	o := s.endpoint(cl, node, 1).Options()
	o.MaxRetries = -1
	o.Protocol = 2
	o.DisableIdentity = true
	o.ReadTimeout = 300 * time.Millisecond
	o.ContextTimeoutEnabled = true
	rdb := redis.NewClient(o)
	if err := rdb.Ping(s.ctx).Err(); err != nil {
		s.t.Errorf("warming up %s to %s: %v", client, node, err)
	}
	return rdb
}

func (s stage) ok(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s: %v", what, err)
	}
}

func (s stage) refused(what string, err error) {
	s.t.Helper()
	if err == nil {
		s.t.Errorf("%s: no error", what)
	}
}

// holds checks a key on a node itself; an empty value means that it is absent.
func (s stage) holds(node, key, want string) {
	s.t.Helper()
	n := s.byName[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	if got := n.stateOf(key).str; got != want {
		s.t.Errorf("%s holds %q under %s, want %q", node, got, key, want)
	}
}

// took checks how long something has taken in virtual time.
func (s stage) took(what string, began time.Time, atLeast, below time.Duration) {
	s.t.Helper()
	if d := time.Since(began); d < atLeast || d >= below {
		s.t.Errorf("%s took %v, want %v to %v", what, d, atLeast, below)
	}
}

// trace puts the trace into one line per event.
func (s stage) trace() []string {
	var out []string
	for _, ev := range *s.events {
		out = append(out, fmt.Sprintf("%s %s %s %s %q owner=%s value=%s pttl=%d", ev.Node, ev.Client, ev.Cmd, ev.Key, ev.Reply, ev.Owner, ev.Value, ev.PTTL))
	}
	return out
}

func timedOut(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}
