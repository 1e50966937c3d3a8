package reports

import (
	"fmt"
	"io"
	"strings"
)

// mostAnnotations is how many of one kind GitHub shows for a step.
const mostAnnotations = 10

// Annotations writes GitHub's workflow commands: an error for each new
// finding, a warning for what is unknown, a notice for what has vanished. Where
// there are more than GitHub shows, the last one says so.
func (g *Gate) Annotations(w io.Writer) error {
	var out []string
	var errs, warnings, notices []annotation
	for _, f := range g.fresh() {
		errs = append(errs, annotation{"error", g.fileOf(f.Index), "holdfast: " + f.where(), f.Sentence + "\nrepeat: " + f.Repeat})
	}
	for _, s := range g.unknowns() {
		warnings = append(warnings, annotation{"warning", g.Suite.File, "holdfast: unknown, which is no pass", s})
	}
	for _, f := range g.Vanished {
		file := g.Suite.File
		if g.Baseline != nil {
			file = g.Baseline.File
		}
		notices = append(notices, annotation{"notice", file, "holdfast: a known finding has vanished", f.where()})
	}
	for _, list := range [][]annotation{errs, warnings, notices} {
		for i, a := range list {
			if i == mostAnnotations-1 && len(list) > mostAnnotations {
				a.title, a.text = "holdfast: more", fmt.Sprintf("%d more; the job summary and the JSON document have them", len(list)-i)
				out = append(out, a.String())
				break
			}
			out = append(out, a.String())
		}
	}
	for _, l := range out {
		if _, err := io.WriteString(w, l+"\n"); err != nil {
			return fmt.Errorf("writing annotations: %w", err)
		}
	}
	return nil
}

// fileOf is the file to show a finding at: the scenario's, or the suite's.
func (g *Gate) fileOf(index int) string {
	for _, c := range g.Cases {
		if c.Index == index && c.File != "" {
			return c.File
		}
	}
	return g.Suite.File
}

// annotation is one workflow command.
type annotation struct{ level, file, title, text string }

func (a annotation) String() string {
	props := "title=" + property(a.title)
	if a.file != "" {
		props = "file=" + property(a.file) + "," + props
	}
	return fmt.Sprintf("::%s %s::%s", a.level, props, data(a.text))
}

// data escapes a command's message.
func data(s string) string {
	var lines []string
	for l := range strings.SplitSeq(clip(s), "\n") {
		lines = append(lines, line(l))
	}
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(strings.Join(lines, "\n"))
}

// property escapes a command's property.
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(strings.ReplaceAll(s, "\n", " ")))
}
