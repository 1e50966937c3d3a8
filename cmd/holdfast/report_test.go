package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// TestReportIsTheRunsOwn holds that a run leaves its page, that the verb writes
// the same bytes later, and that a run which is not asked to leaves none.
func TestReportIsTheRunsOwn(t *testing.T) {
	root := t.TempDir()
	run := func(more ...string) string {
		t.Helper()
		r := invoke(t, append([]string{"run", "kleppmann-gc-pause", "--lock", "basic", "--out", root}, more...)...)
		if r.code != reports.ExitExpected {
			t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.errs)
		}
		return r.out
	}
	dir := filepath.Join(root, "kleppmann-gc-pause", "basic", "sim-1")
	path := filepath.Join(dir, store.ReportFile)
	if out := run(); !strings.Contains(out, "report   "+path+"\n") {
		t.Errorf("the run does not say where its report is:\n%s", out)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(root, "other.html")
	if r := invoke(t, "report", dir, "-o", other); r.code != 0 || r.out != other+"\n" {
		t.Errorf("report: exit code %d, said %q %q", r.code, r.out, r.errs)
	}
	if again, err := os.ReadFile(other); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the report that was written later differs from the run's own: %v", err)
	}
	for flag, want := range map[string]bool{"never": false, "failed": false, "always": true} {
		out := run("--report", flag)
		_, err := os.Stat(path)
		if got := err == nil; got != want || strings.Contains(out, "report   ") != want {
			t.Errorf("--report %s of a run that is as expected: written %v, want %v\n%s", flag, got, want, out)
		}
	}
	if r := invoke(t, "run", "slow-work", "--lock", "release-without-owner-check", "--out", root, "--report", "failed"); !strings.Contains(r.out, "report   ") {
		t.Errorf("a run that is not as expected has no report:\n%s", r.out)
	}
	if r := invoke(t, "run", "calm", "--report", "sometimes"); r.code != exitUsage || !strings.Contains(r.errs, "sometimes") {
		t.Errorf("--report sometimes: exit code %d, %s", r.code, r.errs)
	}
}

// TestReportOfManyRuns holds that a thousand runs do not fill the disk unasked.
func TestReportOfManyRuns(t *testing.T) {
	s := selection{}
	if a, b := s.pagesFor(allPages), s.pagesFor(allPages+1); a != "always" || b != "failed" {
		t.Errorf("%d runs get %q, one more %q", allPages, a, b)
	}
}

func TestReportPictures(t *testing.T) {
	root := t.TempDir()
	invoke(t, "run", "kleppmann-fencing", "--lock", "basic+fence", "--out", root)
	to := filepath.Join(root, "pictures")
	r := invoke(t, "report", filepath.Join(root, "kleppmann-fencing", "basic+fence", "sim-1"), "--png", to)
	if r.code != 0 || !strings.Contains(r.out, filepath.Join(to, "kleppmann.png")+"  The story as messages\n") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.errs)
	}
	for _, name := range []string{"kleppmann", "latency", "quantiles", "rates", "held", "clocks", "waiting"} {
		for ext, magic := range map[string]string{".png": "\x89PNG", ".svg": "<?xml"} {
			if b, err := os.ReadFile(filepath.Join(to, name+ext)); err != nil || !strings.HasPrefix(string(b), magic) {
				t.Errorf("%s%s: %v, begins %.5q", name, ext, err, b)
			}
		}
	}
}

// TestReportOfARunThatDied takes a run's files away, one after the other.
func TestReportOfARunThatDied(t *testing.T) {
	root := t.TempDir()
	invoke(t, "run", "kleppmann-gc-pause", "--lock", "basic", "--out", root)
	dir := filepath.Join(root, "kleppmann-gc-pause", "basic", "sim-1")
	page := func(want ...string) {
		t.Helper()
		if r := invoke(t, "report", dir); r.code != 0 {
			t.Fatalf("exit code %d: %s", r.code, r.errs)
		}
		b, err := os.ReadFile(filepath.Join(dir, store.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("the report does not say %q", w)
			}
		}
	}
	const repeat = "holdfast run kleppmann-gc-pause --lock basic --seed 1"
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	remove(store.VerdictFile)
	page("VIOLATION", "as expected", repeat, `id="lanes"`)
	path := filepath.Join(dir, store.HistoryFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	page("RUN FAILED", "truncated", repeat, `id="lanes"`)
	remove(store.HistoryFile)
	page("RUN FAILED", "the run left no history", repeat, "There is nothing to draw")
	remove(store.RunFile)
	if r := invoke(t, "report", dir); r.code != reports.ExitError || !strings.Contains(r.errs, store.RunFile) {
		t.Errorf("a folder without a run: exit code %d, %s", r.code, r.errs)
	}
	if r := invoke(t, "report", filepath.Join(dir, "none")); r.code != reports.ExitError {
		t.Errorf("no folder at all: exit code %d", r.code)
	}
}
