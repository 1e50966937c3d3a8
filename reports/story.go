package reports

import (
	"slices"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// Story is a run in words, for layouts that are not text: every format says
// the same thing because all of them take it from here.
type Story struct {
	// Word is the verdict in capitals; Detail names the checks and kinds.
	Word, Detail string
	Standing     Standing
	// Grounds say why the run is not as expected.
	Grounds []string
	// Faults of the lock, gravest first, at most a few of each check.
	Violations []Told
	// Blame says whose fault two holders at once were, Damage what was lost.
	// Both may be empty.
	Blame, Damage string
	// Errors says which errors clients were told, in the classes of the lock.
	Errors string
	Checks []Answered
	// Repeat is the command that repeats the run.
	Repeat string
}

// Told is one violation in words.
type Told struct {
	Check, Kind, Sentence string
	// Ops are indices into the history's events.
	Ops []int
	// More is how many violations of the same check follow that are not told;
	// it stands on the last one.
	More int
}

// Answered is one line of the table of checks.
type Answered struct {
	Name, Answer, Expected, Reason string
	Verdict                        checker.Verdict
	Applies                        bool
}

// Tell puts a run into words. Of each check at most so many violations are
// told.
func Tell(r Run, most int) Story {
	word, detail := headline(r)
	bad := violated(r.Checks)
	s := Story{
		Word: word, Detail: detail, Standing: Stand(r), Grounds: grounds(r),
		Blame: blame(bad), Errors: errorLine(r, Printable), Repeat: repeatOf(r),
	}
	if len(bad) > 0 {
		s.Damage = damage(r)
	}
	for _, c := range bad {
		for i, v := range c.Violations {
			t := Told{Check: c.Name, Kind: v.Kind, Sentence: sentence(v), Ops: v.Ops}
			if i == most-1 || i == len(c.Violations)-1 {
				t.More = found(c) - i - 1
			}
			s.Violations = append(s.Violations, t)
			if i == most-1 {
				break
			}
		}
	}
	for _, c := range r.Checks {
		s.Checks = append(s.Checks, Answered{
			Name: c.Name, Answer: answer(c), Expected: r.Expected[c.Name], Reason: c.Reason,
			Verdict: c.Verdict, Applies: c.Applies,
		})
	}
	return s
}

// Overlap are two holds that were believed at once, or of a semaphore as many as
// are too many.
type Overlap struct {
	Holds []*checker.Acquisition
	// Times when all believed; Promised is when moreover all had a
	// guaranteed lease, which is the lock service's fault.
	Times, Promised []checker.Interval
}

// Overlaps reads from the verdict which holds overlapped.
func Overlaps(facts *checker.Facts, results []checker.Result) []Overlap {
	var out []Overlap
	for _, r := range results {
		if r.Name != "exclusion" || r.Verdict != checker.Violation {
			continue
		}
		for _, v := range r.Violations {
			holds := holdsIn(facts, v)
			if len(holds) < 2 {
				continue
			}
			out = append(out, overlapOf(holds))
		}
	}
	return out
}

// Outlived gives when a holder believed beyond its guaranteed lease. Less than
// a hundredth of a TTL is left out: the checker rounds guarantees down to the
// granularity of the servers, and a picture would make much of it.
func Outlived(h *history.History, a *checker.Acquisition) []checker.Interval {
	return slices.DeleteFunc(without(a.Belief, a.Guaranteed), func(i checker.Interval) bool {
		return i.To-i.From < int64(h.Header.TTL)/100
	})
}

// Tame clamps times that no run can have, so that arithmetic on them cannot
// overflow: such a history is malformed, and its report must still be written.
func Tame(h *history.History) *history.History { return tame(h) }

// Natural orders c2 before c10.
func Natural(a, b string) int { return natural(a, b) }

// RunLine says where a run took place, for how long, and how much it did.
func RunLine(r Run) string { return runLine(r) }

// Focus is the stretch of a run that a picture should show first, with a
// margin; some is false for a run that is short enough to be shown whole.
func Focus(facts *checker.Facts, results []checker.Result) (from, to int64, some bool) {
	f := newFrame(facts, results, 100)
	return f.from, f.to, f.from > 0 || f.to < f.end
}

// Wait is a stretch in which a client wants the lock.
type Wait struct {
	Client   string
	Thread   int
	Lock     string
	From, To int64
}

// Waits gives the acquires that are pending, and the gaps between a refusal
// and the next try of the same process: the client wants the lock all along.
func Waits(f *checker.Facts) []Wait {
	var out []Wait
	open := map[int]int{} // process to its wait in out
	for _, e := range f.History.Events {
		op := e.Op
		if op == nil || op.Type == history.Note {
			continue
		}
		k, waiting := open[op.Process]
		if waiting && op.F == history.Acquire {
			out[k].To = e.T
		}
		switch {
		case op.F != history.Acquire || op.Type == history.OK || op.Type == history.Info:
			delete(open, op.Process)
		case !waiting:
			open[op.Process] = len(out)
			out = append(out, Wait{Client: op.Client, Thread: op.Thread, Lock: op.Lock, From: e.T, To: e.T})
		}
	}
	for _, a := range f.Acquisitions {
		if k, ok := open[a.Process]; ok && a.Pending() {
			out[k].To = max(out[k].To, a.Done)
		}
	}
	return out
}
