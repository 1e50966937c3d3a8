package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/plots"
	"github.com/holdfast-io/holdfast/store"
)

func newReport(io streams) *cobra.Command {
	var out, pictures string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Write the HTML report of a stored run",
		Long: `Writes report.html of a stored run: one file that needs nothing else. It says
what the text report says and draws the run as lanes that can be zoomed. DIR is
the folder of a run. A run that died is shown as far as it was recorded.`,
		Example: `  holdfast report runs/kleppmann-gc-pause/basic/sim-1
  holdfast report runs/kleppmann-gc-pause/basic/sim-1 -o pause.html
  holdfast report runs/kleppmann-gc-pause/basic/sim-1 --png pictures`,
		Args: oneArg("folder of a run"),
		RunE: func(_ *cobra.Command, args []string) error {
			r, h, err := recorded(args[0])
			if err != nil {
				return err
			}
			if pictures != "" {
				return draw(io, r, h, pictures)
			}
			dir, name := args[0], store.ReportFile
			if out != "" {
				dir, name = filepath.Dir(out), filepath.Base(out)
			}
			path, err := store.SaveReport(dir, name, r, h)
			if err != nil {
				return err
			}
			fmt.Fprintln(io.out, path)
			return nil
		},
	}
	cmd.Flags().StringVar(&pictures, "png", "", "folder for the plots as PNG and SVG, instead of the page")
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write (default: report.html in the folder of the run)")
	return cmd
}

// draw writes the plots of a run as pictures.
func draw(io streams, r reports.Run, h *history.History, dir string) error {
	if h == nil || len(h.Events) == 0 {
		return fmt.Errorf("the run left no events: there is nothing to draw")
	}
	return drawAll(io.out, plots.Of(checker.Gather(reports.Tame(h)), r.Checks), dir)
}

// drawAll writes plots into a folder, and lists them.
func drawAll(list io.Writer, all []plots.Plot, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for pictures: %w", err)
	}
	for _, p := range all {
		var png bytes.Buffer
		if err := p.PNG(&png); err != nil {
			return err
		}
		for ext, b := range map[string][]byte{".png": png.Bytes(), ".svg": p.SVG()} {
			if err := os.WriteFile(filepath.Join(dir, p.Name+ext), b, 0o644); err != nil {
				return fmt.Errorf("write a plot: %w", err)
			}
		}
		fmt.Fprintf(list, "%s  %s\n", filepath.Join(dir, p.Name+".png"), p.Title)
	}
	return nil
}

// recorded reads a stored run for its report. What is missing, or breaks off,
// after a run that died is said in the run's error.
func recorded(dir string) (reports.Run, *history.History, error) {
	if info, err := os.Stat(dir); err != nil {
		return reports.Run{}, nil, noRun("report", dir, err)
	} else if !info.IsDir() {
		folder := "runs/kleppmann-gc-pause/basic/sim-1"
		if isFile(filepath.Join(filepath.Dir(dir), store.RunFile)) { // a file of a run
			folder = shellWord(filepath.Dir(dir))
		}
		return reports.Run{}, nil, fmt.Errorf("%s is a file, and not the folder of a run\nTry: holdfast report %s", dir, folder)
	}
	h, path, err := store.ReadHistory(dir)
	if err != nil && h == nil && !errors.Is(err, fs.ErrNotExist) {
		return reports.Run{}, nil, err
	}
	if r, verdictErr := store.ReadVerdict(dir); verdictErr == nil && err == nil {
		return r, h, nil
	}
	job, jobErr := store.ReadJob(dir)
	if h == nil {
		if jobErr != nil {
			return reports.Run{}, nil, noRun("report", dir, jobErr)
		}
		return campaign.Failed(job, errors.New("the run left no history")), nil, nil
	}
	r := rejudge(h, path)
	if jobErr == nil {
		r.Repeat = campaign.Repeat(job)
	}
	if err != nil {
		r.Error = err.Error()
		r = campaign.Conclude(r)
	}
	return r, h, nil
}
