package main

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/harness"
)

func newWorker(io streams) *cobra.Command {
	return &cobra.Command{
		Use: harness.WorkerVerb, Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return harness.Work(cmd.Context(), io.in, io.out)
		},
	}
}
