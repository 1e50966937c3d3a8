// Package child starts processes that do not outlive this one, however it ends:
// a test that runs into its time limit cleans nothing up.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd. Done is closed when the process has ended, and what it
// ended with is in cmd.ProcessState then. Farewell is the signal that the
// process gets when this one dies; where the system has no such thing it gets
// none.
func Start(cmd *exec.Cmd, farewell syscall.Signal) (done <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr, farewell)
	started, ended := make(chan error, 1), make(chan struct{})
	go keep(cmd, started, ended) // ends with the process
	return ended, <-started
}

// keep starts a process and reaps it, on one operating system thread: the
// signal that the process gets at our death follows the thread that started it.
func keep(cmd *exec.Cmd, started chan<- error, ended chan<- struct{}) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(ended)
	err := cmd.Start()
	started <- err
	if err == nil {
		_ = cmd.Wait() // how it ended is in its ProcessState
	}
}
