//go:build !linux

package process

import "syscall"

// dieWithParent does nothing where the kernel has no such signal: [Available]
// refuses these systems, and this file only lets the package compile there.
func dieWithParent(*syscall.SysProcAttr) {}
