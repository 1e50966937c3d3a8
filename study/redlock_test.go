package study

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

// TestEveryClaimHasEvidence: a claim is played, or the page says why it is not.
func TestEveryClaimHasEvidence(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range redlockClaims() {
		if seen[anchor(c.Name)] {
			t.Errorf("%s: two claims share the anchor", c.Name)
		}
		seen[anchor(c.Name)] = true
		if _, ok := sources[c.By]; !ok && c.By != ours {
			t.Errorf("%s: %q is no party with a source", c.Name, c.By)
		}
		switch {
		case len(c.Tests) == 0 && c.Untested == "":
			t.Errorf("%s: neither played, nor is it said why not", c.Name)
		case len(c.Tests) > 0 && c.Shows == "":
			t.Errorf("%s: what its runs show is not said", c.Name)
		case c.Says == "" || c.Right == "":
			t.Errorf("%s: what is claimed, or who is right, is not said", c.Name)
		}
		if pic := c.Picture; pic.Scenario != "" && !slices.ContainsFunc(c.Tests, func(x Test) bool { return x.Case == pic.Case }) {
			t.Errorf("%s: the picture is of %+v, which is none of its tests", c.Name, pic.Case)
		}
		for _, words := range []string{c.Says, c.Shows, c.Right, c.Untested} {
			if words != "" && !strings.HasSuffix(words, ".") {
				t.Errorf("%s: %q is no sentence", c.Name, words)
			}
		}
	}
}

// TestEveryCaseExists, so that every line to repeat works.
func TestEveryCaseExists(t *testing.T) {
	cases := switchCases()
	for _, c := range redlockClaims() {
		for _, x := range c.Tests {
			cases = append(cases, x.Case)
		}
	}
	for _, c := range cases {
		if _, err := scenarios.Load(c.Scenario); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := campaign.FindLock(c.Lock); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, s := range settings() {
		for _, name := range slices.Sorted(maps.Keys(s.Instead)) {
			if !slices.ContainsFunc(hazards, func(h hazard) bool { return h.Scenario == name }) {
				t.Errorf("%s replaces %s, which is no attack", s.Name, name)
			}
		}
		for _, name := range s.Removes {
			if !slices.ContainsFunc(hazards, func(h hazard) bool { return h.Name == name }) {
				t.Errorf("%s removes %q, which is no attack", s.Name, name)
			}
		}
	}
}

// TestRunsThatSayOtherwise: a page whose text its runs contradict is not
// written. Here a quiet run stands for every other one.
func TestRunsThatSayOtherwise(t *testing.T) {
	run, h := InProcess(t.Context(), store.Job{Scenario: "delayed-restart", Lock: "redlock", World: "sim", Seed: 1})
	if run.Error != "" {
		t.Fatal(run.Error)
	}
	var page strings.Builder
	err := Redlock(t.Context(), &page, Options{Seeds: 1, Play: func(context.Context, store.Job) (reports.Run, *history.History) { return run, h }})
	if err == nil || page.Len() > 0 {
		t.Fatalf("%d bytes were written, error %v", page.Len(), err)
	}
	for _, want := range []string{
		"A pause while holding the lock: kleppmann-gc-pause with redlock: the text says that always two clients held the lock at once",
		"At most one holder, and no deadlock: calm with redlock: the text says that never nobody was granted",
		`nothing: the text says that "clock steps" is removed: false; 0 runs did harm`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

// TestLinks: what the page says of itself is there.
func TestLinks(t *testing.T) {
	p := &page{}
	p.introduction(3)
	p.summary(redlockClaims())
	heads := map[string]bool{}
	for _, c := range redlockClaims() {
		heads[anchor(c.Name)] = true
	}
	links := regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(p.b.String(), -1)
	if len(links) != len(heads) {
		t.Errorf("%d links for %d claims", len(links), len(heads))
	}
	if !strings.Contains(redlockClaims()[8].Untested, "](#"+anchor(worthTitle)+")") {
		t.Error("the claim on bounds does not lead to the table")
	}
	for _, l := range links {
		if !heads[l[1]] || strings.Trim(l[1], "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("the link %q leads nowhere", l[1])
		}
	}
}
