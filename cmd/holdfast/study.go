package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/study"
)

// mostSeeds of a study: it plays more than a hundred cases with each.
const mostSeeds = 1000

// written is a study that can be asked for by name.
type written struct {
	name, about string
	// seeds is how many runs of each case there are unless --seeds says
	// otherwise, and at least: with fewer, what happens sometimes may not show,
	// and the study would fail.
	seeds int
	write func(context.Context, io.Writer, study.Options) error
}

// studies is the table of them.
func studies() []written {
	return []written{
		{name: "redlock", about: "the claims of the dispute on Redlock, and what each assumption is worth", seeds: study.RedlockSeeds, write: study.Redlock},
	}
}

func newStudy(io streams) *cobra.Command {
	var file string
	var seeds int
	var quiet bool
	var names, lines []string
	for _, s := range studies() {
		names = append(names, s.name)
		lines = append(lines, fmt.Sprintf("  %-10s %s", s.name, s.about))
	}
	cmd := &cobra.Command{
		Use:   "study NAME",
		Short: "Answer a question about locks with many runs, as a page of markdown",
		Long: `Plays all that a study needs and writes the answer as a page of markdown, to
stdout or to a file. The page says what was played, how often, and which command
repeats it. If a run comes out otherwise than the page's text says, the study
fails and writes nothing.

Studies:
` + strings.Join(lines, "\n"),
		Example: `  holdfast study redlock                            the page, on stdout
  holdfast study redlock --out docs/redlock.md      the page, in a file
  holdfast study redlock --seeds 200                narrower confidence intervals`,
		ValidArgs: names,
		Args:      oneArg("study"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range studies() {
				if s.name != args[0] {
					continue
				}
				if !cmd.Flags().Changed("seeds") {
					seeds = s.seeds
				}
				if seeds < s.seeds || seeds > mostSeeds {
					return usage("holdfast study --help", "--seeds %d: %d to %d are wanted", seeds, s.seeds, mostSeeds)
				}
				if cmd.Flags().Changed("out") && file == "" {
					return usage("holdfast study --help", "--out is empty")
				}
				return writeStudy(cmd.Context(), io, s, seeds, file, quiet)
			}
			return unknownWord("study", args[0], names, "holdfast study --help")
		},
	}
	cmd.Flags().StringVar(&file, "out", "", "file for the page (default: stdout)")
	cmd.Flags().IntVar(&seeds, "seeds", 0, "how many runs of each case, with seeds from 1 up (default: the study's own)")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress")
	return cmd
}

// writeStudy plays a study with progress and writes its page when it is whole.
func writeStudy(ctx context.Context, io streams, s written, seeds int, file string, quiet bool) error {
	bar := newStudyProgress(io.err, s.name, quiet)
	var text bytes.Buffer
	err := s.write(ctx, &text, study.Options{
		Seeds: seeds, Planned: bar.planned, Done: func(reports.Run) { bar.step() },
	})
	bar.end()
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: nothing was written")
	case err != nil:
		return fmt.Errorf("study %s, nothing was written:\n%w", s.name, err)
	case file == "":
		_, err = io.out.Write(text.Bytes())
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make the folder for the page: %w", err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	fmt.Fprintf(io.err, "holdfast: the study as a page: %s\n", file)
	return nil
}
