package campaign

import (
	"context"
	"strings"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// Pages says for which stored runs an HTML report is written. The report of any
// stored run can be written later, so nothing is lost without one.
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

// Show writes the page of a stored run where it is wanted, and notes its path
// in the run.
func (p Pages) Show(j store.Job, root string, r reports.Run, h *history.History) reports.Run {
	if root == "" || !p.want(r) {
		return r
	}
	path, err := store.SaveReport(j.Dir(root), store.ReportFile, r, h)
	if err != nil { // as when the disk is full: what was asked for is not there
		r.Error = strings.TrimSpace(r.Error + "\n" + err.Error())
		return Conclude(r)
	}
	r.Report = path
	return r
}

// playAndShow plays an order and writes its page.
func playAndShow(ctx context.Context, o order) reports.Run {
	run, h := Play(ctx, o.Job, o.Root)
	return o.Pages.Show(o.Job, o.Root, run, h)
}
