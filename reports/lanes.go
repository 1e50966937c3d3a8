package reports

import (
	"slices"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// symbol is one mark of a client's lane. Where several fall into one column
// the later one in this table is drawn: what went wrong beats what went well.
type symbol struct {
	mark rune
	says string
}

var symbols = []symbol{
	{mark: '.', says: "idle"},
	{mark: '-', says: "waits for the lock"},
	{mark: '=', says: "holds, its lease is good"},
	{mark: ':', says: "holds for reading, its lease is good"},
	{mark: '#', says: "believes it holds, but its lease is over"},
	{mark: '!', says: "its lease is good, and so is another client's"},
	{mark: 'p', says: "paused"},
	{mark: 'P', says: "paused and its lease is over"},
	{mark: 'e', says: "lease extended"},
	{mark: 'E', says: "extend failed"},
	{mark: 'n', says: "told that the lease is lost"},
	{mark: 'a', says: "gave up without writing"},
	{mark: 'r', says: "read"},
	{mark: 'w', says: "write refused"},
	{mark: 'W', says: "write applied"},
	{mark: '*', says: "WRITE OVER A VERSION IT HAD NOT SEEN (lost update)"},
	{mark: 'X', says: "crashed"},
}

// firstPoint is where marks begin that stand for an instant, not a stretch.
var firstPoint = rankOf('e')

func rankOf(mark rune) int {
	return slices.IndexFunc(symbols, func(s symbol) bool { return s.mark == mark })
}

// lane is one line of a picture.
type lane struct {
	label string
	cells []rune
	// alarm says that the whole lane is bad news.
	alarm bool
	// counts says that its digits are numbers, not badges of clients.
	counts bool
}

// paint draws a stretch.
func (l *lane) paint(f *frame, from, to int64, mark rune) {
	if !f.shows(from, to) || to < from {
		return
	}
	rank := rankOf(mark)
	for c := f.col(from); c <= f.col(to); c++ {
		if rank > rankOf(l.cells[c]) {
			l.cells[c] = mark
		}
	}
}

// stretches draws half-open intervals.
func (l *lane) stretches(f *frame, is []checker.Interval, mark rune) {
	for _, i := range is {
		l.paint(f, i.From, i.To-1, mark)
	}
}

// point draws an instant. A read and the write that follows at once would
// share a column; the later one then moves over by one, since the order is
// the story and one column is within the precision of the picture.
func (l *lane) point(f *frame, t int64, mark rune) {
	if !f.shows(t, t) {
		return
	}
	c := f.col(t)
	if rankOf(l.cells[c]) >= firstPoint && c+1 < f.cols && rankOf(l.cells[c+1]) < firstPoint {
		c++
	}
	if rankOf(mark) > rankOf(l.cells[c]) {
		l.cells[c] = mark
	}
}

// clientLanes draws the lanes of the clients: one each, or one for each thread
// and each lock.
func (p *picture) clientLanes(clients []string) (drawn []*lane, left int) {
	lanes, left := p.seatsOf(clients)
	p.paintWaits(lanes)
	for _, a := range p.holds {
		l := lanes.of(a)
		if l == nil {
			continue
		}
		mark := '='
		if a.Mode == history.Reading {
			mark = ':'
		}
		l.stretches(&p.frame, a.Belief, mark)
		l.stretches(&p.frame, Outlived(p.h, a), '#')
	}
	// Where only one of two overlapping holders has a good lease, the lanes
	// already say whose fault it is. Two good leases are the service's fault.
	for _, o := range p.overlaps {
		for _, a := range o.Holds {
			if l := lanes.of(a); l != nil {
				l.stretches(&p.frame, o.Promised, '!')
			}
		}
	}
	p.paintPauses(lanes)
	p.paintPoints(lanes)
	return lanes.drawn(), left
}

// paintWaits draws acquires that are pending, and the gaps between a refusal
// and the next try of the same process: the client wants the lock all along.
func (p *picture) paintWaits(lanes *seats) {
	since := map[int]int64{}
	waiting, pending := map[int]bool{}, map[int]bool{}
	died := map[string]int64{}
	lastOf, clientOf := map[int]*lane{}, map[int]string{}
	for _, e := range p.h.Events {
		if e.Op != nil && e.Op.F == history.Crash {
			died[e.Op.Client] = e.T
		}
		if e.Op == nil || e.Op.Type == history.Note {
			continue
		}
		op := e.Op
		if op.F != history.Acquire {
			waiting[op.Process] = false
			continue
		}
		l := lanes.of(p.facts.ByAcq[op.Acq])
		if l == nil {
			continue
		}
		if waiting[op.Process] {
			l.paint(&p.frame, since[op.Process], e.T, '-')
		}
		since[op.Process], lastOf[op.Process], clientOf[op.Process] = e.T, l, op.Client
		pending[op.Process] = op.Type == history.Invoke
		waiting[op.Process] = op.Type == history.Invoke || op.Type == history.Fail
	}
	// What is pending at the end, or was at the client's death, waits until then.
	end := p.h.Events[len(p.h.Events)-1].T
	for process, l := range lastOf {
		to := end
		if at, ok := died[clientOf[process]]; ok && at >= since[process] {
			to = at
		}
		if waiting[process] && pending[process] {
			l.paint(&p.frame, since[process], to, '-')
		} else if waiting[process] {
			l.paint(&p.frame, since[process], since[process], '-')
		}
	}
}

// paintPauses draws pauses of clients. A pause hides what the client believes,
// so the mark itself says whether its lease is over.
func (p *picture) paintPauses(lanes *seats) {
	for _, ft := range p.faults {
		if ft.Fault != "pause" {
			continue
		}
		paused := []checker.Interval{{From: ft.Start, To: ft.Stop}}
		for _, on := range ft.On {
			for _, l := range lanes.all(on) {
				l.stretches(&p.frame, paused, 'p')
			}
			for _, a := range p.holds {
				if l := lanes.of(a); l != nil && a.Client == on {
					l.stretches(&p.frame, both(paused, Outlived(p.h, a)), 'P')
				}
			}
		}
	}
}

// paintPoints draws reads, writes and notes. Writes are drawn as they arrived
// at the resource, where the history has that.
func (p *picture) paintPoints(lanes *seats) {
	arrivals := slices.ContainsFunc(p.h.Events, func(e history.Event) bool { return e.Resource != nil })
	for _, e := range p.h.Events {
		client, mark := "", rune(0)
		switch {
		case e.Resource != nil:
			client, mark = e.Resource.Client, arrivalMark(e.Resource)
		case e.Op != nil:
			client, mark = e.Op.Client, opMark(e.Op, arrivals)
		}
		if mark == 0 {
			continue
		}
		for _, l := range lanes.concern(client, acqOf(e)) {
			l.point(&p.frame, e.T, mark)
		}
	}
}

func arrivalMark(r *history.Resource) rune {
	switch {
	case r.F == history.Read:
		return 'r'
	case r.F != history.Write:
		return 0
	case !r.Applied:
		return 'w'
	case r.Before != r.Seen:
		return '*'
	}
	return 'W'
}

func opMark(op *history.Op, arrivals bool) rune {
	switch op.Type {
	case history.Note:
		return map[string]rune{history.Lost: 'n', history.Abandon: 'a', history.Crash: 'X'}[op.F]
	case history.OK:
		if op.F == history.Extend {
			return 'e'
		}
		if arrivals {
			return 0
		}
		return map[string]rune{history.Read: 'r', history.Write: 'W'}[op.F]
	case history.Fail, history.Info:
		if op.F == history.Extend {
			return 'E'
		}
		if !arrivals && op.F == history.Write && op.Type == history.Fail {
			return 'w'
		}
	}
	return 0
}
