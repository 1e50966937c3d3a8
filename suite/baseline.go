package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/holdfast-io/holdfast/reports"
)

// BaselineSchema names the format of baselines.
const BaselineSchema = "holdfast/baseline/v1"

// Baseline is the file of known findings, which people commit beside their
// lock. Its bytes depend on the findings alone.
type Baseline struct {
	Schema   string            `json:"schema"`
	Findings []reports.Finding `json:"findings"`
}

// maxBaseline bounds the file: a finding has some hundred bytes.
const maxBaseline = 16 << 20

// ReadBaseline reads a baseline.
func ReadBaseline(path string) (*Baseline, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the baseline: %w", err)
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, maxBaseline))
	d.DisallowUnknownFields()
	var b Baseline
	if err := d.Decode(&b); err != nil {
		return nil, fmt.Errorf("read the baseline: %s: %w", path, err)
	}
	if b.Schema != BaselineSchema {
		return nil, fmt.Errorf("read the baseline: %s: the schema is %q, not %s", path, b.Schema, BaselineSchema)
	}
	for i, f := range b.Findings {
		if f.Lock == "" || f.Scenario == "" || f.Check == "" || f.Kind == "" {
			return nil, fmt.Errorf("read the baseline: %s: finding %d lacks its lock, scenario, check or kind", path, i+1)
		}
	}
	return &b, nil
}

// Updated is the baseline after a gate: with what is new, without what has
// vanished. What the gate did not test stays, and so do the notes.
func (b *Baseline) Updated(g *reports.Gate) *Baseline {
	out := &Baseline{}
	if b != nil {
		for _, f := range b.Findings {
			if !reports.Has(g.Vanished, f) && !reports.Has(out.Findings, f) {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	for _, f := range g.Findings {
		if !reports.Has(out.Findings, f.Finding) {
			out.Findings = append(out.Findings, f.Finding)
		}
	}
	return out
}

// Write writes the baseline, whole or not at all, sorted. It leaves a file
// alone that holds these bytes already.
func (b *Baseline) Write(path string) error {
	out := Baseline{Schema: BaselineSchema, Findings: append([]reports.Finding{}, b.Findings...)}
	slices.SortStableFunc(out.Findings, reports.CompareFindings)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	switch old, err := os.ReadFile(path); {
	case err == nil && bytes.Equal(old, text.Bytes()):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write the baseline: %w", err)
	}
	tmp := path + ".tmp"
	err := os.WriteFile(tmp, text.Bytes(), 0o644)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the baseline: %w", err), os.RemoveAll(tmp))
	}
	return nil
}
