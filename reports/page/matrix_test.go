package page_test

import (
	"bytes"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
)

func cellRun(lock, scenario string, v checker.Verdict, outcome, report string) reports.Run {
	return reports.Run{Lock: lock, Scenario: scenario, Verdict: v, Outcome: outcome, Matched: true, Report: report, Repeat: "holdfast run " + scenario,
		Checks: []checker.Result{{Name: "exclusion", Applies: true, Verdict: v, Kind: outcome}}}
}

func writeMatrix(t *testing.T, m reports.Matrix, folder string) string {
	t.Helper()
	var b bytes.Buffer
	if err := page.WriteMatrix(&b, m, folder); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// links lists where a page leads.
func links(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for _, e := range elements(t, text) {
		for _, key := range []string{"href", "src", "action"} {
			if to := attr(e, key); to != "" {
				out = append(out, to)
			}
		}
	}
	return out
}

// TestMatrixPage holds what a cell and a claim say, and where they lead.
func TestMatrixPage(t *testing.T) {
	var runs []reports.Run
	for i := range 5 {
		r := cellRun("basic", "slow-work", checker.Violation, "overrun", "runs/slow-work/basic/sim-1/report.html")
		if i > 2 {
			r = cellRun("basic", "slow-work", checker.Pass, "pass", "")
		}
		runs = append(runs, r)
	}
	m := reports.MatrixOf(runs, []string{"basic", "reference"}, []string{"calm", "slow-work"},
		[]reports.Claim{{Lock: "basic", Claim: "renews itself", Promise: "yes", Scenarios: []string{"slow-work", "renewal-blip"}}})
	text := writeMatrix(t, m, "runs/pages")
	said := map[string]string{}
	var refuted string
	for _, e := range elements(t, text) {
		if id := attr(e, "id"); id != "" {
			said[id] = textOf(e) + "|" + attr(e, "class")
		}
		if strings.HasPrefix(attr(e, "class"), "badge") {
			refuted = textOf(e) + "|" + attr(e, "class")
		}
	}
	if got, want := said["cell-2-1"], "overrun~ 3/5 (23-88 %)|known"; got != want {
		t.Errorf("the cell says %q, want %q", got, want)
	}
	if _, there := said["cell-1-1"]; there {
		t.Error("a cell without a run can be linked to")
	}
	if want := "refuted|badge violation"; refuted != want {
		t.Errorf("the claim is %q, want %q", refuted, want)
	}
	if got := strings.Join(links(t, text), " "); got != "./../slow-work/basic/sim-1/report.html #cell-2-1" {
		t.Errorf("the page leads to %q", got)
	}
}

// TestHostileMatrix holds that names are text, and that no name makes a link
// that leaves the disk.
func TestHostileMatrix(t *testing.T) {
	for _, bad := range append([]string{"javascript:alert(1)", "//evil.example/x", "a b#c?d%2e"}, hostile...) {
		folder := strings.ReplaceAll(bad, "/", "_")
		r := cellRun(bad, bad, checker.Violation, bad, filepath.Join(folder, "report.html"))
		r.Repeat = bad
		m := reports.MatrixOf([]reports.Run{r}, nil, nil, []reports.Claim{{Lock: bad, Claim: bad, Promise: bad, Scenarios: []string{bad}}})
		m.Tally = bad
		text := writeMatrix(t, m, ".")
		cells := 0
		for _, e := range elements(t, text) {
			switch {
			case e.Data == "script" || e.Data == "img" || e.Data == "svg" || attr(e, "id") == "x" || attr(e, "onerror") != "":
				t.Errorf("%.30q became an element %s", bad, e.Data)
			case e.Data == "td" && attr(e, "id") != "":
				cells++
			}
		}
		if cells != 1 {
			t.Errorf("%.30q: %d cells", bad, cells)
		}
		for _, to := range links(t, text) {
			if strings.HasPrefix(to, "#") {
				continue
			}
			u, err := url.Parse(to)
			if err != nil || u.Scheme != "" || u.Host != "" || u.Fragment != "" || u.RawQuery != "" || u.Path != "./"+folder+"/report.html" {
				t.Errorf("%.30q leads to %.60q", bad, to)
			}
		}
	}
}
