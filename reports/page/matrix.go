package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
)

var (
	//go:embed assets/matrix.html
	matrixHTML string
	//go:embed assets/matrix.css
	matrixCSS string

	matrixLayout = template.Must(template.New("matrix").Parse(matrixHTML))
)

// stillPolicy is that of a page without a script.
const stillPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"

// table is what the template of a matrix shows. Scenarios go down and locks
// across, unlike in the text: names of scenarios are long and those of locks
// are not.
type table struct {
	Policy, Title, Key, Tally string
	CSS                       template.CSS
	Locks                     []string
	Rows                      []tableRow
	Claims                    []tableClaim
}

type tableRow struct {
	Scenario string
	Cells    []tableCell
}

type tableCell struct{ ID, Class, Word, Marks, Count, Interval, Link, Repeat string }

type tableClaim struct {
	Lock, Claim, Promise, Truth, Class, Finding string
	Seen                                        []seen
}

// seen is a cell that a claim was held against.
type seen struct{ Scenario, ID string }

// WriteMatrix writes a matrix as a page that lies in a folder: its cells lead
// to the reports of their runs, by paths relative to the folder, so that both
// can be moved together.
func WriteMatrix(w io.Writer, m reports.Matrix, folder string) error {
	t := table{
		Policy: stillPolicy, CSS: template.CSS(styleCSS + matrixCSS), Title: "Locks against scenarios",
		Key: "The cells show " + shown(m.Key()), Tally: shown(m.Tally),
	}
	for _, r := range m.Rows {
		t.Locks = append(t.Locks, shown(r.Lock))
	}
	at := map[[2]string]string{} // lock and scenario to the id of the cell
	for i, scenario := range m.Scenarios {
		row := tableRow{Scenario: shown(scenario)}
		for k, r := range m.Rows {
			c, err := tableCellOf(r.Cells[i], folder)
			if err != nil {
				return err
			}
			if c.Word != "" {
				c.ID = fmt.Sprintf("cell-%d-%d", i+1, k+1)
				at[[2]string{r.Lock, scenario}] = c.ID
			}
			row.Cells = append(row.Cells, c)
		}
		t.Rows = append(t.Rows, row)
	}
	for _, c := range m.Claims {
		claim := tableClaim{Lock: shown(c.Lock), Claim: shown(c.Claim.Claim), Promise: shown(c.Promise), Truth: shown(c.Truth),
			Class: truthClass(c.Truth), Finding: shown(c.Finding)}
		for _, scenario := range c.Scenarios {
			if id := at[[2]string{c.Lock, scenario}]; id != "" {
				claim.Seen = append(claim.Seen, seen{Scenario: shown(scenario), ID: id})
			}
		}
		t.Claims = append(t.Claims, claim)
	}
	if err := matrixLayout.Execute(w, t); err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	return nil
}

func tableCellOf(c reports.Cell, folder string) (tableCell, error) {
	out := tableCell{Word: shown(c.Outcome), Repeat: shown(c.Repeat), Marks: c.Marks(), Class: "none"}
	switch {
	case c.Outcome == "":
		return out, nil
	case !c.Expected:
		out.Class = "violation"
	case c.Verdict == checker.Pass:
		out.Class = "pass"
	default:
		out.Class = "known"
	}
	if c.Runs > 1 {
		out.Count, out.Interval = fmt.Sprintf("%d/%d", c.Count, c.Runs), c.Rate.Interval()
	}
	if c.Report == "" {
		return out, nil
	}
	var err error
	out.Link, err = relative(folder, c.Report)
	return out, err
}

// relative is the way from a folder to a file as an address. It begins with a
// dot, so that no name in it is taken for a scheme.
func relative(folder, file string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("linking to a report: %w", err)
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("linking to a report: %w", err)
	}
	rel, err := filepath.Rel(from, to)
	if err != nil {
		return "", fmt.Errorf("linking to a report: %w", err)
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(slices.Insert(parts, 0, "."), "/"), nil
}

// truthClass is the colour of a measured truth.
func truthClass(truth string) string {
	switch truth {
	case reports.Refuted:
		return "violation"
	case reports.Confirmed:
		return "known"
	case reports.Held:
		return "held"
	}
	return "none"
}
