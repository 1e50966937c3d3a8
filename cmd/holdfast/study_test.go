package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/reports"
)

// TestTheCommittedPageIsThatOfTheRuns plays the study on Redlock again: the
// page in docs/ must come out byte for byte.
func TestTheCommittedPageIsThatOfTheRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of simulated runs; make test plays them")
	}
	want, err := os.ReadFile("../../docs/redlock.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pages", "redlock.md") // in a folder that is made
	r := program(t, nil, "study", "redlock", "--out", file).want(t, reports.ExitExpected, "the study as a page: "+file)
	text, err := os.ReadFile(file)
	if err != nil || r.out != "" {
		t.Fatalf("%v, and on stdout %.200q", err, r.out)
	}
	if bytes.Equal(text, want) {
		return
	}
	got, lines := strings.Split(string(text), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(lines)) {
		if got[i] != lines[i] {
			t.Fatalf("docs/redlock.md is not what holdfast study redlock writes; line %d is\n%s\nand the runs give\n%s", i+1, lines[i], got[i])
		}
	}
	t.Fatalf("docs/redlock.md has %d lines, and the runs give %d", len(lines), len(got))
}

func TestStudyUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		say  string
	}{
		{args: []string{"study"}, say: "takes one study"},
		{args: []string{"study", "redlok"}, say: `did you mean "redlock"?`},
		{args: []string{"study", "redlock", "--seeds", "7"}, say: "8 to 1000 are wanted"},
		{args: []string{"study", "redlock", "--seeds", "1001"}, say: "8 to 1000 are wanted"},
		{args: []string{"study", "redlock", "--out", ""}, say: "--out is empty"},
	} {
		invoke(t, tt.args...).want(t, exitUsage, tt.say)
	}
}
