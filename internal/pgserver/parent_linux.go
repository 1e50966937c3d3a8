package pgserver

import "syscall"

// dieWithParent has the kernel end the server when this process dies, however
// it does: a test that runs into its time limit cleans nothing up.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
