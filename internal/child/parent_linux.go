package child

import "syscall"

func dieWithParent(attr *syscall.SysProcAttr, farewell syscall.Signal) { attr.Pdeathsig = farewell }
