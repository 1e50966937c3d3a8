package foreign

import (
	"slices"

	"github.com/holdfast-io/holdfast/checker/sweep"
)

// porcupine reads operations as encoding/json writes porcupine.Operation: a list
// of them, or one after the other:
//
//	{"ClientId": 1, "Input": {"op": "acquire", "lock": "x"}, "Call": 10,
//	 "Output": {"ok": true, "fence": 5}, "Return": 20}
//
// An Output that is missing or null is no answer; its Return is not read.
type porcupine struct {
	jsonText
	*builder
	entries int
}

func (p *porcupine) read() error {
	p.space()
	opened := p.line
	b, _ := p.peek()
	inList := b == '['
	if inList {
		p.skip()
	}
	for first := true; ; first = false {
		p.space()
		b, ok := p.peek()
		switch {
		case !ok && inList:
			return p.errorf("the file ends before the ']' that closes what is open in line %d", opened)
		case !ok:
			return nil
		case inList && b == ']':
			p.skip()
			return p.nothing()
		case inList && !first:
			if err := p.pass(','); err != nil {
				return err
			}
			p.space()
		}
		line, err := p.begins()
		if err != nil {
			return err
		}
		v, err := p.value(entryDepth)
		if err != nil {
			return err
		}
		if err := p.operation(v, line); err != nil {
			return err
		}
		p.entries++
	}
}

func (p *porcupine) nothing() error {
	p.space()
	if b, ok := p.peek(); ok {
		return p.errorf("%q stands behind the end of the operations", b)
	}
	return nil
}

// only refuses keys that have no meaning here, since one that is misspelt would
// be a fact that is not read.
func (p *porcupine) only(v value, what string, line int, keys ...string) error {
	if v.kind != dict {
		return p.errorAt(line, "%s is an object, not %s", what, v)
	}
	for i := 0; i < len(v.items); i += 2 {
		if !slices.Contains(keys, v.items[i].text) {
			return p.errorAt(line, "%s has no key %.40q; it has %v", what, v.items[i].text, keys)
		}
	}
	return nil
}

func (p *porcupine) operation(v value, line int) error {
	if err := p.only(v, "an operation", line, "ClientId", "Input", "Output", "Call", "Return", "Metadata"); err != nil {
		return err
	}
	c := Call{Line: int32(line), Done: int32(line), Entry: int32(p.entries), DoneEntry: int32(p.entries)}
	client, _ := v.get("ClientId")
	if client.kind != whole {
		return p.errorAt(line, "ClientId is a whole number, not %s", client)
	}
	c.Process = client.n
	in, _ := v.get("Input")
	if err := p.input(&c, in, line); err != nil {
		return err
	}
	out, _ := v.get("Output")
	if err := p.output(&c, out, line); err != nil {
		return err
	}
	call, _ := v.get("Call")
	ret, _ := v.get("Return")
	if c.outcome == sweep.Unknown {
		ret = call
	}
	for _, t := range []struct {
		name string
		value
		to *int64
	}{{"Call", call, &c.Call}, {"Return", ret, &c.ret}} {
		if t.kind != whole || t.n > maxTime || t.n < -maxTime {
			return p.errorAt(line, "%s is a whole number, not %s", t.name, t.value)
		}
		*t.to = t.n
	}
	if c.ret < c.Call {
		return p.errorAt(line, "the call returned before it was made")
	}
	p.h.End = max(p.h.End, c.ret)
	p.calls = append(p.calls, c)
	return nil
}

func (p *porcupine) input(c *Call, in value, line int) error {
	if err := p.only(in, "the Input of a lock", line, "op", "lock"); err != nil {
		return err
	}
	op, _ := in.get("op")
	sort, ok := words[op.text]
	if op.kind != text || !ok {
		return p.errorAt(line, "a lock has no op %s; there are %s", op, known())
	}
	c.word, c.sort = wordOf[op.text], sort
	if sort == readAcquire && p.h.reads == 0 {
		p.h.reads = line
	}
	lock, ok := in.get("lock")
	if ok && lock.kind != text {
		return p.errorAt(line, "the name of a lock is a string, not %s", lock)
	}
	c.lock, c.named = p.lock(lock.text), ok
	return nil
}

func (p *porcupine) output(c *Call, out value, line int) error {
	if out.kind == none {
		c.outcome, c.Done = sweep.Unknown, 0
		return nil
	}
	if err := p.only(out, "the Output of a lock", line, "ok", "fence"); err != nil {
		return err
	}
	ok, _ := out.get("ok")
	if ok.kind != truth {
		return p.errorAt(line, "ok is true or false, not %s; no answer at all is an Output of null", ok)
	}
	if ok.n == 0 {
		c.outcome = sweep.Busy
		return nil
	}
	fence, has := out.get("fence")
	switch {
	case !has || fence.kind == none:
		return nil
	case fence.kind != whole || fence.n < 0:
		return p.errorAt(line, "a fence is a whole number from 0 up, not %s", fence)
	}
	c.gotFence(fence.n)
	return nil
}
