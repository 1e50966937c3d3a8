//go:build !linux

package child

import "syscall"

func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {} // cannot be had here
