package reports

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/holdfast-io/holdfast/checker"
)

//go:embed verdict.schema.json
var verdictSchema []byte

// JSONSchema is the JSON Schema (draft 2020-12) of a Document.
func JSONSchema() []byte {
	return slices.Clone(verdictSchema)
}

// JSON writes a document, indented and in a stable order. Lists that are
// empty are written as empty lists, so that a reader never meets null. It
// fails where a figure is not a number, and where w fails.
func JSON(w io.Writer, d Document) error {
	d.Schema = Schema
	runs := make([]Run, 0, len(d.Runs))
	for _, r := range d.Runs {
		runs = append(runs, filled(r))
	}
	d.Runs = runs
	return writeJSON(w, d)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	// Reasons and stacks are read by people: "a < b" must not become an escape.
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// filled copies the run with empty lists in the place of missing ones.
func filled(r Run) Run {
	if r.Expected == nil {
		r.Expected = map[string]string{}
	}
	checks := make([]checker.Result, 0, len(r.Checks))
	for _, c := range r.Checks {
		c.Violations = slices.Clone(c.Violations)
		for i := range c.Violations {
			if c.Violations[i].Ops == nil {
				c.Violations[i].Ops = []int{}
			}
		}
		checks = append(checks, c)
	}
	r.Checks = checks
	return r
}
