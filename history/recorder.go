package history

import (
	"slices"
	"sync"
)

// Recorder is the only door through which events enter a history. It is safe
// for use by many goroutines at once.
//
// Events that happen in this process go through [Recorder.Record], which
// stamps them. Events that a worker process has stamped already go through
// [Recorder.Append]. [Recorder.Finish] ends the run and puts both in one order.
type Recorder struct {
	clock func() int64

	mu        sync.Mutex
	header    Header
	events    []Event
	observers []func(Event)
	finished  bool
	dropped   int
}

// NewRecorder returns a recorder that stamps events with clock, nanoseconds
// since the start of the run. With a nil clock, Record keeps the T it is given.
func NewRecorder(clock func() int64) *Recorder {
	return &Recorder{clock: clock}
}

// SetHeader gives the header that [Recorder.History] and [Recorder.Finish]
// put in front of the events.
func (r *Recorder) SetHeader(h Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header = h
}

// Observe adds an observer. Every later event is handed to the observers one
// after the other, in the order in which they were added, before Record or
// Append returns, so that a trigger on "acquire ok" has fired before the
// client takes its next step.
//
// No lock is held during the call: an observer may record events itself, and
// in virtual time it may sleep. The price is that two goroutines which record
// at the same moment may be observed in either order.
func (r *Recorder) Observe(f func(Event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// A fresh slice each time, since Record reads the old one unlocked.
	r.observers = append(slices.Clone(r.observers), f)
}

// Record stamps the event with the clock, appends it and returns it with its
// stamp. After Finish the event is stamped and counted but not kept.
//
// The clock is read under the lock, so that stamps and order agree:
//
//	g1 reads the clock: 5
//	g2 reads the clock: 6, appends 6
//	g1 appends 5             <- the history would go backwards
func (r *Recorder) Record(e Event) Event {
	r.mu.Lock()
	if r.clock != nil {
		e.T = r.clock()
	}
	observers := r.keep(e)
	r.mu.Unlock()
	for _, observe := range observers {
		observe(e)
	}
	return e
}

// Append keeps an event with the T that another process of this machine has
// given it. Such events arrive late; Finish sorts them in.
func (r *Recorder) Append(e Event) {
	r.mu.Lock()
	observers := r.keep(e)
	r.mu.Unlock()
	for _, observe := range observers {
		observe(e)
	}
}

// keep appends an event under the lock and says who wants to see it.
func (r *Recorder) keep(e Event) []func(Event) {
	if r.finished {
		r.dropped++
		return nil
	}
	r.events = append(r.events, e)
	return r.observers
}

// Events returns a copy of the events so far, in the order of their arrival
// (in time order after Finish).
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// History returns the header and a copy of the events so far.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &History{Header: r.header, Events: slices.Clone(r.events)}
}

// Finish ends the recording and returns the history in time order. Events of
// one T keep the order in which they arrived, so that an invoke and its
// completion at the same instant stay that way round. Whatever a leaked
// goroutine records later is not kept, only counted: see [Recorder.Dropped].
func (r *Recorder) Finish() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	slices.SortStableFunc(r.events, func(a, b Event) int {
		switch {
		case a.T < b.T:
			return -1
		case a.T > b.T:
			return 1
		}
		return 0
	})
	return &History{Header: r.header, Events: slices.Clone(r.events)}
}

// Dropped counts the events that came after Finish.
func (r *Recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}
