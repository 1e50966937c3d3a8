package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/internal/storetest"
)

// binary is the program as users have it, built once.
var binary string

// TestMain lets this test program play its own children: in process, holdfast
// starts itself again as a worker and as a campaign's child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == harness.WorkerVerb || os.Args[1] == childVerb) {
		main()
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-cli-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "holdfast")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	if err := storetest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// result is what a command line left.
type result struct {
	code      int
	out, errs string
}

// invoke runs a command line in this process.
func invoke(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(context.Background(), args, strings.NewReader(""), &out, &errs)
	return result{code: code, out: out.String(), errs: errs.String()}
}

// program runs a command line as a process of its own, in a folder of its own.
func program(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), out: out.String(), errs: errs.String()}
}

// want fails the test unless the exit code is right and both streams together
// hold the words.
func (r result) want(t *testing.T, code int, words ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\nstdout: %.2000s\nstderr: %.2000s", r.code, code, r.out, r.errs)
	}
	for _, w := range words {
		if !strings.Contains(r.out+r.errs, w) {
			t.Errorf("%q is missing in\nstdout: %.2000s\nstderr: %.2000s", w, r.out, r.errs)
		}
	}
	return r
}

// lacks wants a word to be nowhere in the output.
func (r result) lacks(t *testing.T, word string) {
	t.Helper()
	if strings.Contains(r.out+r.errs, word) {
		t.Errorf("%q is in\nstdout: %.2000s\nstderr: %.2000s", word, r.out, r.errs)
	}
}

// needServers skips a test on a machine without real servers, but not where
// they are promised.
func needServers(t *testing.T) {
	t.Helper()
	err := process.Available()
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("CI must have real servers: %v", err)
	case err != nil:
		t.Skipf("no real servers here: %v", err)
	case testing.Short():
		t.Skip("real servers take their time")
	}
}

// needContainers skips a test on a machine without a Docker engine or our image,
// but not where they are promised.
func needContainers(t *testing.T) {
	t.Helper()
	needServers(t)
	if err := container.Available(t.Context(), ""); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must have containers: %v", err)
		}
		t.Skipf("no containers here: %v", err)
	}
}

// write makes a file in a folder of the test.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
