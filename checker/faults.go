package checker

import (
	"fmt"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

// Fault is one fault from its start to its stop.
type Fault struct {
	ID         int
	Fault      string
	On         []string
	What, Why  string
	StartIndex int
	// StopIndex is -1 for a fault without a recorded stop.
	StopIndex int
	Start     int64
	// Stop of a fault without a recorded stop is the start of the final
	// phase, which is when everything has been healed, or else the end of the
	// history.
	Stop int64
	// words for sentences, such as "pause (c1 paused, 0.20s to 15.20s)".
	words string
}

// String says the fault in words.
func (f Fault) String() string { return f.words }

// faults pairs the starts and stops.
func (f *Facts) faults() {
	open := map[int]int{}
	for i := range f.History.Events {
		e := &f.History.Events[i]
		n := e.Nemesis
		switch {
		case n == nil:
			continue
		case n.Phase == history.Never:
			f.Never = append(f.Never, n.Fault)
			continue
		}
		if n.Phase == history.Start {
			open[n.ID] = len(f.Faults)
			f.Faults = append(f.Faults, Fault{ID: n.ID, Fault: n.Fault, On: n.On, What: n.What, Why: n.Why,
				StartIndex: i, StopIndex: -1, Start: e.T, Stop: f.End})
			continue
		}
		if k, ok := open[n.ID]; ok && f.Faults[k].StopIndex < 0 {
			f.Faults[k].StopIndex, f.Faults[k].Stop = i, e.T
		}
	}
	for k := range f.Faults {
		fault := &f.Faults[k]
		if at, ok := f.final(); ok && fault.StopIndex < 0 && fault.Start <= at {
			fault.Stop = at
		}
		fault.words = f.describe(fault)
	}
}

func (f *Facts) describe(fault *Fault) string {
	what := fault.What
	if what == "" { // a history from elsewhere
		what = strings.Join(fault.On, ", ")
	}
	if fault.StopIndex < 0 {
		return fmt.Sprintf("%s (%s, from %s on)", fault.Fault, what, f.at(fault.Start))
	}
	return fmt.Sprintf("%s (%s, %s to %s)", fault.Fault, what, f.at(fault.Start), f.at(fault.Stop))
}

// final is the start of the final phase.
func (f *Facts) final() (int64, bool) {
	if f.Final < 0 {
		return 0, false
	}
	return f.Phases[f.Final].T, true
}

// at gives a time in seconds, with enough digits for the TTL of the run.
func (f *Facts) at(t int64) string {
	digits := 2
	for ttl := int64(f.History.Header.TTL); ttl > 0 && ttl < 1e9 && digits < 9; ttl *= 10 {
		digits++
	}
	return fmt.Sprintf("%.*fs", digits, float64(t)/1e9)
}

// long gives a length of time in seconds and in TTLs.
func (f *Facts) long(d int64) string {
	if f.History.Header.TTL <= 0 {
		return f.at(d)
	}
	return fmt.Sprintf("%s (%.2f TTL)", f.at(d), float64(d)/float64(f.History.Header.TTL))
}

// theLock names the lock where there is more than one.
func (f *Facts) theLock(name string) string {
	if len(f.Locks) > 1 {
		return "lock " + name
	}
	return "the lock"
}

// names tells two acquisitions apart, by their clients if that is enough.
func names(a, b *Acquisition) (string, string) {
	if a.Client != b.Client {
		return a.Client, b.Client
	}
	return fmt.Sprintf("%s (acquisition %d)", a.Client, a.Acq), fmt.Sprintf("%s (acquisition %d)", b.Client, b.Acq)
}

// mostListed is how many violations a check lists in full; the figures count
// them all.
const mostListed = 100
