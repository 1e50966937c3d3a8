package checker

// mark is a moment that moves or ends the belief of a holder: either it was
// told a validity end, or something ended its belief for good.
type mark struct {
	t     int64
	index int
	until *int64
	end   string
}

// believe works out when the holder of a granted lock believed that it held
// it: from the grant to the first of release invoked, loss notice seen,
// validity over, given up, crashed.
//
// The validity that counts is the one told last. If the lock tells of a later
// one while belief lasts, belief goes on; if it tells only after the earlier
// one had passed, there is a gap, and the holder is held to nothing in it:
//
//	granted at 0, until 10          believes [0, 10)
//	at  8: check says until 18      believes [0, 18)
//	at 20: check says until 28      believes [0, 18) and [20, 28)
//
// A lock that tells no validity is believed without end: nothing makes its
// holder doubt.
func (a *Acquisition) believe(end int64) {
	b := believer{a: a, until: never}
	for _, m := range a.marks {
		if m.index < a.DoneIndex {
			continue
		}
		if b.pass(m); b.over {
			return
		}
	}
	b.elapse(end)
	b.close(end, EndHistory, -1)
}

type believer struct {
	a     *Acquisition
	begun bool
	open  bool
	over  bool
	from  int64
	until int64
}

// pass takes the next mark; the first is the grant.
func (b *believer) pass(m mark) {
	if !b.begun {
		b.begun, b.open, b.from = true, true, m.t
		b.a.BeliefEnd, b.a.BeliefWhy = m.t, EndUntil
	}
	b.elapse(m.t)
	if m.until != nil {
		b.until = *m.until
		if b.until <= m.t {
			b.close(m.t, EndUntil, m.index)
		} else if !b.open {
			b.reopen(m.t)
		}
	}
	if m.end != "" {
		b.close(m.t, m.end, m.index)
		b.over = true
	}
}

// reopen starts belief again; told at the very moment of the end, it goes on.
func (b *believer) reopen(t int64) {
	b.open, b.from = true, t
	if n := len(b.a.Belief); n > 0 && b.a.Belief[n-1].To == t {
		b.from = b.a.Belief[n-1].From
		b.a.Belief = b.a.Belief[:n-1]
	}
}

// elapse ends a belief whose told validity has passed by t.
func (b *believer) elapse(t int64) {
	if b.open && b.until <= t {
		b.close(b.until, EndUntil, -1)
	}
}

func (b *believer) close(t int64, why string, index int) {
	if !b.open {
		return
	}
	b.open = false
	if t > b.from {
		b.a.Belief = append(b.a.Belief, Interval{From: b.from, To: t})
	}
	b.a.BeliefEnd, b.a.BeliefWhy, b.a.BeliefEndIndex = max(t, b.from), why, index
}
