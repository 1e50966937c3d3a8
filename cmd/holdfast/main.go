// Command holdfast tells whether a distributed lock holds: it plays scenarios
// against locks, in virtual time or on real Redis servers, and says what
// broke, whose fault it was and what it damaged.
//
// This package is the only place that exits. One file per verb; what they do
// lives in campaign, reports and store.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// gcPercent lets the heap grow to five times what lives: a run needs a few
// megabytes, and a campaign spends a sixth of its time collecting them.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go cancelOnSignal(cancel) // lives as long as the program
	// Locks under test share this process, and stdout is for results and for
	// the lines between a parent and its children: what a lock prints goes to
	// stderr.
	out := os.Stdout
	os.Stdout = os.Stderr
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, out, os.Stderr))
}

// cancelOnSignal ends the run in order at the first signal; the second one
// ends the program, since a heal that hangs must not hold its user up. What
// then still runs has been told to die with its parent. The handler goes
// before the run hears of it:
//
//	run   "interrupted, once more to end at once"
//	user  Ctrl-C            <- would be swallowed by a handler that is there
func cancelOnSignal(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	<-signals
	signal.Stop(signals)
	cancel()
}
