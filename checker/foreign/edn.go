package foreign

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"
)

// edn reads Clojure's notation: https://github.com/edn-format/edn. Of tagged
// values it reads the value and forgets the tag; Jepsen writes its entries as
// #jepsen.history.Op{...} at times.
type edn struct{ *source }

// space passes white space, commas, comments, and values behind #_.
func (e edn) space(depth int) error {
	for {
		b, ok := e.peek()
		switch {
		case !ok:
			return e.err
		case b == ' ' || b == '\n' || b == '\t' || b == '\r' || b == ',' || b == '\f':
			e.skip()
		case b == ';':
			for ; ok && b != '\n'; b, ok = e.peek() {
				e.skip()
			}
		case b == '#' && e.second() == '_':
			e.skip()
			e.skip()
			if _, err := e.value(depth + 1); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// value reads one value. At the end of the file it is an error.
func (e edn) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, e.errorf("values are nested more than %d deep", maxDepth)
	}
	if err := e.space(depth); err != nil {
		return value{}, err
	}
	b, ok := e.peek()
	if !ok {
		return value{}, e.errorf("the file ends in the middle of a value")
	}
	switch b {
	case '[', '(':
		e.skip()
		return e.items(depth, list, map[byte]byte{'[': ']', '(': ')'}[b])
	case '{':
		e.skip()
		return e.items(depth, dict, '}')
	case '"':
		e.skip()
		return e.quoted()
	case '\\':
		return e.character()
	case '#':
		e.skip()
		return e.dispatch(depth)
	case ']', ')', '}':
		return value{}, e.errorf("%q closes nothing", b)
	}
	return e.bare()
}

// dispatch reads what stands behind a #.
func (e edn) dispatch(depth int) (value, error) {
	b, ok := e.peek()
	switch {
	case !ok:
		return value{}, e.errorf("the file ends behind a #")
	case b == '{':
		e.skip()
		return e.items(depth, list, '}')
	case b == '#': // ##NaN, ##Inf
		e.skip()
		v, err := e.bare()
		v.kind = number
		return v, err
	case b == '"': // #"a regular expression"
		e.skip()
		return e.quoted()
	}
	if _, err := e.bare(); err != nil { // the tag
		return value{}, err
	}
	return e.value(depth + 1)
}

// items reads up to a closing bracket.
func (e edn) items(depth int, k kind, closing byte) (value, error) {
	v := value{kind: k, items: e.room(depth)}
	opened := e.line
	var seen keys
	for {
		end, err := e.closes(depth, closing, opened)
		if err != nil {
			return v, err
		}
		if end {
			if k == dict && len(v.items)%2 == 1 {
				return v, e.errorf("a map ends with a key that has no value")
			}
			return v, nil
		}
		if len(v.items) >= maxItems {
			return v, e.errorf("the list that begins in line %d has more than %d items", opened, maxItems)
		}
		item, err := e.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		// get finds the keys of an entry by their names, so :time and "time" are one.
		if k == dict && len(v.items)%2 == 1 && seen.again(v.items, depth == entryDepth) {
			return v, e.errorf("the key %s is twice in the map that begins in line %d", item, opened)
		}
		e.keep(depth, v.items)
	}
}

// closes passes space and the closing bracket, if it comes.
func (e edn) closes(depth int, closing byte, opened int) (bool, error) {
	if err := e.space(depth); err != nil {
		return false, err
	}
	b, ok := e.peek()
	if !ok {
		return false, e.errorf("the file ends before the %q that closes what is open in line %d", closing, opened)
	}
	if b == closing {
		e.skip()
	}
	return b == closing, nil
}

func (e edn) quoted() (value, error) {
	opened := e.line
	e.token = e.token[:0]
	for {
		b, ok := e.peek()
		if !ok {
			return value{}, e.errorAt(opened, "a string that begins here is not closed")
		}
		e.skip()
		if b == '"' {
			return value{kind: text, text: e.word(e.token)}, nil
		}
		if b == '\\' {
			if b, ok = e.peek(); !ok {
				return value{}, e.errorAt(opened, "a string that begins here is not closed")
			}
			e.skip()
			if escaped, known := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r'}[b]; known {
				b = escaped
			}
		}
		if err := e.add(b); err != nil {
			return value{}, err
		}
	}
}

// character reads \a or \newline.
func (e edn) character() (value, error) {
	e.skip()
	b, ok := e.peek()
	if !ok {
		return value{}, e.errorf("the file ends behind a \\")
	}
	e.token = append(e.token[:0], b)
	e.skip()
	err := e.rest()
	return value{kind: other, text: e.word(e.token)}, err
}

// ends says whether a byte ends a word.
func ends(b byte) bool {
	switch b {
	case ' ', '\n', '\t', '\r', ',', '\f', ';', '"', '(', ')', '[', ']', '{', '}':
		return true
	}
	return false
}

// rest reads on to the end of a word.
func (e edn) rest() error {
	for b, ok := e.peek(); ok && !ends(b); b, ok = e.peek() {
		if err := e.add(b); err != nil {
			return err
		}
		e.skip()
	}
	return e.err
}

// bare reads a number, keyword or symbol.
func (e edn) bare() (value, error) {
	e.token = e.token[:0]
	if err := e.rest(); err != nil {
		return value{}, err
	}
	t := e.token
	if len(t) == 0 {
		b, ok := e.peek()
		if !ok {
			return value{}, e.errorf("the file ends in the middle of a value")
		}
		return value{}, e.errorf("a value was due, not %q", b)
	}
	if !utf8.Valid(t) || slices.ContainsFunc(t, func(b byte) bool { return b < ' ' }) {
		return value{}, e.errorf("%.20q is not text", t)
	}
	switch {
	case t[0] == ':' && len(t) == 1:
		return value{}, e.errorf("a keyword has no name")
	case t[0] == ':':
		return value{kind: keyword, text: e.word(t[1:])}, nil
	case string(t) == "nil":
		return value{}, nil
	case string(t) == "true", string(t) == "false":
		return value{kind: truth, n: map[bool]int64{true: 1}[t[0] == 't']}, nil
	case isNumber(t):
		return numeric(t, e.source), nil
	}
	return value{kind: symbol, text: e.word(e.token)}, nil
}

func isNumber(t []byte) bool {
	if t[0] == '-' || t[0] == '+' {
		t = t[1:]
	}
	return len(t) > 0 && t[0] >= '0' && t[0] <= '9'
}

// numeric is a whole number if the text is one and fits.
func numeric(t []byte, s *source) value {
	digits := bytes.TrimSuffix(t, []byte("N"))
	if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
		return value{kind: whole, n: n}
	}
	return value{kind: number, text: s.word(t)}
}
