package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

func newReplay(io streams) *cobra.Command {
	sel := selection{}
	cmd := &cobra.Command{
		Use:   "replay PATH",
		Short: "Play a stored run again and compare",
		Long: `Plays a stored run again from its configuration and compares the two. In the
simulator the histories must be the same, byte by byte; on real servers the
verdicts must be the same.`,
		Example: `  holdfast replay runs/kleppmann-gc-pause/basic/sim-1`,
		Args:    oneArg("path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := store.ReadJob(args[0])
			if err != nil {
				return noRun("replay", args[0], err)
			}
			before, _, err := store.ReadHistory(args[0])
			if err != nil {
				return err
			}
			job.Resource = withPassword(job.Resource)
			if err := reach(cmd.Context(), job.Resource); err != nil {
				return fmt.Errorf("the run's resource: %w", err)
			}
			old := rejudge(before, args[0])
			again, h := campaign.Keep{Root: sel.out, Pages: campaign.PagesAlways}.Play(cmd.Context(), job)
			if err := reports.Text(io.out, again, h, textOptions(io.out)); err != nil {
				return err
			}
			if again.Error != "" {
				return exitError(reports.ExitError)
			}
			return compare(io, job, old, again)
		},
	}
	cmd.Flags().StringVar(&sel.out, "out", "", "folder to store the new run under (default: it is not stored)")
	return cmd
}

// compare says whether the replay is the run it replays.
func compare(io streams, job store.Job, old, again reports.Run) error {
	fmt.Fprintln(io.out)
	switch {
	case job.World == string(cluster.Sim) && old.HistorySHA256 == again.HistorySHA256:
		fmt.Fprintln(io.out, "replay   the same history, byte by byte")
		return nil
	case job.World == string(cluster.Sim):
		fmt.Fprintf(io.out, "replay   ANOTHER HISTORY: sha256 was %s. A different version of holdfast or of the lock plays differently;\n"+
			"         with the same versions the lock draws on something that the seed does not reach.\n", old.HistorySHA256)
		return exitError(reports.ExitError)
	case old.Outcome == again.Outcome:
		fmt.Fprintf(io.out, "replay   the same outcome: %s\n", again.Outcome)
		return nil
	}
	fmt.Fprintf(io.out, "replay   ANOTHER OUTCOME: it was %s and is now %s\n", old.Outcome, again.Outcome)
	return exitError(reports.ExitUnknown)
}
