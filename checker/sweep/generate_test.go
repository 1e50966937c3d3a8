package sweep

import (
	"math/rand/v2"
)

// simulation is a correct lock with a few clients. Its clock is coarse, so that
// many things happen at one instant.
type simulation struct {
	r       *rand.Rand
	rules   Rules
	now     int64
	ops     []Op
	held    []int // acquires that hold, as indices into ops
	late    []int // calls whose reply was lost and that may still be carried out
	fence   uint64
	maxOps  int
	leases  bool
	clients []simClient
}

type simClient struct {
	owner int
	stage int // 0 idle, 1 acquire sent, 2 done, 3 holds, 4 release sent, 5 done, 6 crashed
	op    int // the call in flight
	hold  int // its acquire
}

// simulated is a history that is linearizable by construction.
func simulated(r *rand.Rand, rules Rules) []Op {
	return simulate(r, rules, 3+r.IntN(8), 20+r.IntN(60), r.IntN(3) > 0)
}

func simulate(r *rand.Rand, rules Rules, most, steps int, leases bool) []Op {
	s := &simulation{r: r, rules: rules, maxOps: most, leases: leases}
	for c := range 2 + r.IntN(3) {
		owner := c
		if r.IntN(4) == 0 {
			owner = r.IntN(2) // two threads of one owner
		}
		s.clients = append(s.clients, simClient{owner: owner})
	}
	for range steps {
		s.now += r.Int64N(1 + int64(r.IntN(3)))
		s.expire()
		if len(s.late) > 0 && r.IntN(6) == 0 {
			at := r.IntN(len(s.late))
			s.execute(s.late[at])
			s.late = append(s.late[:at], s.late[at+1:]...)
		}
		s.step(&s.clients[r.IntN(len(s.clients))])
	}
	for _, c := range s.clients {
		if c.stage == 2 || c.stage == 5 {
			s.ops[c.op].Outcome = Unknown // the reply comes after the end
		}
	}
	return s.ops
}

func (s *simulation) step(c *simClient) {
	switch c.stage {
	case 0:
		if len(s.ops) >= s.maxOps {
			return
		}
		kind := Acquire
		if s.rules.Model == ReadWrite && s.r.IntN(2) == 0 {
			kind = RAcquire
		}
		c.op, c.hold, c.stage = len(s.ops), len(s.ops), 1
		op := Op{ID: len(s.ops), Hold: c.hold, Owner: c.owner, Kind: kind, Outcome: Unknown, Call: s.now}
		if s.leases {
			op.LeaseEnd = s.now + 2 + s.r.Int64N(9)
		}
		s.ops = append(s.ops, op)
	case 1, 4:
		s.carry(c)
	case 2, 5:
		s.ops[c.op].Return = s.now
		c.stage = (c.stage + 1) % 6
		if s.ops[c.op].Outcome == Busy {
			c.stage = 0
		}
	case 3:
		kind := Release
		if s.ops[c.hold].Kind == RAcquire {
			kind = RRelease
		}
		if s.r.IntN(8) == 0 {
			c.stage = 0 // another acquire under the first, or the release is forgotten
			return
		}
		c.op, c.stage = len(s.ops), 4
		s.ops = append(s.ops, Op{ID: len(s.ops), Hold: c.hold, Owner: c.owner, Kind: kind, Outcome: Unknown, Call: s.now})
	}
}

// carry brings the call of a client to the lock, or loses it.
func (s *simulation) carry(c *simClient) {
	switch s.r.IntN(10) {
	case 0: // the reply is lost, the request is not
		s.execute(c.op)
	case 1: // both are late
		s.late = append(s.late, c.op)
	case 2:
		if c.stage == 1 {
			return // waits
		}
		fallthrough
	default:
		s.ops[c.op].Outcome = s.execute(c.op)
		c.stage++
		return
	}
	s.ops[c.op].Return = s.now + s.r.Int64N(3)
	switch {
	case s.r.IntN(3) == 0:
		c.stage = 6
	case c.stage == 1 && s.r.IntN(2) == 0:
		c.stage = 3 // releases what it may hold
	case c.stage == 4 && s.r.IntN(2) == 0:
		c.stage = 3 // tries again
	default:
		c.stage = 0
	}
}

// execute carries a call out.
func (s *simulation) execute(i int) Outcome {
	op := &s.ops[i]
	if op.Kind == Acquire || op.Kind == RAcquire {
		spurious := !s.rules.StrictBusy && s.r.IntN(8) == 0
		if spurious || !s.free(*op) {
			return Busy
		}
		nested := len(s.held) > 0
		s.held = append(s.held, i)
		if !nested || s.rules.Model != ReentrantFenced || s.r.IntN(2) == 0 {
			s.fence += 1 + s.r.Uint64N(2)
		}
		if op.Outcome == Unknown && s.r.IntN(6) > 0 {
			op.Fence = s.fence
		}
		return OK
	}
	for at, h := range s.held {
		if s.ops[h].Hold == op.Hold {
			s.held = append(s.held[:at], s.held[at+1:]...)
			return OK
		}
	}
	if s.rules.LenientRelease && s.r.IntN(2) == 0 {
		return OK
	}
	return Busy
}

func (s *simulation) free(op Op) bool {
	for _, h := range s.held {
		o := s.ops[h]
		switch s.rules.Model {
		case Mutex, Fenced:
			return false
		case Reentrant, ReentrantFenced:
			if o.Owner != op.Owner {
				return false
			}
		case ReadWrite:
			if o.Kind == Acquire || op.Kind == Acquire {
				return false
			}
		}
	}
	return s.rules.Model != Semaphore || len(s.held) < max(1, s.rules.Permits)
}

func (s *simulation) expire() {
	kept := s.held[:0]
	for _, h := range s.held {
		if end := s.ops[h].LeaseEnd; end == 0 || end > s.now || s.r.IntN(3) > 0 {
			kept = append(kept, h)
		}
	}
	s.held = kept
}

// arbitrary is a history of calls at random, close together. Few are right.
func arbitrary(r *rand.Rand, rules Rules) []Op {
	var ops []Op
	span := 4 + r.Int64N(16)
	leases := r.IntN(2) == 0
	fence := uint64(0)
	for hold := range 2 + r.IntN(4) {
		call := r.Int64N(span)
		op := Op{ID: len(ops), Hold: hold, Owner: r.IntN(3), Call: call, Return: call + r.Int64N(6)}
		if rules.Model == ReadWrite && r.IntN(2) == 0 {
			op.Kind = RAcquire
		}
		if leases && r.IntN(3) > 0 {
			op.LeaseEnd = call + 1 + r.Int64N(10)
		}
		op.Outcome = []Outcome{OK, OK, OK, Busy, Unknown}[r.IntN(5)]
		if op.Outcome == OK && r.IntN(5) > 0 {
			fence += r.Uint64N(3)
			op.Fence = max(1, fence)
		}
		ops = append(ops, op)
		for n := r.IntN(5); n > 0 && n < 4 && len(ops) < 10; n -= 2 {
			from := op.Call
			if op.Outcome == OK {
				from = op.Return
			}
			from += r.Int64N(4)
			ops = append(ops, Op{ID: len(ops), Hold: hold, Owner: op.Owner, Kind: op.Kind + 1, Call: from,
				Return: from + r.Int64N(6), Outcome: []Outcome{OK, OK, OK, Busy, Unknown}[r.IntN(5)]})
		}
	}
	return ops
}

// mutate changes a history into one that may be wrong.
func mutate(r *rand.Rand, ops []Op) {
	for range 1 + r.IntN(5) {
		if len(ops) == 0 {
			return
		}
		op := &ops[r.IntN(len(ops))]
		acquire := op.Kind == Acquire || op.Kind == RAcquire
		switch r.IntN(7) {
		case 0:
			op.Outcome = Outcome(r.IntN(3))
		case 1:
			op.Call = max(0, op.Call-r.Int64N(4))
		case 2:
			op.Return += r.Int64N(5)
		case 3:
			if d := r.Int64N(4); op.Return-op.Call >= d {
				op.Return -= d
			}
		case 4:
			if d := r.Int64N(6) - 3; op.Call+d >= 0 {
				op.Call, op.Return = op.Call+d, op.Return+d
			}
		case 5:
			if acquire && op.Fence > 0 {
				op.Fence = 1 + r.Uint64N(6)
			}
		case 6:
			if acquire && op.LeaseEnd > 0 {
				op.LeaseEnd = max(1, op.LeaseEnd+r.Int64N(9)-4)
			}
		}
	}
}
