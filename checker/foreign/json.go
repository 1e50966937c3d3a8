package foreign

import (
	"encoding/json"
	"strconv"
)

// jsonText reads JSON into the same values as EDN.
type jsonText struct{ *source }

func (j jsonText) space() {
	for b, ok := j.peek(); ok && (b == ' ' || b == '\n' || b == '\t' || b == '\r'); b, ok = j.peek() {
		j.skip()
	}
}

// next passes space and gives the next byte, which must be there.
func (j jsonText) next() (byte, error) {
	j.space()
	b, ok := j.peek()
	if !ok {
		return 0, j.errorf("the file ends in the middle of a value")
	}
	return b, nil
}

// pass passes a byte that must come.
func (j jsonText) pass(want byte) error {
	b, err := j.next()
	if err != nil {
		return err
	}
	if b != want {
		return j.errorf("%q was due, not %q", want, b)
	}
	j.skip()
	return nil
}

func (j jsonText) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, j.errorf("values are nested more than %d deep", maxDepth)
	}
	b, err := j.next()
	if err != nil {
		return value{}, err
	}
	switch {
	case b == '{':
		return j.items(depth, dict, '}')
	case b == '[':
		return j.items(depth, list, ']')
	case b == '"':
		return j.quoted()
	case b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z':
		return j.bare()
	}
	return value{}, j.errorf("a value was due, not %q", b)
}

func (j jsonText) items(depth int, k kind, closing byte) (value, error) {
	v := value{kind: k, items: j.room(depth)}
	opened := j.line
	var seen keys
	j.skip()
	if b, err := j.next(); err != nil || b == closing {
		if err == nil {
			j.skip()
		}
		return v, err
	}
	for {
		if len(v.items) >= maxItems {
			return v, j.errorf("the list that begins in line %d has more than %d items", opened, maxItems)
		}
		if k == dict {
			key, err := j.key()
			if err != nil {
				return v, err
			}
			v.items = append(v.items, key)
			if seen.again(v.items, false) {
				return v, j.errorf("the key %s is twice in the object that begins in line %d", key, opened)
			}
		}
		item, err := j.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		j.keep(depth, v.items)
		b, err := j.next()
		switch {
		case err != nil:
			return v, err
		case b == closing:
			j.skip()
			return v, nil
		case b != ',':
			return v, j.errorf("%q or a comma was due, not %q", closing, b)
		}
		j.skip()
	}
}

// key reads the key of an object and the colon behind it.
func (j jsonText) key() (value, error) {
	b, err := j.next()
	if err != nil {
		return value{}, err
	}
	if b != '"' {
		return value{}, j.errorf("the key of an object was due, not %q", b)
	}
	key, err := j.quoted()
	if err != nil {
		return value{}, err
	}
	return key, j.pass(':')
}

func (j jsonText) quoted() (value, error) {
	opened, escaped := j.line, false
	j.skip()
	j.token = append(j.token[:0], '"')
	for {
		b, ok := j.peek()
		if !ok {
			return value{}, j.errorAt(opened, "a string that begins here is not closed")
		}
		if b < ' ' {
			return value{}, j.errorf("a string holds the control character %q", b)
		}
		j.skip()
		if b == '"' {
			break
		}
		if err := j.add(b); err != nil {
			return value{}, err
		}
		if b != '\\' {
			continue
		}
		escaped = true
		if b, ok = j.peek(); ok && b >= ' ' {
			j.skip()
			if err := j.add(b); err != nil {
				return value{}, err
			}
		}
	}
	if escaped {
		var plain string
		if err := json.Unmarshal(append(j.token, '"'), &plain); err != nil {
			return value{}, j.errorAt(opened, "a string with an escape that JSON does not have")
		}
		return value{kind: text, text: plain}, nil
	}
	return value{kind: text, text: j.word(j.token[1:])}, nil
}

// bare reads a number, true, false or null.
func (j jsonText) bare() (value, error) {
	j.token = j.token[:0]
	for b, ok := j.peek(); ok && (b == '-' || b == '+' || b == '.' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'); b, ok = j.peek() {
		if err := j.add(b); err != nil {
			return value{}, err
		}
		j.skip()
	}
	switch t := j.word(j.token); {
	case t == "null":
		return value{}, nil
	case t == "true", t == "false":
		return value{kind: truth, n: map[bool]int64{true: 1}[t == "true"]}, nil
	case !json.Valid(j.token):
		return value{}, j.errorf("%.20q is no value", t)
	default:
		if n, err := strconv.ParseInt(t, 10, 64); err == nil {
			return value{kind: whole, n: n}, nil
		}
		return value{kind: number, text: t}, nil
	}
}
