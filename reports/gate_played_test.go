package reports_test

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/suite"
)

// TestJUnitOfPlayedGates validates what gates write that were really played,
// with every outcome that a case can have.
func TestJUnitOfPlayedGates(t *testing.T) {
	plan := suite.Suite{Name: "played", World: "sim", Entries: []suite.Entry{
		{Locks: []string{"reference", "basic", "release-without-owner-check"}, Scenarios: []string{"calm", "slow-work"}, Seeds: 2},
	}}
	dead := func() *exec.Cmd { return exec.Command("false") }
	seen := map[reports.Status]bool{}
	for name, g := range map[string]campaign.Gate{
		"played":        {Runner: campaign.Runner{Keep: campaign.Keep{Root: t.TempDir()}}},
		"out of time":   {Budget: time.Nanosecond},
		"dead children": {Runner: campaign.Runner{Child: dead}},
	} {
		g.Suite = &plan
		jobs, id, err := g.Plan()
		if err != nil {
			t.Fatal(err)
		}
		result := g.Play(t.Context(), jobs, id)
		for _, c := range result.Cases {
			seen[c.Status] = true
		}
		var b bytes.Buffer
		if err := result.JUnit(&b); err != nil {
			t.Fatal(err)
		}
		if err := reports.ValidateJUnit(t, b.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, want := range []reports.Status{reports.CasePassed, reports.CaseFailed, reports.CaseError, reports.CaseSkipped} {
		if !seen[want] {
			t.Errorf("no case is %s: %v", want, seen)
		}
	}
}
