package scenarios

import (
	"bytes"
	_ "embed" // the schema
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed scenario.schema.json
var schema []byte

// Schema is the published JSON Schema (draft 2020-12) of scenario files, for
// editors and for checks without holdfast.
func Schema() []byte { return slices.Clone(schema) }

const schemaURL = "https://github.com/holdfast-io/holdfast/scenarios/scenario.schema.json"

var compiled = sync.OnceValue(func() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic(fmt.Sprintf("scenarios: the embedded schema is not JSON: %v", err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, doc); err != nil {
		panic(fmt.Sprintf("scenarios: %v", err))
	}
	return c.MustCompile(schemaURL)
})

// checkSchema reports what the published schema refuses.
func (d *decoder) checkSchema(root ast.Node) { d.refuse(compiled(), root) }

// refuse reports what a schema refuses.
func (d *decoder) refuse(schema *jsonschema.Schema, root ast.Node) {
	err := schema.Validate(plain(root))
	var refused *jsonschema.ValidationError
	if !errors.As(err, &refused) {
		return
	}
	// The innermost cause is the most telling; of alternatives the last is the
	// general one, such as a length that is not the bare 0.
	for len(refused.Causes) > 0 {
		refused = refused.Causes[len(refused.Causes)-1]
	}
	path := ""
	if len(refused.InstanceLocation) > 0 {
		path = "/" + strings.Join(refused.InstanceLocation, "/")
	}
	d.fail(path, "the schema refuses this: %s", refused.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// plain turns the tree into the values of JSON.
func plain(n ast.Node) any {
	switch n := n.(type) {
	case ast.MapNode:
		out := map[string]any{}
		for it := n.MapRange(); it.Next(); {
			out[it.Key().GetToken().Value] = plain(it.Value())
		}
		return out
	case *ast.SequenceNode:
		out := []any{}
		for _, item := range n.Values {
			out = append(out, plain(item))
		}
		return out
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode:
		return n.Value
	case *ast.FloatNode:
		return n.Value
	case *ast.NullNode:
		return nil
	}
	if s, ok := text(n); ok {
		return s
	}
	return n.GetToken().Value
}
