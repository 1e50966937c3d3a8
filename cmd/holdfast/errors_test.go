package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

var errorRow = regexp.MustCompile("(?m)^\\| ([A-Z_]+) \\| ([^|]+) \\| `holdfast run ([a-z-]+) --lock ([a-z+-]+)` \\|")

// TestErrorsOnRealServers: the rows of docs/errors.md that are not marked "sim
// only" provoke their errors there too.
func TestErrorsOnRealServers(t *testing.T) {
	needServers(t)
	b, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	var jobs []store.Job
	for _, m := range errorRow.FindAllStringSubmatch(string(b), -1) {
		if !strings.Contains(m[2], "(sim only)") {
			codes = append(codes, m[1])
			jobs = append(jobs, store.Job{Scenario: m[3], Lock: m[4], World: "process", Seed: 1})
		}
	}
	if len(codes) < 7 {
		t.Fatalf("docs/errors.md has only %v for real servers", codes)
	}
	runs, lags := sideBySide(t.TempDir(), jobs, 4)
	for i, run := range runs {
		told := tells(run, codes[i])
		if !told { // once more, alone and with time enough: see compareWorlds
			jobs[i].TTL = 4 * time.Duration(run.TTLNanos)
			t.Logf("%s: no %s while the machine stood still for %v: again with a TTL of %v", run.Repeat, codes[i], lags[i], jobs[i].TTL)
			again, lag := sideBySide(t.TempDir(), jobs[i:i+1], 1)
			run, lags[i], told = again[0], lag[0], tells(again[0], codes[i])
		}
		if !told || run.Error != "" {
			t.Errorf("%s: %s is not among %+v %s (the machine stood still for %v at most)",
				run.Repeat, codes[i], run.Errors, run.Error, lags[i])
		}
	}
}

// tells says whether a run counts an error.
func tells(r reports.Run, code string) bool {
	return slices.ContainsFunc(r.Errors, func(e reports.ErrorCount) bool { return e.Code == code })
}
