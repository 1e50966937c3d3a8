package scenarios

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

// Error is one mistake in a scenario file.
type Error struct {
	File string
	// Line and Column count from 1.
	Line, Column int
	Message      string
}

// Error gives the place in the form that editors and terminals follow.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// position in the file.
type position struct{ line, column int }

// decoder turns a YAML tree into values and remembers where each stood, so
// that a mistake found later, when all fields are known, still has its place.
// goccy's own decoder forgets the places and cannot name the nearest key.
type decoder struct {
	file string
	// at maps the path of a value ("/nemesis/0/when/op") to its place. A
	// path that is missing here was not written in the file.
	at   map[string]position
	errs []*Error
	// locks that there are; nil if that is not known.
	locks []string
}

// own is a type that reads itself from the tree.
type own interface {
	decodeYAML(d *decoder, path string, n ast.Node)
}

func topologyWords() []string {
	var words []string
	for _, t := range cluster.Topologies() {
		words = append(words, string(t))
	}
	return words
}

// words of each type that has a fixed set of them.
var wordsOf = map[reflect.Type][]string{
	reflect.TypeFor[cluster.Topology](): topologyWords(),
	reflect.TypeFor[cluster.CutMode]():  {string(cluster.Drop), string(cluster.Reset)},
	reflect.TypeFor[cluster.Data]():     {string(cluster.Keep), string(cluster.Lose), string(cluster.Fsynced)},
	reflect.TypeFor[cluster.Deed](): {
		string(cluster.LoseRequest), string(cluster.LoseReply), string(cluster.DelayRequest), string(cluster.DelayReply)},
	reflect.TypeFor[nemesis.Direction](): {
		string(nemesis.Requests), string(nemesis.Replies), string(nemesis.Both)},
	reflect.TypeFor[history.Type](): {
		string(history.Invoke), string(history.OK), string(history.Fail), string(history.Info), string(history.Note)},
}

// has says whether the file sets a path.
func (d *decoder) has(path string) bool {
	_, ok := d.at[path]
	return ok
}

// where is the place of a path, or of the nearest thing around it.
func (d *decoder) where(path string) position {
	for path != "" {
		if p, ok := d.at[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	return position{line: 1, column: 1}
}

func (d *decoder) failAt(p position, format string, args ...any) {
	d.errs = append(d.errs, &Error{
		File: d.file, Line: p.line, Column: p.column, Message: fmt.Sprintf(format, args...),
	})
}

func (d *decoder) fail(path, format string, args ...any) {
	d.failAt(d.where(path), format, args...)
}

// err joins what went wrong in the order of the file.
func (d *decoder) err() error {
	slices.SortStableFunc(d.errs, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	var all []error
	for _, e := range d.errs {
		all = append(all, e)
	}
	return errors.Join(all...)
}

// word checks a word against the right ones and reports it at a path.
func (d *decoder) word(path, word string, among []string) bool {
	if slices.Contains(among, word) {
		return true
	}
	d.fail(path, "%q is not right here%s", word, meant(word, among))
	return false
}

// decode fills a value from a node. v is addressable.
func (d *decoder) decode(path string, n ast.Node, v reflect.Value) {
	switch into := v.Addr().Interface().(type) {
	case own:
		into.decodeYAML(d, path, n)
		return
	case encoding.TextUnmarshaler:
		d.decodeText(path, n, into)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.decodeStruct(path, n, v)
	case reflect.Slice:
		d.decodeSlice(path, n, v)
	case reflect.String:
		s, ok := text(n)
		if !ok {
			d.fail(path, "here belongs a word, not %s", describe(n))
			return
		}
		if words := wordsOf[v.Type()]; words == nil || d.word(path, s, words) {
			v.SetString(s)
		}
	default:
		d.decodeScalar(path, n, v)
	}
}

func (d *decoder) decodeText(path string, n ast.Node, into encoding.TextUnmarshaler) {
	s, ok := text(n)
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode: // 0 is a span, and 5 gets the message of a span
		s, ok = n.GetToken().Value, true
	}
	if !ok {
		d.fail(path, "here belongs a length of time such as 1.5ttl or 300ms, not %s", describe(n))
		return
	}
	if err := into.UnmarshalText([]byte(s)); err != nil {
		d.fail(path, "%v", err)
	}
}

func (d *decoder) decodeScalar(path string, n ast.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
		d.fail(path, "here belongs true or false, not %s", describe(n))
	case reflect.Int:
		if i, ok := integer(n); ok {
			v.SetInt(i)
			return
		}
		d.fail(path, "here belongs a whole number, not %s", describe(n))
	case reflect.Float64:
		if i, ok := integer(n); ok {
			v.SetFloat(float64(i))
			return
		}
		if f, ok := n.(*ast.FloatNode); ok {
			v.SetFloat(f.Value)
			return
		}
		d.fail(path, "here belongs a number, not %s", describe(n))
	default:
		panic(fmt.Sprintf("scenarios: a field of type %v cannot be read", v.Type()))
	}
}

// integer reads a number that no field would outgrow.
func integer(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	const limit = 1 << 31
	switch x := i.Value.(type) {
	case int64:
		return x, -limit < x && x < limit
	case uint64:
		return int64(x), x < limit //nolint:gosec // the limit is checked
	}
	return 0, false
}

// decodeSlice reads a list. One word may stand for a list with one word, since
// nearly every list of targets has just one.
func (d *decoder) decodeSlice(path string, n ast.Node, v reflect.Value) {
	if _, ok := n.(*ast.SequenceNode); !ok {
		if s, ok := text(n); ok && v.Type() == reflect.TypeFor[[]string]() {
			v.Set(reflect.ValueOf([]string{s}))
			return
		}
	}
	items, ok := d.items(path, n)
	if !ok {
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.decode(fmt.Sprintf("%s/%d", path, i), item, out.Index(i))
	}
	v.Set(out)
}

// keyOf is a field's key in the file. Types of package history carry their
// names in JSON; a scenario writes them with hyphens as all its keys.
func keyOf(f reflect.StructField) string {
	if key, ok := f.Tag.Lookup("yaml"); ok {
		return key
	}
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.ReplaceAll(key, "_", "-")
}

func (d *decoder) decodeStruct(path string, n ast.Node, v reflect.Value) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	var keys []string
	fields := map[string]int{}
	for i := range v.NumField() {
		key := keyOf(v.Type().Field(i))
		keys = append(keys, key)
		fields[key] = i
	}
	for _, p := range pairs {
		i, ok := fields[p.key]
		if !ok {
			d.unknownKey(path, p, keys)
			continue
		}
		field := v.Field(i)
		d.decode(path+"/"+p.key, p.value, field)
		if words := v.Type().Field(i).Tag.Get("words"); words != "" && field.String() != "" {
			d.word(path+"/"+p.key, field.String(), strings.Split(words, ","))
		}
	}
}

// unknownKey names the nearest right key, or all of them.
func (d *decoder) unknownKey(path string, p pair, keys []string) {
	d.failAt(p.at, "there is no key %q%s%s", p.key, inside(path), meant(p.key, keys))
}

// inside says where a key stands: " in workload", or nothing at the top.
func inside(path string) string {
	for path != "" {
		i := strings.LastIndexByte(path, '/')
		if last := path[i+1:]; strings.Trim(last, "0123456789") != "" {
			return " in " + last
		}
		path = path[:i]
	}
	return ""
}
