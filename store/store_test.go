package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
)

func TestRunsHaveFoldersOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		job  Job
		want string
	}{
		{Job{Scenario: "calm", Lock: "basic", World: "sim", Seed: 1}, "r/calm/basic/sim-1"},
		{Job{Scenario: "./dir/mine.yaml", Lock: "basic+fence", World: "process", Seed: 2}, "r/mine/basic+fence/process-2"},
		{Job{Scenario: "calm", Lock: "basic", World: "sim", Topology: "replicated", TTL: 3 * time.Second, Seed: 1}, "r/calm/basic/sim-replicated-ttl3s-1"},
	} {
		if got := filepath.ToSlash(c.job.Dir("r")); got != c.want {
			t.Errorf("%+v: %s, want %s", c.job, got, c.want)
		}
	}
}

// TestARunIsReadBack: what was run, what happened and what it means come back
// as they were, and a run that begins anew takes the former one away.
func TestARunIsReadBack(t *testing.T) {
	job := Job{Scenario: "mine", Lock: "basic", World: "sim", Seed: 7, Inline: "name: mine\n"}
	dir := job.Dir(t.TempDir())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := func() func() {
		t.Helper()
		release, err := Begin(dir, job)
		must(err)
		return release
	}
	release := begin()
	if _, err := Begin(dir, job); !errors.Is(err, ErrClaimed) {
		t.Errorf("a second run may write to the folder of one that runs: %v", err)
	}
	h := &history.History{Header: history.Header{Schema: history.Schema, Lock: "basic", TTL: time.Second, Clients: 1, Nodes: 1}}
	must(SaveHistory(dir, h))
	must(SaveVerdict(dir, reports.Run{Scenario: "mine", Lock: "basic"}))
	back, err := ReadJob(dir)
	must(err)
	if back != job {
		t.Errorf("read back %+v, want %+v", back, job)
	}
	again, path, err := ReadHistory(dir)
	must(err)
	if again.SHA256() != h.SHA256() || filepath.Base(path) != HistoryFile {
		t.Errorf("another history from %s", path)
	}
	run, err := ReadVerdict(dir)
	must(err)
	if run.Scenario != "mine" {
		t.Errorf("another verdict: %+v", run)
	}
	release()
	begin()()
	if _, _, err := ReadHistory(dir); err == nil {
		t.Error("the history of the former run is still there")
	}
}

// within fails a test that waits, as one does that opens a pipe nobody writes to.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatalf("%s waits", what)
		return nil
	}
}

// TestOnlyFilesAreRead: a pipe or a folder in the place of a file is refused, and
// nobody waits for it.
func TestOnlyFilesAreRead(t *testing.T) {
	for kind, put := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"link to a pipe": func(path string) error {
			return errors.Join(syscall.Mkfifo(path+".pipe", 0o644), os.Symlink(path+".pipe", path))
		},
	} {
		dir := t.TempDir()
		for _, name := range []string{HistoryFile, RunFile, VerdictFile} {
			if err := put(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		for name, read := range map[string]func() error{
			HistoryFile: func() error { _, _, err := ReadHistory(dir); return err },
			RunFile:     func() error { _, err := ReadJob(dir); return err },
			VerdictFile: func() error { _, err := ReadVerdict(dir); return err },
		} {
			err := within(t, kind+" "+name, read)
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)+" is no regular file") {
				t.Errorf("%s as %s: %v", kind, name, err)
			}
		}
	}
}
