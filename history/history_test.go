package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func header() Header {
	return Header{Schema: Schema, Scenario: "s", Lock: "basic", Resource: "plain", Clients: 2, TTL: 10 * time.Second,
		Abilities: []string{"fence"}, Versions: map[string]string{"b": "2", "a": "1"}}
}

func op(t int64, process int, client, f string, typ Type, acq int) Event {
	return Event{T: t, Op: &Op{Process: process, Client: client, F: f, Type: typ, Acq: acq}}
}

func sample() *History {
	fence, until := uint64(1<<63), int64(9)
	ok := op(2, 1, "c1", Acquire, OK, 1)
	ok.Op.Fence, ok.Op.Until = &fence, &until
	return &History{Header: header(), Events: []Event{
		op(1, 1, "c1", Acquire, Invoke, 1),
		ok,
		{T: 3, Nemesis: &Nemesis{ID: 1, Fault: "cut", Phase: Start, On: []string{"c1->n2"}}},
		{T: 4, Server: &Server{Node: "n1", Cmd: "SET", Key: "lock:a", Owner: "c1#1", PTTL: 10}},
		{T: 5, Resource: &Resource{Client: "c1", Process: 1, Acq: 1, F: Write, Applied: true, Version: 1}},
	}}
}

func TestRoundTrip(t *testing.T) {
	h := sample()
	var a, b bytes.Buffer
	if err := WriteAll(&a, h); err != nil {
		t.Fatal(err)
	}
	back, err := ReadAll(bytes.NewReader(a.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(h, back) {
		t.Errorf("read back\n%+v\nwant\n%+v", back, h)
	}
	if err := WriteAll(&b, back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same history gave different bytes")
	}
	if h.SHA256() != back.SHA256() || len(h.SHA256()) != 64 {
		t.Errorf("hashes %q and %q", h.SHA256(), back.SHA256())
	}
	back.Events[0].T = 0
	if h.SHA256() == back.SHA256() {
		t.Error("different histories have the same hash")
	}
	if !strings.Contains(a.String(), `"c1->n2"`) {
		t.Errorf("links are not readable in %s", a.String())
	}
}

func TestReadErrors(t *testing.T) {
	var buf bytes.Buffer
	if err := WriteAll(&buf, sample()); err != nil {
		t.Fatal(err)
	}
	whole := buf.String()
	head, _, _ := strings.Cut(whole, "\n")
	head += "\n"
	tests := []struct {
		name, file, want string
		events           int
		truncated        bool
	}{
		{name: "empty", file: "", want: "line 1: the file is empty"},
		{name: "wrong schema", file: `{"schema":"holdfast/history/v9","new":1}` + "\n", want: `line 1: the schema is "holdfast/history/v9"`},
		{name: "no JSON", file: "hello\n", want: "line 1: the header is not readable"},
		{name: "unknown header field", file: `{"schema":"` + Schema + `","colour":1}` + "\n", want: `line 1: the header is not readable: json: unknown field "colour"`},
		{name: "unknown field", file: head + `{"t":1,"op":{"proces":1}}` + "\n", want: `line 2: json: unknown field "proces"`},
		{name: "no part", file: head + `{"t":1}` + "\n", want: "line 2: an event has exactly one of op"},
		{name: "two parts", file: head + `{"t":1,"op":{},"server":{}}` + "\n", want: "this one has 2"},
		{name: "empty line", file: head + "\n", want: "line 2: the line is empty"},
		{name: "two values", file: head + `{"t":1,"op":{}} {}` + "\n", want: "line 2: there is more on the line"},
		{name: "half a line inside", file: head + `{"t":1,"op":{` + "\n" + `{"t":1,"op":{}}` + "\n", want: "line 2: the line breaks off"},
		{name: "wrong type", file: head + `{"t":"x","op":{}}` + "\n", want: "line 2: json: cannot unmarshal"},
		{name: "half a last line", file: whole[:len(whole)-9], want: "line 6: truncated", events: 4, truncated: true},
		{name: "no last newline", file: whole[:len(whole)-1], want: "line 6: truncated", events: 4, truncated: true},
		{name: "too long", file: head + strings.Repeat("x", MaxLine+2) + "\n", want: "line 2: the line is longer than"},
		{name: "too long without end", file: strings.Repeat("x", MaxLine+2), want: "line 1: the line is longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := ReadAll(strings.NewReader(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if errors.Is(err, ErrTruncated) != tt.truncated {
				t.Errorf("truncated is %v, want %v", !tt.truncated, tt.truncated)
			}
			if h != nil && len(h.Events) != tt.events {
				t.Errorf("%d events before the error, want %d", len(h.Events), tt.events)
			}
		})
	}
}

func TestLongButLegalLine(t *testing.T) {
	h := sample()
	h.Events[0].Op.Error = strings.Repeat("e", 200_000)
	var buf bytes.Buffer
	if err := WriteAll(&buf, h); err != nil {
		t.Fatal(err)
	}
	if back, err := ReadAll(&buf); err != nil || !reflect.DeepEqual(h, back) {
		t.Errorf("a line longer than the buffer did not come back: %v", err)
	}
}

func TestDecoderErrorIsFinal(t *testing.T) {
	var buf bytes.Buffer
	if err := WriteAll(&buf, &History{Header: header()}); err != nil {
		t.Fatal(err)
	}
	buf.WriteString("{}\n" + `{"t":1,"op":{}}` + "\n")
	d, err := NewDecoder(&buf)
	if err != nil {
		t.Fatal(err)
	}
	_, first := d.Decode()
	_, second := d.Decode()
	if first == nil || second != first || d.Line() != 2 {
		t.Errorf("errors %v then %v on line %d", first, second, d.Line())
	}
}

func TestEncoderRefusesWhatNoDecoderTakes(t *testing.T) {
	e, err := NewEncoder(io.Discard, header())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Encode(Event{T: 1}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("an event without a part was encoded: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	if err := WriteAll(&buf, sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add(buf.Bytes()[:buf.Len()/2])
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadAll(bytes.NewReader(b))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("the error names no line: %v", err)
			}
			return
		}
		Validate(h)
		var out bytes.Buffer
		if err := WriteAll(&out, h); err != nil {
			t.Fatalf("a history that was read cannot be written: %v", err)
		}
		back, err := ReadAll(&out)
		if err != nil || h.SHA256() != back.SHA256() {
			t.Fatalf("a history changed on its way: %v", err)
		}
	})
}

func TestRecorder(t *testing.T) {
	now := int64(0)
	r := NewRecorder(func() int64 { now++; return now })
	r.SetHeader(header())
	var seen []string
	r.Observe(func(e Event) {
		seen = append(seen, fmt.Sprintf("a%d", e.T))
		if e.T == 1 && e.Op.Client == "c1" {
			// An observer may record: a fault that starts on this event.
			r.Record(Event{Nemesis: &Nemesis{Fault: "pause", Phase: Start}})
		}
	})
	r.Observe(func(e Event) { seen = append(seen, fmt.Sprintf("b%d", e.T)) })

	if got := r.Record(op(99, 1, "c1", Acquire, Invoke, 1)); got.T != 1 {
		t.Errorf("stamped %d, want 1", got.T)
	}
	if want := []string{"a1", "a2", "b2", "b1"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("observed %v, want %v", seen, want)
	}
	r.Append(op(1, 2, "c2", Acquire, Invoke, 2))
	if len(r.History().Events) != 3 {
		t.Errorf("%d events, want 3", len(r.History().Events))
	}
	h := r.Finish()
	var order []int64
	for _, e := range h.Events {
		order = append(order, e.T)
	}
	if want := []int64{1, 1, 2}; !reflect.DeepEqual(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if h.Events[0].Op.Process != 1 || h.Events[1].Op.Process != 2 {
		t.Error("events of one instant changed places")
	}
	r.Record(op(0, 1, "c1", Acquire, OK, 1))
	if len(r.Events()) != 3 || r.Dropped() != 1 {
		t.Errorf("%d events and %d dropped after the end, want 3 and 1", len(r.Events()), r.Dropped())
	}
}

func TestRecorderManyGoroutines(t *testing.T) {
	var mu sync.Mutex
	now := int64(0)
	r := NewRecorder(func() int64 { mu.Lock(); defer mu.Unlock(); now++; return now })
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for range 1000 {
				r.Record(op(0, p, "c", Read, Invoke, 1))
			}
		})
	}
	wg.Wait()
	last := int64(0)
	for _, e := range r.Events() {
		if e.T <= last {
			t.Fatalf("%d after %d: stamps and order disagree", e.T, last)
		}
		last = e.T
	}
	if last != 8000 {
		t.Errorf("last stamp %d, want 8000", last)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder(func() int64 { return 1 })
	e := op(0, 1, "c1", Read, Invoke, 1)
	for b.Loop() {
		r.Record(e)
	}
}
