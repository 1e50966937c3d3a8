package checker

import (
	"github.com/holdfast-io/holdfast/history"
)

// together says whether two acquisitions of one lock may be held at the same
// time: two readers, or two holds of one thread on a lock that promises to be
// re-entrant. What a semaphore allows is no matter of pairs, see permits.go.
//
// It is the thread that may re-enter, not the client. A lock object that is
// shared lets its threads in together, and two threads in a critical section
// are two too many:
//
//	0    thread 1 of c1 acquires, reads version 3
//	1    thread 2 of c1 acquires through the same object, reads version 3
//	2    thread 1 writes version 4
//	3    thread 2 writes version 5, computed from 3     <- version 4 is lost
func (f *Facts) together(a, b *Acquisition) bool {
	switch h := &f.History.Header; {
	case h.Kind == history.KindRW:
		return a.Mode == history.Reading && b.Mode == history.Reading
	case h.Reentrant:
		return a.thread() == b.thread()
	}
	return false
}

// threadOf names one thread of a client.
type threadOf struct {
	client string
	number int
}

func (a *Acquisition) thread() threadOf { return threadOf{a.Client, a.Thread} }

// permits is how many may hold the lock at once, 0 for a lock that is no
// semaphore.
func (f *Facts) permits() int {
	if f.History.Header.Kind != history.KindSemaphore {
		return 0
	}
	return max(f.History.Header.Permits, 1)
}
