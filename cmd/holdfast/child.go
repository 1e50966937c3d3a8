package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
)

// childVerb is the hidden verb with which this program starts itself to play
// jobs; see package campaign.
const childVerb = "campaign-child"

func newChild(io streams) *cobra.Command {
	return &cobra.Command{
		Use: childVerb, Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Ctrl-C goes to the whole group; the parent decides what it means.
			signal.Ignore(syscall.SIGINT)
			return campaign.Serve(cmd.Context(), io.in, io.out)
		},
	}
}
