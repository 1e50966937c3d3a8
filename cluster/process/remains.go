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
)

// pidFile of a server, in its folder. The server deletes it when it ends in good
// order, so one that is still there tells of a kill.
const pidFile = "redis.pid"

// RemoveRemains deletes what the servers of a world left outside its folder,
// when the world was killed and could not clean up. The folder itself is the
// caller's, and nothing of that world may be alive.
func RemoveRemains(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", pidFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue // killed while it wrote the file
		}
		errs = append(errs, removeFaketimeFiles(pid))
	}
	homes, err := filepath.Glob(filepath.Join(dir, "*", homeMark))
	if err != nil {
		return err
	}
	for _, mark := range homes {
		home, err := filepath.EvalSymlinks(filepath.Dir(mark))
		if err != nil {
			return err
		}
		errs = append(errs, removeHome(home))
	}
	return errors.Join(errs...)
}

// homeMark is a file in a folder that a world made outside its own.
const homeMark = "holdfast-home"

// moveOut gives a node a folder outside of the world's, which is closed to
// others as a rule: a server that runs as another user could not get there. A
// link in the world's folder leads to it, for [RemoveRemains].
func (n *node) moveOut() error {
	home, err := os.MkdirTemp("", "holdfast-"+n.name+"-")
	if err != nil {
		return err
	}
	n.home, n.dir = home, filepath.Join(home, "server")
	//nolint:gosec // passable, not readable
	err = errors.Join(os.Chmod(home, 0o711), os.WriteFile(filepath.Join(home, homeMark), nil, 0o600),
		os.Symlink(home, filepath.Join(n.w.cfg.Dir, n.name)))
	if err != nil {
		return errors.Join(err, os.RemoveAll(home))
	}
	return nil
}

// removeHome ends the processes that still work in a folder of moveOut, and
// removes it. A server that was stopped does not notice that its parent died.
func removeHome(home string) error {
	all, err := processes()
	if err != nil {
		return err
	}
	var ended []processLine
	for _, p := range all {
		where, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid))
		if err == nil && strings.HasPrefix(where, home+"/") {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended by itself
			ended = append(ended, p)
		}
	}
	server := filepath.Join(home, "server")
	errs := []error{
		awaitOver(context.Background(), home, ended), removeSharedMemory(server), removePostmasterFiles(server), os.RemoveAll(home),
	}
	return errors.Join(errs...)
}

// removePostmasterFiles deletes what libfaketime left of a server whose first
// process wrote its number.
func removePostmasterFiles(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, postmasterFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return nil // killed while it wrote the file
	}
	return removeFaketimeFiles(pid)
}

// removeFaketimeFiles deletes what libfaketime leaves behind when its process
// is killed.
func removeFaketimeFiles(pid int) error {
	var errs []error
	for _, name := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
		if err := os.Remove(fmt.Sprintf(name, pid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
