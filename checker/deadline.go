package checker

import (
	"fmt"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

const deadlineName = "deadline"

// Kinds of a deadline violation.
const (
	LateReturn    = "late-return"
	NeverReturned = "never-returned"
)

// deadlineRoom is how long after its deadline a call may return: one TTL, in
// which a lock may clean up on a context of its own, and at least what one
// blocked read costs in a client library that does not wake it (3 s in
// go-redis, whose reads do not follow the context unless they are told to),
// with a second to spare.
func (f *Facts) deadlineRoom() int64 {
	return int64(max(f.History.Header.TTL, 4*time.Second))
}

// deadline judges whether every call comes back. A call is late when it returns
// after its deadline and the room above, and has hung when it has not returned
// that long after its deadline and its client lives. Pauses of the client are
// taken off.
func deadline(f *Facts) Result {
	r := Result{Verdict: Pass, Applies: true}
	c := &hanging{facts: f, pending: map[int]int{}, died: map[string]int{}}
	for i := range f.History.Events {
		if op := f.History.Events[i].Op; op != nil {
			c.op(i, f.History.Events[i].T, op)
		}
	}
	for _, i := range c.order {
		op := f.History.Events[i].Op
		if at, ok := c.pending[op.Process]; !ok || at != i {
			continue
		}
		if died, ok := c.died[op.Client]; ok && died > i {
			continue
		}
		c.judge(NeverReturned, i, -1, f.End)
	}
	r.Figures = map[string]float64{"calls": float64(len(c.order)), "violations": float64(len(c.found)), "worst_seconds_late": float64(c.worst) / 1e9}
	if len(c.order) == 0 {
		r.Verdict, r.Applies, r.Reason = Unknown, false, "the history has no deadlines"
	}
	return r.with(c.found, []string{NeverReturned, LateReturn})
}

type hanging struct {
	facts   *Facts
	pending map[int]int // open invoke of a process
	order   []int       // invokes with a deadline
	died    map[string]int
	worst   int64
	found   []Found
}

func (c *hanging) op(i int, t int64, op *history.Op) {
	switch op.Type {
	case history.Invoke:
		c.pending[op.Process] = i
		if op.Deadline != nil {
			c.order = append(c.order, i)
		}
	case history.Note:
		if op.F == history.Crash {
			c.died[op.Client] = i
		}
	default:
		in, ok := c.pending[op.Process]
		delete(c.pending, op.Process)
		if ok && c.facts.History.Events[in].Op.Deadline != nil {
			c.judge(LateReturn, in, i, t)
		}
	}
}

// judge takes a call that returned at a time, or had not by then.
func (c *hanging) judge(kind string, in, out int, t int64) {
	f := c.facts
	e := &f.History.Events[in]
	late := t - f.paused(e.Op.Client, e.T, t) - *e.Op.Deadline
	if out >= 0 {
		c.worst = max(c.worst, late)
	}
	if late <= f.deadlineRoom() {
		return
	}
	ops, what := []int{in}, "had not returned"
	if out >= 0 {
		ops, what = []int{in, out}, "returned"
	}
	c.found = append(c.found, Found{Kind: kind, Ops: ops, suspects: f.active(e.T, t),
		Summary: fmt.Sprintf("the %s that %s called at %s with a deadline at %s %s at %s: %s late.",
			e.Op.F, e.Op.Client, f.at(e.T), f.at(*e.Op.Deadline), what, f.at(t), f.long(t-*e.Op.Deadline))})
}
