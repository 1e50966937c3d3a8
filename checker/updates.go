package checker

import (
	"fmt"

	"github.com/holdfast-io/holdfast/history"
)

const updatesName = "updates"

// LostUpdate is a write over a version that its writer had not read.
const LostUpdate = "lost-update"

// ReadChanged is a reader that saw two versions in one section.
const ReadChanged = "read-changed"

// ConcurrentModification is the code of both: the resource changed
// under the holder. No lock returns it, since no lock sees it.
const ConcurrentModification = "CONCURRENT_MODIFICATION"

// updates looks at what the resource kept, whatever the lock said: a write is
// a lost update if the version it replaced is not the one its writer had read.
//
//	c1 reads version 3
//	c2 reads version 3, writes version 4
//	c1 writes version 5, computed from 3      <- version 4 is lost
func updates(f *Facts) Result {
	if f.permits() > 0 {
		return Result{Verdict: Unknown, Reason: "several hold a permit at once: the lock puts no order on their writes"}
	}
	r := Result{Verdict: Pass, Applies: f.History.Header.Resource != "" || len(f.Resource) > 0}
	changed := f.changedReads()
	// writer maps a version to the index of the arrival that wrote it.
	writer := map[int64]int{}
	writes, lost := 0, 0
	for k, w := range f.Resource {
		if w.F != history.Write || !w.Applied {
			continue
		}
		writes++
		if w.Seen != w.Before {
			lost++
			if len(r.Violations) < mostListed {
				r.Violations = append(r.Violations, f.lostUpdate(w, writer))
			}
		}
		writer[w.Version] = k
	}
	r.Violations = append(r.Violations, changed...)
	r.Violations = r.Violations[:min(len(r.Violations), mostListed)]
	if writes == 0 && len(changed) == 0 {
		r.Verdict, r.Reason = Unknown, "no write was applied, so none could be lost"
		return r
	}
	r.Figures = map[string]float64{
		"writes": float64(writes), "lost": float64(lost),
		"lost_percent": 100 * float64(lost) / float64(max(writes, 1)),
	}
	if f.History.Header.Kind == history.KindRW {
		r.Figures["reads_changed"] = float64(len(changed))
	}
	switch {
	case lost > 0:
		r.Verdict, r.Kind = Violation, LostUpdate
	case len(changed) > 0:
		r.Verdict, r.Kind = Violation, ReadChanged
	}
	return r
}

// changedReads finds readers under whom the resource changed: a reader reads at
// the beginning and at the end of its section, and must see the same.
//
//	0    c1 acquires for reading, reads version 3
//	1    c2 acquires for writing, writes version 4
//	2    c1 reads version 4                      <- somebody wrote while it read
func (f *Facts) changedReads() []Found {
	var found []Found
	first := map[int]Arrival{}
	told := map[int]bool{}
	for _, x := range f.Resource {
		a := f.ByAcq[x.Acq]
		if x.F != history.Read || !x.Applied || a == nil || a.Mode != history.Reading || told[x.Acq] {
			continue
		}
		was, again := first[x.Acq]
		if !again {
			first[x.Acq] = x
			continue
		}
		if was.Version == x.Version {
			continue
		}
		told[x.Acq] = true
		ops, by := []int{was.Index, x.Index}, ""
		for _, w := range f.Resource {
			if w.F == history.Write && w.Applied && w.Index > was.Index && w.Index < x.Index {
				ops, by = []int{was.Index, w.Index, x.Index}, fmt.Sprintf(", written by %s at %s", w.Client, f.at(w.T))
				break
			}
		}
		found = append(found, Found{Kind: ReadChanged, Code: ConcurrentModification, Ops: ops, suspects: f.active(a.Done, x.T),
			Summary: fmt.Sprintf("%s read version %d at %s and version %d at %s under one lock for reading%s: the resource changed under a reader.",
				x.Client, was.Version, f.at(was.T), x.Version, f.at(x.T), by)})
	}
	return found
}

// lostUpdate describes a write over another. Its ops are the write that was
// lost, where the history has it, and the one that replaced it.
func (f *Facts) lostUpdate(w Arrival, writer map[int64]int) Found {
	found := Found{Kind: LostUpdate, Code: ConcurrentModification, Ops: []int{w.Index}}
	victim, lost := "", (*Acquisition)(nil)
	if k, ok := writer[w.Before]; ok {
		v := f.Resource[k]
		found.Ops = []int{v.Index, w.Index}
		lost = f.ByAcq[v.Acq]
		victim = fmt.Sprintf(" by %s at %s", v.Client, f.at(v.T))
	}
	// Either writer may be the one who was late, or was let in too early.
	found.suspects = f.blameSince(w.T, f.ByAcq[w.Acq], lost)
	found.Summary = fmt.Sprintf("%s wrote version %d at %s over version %d, but it had read version %d: the update%s was lost.",
		w.Client, w.Version, f.at(w.T), w.Before, w.Seen, victim)
	return found
}
