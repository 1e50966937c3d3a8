package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Pauser = (*World)(nil)

// StartClient starts the process of a client in a process group of its own,
// which dies with this process. The world owns it from then on: it reaps it,
// reports its end through [Config.OnClientExit], and ends it in Close. Set
// cmd's Stdout and Stderr to writers; a StdoutPipe would be closed at the
// process's end with output unread. A client whose process has ended may be
// started again.
func (w *World) StartClient(name string, cmd *exec.Cmd) error {
	if !slices.Contains(w.clientNames, name) {
		return fmt.Errorf("start client %q: there is no such client", name)
	}
	w.clientMu.Lock()
	defer w.clientMu.Unlock()
	if w.closing {
		return fmt.Errorf("start client %s: the world is closed", name)
	}
	if c := w.clients[name]; c != nil && !c.gone() {
		return fmt.Errorf("start client %s: it is running already (pid %d)", name, c.pid)
	}
	c, err := w.spawn.start("client "+name, cmd, func(f func()) { w.wg.Go(f) })
	if err != nil {
		return err
	}
	w.clients[name] = c
	if w.cfg.OnClientExit != nil {
		w.wg.Go(func() {
			<-c.exited
			w.cfg.OnClientExit(name, c.err)
		})
	}
	return nil
}

func (w *World) client(what, name string) (*child, error) {
	w.clientMu.Lock()
	defer w.clientMu.Unlock()
	c := w.clients[name]
	if c == nil {
		return nil, fmt.Errorf("%s client %q: it has not been started", what, name)
	}
	return c, nil
}

// PauseClient stops a client's process with SIGSTOP, and returns when all of
// its threads have stopped.
func (w *World) PauseClient(ctx context.Context, name string) error {
	c, err := w.client("pause", name)
	if err != nil {
		return err
	}
	return c.stop(ctx)
}

// ResumeClient lets a paused client go on.
func (w *World) ResumeClient(ctx context.Context, name string) error {
	c, err := w.client("resume", name)
	if err != nil {
		return err
	}
	return c.resume(ctx)
}

// CrashClient ends a client's process with SIGKILL and waits for its end.
func (w *World) CrashClient(ctx context.Context, name string) error {
	c, err := w.client("crash", name)
	if err != nil {
		return err
	}
	return c.end(ctx)
}

func (w *World) endClients(ctx context.Context) error {
	w.clientMu.Lock()
	defer w.clientMu.Unlock()
	var errs []error
	for _, c := range w.clients {
		errs = append(errs, c.end(ctx))
	}
	return errors.Join(errs...)
}
