package campaign

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// toldError is a row of docs/errors.md.
type toldError struct{ code, scenario, lock, line string }

var errorRow = regexp.MustCompile("(?m)^\\| ([A-Z_]+) \\| [^|]+ \\| `holdfast run ([a-z-]+) --lock ([a-z+-]+)` \\| `(errors [^`]+)` \\|$")

// toldErrors reads the table of docs/errors.md, which says how each error is
// provoked.
func toldErrors(t *testing.T) []toldError {
	t.Helper()
	b, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []toldError
	for _, m := range errorRow.FindAllStringSubmatch(string(b), -1) {
		rows = append(rows, toldError{code: m[1], scenario: m[2], lock: m[3], line: m[4]})
	}
	return rows
}

// TestEveryErrorIsProvoked: each code of the table comes up with every seed, in
// every format, and the documented line is what seed 1 prints.
func TestEveryErrorIsProvoked(t *testing.T) {
	rows := toldErrors(t)
	want := []string{
		"CLOCK_DRIFT", "CONCURRENT_MODIFICATION", "DEADLOCK", "LOCK_TIMEOUT", "LUA_SCRIPT", "OOM",
		"QUORUM_NOT_REACHED", "REDIS_CONNECTION", "UNLOCK_FAILED", "WATCHDOG_RENEWAL_FAILED",
	}
	var codes []string
	for _, row := range rows {
		codes = append(codes, row.code)
	}
	slices.Sort(codes)
	if !slices.Equal(codes, want) {
		t.Fatalf("docs/errors.md tells of %v, want %v", codes, want)
	}
	for _, row := range rows {
		for seed := uint64(1); seed <= 3; seed++ {
			run, h := mustPlay(t, store.Job{Scenario: row.scenario, Lock: row.lock, Seed: seed})
			if reports.Stand(run) != reports.AsExpected {
				t.Errorf("%s: %v", run.Repeat, run.Mismatches)
			}
			at := slices.IndexFunc(run.Errors, func(e reports.ErrorCount) bool { return e.Code == row.code })
			if at < 0 {
				t.Errorf("%s: no %s among %+v", run.Repeat, row.code, run.Errors)
				continue
			}
			if e := run.Errors[at]; !e.Found && !strings.HasPrefix(e.First, row.code+": ") {
				t.Errorf("%s: the text of the error does not begin with its code: %s", run.Repeat, e.First)
			}
			var text, markdown, machine strings.Builder
			err := reports.Text(&text, run, h, reports.TextOptions{Width: 160})
			if err == nil {
				err = reports.Markdown(&markdown, []reports.Run{run}, nil)
			}
			if err == nil {
				err = reports.JSON(&machine, reports.Document{Runs: []reports.Run{run}})
			}
			if err != nil {
				t.Fatal(err)
			}
			for format, out := range map[string]string{"text": text.String(), "markdown": markdown.String(), "json": machine.String()} {
				if !strings.Contains(out, row.code) {
					t.Errorf("%s: the %s report does not say %s", run.Repeat, format, row.code)
				}
			}
			if seed == 1 && !strings.Contains(text.String(), "\n"+row.line+"\n") {
				t.Errorf("%s: docs/errors.md shows %q, and the report has no such line; it counts %+v", run.Repeat, row.line, run.Errors)
			}
		}
	}
}

// TestRenewalErrorsAreTold: what ended the renewal reaches the holder that
// asks, typed and indefinite, and once.
func TestRenewalErrorsAreTold(t *testing.T) {
	for _, lock := range []string{"watchdog", "service"} {
		run, h := mustPlay(t, store.Job{Scenario: "lock-key-deleted", Lock: lock, Seed: 1})
		notes := 0
		for _, e := range h.Events {
			if e.Op != nil && e.Op.F == "renewal" {
				notes++
				if e.Op.Code != string(impl.CodeRenewalFailed) || e.Op.Type != "note" {
					t.Errorf("%s: %s", run.Repeat, e)
				}
			}
		}
		if notes != 1 {
			t.Errorf("%s: %d renewals failed, want 1", run.Repeat, notes)
		}
	}
}
