package scenarios

import (
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Places knows where each value of a file stands, so that a mistake that shows
// only when the whole is known still has its line. A path is written
// "/runs/0/locks/1".
type Places struct{ d *decoder }

// Has says whether the file sets a path.
func (p *Places) Has(path string) bool { return p.d.has(path) }

// Fail reports a mistake at a path, or at what stands around it.
func (p *Places) Fail(path, format string, args ...any) { p.d.fail(path, format, args...) }

// Word checks a word against the right ones and reports it with the nearest.
func (p *Places) Word(path, word string, among []string) bool { return p.d.word(path, word, among) }

// ReadDocument reads YAML of another kind than a scenario into a struct, with
// the care that scenarios get: unknown keys and wrong words are errors with
// file, line, column and the nearest right word. Keys are the fields' yaml
// tags. Then check looks at the whole; the published schema comes last, so
// that it never refuses what the loader takes.
func ReadDocument(file string, data []byte, into any, schema *jsonschema.Schema, check func(*Places)) error {
	d := &decoder{file: file, at: map[string]position{}}
	if len(data) > maxFile {
		d.fail("", "the file has %d bytes, and at most %d are read", len(data), maxFile)
		return d.err()
	}
	root := d.parse(data)
	if root == nil {
		return d.err()
	}
	d.decode("", root, reflect.ValueOf(into).Elem())
	if len(d.errs) > 0 { // half a document has no meaning to check
		return d.err()
	}
	check(&Places{d})
	if len(d.errs) == 0 {
		d.refuse(schema, root)
	}
	return d.err()
}
