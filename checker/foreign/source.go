// Package foreign reads lock histories that other tools wrote, Jepsen's EDN and
// operations as porcupine has them in JSON, and makes of them calls that package
// sweep can judge. It judges nothing itself.
//
// What is no lock history is refused with the line and the reason: a judge that
// skips what it does not understand acquits the guilty.
//
// Both formats are read with small readers of our own (edn.go, json.go over
// source.go), since a refusal must name the line, and a million calls should not
// take longer to read than to judge. The EDN library for Go hands out values
// without their lines and takes 40 microseconds for a map.
package foreign

import (
	"fmt"
	"io"
)

// errorf is a refusal at the line that is being read.
func (s *source) errorf(format string, args ...any) error {
	return s.errorAt(s.line, format, args...)
}

func (s *source) errorAt(line int, format string, args ...any) error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

// Bounds of what is read. Real entries stay far below them.
const (
	// maxDepth of nested values: a stack trace in an :exception has a dozen.
	maxDepth = 100
	// maxToken is the longest string or word, in bytes.
	maxToken = 1 << 20
	// maxItems of one list or map.
	maxItems = 1 << 16
	// maxLine is the last line that an entry may begin in.
	maxLine = 1 << 30
	// maxTime keeps sums of times and leases within an int64.
	maxTime = int64(1) << 61
)

// begins is the line of an entry that begins here.
func (s *source) begins() (int, error) {
	if s.line > maxLine {
		return 0, s.errorf("a history has at most %d lines", maxLine)
	}
	return s.line, nil
}

// source reads bytes and counts lines.
type source struct {
	r        io.Reader
	buf      []byte
	pos, end int
	line     int // of the next byte, from 1
	err      error
	// token is the text of the last word or string, valid until the next.
	token []byte
	// entry is where the items of an entry are put: the next one replaces it.
	entry []value
	// words are texts seen before, so that a million equal ones are one.
	words map[string]string
}

func newSource(r io.Reader) *source {
	return &source{r: r, buf: make([]byte, 1<<16), line: 1, words: map[string]string{}}
}

// peek is the next byte; ok is false at the end and after an error of reading.
func (s *source) peek() (b byte, ok bool) {
	if s.pos < s.end {
		return s.buf[s.pos], true
	}
	return s.fill()
}

func (s *source) fill() (byte, bool) {
	for empty := 0; s.err == nil && empty < 100; empty++ {
		n, err := s.r.Read(s.buf)
		s.pos, s.end = 0, n
		if err != nil && err != io.EOF {
			s.err = fmt.Errorf("line %d: %w", s.line, err)
		}
		if n > 0 {
			return s.buf[0], true
		}
		if err == io.EOF {
			return 0, false
		}
	}
	return 0, false
}

// second is the byte behind the one that was peeked at, 0 for none.
func (s *source) second() byte {
	for s.pos+1 >= s.end {
		first := s.buf[s.pos]
		n, err := s.r.Read(s.buf[1:])
		s.buf[0], s.pos, s.end = first, 0, 1+n
		if n == 0 && err != nil {
			return 0
		}
	}
	return s.buf[s.pos+1]
}

// skip passes the byte that was peeked at.
func (s *source) skip() {
	if s.buf[s.pos] == '\n' {
		s.line++
	}
	s.pos++
}

// room is room for the items of a list at a depth, and keep keeps it for the
// next entry.
func (s *source) room(depth int) []value {
	if depth == entryDepth {
		return s.entry[:0]
	}
	return nil
}

func (s *source) keep(depth int, items []value) {
	if depth == entryDepth {
		s.entry = items
	}
}

// entryDepth is how deep the entries of a history are nested.
const entryDepth = 1

// word makes a string of a token.
func (s *source) word(token []byte) string {
	if w, ok := s.words[string(token)]; ok {
		return w
	}
	w := string(token)
	if len(w) <= 64 && len(s.words) < 1<<14 {
		s.words[w] = w
	}
	return w
}

// add appends a byte to the token.
func (s *source) add(b byte) error {
	if len(s.token) >= maxToken {
		return s.errorf("a text is longer than %d bytes", maxToken)
	}
	s.token = append(s.token, b)
	return nil
}

// kind of a value.
type kind uint8

const (
	none kind = iota // nil, null
	truth
	whole // a whole number that fits an int64
	number
	text
	keyword
	symbol
	list // a list, vector or set
	dict
	other
)

func (k kind) String() string {
	return [...]string{"nil", "true or false", "a whole number", "a number that is not whole or too large",
		"a string", "a keyword", "a symbol", "a list", "a map", "another value"}[k]
}

// value is one value of either format. The items of a map are its keys and
// values in turn.
type value struct {
	kind  kind
	n     int64
	text  string
	items []value
}

// named is the text of a keyword, symbol or string.
func (v value) named() (string, bool) {
	return v.text, v.kind == text || v.kind == keyword || v.kind == symbol
}

func (v value) String() string {
	switch v.kind {
	case text:
		return fmt.Sprintf("%.40q", v.text)
	case keyword:
		return fmt.Sprintf(":%.40s", v.text)
	case symbol, number, other:
		return fmt.Sprintf("%.40s", v.text)
	case whole:
		return fmt.Sprint(v.n)
	case truth:
		return fmt.Sprint(v.n == 1)
	}
	return v.kind.String()
}

// get finds the value of a key of a map.
func (v value) get(names ...string) (value, bool) {
	for i := 0; v.kind == dict && i+1 < len(v.items); i += 2 {
		key, ok := v.items[i].named()
		if !ok {
			continue
		}
		for _, name := range names {
			if key == name {
				return v.items[i+1], true
			}
		}
	}
	return value{}, false
}
