package scenarios

import (
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

var typeOfTopology = reflect.TypeFor[cluster.Topology]()

// step is one item of the nemesis list: a fault under its own key, and beside
// it when it starts, for how long, and in which topologies.
type step struct{ nemesis.Step }

// stepKeys stand beside the fault.
var stepKeys = []string{"when", "for", "topologies"}

// faultKinds are the keys of faults, in the order of the documentation.
func faultKinds() []string {
	var out []string
	for _, f := range nemesis.Kinds() {
		out = append(out, f.Kind())
	}
	return out
}

func (s *step) decodeYAML(d *decoder, path string, n ast.Node) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	var faults []pair
	for _, p := range pairs {
		at := path + "/" + p.key
		switch {
		case p.key == "when":
			var t trigger
			d.decode(at, p.value, reflect.ValueOf(&t).Elem())
			s.When = t.of()
		case p.key == "for":
			d.decode(at, p.value, reflect.ValueOf(&s.For).Elem())
		case p.key == "topologies":
			d.decodeSlice(at, p.value, reflect.ValueOf(&s.Topologies).Elem())
		case slices.Contains(faultKinds(), p.key):
			faults = append(faults, p)
		default:
			d.failAt(p.at, "there is no fault %q%s", p.key, meant(p.key, append(faultKinds(), stepKeys...)))
			return
		}
	}
	if !d.has(path + "/when") {
		d.fail(path, "when does it start? write when: {at: 1ttl} or the event that starts it")
	}
	switch len(faults) {
	case 0:
		d.fail(path, "what breaks? an item has one fault: %s", list(faultKinds()))
	case 1:
		s.Fault = d.fault(path+"/"+faults[0].key, faults[0])
	default:
		d.failAt(faults[1].at, "an item has one fault, and this one has %s already", faults[0].key)
	}
}

// fault reads the parameters into a fault of the kind that the key names.
func (d *decoder) fault(path string, p pair) nemesis.Fault {
	i := slices.Index(faultKinds(), p.key)
	v := reflect.New(reflect.TypeOf(nemesis.Kinds()[i])).Elem()
	if m, ok := p.value.(ast.MapNode); ok {
		for it := m.MapRange(); it.Next(); {
			// The one mistake that everybody makes: the length of a fault is
			// the step's, and reads like the fault's.
			if key := it.Key().GetToken(); slices.Contains(stepKeys, key.Value) {
				d.failAt(placeOf(key), "%q stands beside %s and not inside it", key.Value, p.key)
				return nil
			}
		}
	}
	d.decode(path, p.value, v)
	return v.Interface().(nemesis.Fault)
}

// trigger is [nemesis.Trigger] as files have it.
type trigger struct {
	At      nemesis.Span `yaml:"at"`
	Op      string       `yaml:"op"`
	Type    history.Type `yaml:"type"`
	Command string       `yaml:"command"`
	Node    string       `yaml:"node"`
	Client  string       `yaml:"client"`
	Nth     int          `yaml:"nth"`
	After   nemesis.Span `yaml:"after"`
}

func (t trigger) of() nemesis.Trigger {
	if slices.Contains(notes, t.Op) && t.Type == "" {
		t.Type = history.Note // a note has no other type, so it need not be said
	}
	return nemesis.Trigger{
		At: t.At, Op: t.Op, Type: t.Type, Command: t.Command, Node: t.Node,
		Client: t.Client, Nth: t.Nth, After: t.After,
	}
}

// Events of clients that a trigger may name.
var (
	ops   = []string{history.Acquire, history.Release, history.Extend, history.Read, history.Write}
	notes = []string{history.Worked, history.Check, history.Abandon, history.Lost, history.Crash}
)
