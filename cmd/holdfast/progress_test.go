package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// TestProgress: a single run says what is being played and for how long, many
// say how many are left, and the line is gone at the end.
func TestProgress(t *testing.T) {
	jobs := []store.Job{
		{Scenario: "calm", Lock: "basic", World: "process", Seed: 1},
		{Scenario: "calm", Lock: "redlock", World: "process", Seed: 1},
	}
	var w bytes.Buffer
	one := startProgress(&w, jobs[:1], true)
	if got := one.line(3 * time.Second); got != "calm / basic on process, 3s" {
		t.Errorf("a single run: %q", got)
	}
	one.draw(time.Now())
	one.end()
	if !strings.HasSuffix(w.String(), "\r\x1b[K") {
		t.Errorf("the line is left behind: %q", w.String())
	}

	w.Reset()
	two := startProgress(&w, jobs, false)
	if got := two.line(time.Second); !strings.Contains(got, "0 of 2 runs, 1s, calm / basic on process") {
		t.Errorf("before the first: %q", got)
	}
	// The second is done first; what is shown is still the one that is not.
	two.step(reports.Run{Scenario: "calm", Lock: "redlock", Seed: 1, Repeat: campaign.Repeat(jobs[1])})
	if got := two.line(4 * time.Second); !strings.Contains(got, "1 of 2 runs, 4s left") || !strings.HasSuffix(got, "calm / basic on process") {
		t.Errorf("half way: %q", got)
	}
	two.end()
	if w.Len() > 0 {
		t.Errorf("not on a terminal, and it wrote %q", w.String())
	}
}
