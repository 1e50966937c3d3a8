package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line that a decoder accepts, in bytes. Real lines
// have a few hundred; the bound keeps a file of another kind from being read
// into memory as one line.
const MaxLine = 1 << 20

// ErrTruncated is wrapped by the error for a file whose last line was cut off,
// as by a run that died while it wrote.
var ErrTruncated = errors.New("truncated: the file ends in the middle of a line")

// Encoder writes a history as JSON lines. The same history gives the same
// bytes.
type Encoder struct {
	w    io.Writer
	line int
}

// NewEncoder writes the header and returns an encoder for the events. It
// fills in the schema if the header names none.
//
// Every line is one Write call, so that a run that dies leaves whole lines and
// at most one cut one. Give it a bufio.Writer where that does not matter.
func NewEncoder(w io.Writer, h Header) (*Encoder, error) {
	if h.Schema == "" {
		h.Schema = Schema
	}
	e := &Encoder{w: w}
	if err := e.write(h); err != nil {
		return nil, err
	}
	return e, nil
}

// Encode writes one event. An event with none or several parts is an error
// and is not written, since no decoder would accept it.
func (e *Encoder) Encode(ev Event) error {
	if err := ev.onePart(); err != nil {
		return fmt.Errorf("line %d: %w", e.line+1, err)
	}
	return e.write(ev)
}

func (e *Encoder) write(v any) error {
	e.line++
	b, err := encodeLine(v)
	if err != nil {
		return fmt.Errorf("line %d: %w", e.line, err)
	}
	if len(b) > MaxLine {
		return fmt.Errorf("line %d: longer than %d bytes", e.line, MaxLine)
	}
	if _, err := e.w.Write(b); err != nil {
		return fmt.Errorf("line %d: %w", e.line, err)
	}
	return nil
}

// encodeLine gives v as JSON with its newline. Links such as "c1->n2" stay
// readable: HTML escapes would make them "c1-\u003en2".
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// onePart says what is wrong with an event that has not exactly one part.
func (e *Event) onePart() error {
	parts := 0
	for _, set := range []bool{e.Op != nil, e.Nemesis != nil, e.Server != nil, e.Resource != nil} {
		if set {
			parts++
		}
	}
	if parts != 1 {
		return fmt.Errorf("an event has exactly one of op, nemesis, server and resource; this one has %d", parts)
	}
	return nil
}

// Decoder reads a history as JSON lines, one event at a time.
type Decoder struct {
	r      *bufio.Reader
	line   int
	header Header
	err    error
}

// NewDecoder reads the header. Errors name the line.
func NewDecoder(r io.Reader) (*Decoder, error) {
	d := &Decoder{r: bufio.NewReaderSize(r, 1<<16)}
	b, err := d.next()
	if err == io.EOF {
		return nil, errors.New("line 1: the file is empty: there is no header")
	}
	if err != nil {
		return nil, err
	}
	// The schema is read first: a header of another version should be called
	// that, and not a header with an unknown field.
	var s struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("line 1: the header is not readable: %w", err)
	}
	if s.Schema != Schema {
		return nil, fmt.Errorf("line 1: the schema is %q, want %q", s.Schema, Schema)
	}
	if err := strict(b, &d.header); err != nil {
		return nil, fmt.Errorf("line 1: the header is not readable: %w", err)
	}
	return d, nil
}

// Header returns the first line.
func (d *Decoder) Header() Header { return d.header }

// Line returns the number of the line read last, from 1 for the header.
func (d *Decoder) Line() int { return d.line }

// Decode returns the next event, or io.EOF after the last. Any other error
// names the line and is final: the rest of the file is not read.
func (d *Decoder) Decode() (Event, error) {
	if d.err != nil {
		return Event{}, d.err
	}
	e, err := d.decode()
	d.err = err
	return e, err
}

func (d *Decoder) decode() (Event, error) {
	b, err := d.next()
	if err != nil {
		return Event{}, err
	}
	var e Event
	if err := strict(b, &e); err != nil {
		return Event{}, fmt.Errorf("line %d: %w", d.line, err)
	}
	if err := e.onePart(); err != nil {
		return Event{}, fmt.Errorf("line %d: %w", d.line, err)
	}
	return e, nil
}

// next returns one line without its newline. The bytes are valid until the
// next call.
func (d *Decoder) next() ([]byte, error) {
	b, err := d.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		b, err = d.long(bytes.Clone(b))
	}
	switch {
	case err == io.EOF && len(b) == 0:
		return nil, io.EOF
	case err == io.EOF:
		d.line++
		return nil, fmt.Errorf("line %d: %w", d.line, ErrTruncated)
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", d.line+1, err)
	}
	d.line++
	b = bytes.TrimSuffix(b, []byte("\n"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fmt.Errorf("line %d: the line is empty", d.line)
	}
	return b, nil
}

// long reads on where a line is longer than the buffer.
func (d *Decoder) long(line []byte) ([]byte, error) {
	for {
		more, err := d.r.ReadSlice('\n')
		line = append(line, more...)
		if len(line) > MaxLine {
			return nil, fmt.Errorf("the line is longer than %d bytes", MaxLine)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// strict decodes one JSON value with known fields only and nothing behind it.
func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the line breaks off in the middle of its JSON")
		}
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is more on the line behind the JSON value")
	}
	return nil
}

// ReadAll reads a whole history. On an error behind the header it returns the
// events before the bad line together with the error, since a run that died
// can still be judged by what it had recorded; the caller decides.
func ReadAll(r io.Reader) (*History, error) {
	d, err := NewDecoder(r)
	if err != nil {
		return nil, err
	}
	h := &History{Header: d.Header()}
	for {
		e, err := d.Decode()
		if err == io.EOF {
			return h, nil
		}
		if err != nil {
			return h, err
		}
		h.Events = append(h.Events, e)
	}
}

// WriteAll writes a whole history.
func WriteAll(w io.Writer, h *History) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	e, err := NewEncoder(buf, h.Header)
	if err != nil {
		return err
	}
	for _, ev := range h.Events {
		if err := e.Encode(ev); err != nil {
			return err
		}
	}
	return buf.Flush()
}

// SHA256 is the hash of the encoded bytes in hex: two runs with the same hash
// have the same file. It is empty for a history that cannot be encoded.
func (h *History) SHA256() string {
	sum := sha256.New()
	if err := WriteAll(sum, h); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
