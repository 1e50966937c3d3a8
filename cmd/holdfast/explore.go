package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

// exploration are the flags of holdfast explore.
type exploration struct {
	campaign.Exploration
	params bool
	format string
	quiet  bool
}

// Bounds of an exploration: beyond them the plans are too many to be played.
const (
	maxExploreNodes   = 9
	maxExploreClients = 5
	maxDepth          = 2
)

func newExplore(io streams) *cobra.Command {
	var x exploration
	cmd := &cobra.Command{
		Use:   "explore LOCK",
		Short: "Find failures of a lock with no scenario made for them",
		Long: `Plays one short run without a fault, lists its moments (each command on each
node, each step of each client), and then breaks each of them in each way: lost
and slow requests and replies, cancelled contexts, paused clients, stalled,
restarted and flushed nodes. What went wrong is sorted by its cause. The shortest
plan of each cause is saved as a scenario, with the command that plays it again.

With --depth 2 it goes on with pairs of faults, each of which the lock survives
alone, for as long as --budget lasts.

Exit codes: 0 nothing found, 10 the lock breaks, 12 not finished or not played.
What no lock on the topology survives is shown and does not count.`,
		Example: `  holdfast explore basic
  holdfast explore redlock --nodes 5 --format markdown
  holdfast explore reference --depth 2 --budget 10m`,
		Args: oneArg("lock"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return suite.LockNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			x.Lock = args[0]
			if err := x.validate(cmd); err != nil {
				return err
			}
			return explore(cmd.Context(), io, x)
		},
	}
	f := cmd.Flags()
	f.IntVar(&x.Depth, "depth", 1, "faults in a plan: 1, or 2 for pairs too")
	f.DurationVar(&x.Budget, "budget", time.Minute, "how long to go on with pairs")
	f.Uint64Var(&x.Seed, "seed", 1, "seed of all runs and of the stream of pairs")
	f.DurationVar(&x.TTL, "ttl", 0, "TTL of the leases (default: 10s)")
	f.IntVar(&x.Nodes, "nodes", 3, "nodes of a lock that needs a quorum")
	f.IntVar(&x.Clients, "clients", 0, "clients that contend (default: 2, or 3 of a lock that lets several in or has a queue)")
	f.BoolVar(&x.params, "params", true, "try odd parameters too: TTLs, numbers of nodes")
	f.StringVar(&x.Out, "out", "runs", `folder for the plans that were found; "" stores nothing`)
	f.StringVar(&x.format, "format", "text", "text, json or markdown")
	f.BoolVar(&x.quiet, "quiet", false, "no progress, and nothing before the end")
	complete(cmd, "format", formatNames)
	return cmd
}

func (x *exploration) validate(cmd *cobra.Command) error {
	const try = "holdfast explore --help"
	if _, ok := catalogue.Find(x.Lock); !ok {
		return unknownWord("lock", x.Lock, suite.LockNames(), "holdfast list locks")
	}
	if !slices.Contains(formatNames(), x.format) {
		return unknownWord("format", x.format, formatNames(), try)
	}
	ttl := selection{world: worldNames()[0], format: x.format, seeds: 1, ttl: x.TTL}
	if err := ttl.validate(try); err != nil {
		return err
	}
	for _, n := range []struct {
		flag             string
		got, least, most int
	}{{"depth", x.Depth, 1, maxDepth}, {"nodes", x.Nodes, 1, maxExploreNodes}, {"clients", cmp.Or(x.Clients, 2), 2, maxExploreClients}} {
		if n.got < n.least || n.got > n.most {
			return usage(try, "--%s %d: write a number from %d to %d", n.flag, n.got, n.least, n.most)
		}
	}
	if x.Budget <= 0 {
		return usage(try, "--budget %v: a budget is positive", x.Budget)
	}
	if cmd.Flags().Changed("budget") && x.Depth < 2 {
		return usage("holdfast explore "+x.Lock+" --depth 2", "--budget is for pairs of faults, which --depth 2 plays")
	}
	if x.Out != "" {
		if err := store.CheckRoot(x.Out); err != nil {
			return fmt.Errorf("--out %s: %w", x.Out, err)
		}
	}
	return nil
}

func explore(ctx context.Context, io streams, x exploration) error {
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintln(io.err, "\nholdfast: interrupted: keeping what was found; once more to end at once")
	})()
	bar := newExploreProgress(io.err, x.Lock, x.quiet)
	x.Params, x.Child = x.params, childCommand
	x.Planned, x.Done, x.Lasts = bar.planned, bar.step, bar.lasts
	if !x.quiet {
		// The list at the end is the result; this is news, and news are no
		// part of it.
		x.Found = func(g campaign.Group) { bar.say(newsLine(g)) }
	}
	found, err := x.Run(ctx)
	bar.end()
	if err != nil {
		return err
	}
	switch x.format {
	case "json":
		enc := json.NewEncoder(io.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(found)
	case "markdown":
		err = exploreMarkdown(io.out, found)
	default:
		err = exploreText(io.out, found, textOptions(io.out))
	}
	if err != nil {
		return err
	}
	if found.Interrupted {
		fmt.Fprintf(io.err, "holdfast: interrupted: %d of %d runs were played\n", found.Played, found.Plans)
	}
	if code := found.ExitCode(); code != reports.ExitExpected {
		return exitError(code)
	}
	return nil
}
