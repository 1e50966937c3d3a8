package campaign

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// TestNoRoomForTheHistory, as on a full disk: the run has failed, and its
// verdict, for which there was room again, names no history that is not there.
func TestNoRoomForTheHistory(t *testing.T) {
	j := store.Job{Scenario: "calm", Lock: "basic", World: "sim", Seed: 1}
	for _, file := range []string{store.HistoryFile, store.VerdictFile} {
		root := t.TempDir()
		dir := j.Dir(root)
		// A folder in the way of the file that is written first and then renamed.
		if err := os.MkdirAll(filepath.Join(dir, file+".tmp"), 0o755); err != nil {
			t.Fatal(err)
		}
		run, _ := Play(t.Context(), j, root)
		if run.Error == "" || run.Verdict != checker.Error || reports.Stand(run) != reports.Failed {
			t.Errorf("without room for %s: verdict %s, %v, %q", file, run.Verdict, reports.Stand(run), run.Error)
		}
		if file == store.VerdictFile {
			continue
		}
		stored, err := store.ReadVerdict(dir)
		if err != nil {
			t.Fatal(err)
		}
		if run.History != "" || stored.History != "" {
			t.Errorf("there is no history, and the verdict names %q", stored.History)
		}
	}
}
