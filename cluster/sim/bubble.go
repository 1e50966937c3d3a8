package sim

import (
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// Bubble runs f in virtual time: every goroutine that f starts sees a clock
// that stands still while any of them can run and jumps to the next timer when
// none can. It returns when all of them have ended.
//
// This file is the only one that knows testing/synctest. Its contract, which
// bubble_test.go guards: it works outside a test binary, a goroutine that is
// left behind for ever becomes an error here and not a crash, and so does a
// panic of f itself. A panic on another goroutine of the bubble ends the whole
// process; campaigns therefore run in child processes.
func Bubble(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the bubble did not drain: %v", p)
		}
	}()
	var failed error
	synctest.Test(new(testing.T), func(*testing.T) {
		defer func() {
			if p := recover(); p != nil {
				failed = fmt.Errorf("panic in the simulation: %v\n%s", p, debug.Stack())
			}
		}()
		f()
	})
	return failed
}

// Settle waits until nothing can happen any more without time going on.
func Settle() { synctest.Wait() }
