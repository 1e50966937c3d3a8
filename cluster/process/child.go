package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// spawner starts all children from one operating system thread. The signal
// that a child gets at its parent's death follows the thread that started it,
// not the process, so that thread must live as long as the children may.
type spawner struct {
	jobs chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// close ends the thread, and with it every child that still runs. Nothing may
// be started afterwards.
func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}

// child is one process of ours with its process group.
type child struct {
	name   string
	cmd    *exec.Cmd
	pid    int
	exited chan struct{} // closed when it has been reaped
	err    error         // what Wait said; valid once exited is closed
	forks  bool          // its children have process groups of their own
}

// start runs cmd in a process group of its own. The goroutine that reaps it is
// counted by the caller's function track.
func (s *spawner) start(name string, cmd *exec.Cmd, track func(func())) (*child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
	if cmd.WaitDelay == 0 {
		// A grandchild that holds the output open must not hold up Wait.
		cmd.WaitDelay = 2 * time.Second
	}
	started := make(chan error, 1)
	s.jobs <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, cmd: cmd, pid: cmd.Process.Pid, exited: make(chan struct{})}
	track(func() {
		c.err = cmd.Wait()
		// What the process left in its group has lost its owner.
		if err := syscall.Kill(-c.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			c.err = errors.Join(c.err, fmt.Errorf("end the group of %s: %w", name, err))
		}
		close(c.exited)
	})
	return c, nil
}

func (c *child) gone() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// signal reaches the whole process group.
func (c *child) signal(sig syscall.Signal) error {
	if c.gone() {
		return fmt.Errorf("signal %s to %s: %w", sig, c.name, os.ErrProcessDone)
	}
	if err := syscall.Kill(-c.pid, sig); err != nil {
		return fmt.Errorf("signal %s to %s: %w", sig, c.name, err)
	}
	return nil
}

// stop sends SIGSTOP and waits until every thread has stopped, since a signal
// that is only on its way lets the process go on for a while.
func (c *child) stop(ctx context.Context) error {
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := await(ctx, c, c.pid, "stop", standsStill); err != nil || !c.forks {
		return err
	}
	// Who stands still has no further children.
	return c.eachDescendant(ctx, syscall.SIGSTOP, "stop", standsStill)
}

func standsStill(state string) bool { return state == "T" || state == "t" }

// resume sends SIGCONT and waits until no thread is stopped any more.
func (c *child) resume(ctx context.Context) error {
	moves := func(state string) bool { return !standsStill(state) }
	if c.forks {
		if err := c.eachDescendant(ctx, syscall.SIGCONT, "go on", moves); err != nil {
			return err
		}
	}
	if err := c.signal(syscall.SIGCONT); err != nil {
		return err
	}
	return await(ctx, c, c.pid, "go on", moves)
}

// end kills the process group and waits for the process to be reaped. A
// process that has ended already is fine.
func (c *child) end(ctx context.Context) error {
	if c.forks && !c.gone() {
		return c.endFamily(ctx)
	}
	return c.endGroup(ctx)
}

func (c *child) endGroup(ctx context.Context) error {
	if err := c.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) &&
		!errors.Is(err, syscall.ESRCH) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s (pid %d) did not end: %w", c.name, c.pid, ctx.Err())
	}
}

// await waits until all threads of the child, or of a process below it, are in
// a state.
func await(ctx context.Context, c *child, pid int, what string, ok func(state string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for {
		states, err := threadStates(pid)
		if c.gone() {
			return fmt.Errorf("%s should %s: %w", c.name, what, os.ErrProcessDone)
		}
		if err != nil {
			return fmt.Errorf("%s should %s: %w", c.name, what, err)
		}
		all := len(states) > 0
		for _, state := range states {
			all = all && ok(state)
		}
		if all {
			return nil
		}
		if err := sleep(ctx, 200*time.Microsecond); err != nil {
			return fmt.Errorf("%s did not %s: %w", c.name, what, err)
		}
	}
}

// threadStates reads the state letters of a process's threads. Threads that
// end meanwhile are left out.
func threadStates(pid int) ([]string, error) {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		return nil, err
	}
	states := make([]string, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The command name before the state may hold spaces and brackets, so
		// the last closing bracket counts.
		_, rest, found := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		if found && rest != "" {
			states = append(states, rest[:1])
		}
	}
	return states, nil
}

// waitBound is the longest that any verb waits for something that a healthy
// machine does in milliseconds.
const waitBound = 10 * time.Second

// startBound is the longest that a server may take to come up.
const startBound = 30 * time.Second

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
