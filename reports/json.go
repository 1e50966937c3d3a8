package reports

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-io/holdfast/checker"
)

//go:embed verdict.schema.json
var verdictSchema []byte

// JSONSchema is the JSON Schema (draft 2020-12) of a Document.
func JSONSchema() []byte {
	return slices.Clone(verdictSchema)
}

//go:embed gate.schema.json
var gateSchema []byte

// GateJSONSchema is the JSON Schema (draft 2020-12) of a [Gate]. It refers to
// [JSONSchema] for its runs, as verdict.schema.json in the same place.
func GateJSONSchema() []byte {
	return slices.Clone(gateSchema)
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
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// Reasons and stacks are read by people: "a < b" must not become an escape.
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	if _, err := w.Write(inertJSON(b.Bytes())); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// inertJSON escapes what the encoder leaves in strings although a terminal or
// a CI server would act on it: control characters beyond ASCII, marks that
// turn the direction of text, GitHub's "##[". All of them can stand in strings
// only.
func inertJSON(b []byte) []byte {
	var out bytes.Buffer
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case bytes.HasPrefix(b, []byte("##[")):
			out.WriteString(`##\u005b`)
			n = len("##[")
		case r == '\n' || unicode.IsPrint(r):
			out.Write(b[:n])
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
		b = b[n:]
	}
	return out.Bytes()
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
