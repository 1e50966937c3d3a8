package scenarios

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parse gives the tree of a file that holds one document. The parser is not
// ours and reads whatever a user hands in, so its panics are errors too.
func (d *decoder) parse(data []byte) (root ast.Node) {
	defer func() {
		if p := recover(); p != nil {
			root = nil
			d.failAt(position{line: 1, column: 1}, "this is not YAML: %v", p)
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		at, message := position{line: 1, column: 1}, err.Error()
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			message = syntax.GetMessage()
			if t := syntax.GetToken(); t != nil {
				at = placeOf(t)
			}
		}
		d.failAt(at, "this is not YAML: %s", message)
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.CommentGroupType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		d.failAt(position{line: 1, column: 1}, "the file is empty")
		return nil
	case 1:
		return bodies[0]
	}
	d.failAt(place(bodies[1]), "this is a second document, and a file holds one")
	return nil
}

func placeOf(t *token.Token) position {
	if t == nil || t.Position == nil || t.Position.Line < 1 {
		return position{line: 1, column: 1}
	}
	return position{line: t.Position.Line, column: max(t.Position.Column, 1)}
}

// place of a node: its own, and for a map or list in block style that of the
// first thing in it.
func place(n ast.Node) position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if n.IsFlowStyle {
			return placeOf(n.Start)
		}
		if len(n.Values) > 0 {
			return placeOf(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return placeOf(n.Key.GetToken())
	case *ast.SequenceNode:
		if n.IsFlowStyle || len(n.Values) == 0 {
			return placeOf(n.Start)
		}
		return place(n.Values[0])
	}
	return placeOf(n.GetToken())
}

// inLine says that a value stands beside its key and not below it.
func inLine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.IsFlowStyle
	case *ast.SequenceNode:
		return n.IsFlowStyle
	case *ast.MappingValueNode, *ast.NullNode:
		return false
	}
	return true
}

// describe names what stands there for a message.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case ast.MapNode:
		return "a map"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "an anchor, alias or tag, which scenarios do not use"
	default:
		return n.GetToken().Value
	}
}

// pair is one key of a map with its value.
type pair struct {
	key   string
	at    position
	value ast.Node
}

// pairs lists a map. The place of a value is known before it is decoded.
func (d *decoder) pairs(path string, n ast.Node) ([]pair, bool) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.fail(path, "here belongs a map, not %s", describe(n))
		return nil, false
	}
	var out []pair
	for it := m.MapRange(); it.Next(); {
		key, ok := it.Key().(*ast.StringNode)
		at := placeOf(it.Key().GetToken())
		if !ok { // a key that stands twice is a syntax error and does not come here
			d.failAt(at, "a key is a plain word, not %s", it.Key().GetToken().Value)
			continue
		}
		p := pair{key: key.Value, at: at, value: it.Value()}
		d.at[path+"/"+p.key] = at
		if inLine(p.value) {
			d.at[path+"/"+p.key] = place(p.value)
		}
		out = append(out, p)
	}
	return out, true
}

// items lists a sequence.
func (d *decoder) items(path string, n ast.Node) ([]ast.Node, bool) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(path, "here belongs a list, not %s", describe(n))
		return nil, false
	}
	for i, item := range s.Values {
		d.at[fmt.Sprintf("%s/%d", path, i)] = place(item)
	}
	return s.Values, true
}

// text is a scalar that was meant as text.
func text(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}
