package checker

import (
	"fmt"

	"github.com/holdfast-io/holdfast/history"
)

const updatesName = "updates"

// LostUpdate is a write over a version that its writer had not read.
const LostUpdate = "lost-update"

// ConcurrentModification is the code of a lost update: the resource changed
// under the holder. No lock returns it, since no lock sees it.
const ConcurrentModification = "CONCURRENT_MODIFICATION"

// updates looks at what the resource kept, whatever the lock said: a write is
// a lost update if the version it replaced is not the one its writer had read.
//
//	c1 reads version 3
//	c2 reads version 3, writes version 4
//	c1 writes version 5, computed from 3      <- version 4 is lost
func updates(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: f.History.Header.Resource != "" || len(f.Resource) > 0}
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
	if writes == 0 {
		r.Verdict, r.Reason = Unknown, "no write was applied, so none could be lost"
		return r
	}
	r.Figures = map[string]float64{
		"writes": float64(writes), "lost": float64(lost),
		"lost_percent": 100 * float64(lost) / float64(writes),
	}
	if lost > 0 {
		r.Verdict, r.Kind = Violation, LostUpdate
	}
	return r
}

// lostUpdate describes a write over another. Its ops are the write that was
// lost, where the history has it, and the one that replaced it.
func (f *Facts) lostUpdate(w Arrival, writer map[int64]int) Found {
	found := Found{Kind: LostUpdate, Code: ConcurrentModification, Ops: []int{w.Index}}
	victim := ""
	if k, ok := writer[w.Before]; ok {
		v := f.Resource[k]
		found.Ops = []int{v.Index, w.Index}
		victim = fmt.Sprintf(" by %s at %s", v.Client, f.at(v.T))
	}
	from := w.T
	if a := f.ByAcq[w.Acq]; a != nil && a.Held() {
		from = min(from, a.Done)
	}
	found.Fault = f.active(from, w.T)
	found.Summary = fmt.Sprintf("%s wrote version %d at %s over version %d, but it had read version %d: the update%s was lost.",
		w.Client, w.Version, f.at(w.T), w.Before, w.Seen, victim)
	return found
}
