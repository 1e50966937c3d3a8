package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// TestSentinel plays on a real set of sentinels: an election that loses a held
// lock, which is told as such, and servers that refuse rather than lose one. The
// price of the latter is a figure.
func TestSentinel(t *testing.T) {
	needServers(t)
	t.Parallel()
	root := t.TempDir()
	jobs := []store.Job{
		{Scenario: "sentinel-failover", Lock: "basic", World: "process", Seed: 1},
		{Scenario: "sentinel-min-replicas", Lock: "basic", World: "process", Seed: 1},
	}
	runs, _ := sideBySide(root, jobs, len(jobs))
	for i, r := range runs {
		if reports.Stand(r) == reports.AsExpected {
			continue
		}
		// A machine that is busy elsewhere elects too late for the lease.
		t.Logf("%s: %v, again with a longer lease\n%s", r.Repeat, r.Mismatches, complaints(r))
		patient := jobs[i]
		patient.TTL = 12 * time.Second
		again, _ := sideBySide(root, []store.Job{patient}, 1)
		if runs[i] = again[0]; reports.Stand(runs[i]) != reports.AsExpected {
			t.Errorf("%s: %v\n%s", runs[i].Repeat, runs[i].Mismatches, complaints(runs[i]))
		}
	}
	said := func(r reports.Run, check string) checker.Result {
		return r.Checks[slices.IndexFunc(r.Checks, func(c checker.Result) bool { return c.Name == check })]
	}
	if t.Failed() {
		return
	}
	broken := said(runs[0], "exclusion")
	if len(broken.Violations) == 0 || !strings.Contains(broken.Violations[0].Fault, "was promoted by the sentinels in place of n1") {
		t.Errorf("the election is not named: %+v", broken.Violations)
	}
	h, _, err := store.ReadHistory(runs[0].History)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(h.Events, func(e history.Event) bool { return e.Nemesis != nil && e.Nemesis.Fault == history.Promotion }) {
		t.Error("no promotion stands in the history")
	}
	if f := said(runs[1], "coverage").Figures; f[checker.LongestFree] < 1 || f[checker.HeldDuring] >= 95 {
		t.Errorf("refusing costs nothing: %v", f)
	}
}
