package holdfast_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inExample runs go test in the example module, as its owner would.
func inExample(t *testing.T, args ...string) (out string, ok bool) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"test"}, args...)...)
	cmd.Dir = filepath.Join("examples", "orders")
	text, err := cmd.CombinedOutput()
	if strings.Contains(string(text), "go mod tidy") {
		t.Fatalf("examples/orders/go.mod is behind the module's: run go mod tidy in examples/orders\n%s", text)
	}
	return string(text), err == nil
}

// TestExamplePasses plays the careful lock of the example.
func TestExamplePasses(t *testing.T) {
	if out, ok := inExample(t, "-run", "^TestReference$", "-short", "-count=1", "."); !ok {
		t.Errorf("the reference lock does not pass\n%s", out)
	}
}

// TestExampleFails plays the example's own lock: it must fail with an
// explanation, a picture, the line that repeats it, and a report, and the same
// run must come out twice although the module says nothing about randomness.
func TestExampleFails(t *testing.T) {
	dir := t.TempDir()
	out, ok := inExample(t, "-run", "^TestLocker$/^(slow-work|partition-holder|calm)$", "-count=2", "-json", "-artifacts", "-outputdir", dir, ".")
	if ok {
		t.Fatalf("a lock that is overrun passes\n%s", out)
	}
	var text strings.Builder
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Output string }
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &event); err != nil {
			t.Fatalf("-json gives a line that is none: %v\n%s", err, lines.Text())
		}
		text.WriteString(event.Output)
	}
	for _, want := range []string{
		"--- PASS: TestLocker/calm", "--- FAIL: TestLocker/slow-work", "--- FAIL: TestLocker/partition-holder",
		"HOLDFAST_SEED=1 go test -run '^TestLocker$/^slow-work$' -artifacts .",
		"c1 outlived its lease by 5.00s", "the HOLDER outlived its lease", "Who held the lock", "Damage: ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%.6000s", want, text.String())
		}
	}
	hashes := map[string]int{}
	for _, m := range regexp.MustCompile(`sha256 +([0-9a-f]{64})`).FindAllStringSubmatch(text.String(), -1) {
		hashes[m[1]]++
	}
	for hash, n := range hashes {
		if n != 2 {
			t.Errorf("the history %s came out %d times, want twice", hash, n)
		}
	}
	if len(hashes) != 2 {
		t.Errorf("%d different histories, want one for each scenario that fails", len(hashes))
	}
	pages := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "report.html" {
			pages++
		}
		return err
	})
	if err != nil || pages != 4 {
		t.Errorf("%d reports among the artifacts, want one for each failed run (%v)", pages, err)
	}
}
