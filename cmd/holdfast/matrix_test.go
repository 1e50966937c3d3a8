package main

import (
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/reports"
)

// TestMatrixAsAPage holds that the page is written beside what is printed, and
// that every link in it leads to a report, written if it was missing.
func TestMatrixAsAPage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pages", "matrix.html")
	r := invoke(t, "matrix", "--scenario", "calm,slow-work", "--lock", "basic,reference", "--seeds", "2", "--report", "failed",
		"--out", filepath.Join(dir, "runs"), "--html", file, "--format", "json", "--quiet")
	r.want(t, reports.ExitExpected, `"schema": "holdfast/matrix/v1"`)
	if strings.Contains(r.out, file) || !strings.Contains(r.errs, file) {
		t.Errorf("the path is to stand beside the JSON, not in it: %s", r.errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`href="([^#"][^"]*)"`).FindAllStringSubmatch(string(text), -1)
	if len(links) != 4 {
		t.Fatalf("%d links to reports, want one for each of 4 cells", len(links))
	}
	for _, l := range links {
		path, err := url.PathUnescape(l[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), path)); err != nil {
			t.Errorf("the page leads to nothing: %v", err)
		}
	}
	invoke(t, "matrix", "--scenario", "calm", "--lock", "basic", "--out", "", "--html", file, "--quiet").want(t, reports.ExitExpected, "pass")
	if text, err = os.ReadFile(file); err != nil || strings.Contains(string(text), "report.html") {
		t.Errorf("nothing was stored, and the page leads there: %v", err)
	}
}

// TestSweepPictures holds that a sweep is drawn, each figure in both forms.
func TestSweepPictures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pictures")
	invoke(t, "matrix", "--scenario", "kleppmann-gc-pause", "--lock", "basic", "--seeds", "2", "--steps", "3", "--sweep", "pause=0..2ttl",
		"--png", dir, "--out", "", "--quiet").want(t, reports.ExitExpected, "two holders at once")
	for _, name := range []string{"violations", "two-holders", "lost-updates"} {
		f, err := os.Open(filepath.Join(dir, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if im, err := png.Decode(f); err != nil || im.Bounds().Dx() < 800 {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
		if svg, err := os.ReadFile(filepath.Join(dir, name+".svg")); err != nil || !strings.Contains(string(svg), "length of each pause (TTLs)") {
			t.Errorf("%s.svg has no axis: %v", name, err)
		}
	}
	invoke(t, "matrix", "--png", dir).want(t, exitUsage, "")
	invoke(t, "matrix", "--sweep", "pause=0..2ttl", "--html", "m.html").want(t, exitUsage, "")
}
