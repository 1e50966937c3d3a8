//go:build !linux

package pgserver

import "syscall"

// dieWithParent cannot be had here: a server outlives a killed parent.
func dieWithParent(*syscall.SysProcAttr) {}
