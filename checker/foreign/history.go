package foreign

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker/sweep"
)

// Format of a file.
type Format string

// The formats.
const (
	// Jepsen is a vector of maps, or one map after the other, in EDN.
	Jepsen Format = "jepsen"
	// Porcupine is a list of operations, or one after the other, in JSON.
	Porcupine Format = "porcupine"
)

// Call is what the file says about one call. Its place in [History.Calls] is the
// ID of its [sweep.Op]. There are millions, so it is small and points nowhere.
type Call struct {
	Process int64
	Call    int64
	ret     int64
	fence   uint64 // of a granted acquire, one more than in the file; 0 for none
	// Line of the entry that made the call, and Done of the one that completed
	// it, 0 for none. Entry and DoneEntry are the entries, counted from 0.
	Line, Done       int32
	Entry, DoneEntry int32
	lock             int32 // into the names of the builder, 0 if the entry says none
	word             uint8 // into spellings
	named            bool  // the entry says which lock
	sort             sort
	outcome          sweep.Outcome
}

// F is what the call is in the words of the file.
func (c *Call) F() string { return spellings[c.word] }

// sort of call that a word stands for.
type sort uint8

const (
	acquire sort = iota
	release
	readAcquire
	readRelease
	writeRelease
)

// words of the calls, with those that people use for the same.
var words = map[string]sort{
	"acquire": acquire, "lock": acquire,
	"write-acquire": acquire, "acquire-write": acquire, "write-lock": acquire, "lock-write": acquire,
	"read-acquire": readAcquire, "acquire-read": readAcquire, "read-lock": readAcquire, "lock-read": readAcquire,
	"release": release, "unlock": release,
	"write-release": writeRelease, "release-write": writeRelease, "write-unlock": writeRelease, "unlock-write": writeRelease,
	"read-release": readRelease, "release-read": readRelease, "read-unlock": readRelease, "unlock-read": readRelease,
}

// spellings are the words in order, and wordOf their places.
var (
	spellings = slices.Sorted(maps.Keys(words))
	wordOf    = func() map[string]uint8 {
		of := map[string]uint8{}
		for i, w := range spellings {
			of[w] = uint8(i)
		}
		return of
	}()
)

func (s sort) acquires() bool { return s == acquire || s == readAcquire }

// known lists the words for a refusal.
func known() string {
	return strings.Join(spellings, ", ")
}

// Lock is what was done to one lock.
type Lock struct {
	Name string
	// Ops are the calls for package sweep. A release that failed is not among
	// them, since it did not happen, nor is one of Strays.
	Ops []sweep.Op
	// Strays are releases that succeeded although their process held nothing.
	Strays []int
}

// Fault is a stretch of time in which something was broken on purpose.
type Fault struct {
	Name     string
	From, To int64
}

// History is a file that has been read.
type History struct {
	Format Format
	Calls  []Call  // in the order in which they were made
	Locks  []*Lock // in the order of their names
	Faults []Fault
	// Processes that made calls, and the last time of the file.
	Processes int
	End       int64
	// reads is the line of the first call that only a reader/writer lock has.
	reads int
}

// Read reads a file in a format.
func Read(r io.Reader, format Format) (*History, error) {
	s := newSource(r)
	b := &builder{h: &History{Format: format}, names: []string{""}, lockOf: map[string]int32{"": 0}}
	var err error
	switch format {
	case Jepsen:
		err = (&jepsen{edn: edn{s}, builder: b, pending: map[int64]int{}, retired: map[int64]int{}}).read()
	case Porcupine:
		err = (&porcupine{jsonText: jsonText{s}, builder: b}).read()
	default:
		err = fmt.Errorf("no format %q", format)
	}
	if err == nil {
		err = s.err
	}
	if err == nil && len(b.calls) == 0 {
		err = s.errorf("the file ends and holds no call of a lock")
	}
	if err != nil {
		return nil, err
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	return b.h, nil
}

// builder gathers calls and gives them to their locks.
type builder struct {
	h     *History
	calls []Call
	// names of the locks, and lockOf their places.
	names  []string
	lockOf map[string]int32
}

// lock is the place of a name.
func (b *builder) lock(name string) int32 {
	at, ok := b.lockOf[name]
	if !ok {
		at = int32(len(b.names))
		b.lockOf[name], b.names = at, append(b.names, name)
	}
	return at
}

// held is an acquisition that a process has not given back, as far as it knows.
type held struct {
	lock int32
	hold int
	kind sweep.Kind
	// asked says that a release of it had no answer.
	asked bool
}

// finish pairs releases with acquires, in the order of the calls. A release
// gives back what its process got last. One without an answer may have: the
// next release of the process may be the same once more, or of what it got
// before:
//
//	acquire A, release no answer, release ok             both of A
//	acquire A, acquire B, release no answer, release ok  first B, then A
func (b *builder) finish() error {
	byCall := func(x, y Call) int { return cmp.Compare(x.Call, y.Call) }
	if !slices.IsSortedFunc(b.calls, byCall) {
		slices.SortStableFunc(b.calls, byCall)
	}
	locks := b.locks()
	processes := map[int64]*process{}
	for i := range b.calls {
		c := &b.calls[i]
		p := processes[c.Process]
		if p == nil {
			p = &process{owner: len(processes), last: -1}
			processes[c.Process] = p
		}
		if p.last >= 0 {
			if before := &b.calls[p.last]; before.outcome != sweep.Unknown && before.ret > c.Call {
				return fmt.Errorf("line %d: process %d calls before its call in line %d has returned", c.Line, c.Process, before.Line)
			}
		}
		p.last = i
		at := -1
		if !c.sort.acquires() {
			at = c.among(p.stack)
		}
		if at >= 0 {
			c.lock = p.stack[at].lock
		}
		l := &locks[c.lock]
		l.called = true
		l.add(i, c, p, at)
	}
	b.h.Calls, b.h.Processes = b.calls, len(processes)
	for i := range locks {
		if locks[i].called {
			b.h.Locks = append(b.h.Locks, &locks[i].Lock)
		}
	}
	slices.SortFunc(b.h.Locks, func(x, y *Lock) int { return strings.Compare(x.Name, y.Name) })
	return nil
}

// gathered is a lock, and whether anybody called it.
type gathered struct {
	Lock
	called bool
}

// locks makes the locks that were named, with room for each acquire and one
// release of each that may have succeeded: a list that has to grow takes twice
// its size while it does.
func (b *builder) locks() []gathered {
	locks, calls := make([]gathered, len(b.names)), make([]int, len(b.names))
	for i := range b.calls {
		if c := &b.calls[i]; c.sort.acquires() {
			calls[c.lock]++
			if c.outcome != sweep.Busy {
				calls[c.lock]++
			}
		}
	}
	for i := range locks {
		locks[i].Name, locks[i].Ops = b.names[i], make([]sweep.Op, 0, min(calls[i], len(b.calls)))
	}
	return locks
}

// process is what one has called so far.
type process struct {
	owner int
	last  int // its last call
	stack []held
}

// among finds what a release gives back.
func (c *Call) among(stack []held) int {
	again := -1
	for i := len(stack) - 1; i >= 0; i-- {
		h := &stack[i]
		if c.named && h.lock != c.lock ||
			c.sort == readRelease && h.kind != sweep.RAcquire || c.sort == writeRelease && h.kind != sweep.Acquire {
			continue
		}
		if !h.asked {
			return i
		}
		if again < 0 {
			again = i
		}
	}
	return again
}

// add puts a call to its lock. A release gives back what is at a place of its
// process's stack, or nothing.
func (l *Lock) add(id int, c *Call, p *process, at int) {
	op := sweep.Op{ID: id, Owner: p.owner, Outcome: c.outcome, Call: c.Call, Return: c.ret, Fence: c.fence}
	switch {
	case c.sort.acquires():
		op.Hold = id
		if c.sort == readAcquire {
			op.Kind = sweep.RAcquire
		}
		if c.outcome != sweep.Busy {
			p.stack = append(p.stack, held{lock: c.lock, hold: id, kind: op.Kind})
		}
	case c.outcome == sweep.Busy:
		return // it did not happen
	case at < 0:
		if c.outcome == sweep.OK {
			l.Strays = append(l.Strays, id)
		}
		return
	default:
		op.Hold, op.Kind = p.stack[at].hold, p.stack[at].kind+1
		p.stack[at].asked = true
		if c.outcome == sweep.OK {
			p.stack = slices.Delete(p.stack, at, at+1)
		}
	}
	l.Ops = append(l.Ops, op)
}

// Leased gives every hold a lease: from so long after its acquire was called, it
// may end without a release.
func (h *History) Leased(lease int64) {
	for _, l := range h.Locks {
		for i := range l.Ops {
			if op := &l.Ops[i]; op.Kind == sweep.Acquire || op.Kind == sweep.RAcquire {
				op.LeaseEnd = op.Call + min(lease, maxTime)
				if op.LeaseEnd == 0 { // which would be none
					op.LeaseEnd = 1
				}
			}
		}
	}
}

// Suits says why a model cannot judge the history, with the line.
func (h *History) Suits(m sweep.Model) error {
	if m != sweep.ReadWrite && h.reads > 0 {
		return fmt.Errorf("line %d: a read lock, which only the model rw has", h.reads)
	}
	if m != sweep.Fenced && m != sweep.ReentrantFenced {
		return nil
	}
	return h.fenced()
}

// fenced wants a fence of every acquire that was granted. The sweep binds none
// without one, so a lock that handed fences to some only would pass.
func (h *History) fenced() error {
	bare, fences := int32(0), false
	for i := range h.Calls {
		switch c := &h.Calls[i]; {
		case !c.sort.acquires() || c.outcome != sweep.OK:
		case c.fence != 0:
			fences = true
		case bare == 0:
			bare = c.Done
		}
	}
	switch {
	case bare == 0:
		return nil
	case !fences:
		return fmt.Errorf("line %d: no acquire up to here got a fence, so a fenced model has nothing to judge", h.Calls[len(h.Calls)-1].Line)
	}
	return fmt.Errorf("line %d: the acquire was granted without a fence, so a fenced model cannot judge it", bare)
}

// gotFence notes the fence of a granted acquire. It is kept as one more, since 0
// is none to package sweep, and there are locks whose first fence is 0.
func (c *Call) gotFence(n int64) {
	if c.sort.acquires() {
		c.fence = uint64(n) + 1
	}
}
