package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/reports"
)

func newMerge(io streams) *cobra.Command {
	var told gateOutputs
	cmd := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Join the results of a gate's shards",
		Long: `Joins what holdfast gate --shard wrote with -o into the result of one whole gate:
the same document, but for the wall times. A shard that is missing is unknown, and
never a pass. Of a shard that is there twice the gravest answer counts.

Exit codes, in every format: those of holdfast gate, for the whole.`,
		Example: `  holdfast merge shard-*.json
  holdfast merge shard-1.json shard-2.json -o gate.json --junit gate.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("holdfast merge --help", "which files? For example: holdfast merge shard-1.json shard-2.json")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := told.validate("holdfast merge --help"); err != nil {
				return err
			}
			g, err := joinFiles(args)
			if err != nil {
				return &usageError{msg: err.Error(), try: "holdfast merge --help"}
			}
			return told.tell(io, g)
		},
	}
	told.flags(cmd)
	return cmd
}

func joinFiles(paths []string) (*reports.Gate, error) {
	var shards []*reports.Gate
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read a shard: %w", err)
		}
		g, err := reports.ReadGate(f)
		_ = f.Close() // it was read only
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		shards = append(shards, g)
	}
	return reports.MergeGates(shards)
}
