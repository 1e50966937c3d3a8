package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// SweepSchema names the JSON format of a sweep.
const SweepSchema = "holdfast/sweep/v1"

// Sweep is a scenario played with several values of one quantity, or of two.
type Sweep struct {
	Schema   string   `json:"schema"`
	Scenario string   `json:"scenario"`
	About    string   `json:"about,omitempty"`
	Axes     []string `json:"axes"`
	// Units of the numbers on each axis: "TTLs" or "s".
	Units  []string     `json:"units"`
	Points []SweepPoint `json:"points"`
}

// SweepPoint is one lock with one value on each axis.
type SweepPoint struct {
	Lock string `json:"lock"`
	// Values as they are written in scenarios, and as numbers of TTLs or
	// seconds, in the order of the axes.
	Values  []string  `json:"values"`
	Numbers []float64 `json:"numbers"`
	// Violations is the share of runs with a violation, and Shared the share
	// in which two held the lock at once.
	Violations Rate `json:"violations"`
	Shared     Rate `json:"shared"`
	// Lost of all Writes that were acknowledged.
	Lost   int `json:"lost"`
	Writes int `json:"writes"`
	// Errors are runs that failed, and Unproven those without an answer.
	Errors   int `json:"errors"`
	Unproven int `json:"unproven"`
}

// With fills in what the runs at the point say.
func (p SweepPoint) With(runs []Run) SweepPoint {
	p.Violations = Violations(runs)
	shared, of := 0, 0
	for _, r := range runs {
		switch {
		case r.Error != "":
			p.Errors++
		case r.Verdict == "unknown":
			p.Unproven++
		}
		for _, c := range r.Checks {
			switch {
			case c.Name == "exclusion" && c.Applies && (c.Verdict == "violation" || c.Verdict == "pass"):
				of++
				if c.Verdict == "violation" {
					shared++
				}
			case c.Name == "updates":
				p.Lost += int(c.Figures["lost"])
				p.Writes += int(c.Figures["writes"])
			}
		}
	}
	p.Shared = RateOf(shared, of)
	return p
}

// LostShare is the share of acknowledged writes that were lost.
func (p SweepPoint) LostShare() float64 { return float64(p.Lost) / float64(max(p.Writes, 1)) }

// rows are the points as a table, with its head.
func (s Sweep) rows() [][]string {
	rows := [][]string{append(append([]string{"lock"}, s.Axes...), "two holders at once", "any violation", "updates lost")}
	for _, p := range s.Points {
		row := append([]string{Printable(p.Lock)}, p.Values...)
		row = append(row, share(p.Shared), share(p.Violations), fmt.Sprintf("%d/%d = %s %%", p.Lost, p.Writes, percent(p.LostShare())))
		if p.Errors+p.Unproven > 0 {
			row[len(row)-1] += fmt.Sprintf("; %d runs failed, %d proved nothing", p.Errors, p.Unproven)
		}
		rows = append(rows, row)
	}
	return rows
}

func share(r Rate) string {
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", r.Hits, r.Of, r.Interval()))
}

// key explains the columns.
const sweepKey = "n/m: in n of m runs; (a-b %): 95 % confidence interval (Wilson); updates lost: of all that were acknowledged, over all runs"

// Text writes the sweep as a table.
func (s Sweep) Text(w io.Writer, opt TextOptions) error {
	p := newPage(opt)
	p.add(Printable(s.Scenario))
	p.say("", s.About)
	p.add("")
	rows := s.rows()
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i := range r {
			wide[i] = max(wide[i], len([]rune(r[i])))
		}
	}
	for _, r := range rows {
		line := ""
		for i, word := range r {
			line += fmt.Sprintf("%-*s  ", wide[i], word)
		}
		p.add(strings.TrimRight(line, " "))
	}
	p.add("", sweepKey)
	return p.flush(w)
}

// Markdown writes the sweep as a table.
func (s Sweep) Markdown(w io.Writer) error {
	var b strings.Builder
	for i, r := range s.rows() {
		cells := slices.Clone(r)
		for j := range cells {
			cells[j] = md(cells[j])
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	b.WriteString("\n" + sweepKey + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the sweep: %w", err)
	}
	return nil
}

// JSON writes the sweep for machines.
func (s Sweep) JSON(w io.Writer) error { return writeJSON(w, s) }
