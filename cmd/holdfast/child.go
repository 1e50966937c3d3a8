package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
)

// childVerb is the hidden verb with which this program starts itself to play
// jobs; see package campaign.
const childVerb = "campaign-child"

func newChild(std streams) *cobra.Command {
	return &cobra.Command{
		Use: childVerb, Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Ctrl-C goes to the whole group; the parent decides what it means.
			signal.Ignore(syscall.SIGINT)
			return serveParent(cmd.Context(), std.in, std.out)
		},
	}
}

// orphanLast is how long a child goes on whose parent is no more: enough to
// end in order where there is nothing to do.
const orphanLast = 100 * time.Millisecond

// serveParent plays jobs until the parent wants no more, or is dead: then the
// input ends although a job is being played, and nobody hears the answer. A
// lock that spins would keep the process busy for seconds after that, and its
// folder from the next run.
func serveParent(ctx context.Context, in io.Reader, out io.Writer) error {
	jobs, forward := io.Pipe()
	served := make(chan struct{})
	defer close(served)
	go func() { // lives as long as the program: nothing but its end ends a read
		_, err := io.Copy(forward, in)
		_ = forward.CloseWithError(err) // it never fails
		select {
		case <-served:
		case <-time.After(orphanLast):
			os.Exit(reports.ExitError)
		}
	}()
	return campaign.Serve(ctx, jobs, out)
}
