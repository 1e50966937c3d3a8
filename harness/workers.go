package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

// worker is one client process seen from here.
type worker struct {
	name  string
	in    io.WriteCloser
	out   *io.PipeWriter
	ready chan struct{} // closed when it has said so
	ended bool          // guarded by procRun.mu
	cmd   *exec.Cmd
	said  *LastWords
}

// readyLimit is how long workers may take to come up, on any machine.
const readyLimit = 20 * time.Second

// startWorkers starts one process a client and waits until all are ready to
// begin at the same instant.
func (r *procRun) startWorkers(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for i, name := range r.world.Clients() {
		if err := r.startWorker(self, i, name); err != nil {
			return fmt.Errorf("start client %s: %w", name, err)
		}
	}
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	for _, name := range r.world.Clients() {
		select {
		case <-r.workers[name].ready:
		case <-r.failed:
			return r.failure()
		case <-limit.C:
			return fmt.Errorf("start client %s: it was not ready within %v", name, readyLimit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (r *procRun) startWorker(self string, index int, name string) error {
	cmd := exec.Command(self, WorkerVerb)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	rd, wr := io.Pipe()
	cmd.Stdout = wr
	w := &worker{name: name, in: in, out: wr, ready: make(chan struct{}), cmd: cmd, said: &LastWords{}}
	cmd.Stderr = w.said
	line, err := json.Marshal(r.assign(index, name))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.workers[name] = w // before the start: it may end at once
	r.mu.Unlock()
	if err := r.world.StartClient(name, cmd); err != nil {
		return err
	}
	go r.serve(w, bufio.NewReader(rd)) // ends when the worker's output does
	_, err = in.Write(append(line, '\n'))
	return err
}

// assign tells a worker who it is.
func (r *procRun) assign(index int, name string) assignment {
	cfg := r.cfg
	a := assignment{
		Client: name, Index: index, Clients: cfg.Scenario.Clients, Lock: cfg.Lock.Name,
		TTL: cfg.TTL, Seed: cfg.Seed, Workload: cfg.Scenario.Workload, Mark: r.mark,
		Await: momentsOf(cfg.plan()),
		Wait:  time.Duration(index) * cfg.Scenario.Workload.Stagger.Of(cfg.TTL),
	}
	at, known := r.world.Endpoints(name), map[string]string{}
	for addr, n := range r.world.Announced() {
		known[n] = addr
	}
	for i, n := range r.world.Dialed() {
		e := endpoint{Name: n, Addr: at[n], Known: known[n]}
		if cfg.World == cluster.External {
			e.Existing = &cfg.Existing[i]
		}
		a.Nodes = append(a.Nodes, e)
	}
	a.Cluster = cfg.Topology == cluster.RedisCluster && !cfg.Lock.Quorum
	a.Watched = watchedBy(r.world, name)
	a.Resource = at[cluster.Resource]
	return a
}

// serve takes a worker's events. Faults strike while an event is kept, before
// its ack goes out.
func (r *procRun) serve(w *worker, rd *bufio.Reader) {
	first, err := rd.ReadString('\n')
	if err != nil {
		return // exited says how
	}
	if first != wordReady+"\n" {
		r.fail(fmt.Errorf("client %s said %q before it was ready", w.name, first))
		return
	}
	close(w.ready)
	await := momentsOf(r.cfg.plan())
	for {
		line, err := rd.ReadBytes('\n')
		if err != nil {
			return // the process has ended; exited says how
		}
		var ev history.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			r.fail(fmt.Errorf("client %s said %q: %w", w.name, line, err))
			return
		}
		r.rec.Append(ev)
		if !await.have(ev) {
			continue
		}
		if _, err := w.in.Write([]byte(wordAck + "\n")); err != nil {
			return // it died meanwhile; exited says how
		}
	}
}

// exited is told by the world that a client's process has ended. One that ends
// when nobody wanted it to fails the run, even with exit code 0. Its crash is
// part of the history, or it would be believed to hold the lock for ever:
//
//	c1  acquire ok, and is killed from outside
//	c2  acquire ok a TTL later        <- no second holder, there is no first
func (r *procRun) exited(name string, err error) {
	r.mu.Lock()
	w := r.workers[name]
	w.ended = true
	expected := r.crashed[name]
	early := !r.stopping && !expected
	r.left--
	if r.left == 0 {
		close(r.done)
	}
	r.mu.Unlock()
	_ = w.out.Close() // lets serve see the end of what was sent
	switch {
	case expected || err == nil && !early:
		return
	case err == nil:
		err = errors.New("it gave up its work")
	}
	if early {
		r.rec.Record(history.Event{Op: &history.Op{Process: -1, Client: name, F: history.Crash, Type: history.Note}})
	}
	switch lock := Blame(w.cmd.ProcessState, w.said.String()); {
	case lock != nil:
		err = lock
	case w.said.String() != "":
		err = fmt.Errorf("%w\n%s", err, w.said)
	}
	r.fail(fmt.Errorf("client %s ended by itself: %w", name, err))
}

func (r *procRun) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errs) == 0 {
		close(r.failed)
	}
	r.errs = append(r.errs, err)
}

func (r *procRun) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}
