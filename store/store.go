// Package store keeps runs on disk:
//
//	runs/<scenario>/<lock>/<world>-<seed>/run.json       what was run: written before the start
//	                                      history.jsonl  what happened: written before judging
//	                                      verdict.json   what it means
//	                                      report.html    the same as a page to look at: written last
//
// A run that crashes leaves what it had written, so that it can be judged, or
// played again, later.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
	"github.com/holdfast-io/holdfast/resource"
)

// The files of a stored run.
const (
	RunFile     = "run.json"
	HistoryFile = "history.jsonl"
	VerdictFile = "verdict.json"
	ReportFile  = "report.html"
)

// Job says what to run: enough to play it again.
type Job struct {
	// Scenario is a built-in name or the path of a file.
	Scenario string `json:"scenario"`
	Lock     string `json:"lock"`
	World    string `json:"world"`
	// Servers is the address of the external world's servers, without a
	// password. Address is the same with it, and is never stored.
	Servers string `json:"servers,omitempty"`
	Address string `json:"-"`
	// Image is what the servers of the container world are made of; empty is the
	// one that make image builds.
	Image string `json:"image,omitempty"`
	// Topology replaces the scenario's own; empty keeps it.
	Topology string        `json:"topology,omitempty"`
	Seed     uint64        `json:"seed"`
	TTL      time.Duration `json:"ttl_ns,omitempty"`
	// Resource is where the protected resource lives; zero is the harness. Its
	// password is not stored.
	Resource resource.Place `json:"resource,omitzero"`
	// Inline is the text of a scenario that is not built in; Scenario is then
	// its path or its name.
	Inline string `json:"inline,omitempty"`
	// WallLimit gives a simulated run up that takes longer on the wall clock;
	// zero leaves the default.
	WallLimit time.Duration `json:"wall_limit_ns,omitempty"`
}

// Dir is where a run lives under a root. A scenario from a file has its base
// name without the ending.
func (j Job) Dir(root string) string {
	name := strings.TrimSuffix(filepath.Base(j.Scenario), filepath.Ext(j.Scenario))
	leaf := j.World
	if j.Topology != "" {
		leaf += "-" + j.Topology
	}
	if j.Image != "" {
		leaf += "-" + strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(j.Image)
	}
	if j.Resource.Kind() != resource.KindBuiltin {
		leaf += "-" + j.Resource.Kind()
	}
	if j.TTL != 0 {
		leaf += "-ttl" + j.TTL.String()
	}
	leaf += fmt.Sprintf("-%d", j.Seed)
	return filepath.Join(root, name, j.Lock, leaf)
}

// CheckRoot makes the folder for runs and says whether one can write there, so
// that the answer does not come after the first run.
func CheckRoot(root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("make the folder for runs: %w", err)
	}
	f, err := os.CreateTemp(root, ".holdfast-*")
	if err != nil {
		return fmt.Errorf("the folder for runs is not writable: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Begin makes the run's folder anew, writes its configuration and claims it
// until release is called. The error is [ErrClaimed] while another run writes
// there.
func Begin(dir string, j Job) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	release, err = Claim(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	for _, old := range []string{HistoryFile, VerdictFile, ReportFile} {
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the former run: %w", err)
		}
	}
	return release, writeJSON(filepath.Join(dir, RunFile), j)
}

// SaveHistory writes the history.
func SaveHistory(dir string, h *history.History) error {
	var b bytes.Buffer
	if err := history.WriteAll(&b, h); err != nil {
		return fmt.Errorf("encode the history: %w", err)
	}
	return writeFile(filepath.Join(dir, HistoryFile), b.Bytes())
}

// SaveVerdict writes the verdict.
func SaveVerdict(dir string, r reports.Run) error {
	var b bytes.Buffer
	if err := reports.JSON(&b, reports.Document{Schema: reports.Schema, Runs: []reports.Run{r}}); err != nil {
		return fmt.Errorf("encode the verdict: %w", err)
	}
	return writeFile(filepath.Join(dir, VerdictFile), b.Bytes())
}

// SaveReport writes the page, and returns its path.
func SaveReport(dir, name string, r reports.Run, h *history.History) (string, error) {
	var b bytes.Buffer
	if err := page.Write(&b, r, h); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, writeFile(path, b.Bytes())
}

// ReadHistory reads a history, from its file or from a run's folder. It
// returns the file's path too. Of a history that breaks off it returns what
// can be read, with the error.
func ReadHistory(path string) (*history.History, string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, HistoryFile)
	}
	f, err := OpenRegular(os.OpenFile, path)
	if err != nil {
		return nil, path, fmt.Errorf("open the history: %w", err)
	}
	defer f.Close()
	h, err := history.ReadAll(f)
	if err != nil {
		return h, path, fmt.Errorf("%s: %w", path, err)
	}
	return h, path, nil
}

// ReadJob reads what was run, from a run's folder or any file in it.
func ReadJob(path string) (Job, error) {
	var j Job
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	path = filepath.Join(path, RunFile)
	b, err := ReadRegular(os.OpenFile, path)
	if err != nil {
		return j, fmt.Errorf("read the run's configuration: %w", err)
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return j, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// ReadVerdict reads a stored verdict.
func ReadVerdict(dir string) (reports.Run, error) {
	var d reports.Document
	b, err := ReadRegular(os.OpenFile, filepath.Join(dir, VerdictFile))
	if err != nil {
		return reports.Run{}, fmt.Errorf("read the verdict: %w", err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return reports.Run{}, fmt.Errorf("%s: %w", filepath.Join(dir, VerdictFile), err)
	}
	if d.Schema != reports.Schema || len(d.Runs) != 1 {
		return reports.Run{}, fmt.Errorf("%s: not one run of %s", filepath.Join(dir, VerdictFile), reports.Schema)
	}
	return d.Runs[0], nil
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return writeFile(path, append(b, '\n'))
}

// writeFile writes whole files only: a reader never sees half of one.
func writeFile(path string, b []byte) error {
	tmp := path + ".tmp"
	err := os.WriteFile(tmp, b, 0o644)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write: %w", err), os.RemoveAll(tmp))
	}
	return nil
}
