package nemesis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// fake is a cluster that writes down what is asked of it, with the time, and
// fails where it is told to.
type fake struct {
	topology cluster.Topology
	nodes    []string
	clients  []string
	primary  string
	start    time.Time

	mu     sync.Mutex
	calls  []string
	events []history.Event
	// fail maps the beginning of a call to its error.
	fail map[string]error
	// takes makes every call last that long.
	takes time.Duration
}

func newFake(t cluster.Topology, nodes, clients int) *fake {
	f := &fake{topology: t, primary: "n1", start: time.Now(), fail: map[string]error{}}
	for i := range nodes {
		f.nodes = append(f.nodes, cluster.NodeName(i+1))
	}
	for i := range clients {
		f.clients = append(f.clients, cluster.ClientName(i+1))
	}
	return f
}

func (f *fake) World() cluster.World         { return cluster.Sim }
func (f *fake) Topology() cluster.Topology   { return f.topology }
func (f *fake) Nodes() []string              { return f.nodes }
func (f *fake) Clients() []string            { return f.clients }
func (f *fake) Abilities() []cluster.Ability { return nil }
func (f *fake) PrimaryNode() string          { return f.primary }
func (f *fake) Elects() bool                 { return f.topology == cluster.Sentinel }

func (f *fake) Witnesses() []string {
	var out []string
	for i := range f.topology.Witnesses() {
		out = append(out, cluster.WitnessName(i+1))
	}
	return out
}

// call notes "2s pause c1" and answers.
func (f *fake) call(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	f.mu.Lock()
	takes := f.takes
	f.mu.Unlock()
	if takes > 0 {
		time.Sleep(takes)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf("%v %s", time.Since(f.start), what))
	for prefix, err := range f.fail {
		if strings.HasPrefix(what, prefix) {
			return err
		}
	}
	return nil
}

// slow makes every call from now on last that long.
func (f *fake) slow(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes = by
}

func (f *fake) record(ev history.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ev.T = time.Since(f.start).Nanoseconds()
	f.events = append(f.events, ev)
}

// log is what was called so far.
func (f *fake) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// phases are the recorded events in short: "start 1 pause [c1]".
func (f *fake) phases() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, ev := range f.events {
		n := ev.Nemesis
		out = append(out, fmt.Sprintf("%s %d %s %v", n.Phase, n.ID, n.Fault, n.On))
	}
	return out
}

func (f *fake) PauseClient(_ context.Context, c string) error  { return f.call("pause %s", c) }
func (f *fake) ResumeClient(_ context.Context, c string) error { return f.call("resume %s", c) }
func (f *fake) CrashClient(_ context.Context, c string) error  { return f.call("crash %s", c) }

func (f *fake) Cut(_ context.Context, l cluster.Link, m cluster.CutMode) error {
	return f.call("cut %v %s", l, m)
}
func (f *fake) Mend(_ context.Context, l cluster.Link) error { return f.call("mend %v", l) }
func (f *fake) Delay(_ context.Context, l cluster.Link, by time.Duration) error {
	return f.call("delay %v %v", l, by)
}
func (f *fake) LoseReply(_ context.Context, client, node, command string, nth int) error {
	return f.call("lose %s %s %q %d", client, node, command, nth)
}

func (f *fake) Strike(_ context.Context, b cluster.Blow) error {
	return f.call("strike %s %s %q %d %s %v", b.Client, b.Node, b.Command, b.Nth, b.Deed, b.By)
}

func (f *fake) CancelCall(_ context.Context, client string) error {
	return f.call("cancel %s", client)
}

func (f *fake) JumpClock(_ context.Context, n string, by time.Duration) error {
	return f.call("jump %s %v", n, by)
}
func (f *fake) RateClock(_ context.Context, n string, rate float64) error {
	return f.call("rate %s %g", n, rate)
}
func (f *fake) ResetClock(_ context.Context, n string) error { return f.call("reset %s", n) }

func (f *fake) Kill(_ context.Context, n string) error { return f.call("kill %s", n) }
func (f *fake) Restart(_ context.Context, n string, data cluster.Data) error {
	return f.call("restart %s %s", n, data)
}
func (f *fake) Stall(_ context.Context, n string) error      { return f.call("stall %s", n) }
func (f *fake) Unstall(_ context.Context, n string) error    { return f.call("unstall %s", n) }
func (f *fake) Disconnect(_ context.Context, n string) error { return f.call("disconnect %s", n) }
func (f *fake) Reconnect(_ context.Context, n string) error  { return f.call("reconnect %s", n) }
func (f *fake) Flush(_ context.Context, n string, scripts bool) error {
	return f.call("flush %s scripts=%v", n, scripts)
}
func (f *fake) ErrorReply(_ context.Context, n, reply string) error {
	return f.call("error %s %q", n, reply)
}
func (f *fake) Promote(_ context.Context, n string) error { return f.call("promote %s", n) }

// Shard of a fake Redis Cluster of six: n4 copies n1.
func (f *fake) Shard(context.Context) (string, []string, error) {
	return f.primary, []string{"n4"}, nil
}

func (f *fake) Depose(_ context.Context, replica string, how cluster.Deposition) error {
	return f.call("depose for %s by %s", replica, how)
}

func (f *fake) Shards(context.Context) ([]string, error) { return []string{"n1", "n2", "n3"}, nil }

func (f *fake) OpenSlot(_ context.Context, from, to string) error {
	return f.call("open slot %s to %s", from, to)
}

func (f *fake) MoveKeys(_ context.Context, from, to string) error {
	return f.call("move keys %s to %s", from, to)
}

func (f *fake) CloseSlot(_ context.Context, from, to string) error {
	return f.call("close slot %s to %s", from, to)
}
