package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-io/holdfast/cluster"
)

// Stall makes a node answer nothing while its clock runs on and requests
// queue up: a fork, a busy script, SIGSTOP.
type Stall struct {
	Node []string `yaml:"node"`
}

// Kind implements [Fault].
func (Stall) Kind() string { return "stall" }

// Needs implements [Fault].
func (Stall) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanStallNode} }

// Inject implements [Fault].
func (f Stall) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Servers](s)
	if err != nil {
		return Effect{}, err
	}
	return onNodes(ctx, s, f.Node, "answers nothing", v.Stall, v.Unstall)
}

// Disconnect takes nodes off the network: nothing reaches them or leaves them,
// and nobody is told. A cable that is pulled out, a virtual machine whose
// network is migrated.
type Disconnect struct {
	Node []string `yaml:"node"`
}

// Kind implements [Fault].
func (Disconnect) Kind() string { return "disconnect" }

// Needs implements [Fault].
func (Disconnect) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanDisconnect} }

// Inject implements [Fault].
func (f Disconnect) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Disconnector](s)
	if err != nil {
		return Effect{}, err
	}
	return onNodes(ctx, s, f.Node, "off the network", v.Disconnect, v.Reconnect)
}

// onNodes does one thing to several nodes, or to none if one of them fails.
func onNodes(ctx context.Context, s Scene, targets []string, what string,
	do, undo func(context.Context, string) error) (Effect, error) {
	if len(targets) == 0 {
		targets = []string{wordPrimary}
	}
	nodes, err := s.resolve(targets)
	if err != nil {
		return Effect{}, err
	}
	heal := func(ctx context.Context, nodes []string) error {
		var errs []error
		for _, n := range nodes {
			if err := undo(ctx, n); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", n, err))
			}
		}
		return errors.Join(errs...)
	}
	for i, n := range nodes {
		if err := do(ctx, n); err != nil {
			return Effect{}, errors.Join(fmt.Errorf("%s: %w", n, err), heal(ctx, nodes[:i]))
		}
	}
	return Effect{On: nodes, What: strings.Join(nodes, ", ") + " " + what, Heal: func(ctx context.Context) error { return heal(ctx, nodes) }}, nil
}

// Clock moves the wall clock of nodes: a jump, or a rate from now on. The
// heal puts the clock back to real time, which for a jump is a jump back.
type Clock struct {
	Node []string `yaml:"node"`
	Jump Span     `yaml:"jump"` // forward, or back when negative
	Rate float64  `yaml:"rate"` // 1.1 runs ten percent fast; 0 leaves the rate
}

// Kind implements [Fault].
func (Clock) Kind() string { return "clock" }

// Needs implements [Fault].
func (f Clock) Needs() []cluster.Ability {
	if f.Rate != 0 {
		return []cluster.Ability{cluster.CanRateClock}
	}
	return []cluster.Ability{cluster.CanJumpClock}
}

// Inject implements [Fault].
func (f Clock) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Clocks](s)
	if err != nil {
		return Effect{}, err
	}
	what := fmt.Sprintf("clock jumps %s forward", f.Jump.words())
	do := func(ctx context.Context, node string) error { return v.JumpClock(ctx, node, f.Jump.Of(s.TTL)) }
	switch {
	case f.Rate < 0:
		return Effect{}, fmt.Errorf("a clock cannot run at rate %g: write 1.1 for ten percent fast", f.Rate)
	case f.Rate != 0:
		what = fmt.Sprintf("clock runs at %g times real time", f.Rate)
		do = func(ctx context.Context, node string) error { return v.RateClock(ctx, node, f.Rate) }
	case f.Jump.Of(s.TTL) < 0:
		what = fmt.Sprintf("clock jumps %s back", Span{TTLs: -f.Jump.TTLs, Fixed: -f.Jump.Fixed}.words())
	}
	return onNodes(ctx, s, f.Node, what, do, v.ResetClock)
}

// Kill ends nodes as kill -9 does. Healing starts them again with what Data
// says is left.
type Kill struct {
	Node []string     `yaml:"node"`
	Data cluster.Data `yaml:"restart"` // keep (the default), lose or fsync
}

// Kind implements [Fault].
func (Kill) Kind() string { return "kill" }

// Needs implements [Fault].
func (f Kill) Needs() []cluster.Ability {
	switch f.Data {
	case cluster.Fsynced:
		return []cluster.Ability{cluster.CanKill, cluster.CanRestartSync}
	case cluster.Lose:
		return []cluster.Ability{cluster.CanKill}
	}
	return []cluster.Ability{cluster.CanKill, cluster.CanRestartKept}
}

// Inject implements [Fault].
func (f Kill) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Servers](s)
	if err != nil {
		return Effect{}, err
	}
	data := f.Data
	what := "killed, restarts with its data"
	switch data {
	case "", cluster.Keep:
		data = cluster.Keep
	case cluster.Lose:
		what = "killed, restarts empty"
	case cluster.Fsynced:
		what = "killed, restarts as of its last fsync"
	default:
		return Effect{}, fmt.Errorf("restart %q: write keep, lose or fsync", data)
	}
	restart := func(ctx context.Context, node string) error { return v.Restart(ctx, node, data) }
	return onNodes(ctx, s, f.Node, what, v.Kill, restart)
}

// Flush deletes all keys of nodes, or their script caches only.
type Flush struct {
	Node    []string `yaml:"node"`
	Scripts bool     `yaml:"scripts"`
}

// Kind implements [Fault].
func (Flush) Kind() string { return "flush" }

// Needs implements [Fault].
func (Flush) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanFlush} }

// Inject implements [Fault].
func (f Flush) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Servers](s)
	if err != nil {
		return Effect{}, err
	}
	what := "loses all keys"
	if f.Scripts {
		what = "loses its script cache"
	}
	do := func(ctx context.Context, node string) error { return v.Flush(ctx, node, f.Scripts) }
	none := func(context.Context, string) error { return nil }
	e, err := onNodes(ctx, s, f.Node, what, do, none)
	e.Heal, e.Over = nil, true // what is deleted stays deleted
	return e, err
}

// ErrorReply makes nodes answer every command on a key with an error.
type ErrorReply struct {
	Node []string `yaml:"node"`
	// Reply is the error, such as "OOM command not allowed ...".
	Reply string `yaml:"reply"`
}

// Kind implements [Fault].
func (ErrorReply) Kind() string { return "error-reply" }

// Needs implements [Fault].
func (ErrorReply) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanErrorReply} }

// Inject implements [Fault].
func (f ErrorReply) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Erring](s)
	if err != nil {
		return Effect{}, err
	}
	if f.Reply == "" {
		return Effect{}, errors.New("error-reply wants a reply, such as OOM, LOADING, BUSY, MISCONF or READONLY and a text")
	}
	do := func(ctx context.Context, node string) error { return v.ErrorReply(ctx, node, f.Reply) }
	undo := func(ctx context.Context, node string) error { return v.ErrorReply(ctx, node, "") }
	return onNodes(ctx, s, f.Node, "answers "+f.Reply, do, undo)
}
