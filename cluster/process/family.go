package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A PostgreSQL server is a process with children that each lead a session of
// their own, so that a signal to its process group reaches only the first.

// process is a line of the kernel's table of processes.
type processLine struct {
	pid, parent int
	state       string
	begun       string // tells it from another that gets its number later
}

// processes reads the kernel's table.
func processes() ([]processLine, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var out []processLine
	for _, file := range files {
		if p, ok := readProcess(file); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// readProcess reads one line, if the process is still there.
func readProcess(file string) (processLine, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return processLine{}, false
	}
	// The name, in brackets, may hold anything.
	end := strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[end+1:]))
	const stateAt, parentAt, begunAt = 0, 1, 19
	if end < 0 || len(fields) <= begunAt {
		return processLine{}, false
	}
	pid, errPid := strconv.Atoi(filepath.Base(filepath.Dir(file)))
	parent, errParent := strconv.Atoi(fields[parentAt])
	return processLine{pid: pid, parent: parent, state: fields[stateAt], begun: fields[begunAt]}, errPid == nil && errParent == nil
}

// descendants of a process: its children, theirs, and so on.
func descendants(pid int) ([]processLine, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var out []processLine
	parents := []int{pid}
	for len(parents) > 0 {
		var next []int
		for _, p := range all {
			if p.parent == parents[0] {
				out = append(out, p)
				next = append(next, p.pid)
			}
		}
		parents = append(parents[1:], next...)
	}
	return out, nil
}

// eachDescendant sends a signal to all below the child, and waits for what it
// does. One that ends meanwhile is fine.
func (c *child) eachDescendant(ctx context.Context, sig syscall.Signal, what string, ok func(state string) bool) error {
	below, err := descendants(c.pid)
	if err != nil {
		return fmt.Errorf("the processes of %s: %w", c.name, err)
	}
	for _, p := range below {
		if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal %s to process %d of %s: %w", sig, p.pid, c.name, err)
		}
	}
	for _, p := range below {
		err := await(ctx, c, p.pid, what, func(state string) bool { return ok(state) || state == "Z" })
		if err != nil && !p.over() {
			return err
		}
	}
	return nil
}

// over says whether the process has ended, reaped or not.
func (p processLine) over() bool {
	now, ok := readProcess(fmt.Sprintf("/proc/%d/stat", p.pid))
	return !ok || now.begun != p.begun || now.state == "Z" || now.state == "X"
}

// endFamily kills the child and all below it, and waits until none is left: one
// that lived on would keep the server from being started again. The child is
// stopped first, so that it has no more children meanwhile.
func (c *child) endFamily(ctx context.Context) error {
	if err := c.signal(syscall.SIGSTOP); err == nil {
		_ = await(ctx, c, c.pid, "stop", standsStill) // it may have ended by itself
	}
	below, err := descendants(c.pid)
	if err != nil {
		return errors.Join(fmt.Errorf("the processes of %s: %w", c.name, err), c.endGroup(ctx))
	}
	for _, p := range below {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended by itself
	}
	if err := c.endGroup(ctx); err != nil {
		return err
	}
	return awaitOver(ctx, c.name, below)
}

func awaitOver(ctx context.Context, name string, all []processLine) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for _, p := range all {
		for !p.over() {
			if err := sleep(ctx, time.Millisecond); err != nil {
				return fmt.Errorf("process %d of %s did not end: %w", p.pid, name, err)
			}
		}
	}
	return nil
}
