package scenarios

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-io/holdfast/nemesis"
)

// Encode writes a scenario as a file that [Parse] reads back to an equal
// value. It is for scenarios that a program made up. A value that no file can
// hold, such as a span with both parts, is an error; mistakes that Parse finds
// are left to Parse.
func Encode(s *Scenario) ([]byte, error) {
	e := &encoder{}
	doc := yaml.MapSlice{}
	put := func(key string, value any) { doc = append(doc, yaml.MapItem{Key: key, Value: value}) }
	put("name", s.Name)
	put("about", s.About)
	if s.Source != "" {
		put("source", s.Source)
	}
	put("topology", e.value(reflect.ValueOf(s.Topology)))
	if len(s.Nodes) > 0 {
		put("nodes", e.value(reflect.ValueOf(s.Nodes)))
	}
	if x := e.set(reflect.ValueOf(s.Servers)); len(x) > 0 {
		put("servers", x)
	}
	put("clients", s.Clients)
	put("locks", s.Locks)
	// The workload and the final phase are written in full: a zero in them is
	// not what a file gets that leaves the key out.
	put("workload", e.all(reflect.ValueOf(s.Workload)))
	put("length", e.value(reflect.ValueOf(s.Length)))
	var steps []yaml.MapSlice
	for _, st := range s.Nemesis {
		steps = append(steps, e.step(st))
	}
	if len(steps) > 0 {
		put("nemesis", steps)
	}
	put("final", e.all(reflect.ValueOf(s.Final)))
	if len(s.Expect) > 0 {
		put("expect", e.expect(s.Expect))
	}
	if c := e.set(reflect.ValueOf(s.Coverage)); len(c) > 0 {
		put("coverage", c)
	}
	if e.err != nil {
		return nil, fmt.Errorf("encode scenario %s: %w", s.Name, e.err)
	}
	out, err := yaml.MarshalWithOptions(doc, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("encode scenario %s: %w", s.Name, err)
	}
	return out, nil
}

// encoder turns values into what the YAML library writes, in the order of
// their fields.
type encoder struct{ err error }

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *encoder) value(v reflect.Value) any {
	if span, ok := v.Interface().(nemesis.Span); ok && span.TTLs != 0 && span.Fixed != 0 {
		e.fail("the span %v has two parts, and in a file a span has one", span)
	}
	if r, ok := v.Interface().(LockRetries); ok {
		return r.N // a number, and no text in quotes
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			e.fail("%w", err)
		}
		return string(b)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = e.value(v.Index(i))
		}
		return out
	case reflect.Map:
		return e.sorted(v)
	case reflect.Struct:
		return e.set(v)
	}
	return v.Interface()
}

// sorted writes a map whose keys are words.
func (e *encoder) sorted(v reflect.Value) yaml.MapSlice {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	out := yaml.MapSlice{}
	for _, k := range keys {
		out = append(out, yaml.MapItem{Key: k.String(), Value: e.value(v.MapIndex(k))})
	}
	return out
}

// all writes every field of a struct, set only those that are not zero.
func (e *encoder) all(v reflect.Value) yaml.MapSlice { return e.fields(v, true) }
func (e *encoder) set(v reflect.Value) yaml.MapSlice { return e.fields(v, false) }

func (e *encoder) fields(v reflect.Value, zeros bool) yaml.MapSlice {
	out := yaml.MapSlice{}
	for i := range v.NumField() {
		f := v.Field(i)
		// An empty word or list and a count of zero are never right in a file;
		// what they stand for is the default.
		if f.IsZero() && (!zeros || slices.Contains(notZero, f.Kind()) || optional(f)) {
			continue
		}
		out = append(out, yaml.MapItem{Key: keyOf(v.Type().Field(i)), Value: e.value(f)})
	}
	return out
}

// notZero are the kinds of value of which a file never has the zero.
var notZero = []reflect.Kind{reflect.String, reflect.Slice, reflect.Int}

// optional says whether leaving a field out is the only way to write its zero.
func optional(f reflect.Value) bool {
	switch f.Interface().(type) {
	case LockTTL, LockRetries:
		return true
	}
	return false
}

func (e *encoder) step(st nemesis.Step) yaml.MapSlice {
	when := e.set(reflect.ValueOf(trigger(st.When)))
	if len(when) == 0 { // the beginning of the run
		when = append(when, yaml.MapItem{Key: "at", Value: nemesis.Span{}.String()})
	}
	out := yaml.MapSlice{{Key: "when", Value: when}}
	if !st.For.IsZero() {
		out = append(out, yaml.MapItem{Key: "for", Value: e.value(reflect.ValueOf(st.For))})
	}
	if len(st.Topologies) > 0 {
		out = append(out, yaml.MapItem{Key: "topologies", Value: e.value(reflect.ValueOf(st.Topologies))})
	}
	if st.Fault == nil {
		e.fail("a step has no fault")
		return out
	}
	return append(out, yaml.MapItem{Key: st.Fault.Kind(), Value: e.set(reflect.ValueOf(st.Fault))})
}

// expect writes the long form, which holds for every expectation.
func (e *encoder) expect(x Expect) yaml.MapSlice {
	out := yaml.MapSlice{}
	for _, lock := range slices.Sorted(maps.Keys(x)) {
		out = append(out, yaml.MapItem{Key: lock, Value: e.sorted(reflect.ValueOf(x[lock]))})
	}
	return out
}
