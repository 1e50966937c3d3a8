package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// entry is one stored run.
type entry struct {
	// ID is its folder below the root: scenario/lock/leaf.
	ID  string
	At  time.Time
	Run reports.Run
	// Died says that there is no verdict.
	Died bool
}

// index knows the runs of a folder. Verdicts are read once and again when
// their file has changed.
type index struct {
	root *os.Root

	mu    sync.Mutex
	known map[string]entry // by id
}

func newIndex(root *os.Root) *index { return &index{root: root, known: map[string]entry{}} }

// all lists the runs, the newest first.
func (x *index) all() []entry {
	found, _ := fs.Glob(x.root.FS(), "*/*/*/"+store.RunFile) // the pattern is fine; what cannot be read is no run
	x.mu.Lock()
	defer x.mu.Unlock()
	runs := make([]entry, 0, len(found))
	for _, file := range found {
		id := file[:len(file)-len(store.RunFile)-1]
		if e, ok := x.load(id); ok {
			runs = append(runs, e)
		}
	}
	slices.SortFunc(runs, func(a, b entry) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID))
	})
	return runs
}

// find gives one run.
func (x *index) find(id string) (entry, bool) {
	if !valid(id) {
		return entry{}, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.load(id)
}

// load reads a run where it is not known as it is now. The caller holds mu.
func (x *index) load(id string) (entry, bool) {
	at, died := time.Time{}, false
	info, err := x.root.Stat(id + "/" + store.VerdictFile)
	if err != nil {
		died = true
		if info, err = x.root.Stat(id + "/" + store.RunFile); err != nil {
			return entry{}, false
		}
	}
	at = info.ModTime()
	if e, ok := x.known[id]; ok && e.At.Equal(at) && e.Died == died {
		return e, true
	}
	e := entry{ID: id, At: at, Died: died}
	if run, err := x.verdict(id); err == nil {
		e.Run = run
	} else {
		e.Died = true
		e.Run = x.job(id)
	}
	x.known[id] = e
	return e, true
}

// verdict reads a stored verdict.
func (x *index) verdict(id string) (reports.Run, error) {
	text, err := store.ReadRegular(x.root.OpenFile, id+"/"+store.VerdictFile)
	if err != nil {
		return reports.Run{}, err
	}
	var d reports.Document
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&d); err != nil || len(d.Runs) != 1 {
		return reports.Run{}, fmt.Errorf("%s/%s is no verdict", id, store.VerdictFile)
	}
	return d.Runs[0], nil
}

// job is what is known of a run without a verdict.
func (x *index) job(id string) reports.Run {
	var j store.Job
	text, err := store.ReadRegular(x.root.OpenFile, id+"/"+store.RunFile)
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		return reports.Run{Scenario: id, Outcome: "unreadable"}
	}
	return reports.Run{Scenario: j.Scenario, Lock: j.Lock, World: j.World, Topology: j.Topology, Seed: j.Seed,
		TTLNanos: int64(j.TTL), Outcome: "no verdict"}
}
