package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/internal/storetest"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
)

func placeOf(t *testing.T, text string) resource.Place {
	t.Helper()
	p, err := resource.ParsePlace(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told are the stories whose verdict hangs on the resource: two on a plain one,
// with updates that are lost, and one on a guarded one, where none is.
var told = []string{"kleppmann-gc-pause", "delayed-write", "kleppmann-fencing"}

// TestStoresJudgeAlike: with every store each event of a simulated run is the
// one that the built-in resource leaves, and so are the verdict, the lost
// updates and all else that follows from them.
func TestStoresJudgeAlike(t *testing.T) {
	for name, text := range map[string]func(*testing.T) string{
		"sqlite":      func(*testing.T) string { return "sqlite" },
		"sqlite-file": func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "runs.db") },
		"postgres":    func(t *testing.T) string { return storetest.Postgres(t) },
		"redis":       func(t *testing.T) string { return storetest.Redis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			place := placeOf(t, text(t))
			lost, refused := 0, 0
			for _, scenario := range told {
				s, err := scenarios.Load(scenario)
				if err != nil {
					t.Fatal(err)
				}
				for _, lock := range s.Locks {
					j := store.Job{Scenario: scenario, Lock: lock, World: "sim", Seed: 7}
					want, before := Play(t.Context(), j, "")
					j.Resource = place
					got, after := Play(t.Context(), j, "")
					if got.Error != "" {
						t.Fatal(got.Error)
					}
					if same := (&history.History{Header: before.Header, Events: after.Events}); same.SHA256() != before.SHA256() {
						t.Errorf("%s / %s: %s", scenario, lock, differ(before, after))
					}
					if !reflect.DeepEqual(got.Checks, want.Checks) || got.Outcome != want.Outcome || !got.Matched {
						t.Errorf("%s / %s: %s, and built in %s", scenario, lock, got.Outcome, want.Outcome)
					}
					if h := after.Header; h.ResourceStore != place.String() || h.Versions["resource_store"] == "" {
						t.Errorf("the header says %q, versions %v", h.ResourceStore, h.Versions)
					}
					if before.Header.ResourceStore != "" {
						t.Errorf("the built-in resource is told as %q", before.Header.ResourceStore)
					}
					lost, refused = lost+lostUpdates(got), refused+refusals(after)
				}
			}
			if lost == 0 || refused == 0 {
				t.Errorf("%d updates were lost and %d writes refused: the stories prove nothing", lost, refused)
			}
		})
	}
}

func lostUpdates(r reports.Run) int {
	for _, c := range r.Checks {
		if c.Name == "updates" {
			return len(c.Violations)
		}
	}
	return 0
}

func refusals(h *history.History) int {
	n := 0
	for _, ev := range h.Events {
		if ev.Resource != nil && !ev.Resource.Applied {
			n++
		}
	}
	return n
}

// TestSameSeedSameBytesInSQLite, the header and the name of the store included.
func TestSameSeedSameBytesInSQLite(t *testing.T) {
	for _, text := range []string{"sqlite", "sqlite:" + filepath.Join(t.TempDir(), "runs.db")} {
		j := store.Job{Scenario: "kleppmann-fencing", Lock: "reference", World: "sim", Seed: 3, Resource: placeOf(t, text)}
		first, _ := Play(t.Context(), j, "")
		for range 5 {
			again, _ := Play(t.Context(), j, "")
			if again.Error != "" || again.HistorySHA256 != first.HistorySHA256 {
				t.Fatalf("%s: %s, and then %s %s", text, first.HistorySHA256, again.HistorySHA256, again.Error)
			}
		}
	}
}

// TestAStoreThatDiesIsAnError and no verdict, although two clients did hold the
// lock at once in what was recorded before.
func TestAStoreThatDiesIsAnError(t *testing.T) {
	s := miniredis.RunT(t)
	var scripts atomic.Int32
	s.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		switch {
		case cmd == "INFO":
			c.WriteBulk("redis_version:7.0.0\r\n")
			return true
		case strings.HasPrefix(cmd, "EVAL") && scripts.Add(1) > 9:
			c.Close()
			return true
		}
		return false
	})
	j := store.Job{Scenario: "kleppmann-gc-pause", Lock: "basic", World: "sim", Seed: 1, Resource: placeOf(t, "redis://"+s.Addr())}
	root := t.TempDir()
	run, h := Play(t.Context(), j, root)
	if run.Verdict != "error" || len(run.Checks) != 0 || run.Matched || reports.ExitCode([]reports.Run{run}) != reports.ExitError {
		t.Errorf("verdict %s, matched %v, checks %v", run.Verdict, run.Matched, run.Checks)
	}
	if !strings.Contains(run.Error, s.Addr()) || !strings.Contains(run.Error, "EOF") {
		t.Errorf("neither place nor reason: %s", run.Error)
	}
	events := 0
	for _, ev := range h.Events {
		if ev.Resource != nil {
			events++
		}
	}
	if events == 0 || events > 9 {
		t.Errorf("%d calls are recorded of a store that took 9 scripts", events)
	}
	if keys := s.Keys(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

// TestAStoreThatIsNotThereIsAnError too.
func TestAStoreThatIsNotThereIsAnError(t *testing.T) {
	j := store.Job{Scenario: "calm", Lock: "basic", World: "sim", Seed: 1, Resource: placeOf(t, "sqlite:/no/such/folder/x.db")}
	run, _ := Play(t.Context(), j, "")
	if run.Verdict != "error" || len(run.Checks) != 0 || !strings.Contains(run.Error, "/no/such/folder") {
		t.Errorf("%s: %s, %v", run.Verdict, run.Error, run.Checks)
	}
}

// TestPasswordsStayInMemory: a child gets the password, and nothing that is
// stored, printed or said has it.
func TestPasswordsStayInMemory(t *testing.T) {
	for name, place := range map[string]resource.Place{"postgres": placeOf(t, storetest.Postgres(t)), "redis": placeOf(t, storetest.Redis(t))} {
		root := t.TempDir()
		var jobs []store.Job
		for seed := range uint64(3) {
			jobs = append(jobs, store.Job{Scenario: "kleppmann-gc-pause", Lock: "basic", World: "sim", Seed: seed, Resource: place})
		}
		wrong := placeOf(t, place.String()).WithPassword("wr0ng" + storetest.Secret)
		jobs = append(jobs, store.Job{Scenario: "calm", Lock: "basic", World: "sim", Resource: wrong})
		runs := Runner{Keep: Keep{Root: root, Pages: PagesAlways}, Child: childOf(childServes)}.Play(context.Background(), jobs)
		if len(runs) != len(jobs) {
			t.Fatalf("%s: %d runs of %d", name, len(runs), len(jobs))
		}
		for i, r := range runs {
			if bad := i == len(runs)-1; bad != (r.Error != "") {
				t.Errorf("%s: run %d: %q", name, i, r.Error)
			}
			if !strings.Contains(r.Repeat, " --resource "+place.String()+" ") {
				t.Errorf("%s: repeat is %s", name, r.Repeat)
			}
		}
		b, err := json.Marshal(runs)
		if err != nil {
			t.Fatal(err)
		}
		silent(t, "the runs", b)
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			silent(t, path, b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// silent fails where a text has any part of the password.
func silent(t *testing.T, what string, b []byte) {
	t.Helper()
	if bytes.Contains(b, []byte("s3cr3t")) || len(b) == 0 {
		t.Errorf("%s: tells the password, or nothing", what)
	}
}
