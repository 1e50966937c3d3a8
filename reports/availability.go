package reports

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/holdfast-io/holdfast/checker"
)

// Availability is how much of a lock was to be had while something was broken,
// as a mean over the runs of a cell.
type Availability struct {
	// HeldPercent is the share of that time in which somebody held the lock.
	HeldPercent float64 `json:"held_percent"`
	// LongestFreeSeconds is the longest stretch in which nobody did, of the
	// worst run.
	LongestFreeSeconds float64 `json:"longest_free_seconds"`
}

func availabilityOf(runs []Run) *Availability {
	var a Availability
	n := 0.0
	for _, r := range runs {
		for _, c := range r.Checks {
			held, ok := c.Figures[checker.HeldDuring]
			if !ok {
				continue
			}
			n++
			a.HeldPercent += held
			a.LongestFreeSeconds = max(a.LongestFreeSeconds, c.Figures[checker.LongestFree])
		}
	}
	if n == 0 {
		return nil
	}
	a.HeldPercent /= n
	return &a
}

// TextAvailability writes the price of the matrix's outcomes: a line for each
// cell in which something was broken for a while.
func (m Matrix) TextAvailability(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "while something was broken\tlock\toutcome\theld\tnobody's for")
	for i, scenario := range m.Scenarios {
		for _, r := range m.Rows {
			c := r.Cells[i]
			if c.Availability == nil {
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%.0f %%\t%.1f s\n", Printable(scenario), Printable(r.Lock), c.word(),
				c.Availability.HeldPercent, c.Availability.LongestFreeSeconds)
		}
	}
	return table.Flush()
}
