package foreign

import (
	"strings"

	"github.com/holdfast-io/holdfast/checker/sweep"
)

// jepsen reads a history as Jepsen stores it: a vector of maps, or one map after
// the other, each with :process, :type, :f, :time in nanoseconds and a :value.
//
// What a client is told binds the lock as Jepsen means it: :ok happened, :fail
// did not, :info may have and may still, and retires the process.
type jepsen struct {
	edn
	*builder
	pending map[int64]int // calls without completion, by process
	retired map[int64]int // processes, and the lines that retired them
	entries int
	open    map[string]int
}

func (j *jepsen) read() error {
	if err := j.space(0); err != nil {
		return err
	}
	b, _ := j.peek()
	closing := map[byte]byte{'[': ']', '(': ')'}[b]
	opened := j.line
	if closing != 0 {
		j.skip()
	}
	for {
		if err := j.space(0); err != nil {
			return err
		}
		b, ok := j.peek()
		switch {
		case !ok && closing != 0:
			return j.errorf("the file ends before the %q that closes what is open in line %d", closing, opened)
		case !ok:
			return nil
		case closing != 0 && b == closing:
			j.skip()
			return j.nothing()
		}
		line, err := j.begins()
		if err != nil {
			return err
		}
		v, err := j.value(entryDepth)
		if err != nil {
			return err
		}
		if v.kind != dict {
			return j.errorAt(line, "an entry of a history is a map, not %s", v)
		}
		if err := j.entry(v, line); err != nil {
			return err
		}
		j.entries++
	}
}

// nothing wants the end of the file.
func (j *jepsen) nothing() error {
	if err := j.space(0); err != nil {
		return err
	}
	if b, ok := j.peek(); ok {
		return j.errorf("%q stands behind the end of the history", b)
	}
	return nil
}

func (j *jepsen) entry(v value, line int) error {
	var process, kind, f, at value
	for _, want := range []struct {
		name string
		to   *value
	}{{"process", &process}, {"type", &kind}, {"f", &f}, {"time", &at}} {
		got, ok := v.get(want.name)
		if !ok || got.kind == none {
			return j.errorAt(line, "the entry has no :%s", want.name)
		}
		*want.to = got
	}
	if at.kind != whole || at.n > maxTime || at.n < -maxTime {
		return j.errorAt(line, ":time is nanoseconds as a whole number, not %s", at)
	}
	name, ok := f.named()
	if !ok {
		return j.errorAt(line, ":f is a keyword such as :acquire, not %s", f)
	}
	j.h.End = max(j.h.End, at.n)
	if who, named := process.named(); named && who == "nemesis" {
		j.fault(name, at.n)
		return nil
	}
	if process.kind != whole {
		return j.errorAt(line, ":process is a whole number or :nemesis, not %s", process)
	}
	word, ok := kind.named()
	if !ok {
		return j.errorAt(line, ":type is :invoke, :ok, :fail or :info, not %s", kind)
	}
	sort, ok := words[name]
	if !ok {
		return j.errorAt(line, "a lock has no :f :%s; there are %s", name, known())
	}
	value, _ := v.get("value")
	who := process.n
	if word == "invoke" {
		return j.invoke(who, Call{Process: who, word: wordOf[name], Call: at.n, Line: int32(line), Entry: int32(j.entries), sort: sort, outcome: sweep.Unknown}, value)
	}
	return j.complete(who, word, name, at.n, line, value)
}

func (j *jepsen) invoke(who int64, c Call, v value) error {
	if line, ok := j.retired[who]; ok {
		return j.errorAt(int(c.Line), "process %d calls again, although the :info in line %d retired it", who, line)
	}
	if before, ok := j.pending[who]; ok {
		return j.errorAt(int(c.Line), "process %d calls again, although its call in line %d has no completion", who, j.calls[before].Line)
	}
	if err := j.told(&c, v, int(c.Line)); err != nil {
		return err
	}
	c.fence = 0
	if c.sort == readAcquire && j.h.reads == 0 {
		j.h.reads = int(c.Line)
	}
	j.pending[who] = len(j.calls)
	j.calls = append(j.calls, c)
	return nil
}

func (j *jepsen) complete(who int64, word, name string, at int64, line int, v value) error {
	outcome, ok := map[string]sweep.Outcome{"ok": sweep.OK, "fail": sweep.Busy, "info": sweep.Unknown}[word]
	if !ok {
		return j.errorAt(line, ":type is :invoke, :ok, :fail or :info, not :%s", word)
	}
	i, ok := j.pending[who]
	if !ok {
		return j.errorAt(line, "a completion of process %d, which has called nothing", who)
	}
	c := &j.calls[i]
	switch {
	case c.F() != name:
		return j.errorAt(line, "process %d called :%s in line %d, but this completes :%s", who, c.F(), c.Line, name)
	case at < c.Call:
		return j.errorAt(line, "the call in line %d is completed before it was made", c.Line)
	}
	delete(j.pending, who)
	c.outcome, c.ret, c.Done, c.DoneEntry = outcome, at, int32(line), int32(j.entries)
	if outcome == sweep.Unknown {
		j.retired[who] = line
	}
	switch {
	case outcome != sweep.OK:
		return nil
	case v.kind == truth && v.n == 0:
		return j.errorAt(line, "process %d completes :%s as :ok with the :value false: that reads as done and as refused; a refusal is :fail", who, name)
	}
	return j.told(c, v, line)
}

// told reads a :value. It is nothing, the fence as a number, the name of the
// lock, a map with :lock and :fence, or a pair of the lock and any of these, as
// independent tests have.
func (j *jepsen) told(c *Call, v value, line int) error {
	switch v.kind {
	case none, truth:
		return nil
	case whole:
		return j.fenced(c, v, line)
	case text, keyword, symbol:
		return j.onLock(c, v, line)
	case dict:
		return j.facts(c, v, line)
	case list:
		if len(v.items) == 2 && v.items[1].kind != list {
			if err := j.onLock(c, v.items[0], line); err != nil {
				return err
			}
			if v.items[1].kind == none || v.items[1].kind == dict {
				return j.told(c, v.items[1], line)
			}
			return j.fenced(c, v.items[1], line)
		}
	}
	return j.errorAt(line, "a :value is nil, a fence, the name of a lock, a map with :lock and :fence, or a pair [lock value], not %s", v)
}

// facts reads a map as a :value. A key that is not known is refused: it may be a
// fence, misspelt. Known are :client and :uid too, which stand beside :fence in
// histories of Hazelcast's locks and say nothing that is judged.
func (j *jepsen) facts(c *Call, v value, line int) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.items); i += 2 {
		key, fact := v.items[i], "fence"
		name, _ := key.named()
		read := j.fenced
		switch name {
		case "lock", "name", "key":
			fact, read = "lock", j.onLock
		case "fence", "token":
		case "client", "uid":
			continue
		default:
			return j.errorAt(line, "the map of a :value has no key %s; it has :lock (or :name, :key) and :fence (or :token)", key)
		}
		if seen[fact] {
			return j.errorAt(line, "the map of a :value has its %s twice, at last as %s", fact, key)
		}
		seen[fact] = true
		if v.items[i+1].kind == none {
			continue
		}
		if err := read(c, v.items[i+1], line); err != nil {
			return err
		}
	}
	return nil
}

func (j *jepsen) fenced(c *Call, v value, line int) error {
	if v.kind != whole || v.n < 0 {
		return j.errorAt(line, "a fence is a whole number from 0 up, not %s", v)
	}
	c.gotFence(v.n)
	return nil
}

func (j *jepsen) onLock(c *Call, v value, line int) error {
	name, ok := v.named()
	if v.kind == whole {
		name, ok = v.String(), true
	}
	switch {
	case !ok:
		return j.errorAt(line, "the name of a lock is a string, keyword or number, not %s", v)
	case c.named && j.names[c.lock] != name:
		return j.errorAt(line, "the call in line %d was on lock %q, but this is on %q", c.Line, j.names[c.lock], name)
	}
	c.lock, c.named = j.lock(name), true
	return nil
}

// fault notes what the nemesis does. Jepsen writes each action twice, when it
// begins and when it is done, and has no common words for what belongs
// together: "start" and "stop" with the same rest, and these.
func (j *jepsen) fault(f string, at int64) {
	if j.open == nil {
		j.open = map[string]int{}
	}
	name, begins := f, false
	switch rest, starts := strings.CutPrefix(f, "start"); {
	case f == "start" && j.running("kill"), f == "restart":
		name = "kill"
	case starts:
		name, begins = strings.TrimPrefix(rest, "-"), true
	case strings.HasPrefix(f, "stop"):
		name = strings.TrimPrefix(strings.TrimPrefix(f, "stop"), "-")
	case f == "resume":
		name = "pause"
	case f == "heal":
		name = "partition"
	case strings.HasPrefix(f, "reset"):
		name = strings.TrimPrefix(strings.TrimPrefix(f, "reset"), "-")
	default:
		begins = true
	}
	if name == "" {
		name = "fault"
	}
	i, open := j.open[name]
	switch {
	case begins && !j.running(name):
		j.open[name] = len(j.h.Faults)
		j.h.Faults = append(j.h.Faults, Fault{Name: name, From: at, To: sweep.Infinity})
	case !begins && open: // its second entry makes it end later
		j.h.Faults[i].To = at
	}
}

func (j *jepsen) running(name string) bool {
	i, ok := j.open[name]
	return ok && j.h.Faults[i].To == sweep.Infinity
}
