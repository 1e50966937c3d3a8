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
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the run in order, the second one ends the program:
	// a heal that hangs must not hold its user up. What the kernel would leave
	// running then has been told to die with its parent.
	context.AfterFunc(ctx, stop)
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
