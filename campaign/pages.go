package campaign

import (
	"strings"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// Keep says what of a run stays on disk.
type Keep struct {
	// Root is where runs are stored; empty stores nothing.
	Root string `json:"root,omitempty"`
	// Pages says for which of them report.html is written.
	Pages Pages `json:"pages,omitempty"`
}

// Pages says which stored runs get an HTML report. The report of any stored run
// can be written later, so nothing is lost without one.
type Pages string

// The choices. The empty one is PagesNever.
const (
	PagesAlways Pages = "always"
	PagesFailed Pages = "failed" // runs that are not as expected
	PagesNever  Pages = "never"
)

// want says whether a run gets its page.
func (p Pages) want(r reports.Run) bool {
	return p == PagesAlways || p == PagesFailed && reports.Stand(r) != reports.AsExpected
}

// page writes the page of a stored run where it is wanted, and notes its path
// in the run.
func (k Keep) page(dir string, r reports.Run, h *history.History) reports.Run {
	if !k.Pages.want(r) {
		return r
	}
	path, err := store.SaveReport(dir, store.ReportFile, r, h)
	if err != nil { // as when the disk is full: what was asked for is not there
		r.Error = strings.TrimSpace(r.Error + "\n" + err.Error())
		return Conclude(r)
	}
	r.Report = path
	return r
}
