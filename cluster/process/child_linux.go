package process

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that started
// it ends, so that a crash of the harness leaves nothing behind.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
