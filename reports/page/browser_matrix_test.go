package page_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
	"github.com/holdfast-io/holdfast/store"
)

// TestMatrixInABrowser follows a cell to the report of its run, and leaves a
// picture of each look of the matrix.
func TestMatrixInABrowser(t *testing.T) {
	root := t.TempDir()
	locks := []string{"basic", "watchdog", "redlock", "service", "basic+fence", "reference"}
	columns := []string{"calm", "kleppmann-gc-pause", "kleppmann-clock-jump", "kleppmann-fencing", "slow-work", "partition-holder"}
	var jobs []store.Job
	for _, scenario := range columns {
		for _, lock := range locks {
			for seed := range uint64(4) {
				jobs = append(jobs, store.Job{Scenario: scenario, Lock: lock, World: "sim", Seed: seed + 1})
			}
		}
	}
	runs := campaign.Runner{Keep: campaign.Keep{Root: filepath.Join(root, "runs"), Pages: campaign.PagesAlways}}.Play(t.Context(), jobs)
	m := reports.MatrixOf(runs, locks, columns, []reports.Claim{
		{Lock: "basic", Claim: "tolerance of GC pauses", Promise: "high", Scenarios: []string{"kleppmann-gc-pause"}},
		{Lock: "watchdog", Claim: "renews itself", Promise: "yes", Scenarios: []string{"slow-work"}},
		{Lock: "redlock", Claim: "survives the loss of a node", Promise: "no", Scenarios: []string{"kleppmann-clock-jump"}},
	})
	m.Rows[1].Cells[4].Expected = false // to see what that looks like
	var text bytes.Buffer
	if err := page.WriteMatrix(&text, m, filepath.Join(root, "pages")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "pages", "matrix.html")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.visit("file://"+file, "file://"+root)
	for _, c := range []struct {
		name, theme   string
		width, height int64
	}{{"dark", "dark", 1280, 900}, {"narrow-dark", "dark", 390, 844}, {"narrow", "light", 390, 844}, {"light", "light", 1280, 900}} {
		b.look(c.theme, c.width, c.height)
		b.fits("the matrix " + c.name)
		b.picture("matrix-" + c.name)
	}
	if got := ask[string](b, `document.getElementById("cell-2-1").innerText`); !strings.Contains(got, "overrun") || !strings.Contains(got, "4/4") || !strings.Contains(got, "(51-100 %)") {
		t.Errorf("the cell of basic in kleppmann-gc-pause says %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("#cell-2-1 a")), chromedp.WaitReady(chromedp.CSS("body[data-ready=yes]")))
	if got := ask[string](b, `document.querySelector("h1").innerText`); !strings.Contains(got, "VIOLATION") {
		t.Errorf("the cell leads to %q", got)
	}
}
