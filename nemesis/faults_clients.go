package nemesis

import (
	"context"

	"github.com/holdfast-io/holdfast/cluster"
)

// onClient finds the verbs and the one client of a fault.
func onClient[T any](s Scene, target, fallback string) (v T, client string, err error) {
	if v, err = verbs[T](s); err != nil {
		return v, "", err
	}
	client, err = s.one(target, fallback)
	return v, client, err
}

// Pause stops a client as a GC pause, a page fault or a stopped VM does:
// nothing of it runs, arrived bytes wait in its sockets, its monotonic clock
// goes on. Source: Kleppmann's client 1.
type Pause struct {
	// Client is a name, "holder" (the default) or "caller".
	Client string `yaml:"client"`
}

// Kind implements [Fault].
func (Pause) Kind() string { return "pause" }

// Needs implements [Fault].
func (Pause) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanPauseClient} }

// Inject implements [Fault].
func (f Pause) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, client, err := onClient[cluster.Pauser](s, f.Client, wordHolder)
	if err != nil {
		return Effect{}, err
	}
	if err := v.PauseClient(ctx, client); err != nil {
		return Effect{}, err
	}
	return Effect{
		On: []string{client}, What: client + " paused",
		Heal: func(ctx context.Context) error { return v.ResumeClient(ctx, client) },
	}, nil
}

// Crash ends a client for good, as kill -9 does. It never heals.
type Crash struct {
	Client string `yaml:"client"`
}

// Kind implements [Fault].
func (Crash) Kind() string { return "crash" }

// Needs implements [Fault].
func (Crash) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanCrashClient} }

// Inject implements [Fault].
func (f Crash) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, client, err := onClient[cluster.Pauser](s, f.Client, wordHolder)
	if err != nil {
		return Effect{}, err
	}
	if err := v.CrashClient(ctx, client); err != nil {
		return Effect{}, err
	}
	return Effect{On: []string{client}, What: client + " died", Died: []string{client}}, nil
}

// Cancel cancels the context of the call to the lock that a client has under
// way. It is over at once.
type Cancel struct {
	Client string `yaml:"client"` // the default is caller
}

// Kind implements [Fault].
func (Cancel) Kind() string { return "cancel" }

// Needs implements [Fault].
func (Cancel) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanCancel} }

// Inject implements [Fault].
func (f Cancel) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, client, err := onClient[cluster.Canceller](s, f.Client, wordCaller)
	if err != nil {
		return Effect{}, err
	}
	if err := v.CancelCall(ctx, client); err != nil {
		return Effect{}, err
	}
	return Effect{On: []string{client}, What: client + "'s call is cancelled", Over: true}, nil
}
