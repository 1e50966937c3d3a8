package sim

import (
	"container/heap"
	"sync"
	"time"
)

// schedule runs what happens on the network, one delivery after the other, on
// one goroutine. A goroutine per delivery would do the same and spend a fifth
// of the time growing its stack.
type schedule struct {
	mu     sync.Mutex
	queue  deliveries
	wake   chan struct{} // has room for one: an earlier delivery came in
	closed bool
	done   chan struct{}
}

type delivery struct {
	at int64 // nanoseconds of the bubble's clock
	f  func()
}

// deliveries is a heap by time. Two deliveries never share an instant; see
// link.go.
type deliveries []delivery

func (d deliveries) Len() int           { return len(d) }
func (d deliveries) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deliveries) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push implements [heap.Interface].
func (d *deliveries) Push(x any) { *d = append(*d, x.(delivery)) }

// Pop implements [heap.Interface].
func (d *deliveries) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = delivery{}
	*d = (*d)[:last]
	return x
}

func newSchedule() *schedule {
	s := &schedule{wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.loop()
	return s
}

// at runs f at an instant.
func (s *schedule) at(at int64, f func()) {
	s.mu.Lock()
	heap.Push(&s.queue, delivery{at: at, f: f})
	first := s.queue[0].at == at
	s.mu.Unlock()
	if first {
		s.nudge()
	}
}

func (s *schedule) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// loop ends when the schedule is closed; what is on its way then is lost.
func (s *schedule) loop() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f, wait, closed := s.next()
		switch {
		case closed:
			return
		case f != nil:
			f()
			continue
		case wait < 0:
			<-s.wake
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.wake:
		}
	}
}

// next gives what is due, or how long to wait for it; a negative wait means
// that nothing is on its way.
func (s *schedule) next() (f func(), wait time.Duration, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, 0, true
	case len(s.queue) == 0:
		return nil, -1, false
	}
	if wait = time.Duration(s.queue[0].at - time.Now().UnixNano()); wait > 0 {
		return nil, wait, false
	}
	return heap.Pop(&s.queue).(delivery).f, 0, false
}

// close ends the loop and waits for it.
func (s *schedule) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.nudge()
	<-s.done
}
