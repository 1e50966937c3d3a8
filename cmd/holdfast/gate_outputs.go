package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/reports"
)

// The environment that GitHub gives its jobs.
const (
	onGitHub      = "GITHUB_ACTIONS"
	githubSummary = "GITHUB_STEP_SUMMARY"
)

// gateOutputs are where a gate's result goes: gate and merge share them.
type gateOutputs struct {
	format      string
	document    string
	junit       string
	summary     string
	annotations bool
}

func gateFormats() []string { return []string{"text", "json", "markdown", "junit"} }

func (o *gateOutputs) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "text", "text, json, markdown or junit, on stdout")
	f.StringVarP(&o.document, "output", "o", "", "file for the JSON document too: what holdfast merge reads")
	f.StringVar(&o.junit, "junit", "", "file for JUnit XML too")
	f.StringVar(&o.summary, "summary", os.Getenv(githubSummary), "file for a markdown summary too (default: $"+githubSummary+")")
	f.Lookup("summary").DefValue = "" // the help is the same everywhere
	f.BoolVar(&o.annotations, "annotations", os.Getenv(onGitHub) == "true", "GitHub annotations on stderr (default: only where "+onGitHub+"=true)")
	f.Lookup("annotations").DefValue = "false"
	complete(cmd, "format", gateFormats)
}

func (o *gateOutputs) validate(try string) error {
	if !slices.Contains(gateFormats(), o.format) {
		return unknownWord("format", o.format, gateFormats(), try)
	}
	files := map[string]string{}
	for _, f := range []struct{ flag, path string }{{"--output", o.document}, {"--junit", o.junit}, {"--summary", o.summary}} {
		if f.path == "" {
			continue
		}
		path := filepath.Clean(f.path)
		if other, taken := files[path]; taken {
			return usage(try, "%s and %s write the same file", other, f.flag)
		}
		files[path] = f.flag
	}
	return nil
}

// clear takes away what a gate before has written, so that nobody takes it for
// the result of one that is killed. Only files go, and not GitHub's, which is
// appended to.
func (o *gateOutputs) clear() error {
	for _, path := range []string{o.document, o.junit, o.summary} {
		if path == "" || path == o.summary && path == os.Getenv(githubSummary) {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // nothing is there, or nothing that can be old
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove the result of the gate before: %w", err)
		}
	}
	return nil
}

// tell writes the result everywhere it should go, and gives the exit code. A
// place that fails does not keep the result from the others.
func (o *gateOutputs) tell(io streams, g *reports.Gate) error {
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if o.document != "" {
		add(intoFile(o.document, g.JSON))
	}
	if o.junit != "" {
		add(intoFile(o.junit, g.JUnit))
	}
	if o.summary != "" {
		add(writeSummary(o.summary, g))
	}
	switch o.format {
	case "json":
		add(g.JSON(io.out))
	case "markdown":
		add(g.Markdown(io.out, reports.SummaryLimit))
	case "junit":
		add(g.JUnit(io.out))
	default:
		add(g.Text(io.out, textOptions(io.out)))
	}
	if o.annotations {
		add(g.Annotations(io.err))
	}
	if err := errors.Join(errs...); err != nil {
		if g.ExitCode == reports.ExitViolation { // a finding is graver than a full disk
			fmt.Fprintln(io.err, "holdfast:", err)
			return exitError(g.ExitCode)
		}
		return err
	}
	return exitError(g.ExitCode)
}

// intoFile writes a file whole or not at all.
func intoFile(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	tmp := path + ".tmp"
	err := os.WriteFile(tmp, b.Bytes(), 0o644)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.RemoveAll(tmp))
	}
	return nil
}

// writeSummary appends to GitHub's file, to which other commands of the step
// may have written, and replaces any other.
func writeSummary(path string, g *reports.Gate) error {
	if path != os.Getenv(githubSummary) {
		return intoFile(path, func(w io.Writer) error { return g.Markdown(w, reports.SummaryLimit) })
	}
	limit := reports.SummaryLimit
	if info, err := os.Stat(path); err == nil {
		limit -= int(info.Size())
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return errors.Join(g.Markdown(f, limit), f.Close())
}
