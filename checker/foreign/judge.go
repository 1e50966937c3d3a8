package foreign

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/holdfast-io/holdfast/checker/sweep"
)

// Contradiction is one lock's.
type Contradiction struct {
	Lock *Lock
	// Calls are the fewest that contradict each other, as places in
	// [History.Calls], and Around are some before, between and after them.
	Calls, Around []int
	// Text is one sentence that names them by process and line.
	Text string
}

// Judge gives the locks whose calls no order explains, and why a lock could not
// be judged.
func (h *History) Judge(rules sweep.Rules) (found []Contradiction, undecided []string) {
	for _, l := range h.Locks {
		if len(l.Strays) > 0 && !rules.LenientRelease {
			c := Contradiction{Lock: l, Calls: l.Strays[:1]}
			c.Text = h.inWords(fmt.Sprintf("release %d said yes, although its process held nothing", l.Strays[0]))
			c.Around = h.around(l, c.Calls)
			found = append(found, c)
			continue
		}
		report := sweep.Check(rules, l.Ops)
		switch report.Verdict {
		case sweep.Undecided:
			undecided = append(undecided, l.title()+report.Reason)
		case sweep.Illegal:
			calls, _ := sweep.Minimal(rules, l.Ops, report)
			found = append(found, Contradiction{Lock: l, Calls: calls, Around: h.around(l, calls), Text: l.title() + h.inWords(report.Text)})
		}
	}
	return found, undecided
}

func (l *Lock) title() string {
	if l.Name == "" {
		return ""
	}
	return fmt.Sprintf("lock %s: ", l.Name)
}

var (
	one = regexp.MustCompile(`\b(acquire|release) (\d+)\b`)
	two = regexp.MustCompile(`\b(acquires|releases) (\d+) and (\d+)\b`)
	got = regexp.MustCompile(`\bfence (\d+)\b`)
	at  = regexp.MustCompile(`\b(by|before|until|between|and) (-?\d+)\b`)
)

// inWords replaces the numbers of calls by their processes and lines, fences by
// those in the file, and nanoseconds by seconds.
func (h *History) inWords(s string) string {
	call := func(number string) string {
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(h.Calls) {
			return number
		}
		return fmt.Sprintf("of process %d (line %d)", h.Calls[i].Process, h.Calls[i].Line)
	}
	s = two.ReplaceAllStringFunc(s, func(m string) string {
		p := two.FindStringSubmatch(m)
		return fmt.Sprintf("the %s %s and %s", p[1], call(p[2]), call(p[3]))
	})
	s = got.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.ParseUint(got.FindStringSubmatch(m)[1], 10, 64)
		if err != nil || n == 0 {
			return m
		}
		return fmt.Sprintf("fence %d", n-1)
	})
	s = at.ReplaceAllStringFunc(s, func(m string) string {
		p := at.FindStringSubmatch(m)
		t, err := strconv.ParseInt(p[2], 10, 64)
		if err != nil {
			return m
		}
		return fmt.Sprintf("%s %ss", p[1], strconv.FormatFloat(float64(t)/1e9, 'f', -1, 64))
	})
	return one.ReplaceAllStringFunc(s, func(m string) string {
		p := one.FindStringSubmatch(m)
		return fmt.Sprintf("the %s %s", p[1], call(p[2]))
	})
}

// near is how many acquisitions are shown before and behind a contradiction, and
// most how many in all.
const (
	near = 3
	most = 20
)

// around picks acquisitions that are near to calls, with their releases.
func (h *History) around(l *Lock, calls []int) []int {
	of := map[int]int{} // from a call to its acquire
	for i := range l.Ops {
		of[l.Ops[i].ID] = l.Ops[i].Hold
	}
	var acquires []int
	for i := range l.Ops {
		if l.Ops[i].ID == l.Ops[i].Hold {
			acquires = append(acquires, l.Ops[i].ID)
		}
	}
	chosen := map[int]bool{}
	for _, c := range calls {
		at, _ := slices.BinarySearch(acquires, c)
		for i := max(0, at-near); i < min(len(acquires), at+near+1) && len(chosen) < most; i++ {
			chosen[acquires[i]] = true
		}
		if a, ok := of[c]; ok {
			chosen[a] = true
		}
	}
	var out []int
	for i := range l.Ops {
		if id := l.Ops[i].ID; chosen[of[id]] && !slices.Contains(calls, id) {
			out = append(out, id)
		}
	}
	return out
}

// Op is the call as package sweep judges it, if it does.
func (l *Lock) Op(call int) (sweep.Op, bool) {
	i, ok := slices.BinarySearchFunc(l.Ops, call, func(op sweep.Op, id int) int { return op.ID - id })
	if !ok {
		return sweep.Op{}, false
	}
	return l.Ops[i], true
}

// Says is the call and its answer: "acquire ok, fence 5".
func (c *Call) Says() string {
	s := c.F() + map[sweep.Outcome]string{sweep.OK: " ok", sweep.Busy: " fail", sweep.Unknown: " no answer"}[c.outcome]
	if c.fence != 0 {
		s += fmt.Sprintf(", fence %d", c.fence-1)
	}
	return s
}

// Return is when the call returned, [sweep.Infinity] for never.
func (c *Call) Return() int64 {
	if c.outcome == sweep.Unknown {
		return sweep.Infinity
	}
	return c.ret
}

// Granted counts the acquires that succeeded.
func (h *History) Granted() int {
	n := 0
	for i := range h.Calls {
		if c := &h.Calls[i]; c.sort.acquires() && c.outcome == sweep.OK {
			n++
		}
	}
	return n
}
