package sweep

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Shown is a call in porcupine's viewer.
type Shown struct {
	Op
	// Client is the lane, from 0.
	Client int
	// Who called, and What in the words of the history.
	Who, What string
}

// viewerPatience is how long porcupine may look for the longest part of the
// calls that can be explained. Without it the viewer shows the calls alone.
const viewerPatience = 2 * time.Second

// View writes an HTML page of porcupine's viewer with the calls, how far they can
// be explained, and annotations. It is for few calls: porcupine searches, and
// the page is drawn by a browser.
func View(w io.Writer, rules Rules, calls []Shown, notes []porcupine.Annotation) error {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b Shown) int { return cmp.Compare(a.Call, b.Call) })
	ops := make([]Op, len(calls))
	shown := map[int]Shown{}
	end := int64(0) // of what has one
	for i, c := range calls {
		c.ID = i
		ops[i] = c.Op
		ops[i].ID = i
		shown[i] = c
		end = max(end, c.Call)
		if c.Outcome != Unknown {
			end = max(end, c.Return)
		}
	}
	model, history := referenceFor(rules, ops)
	for i := range history {
		in := history[i].Input.(refInput)
		c := shown[in.op.ID]
		history[i].ClientId = c.Client
		in.label = fmt.Sprintf("%s: %s", c.Who, c.What)
		if in.expiry {
			in.label = fmt.Sprintf("%s: lease may end", c.Who)
		}
		history[i].Input = in
		if history[i].Return == Infinity {
			// Open ends are drawn to just behind everything else. Porcupine gives
			// two calls of a client that share a time one lane each.
			history[i].Return = max(end, history[i].Call) + 1
		}
	}
	model.DescribeOperation = func(input, _ any) string { return input.(refInput).label }
	model.DescribeState = func(state any) string { return describe(state, ops, shown) }
	_, info := porcupine.CheckOperationsVerbose(model, history, viewerPatience)
	for i := range notes {
		notes[i].End = min(notes[i].End, end+1)
	}
	info.AddAnnotations(notes)
	if err := porcupine.Visualize(model, info, w); err != nil {
		return fmt.Errorf("draw with porcupine: %w", err)
	}
	return nil
}

// describe says who holds in the states that porcupine keeps, which are all that
// the calls so far leave possible.
func describe(state any, ops []Op, shown map[int]Shown) string {
	var acquires []Op
	for _, op := range ops {
		if op.acquires() && op.Outcome != Busy {
			acquires = append(acquires, op)
		}
	}
	var ways []string
	for _, s := range state.([]any) {
		var who []string
		for i, c := range s.(refState).holds {
			if c == 'h' {
				who = append(who, shown[acquires[i].ID].Who)
			}
		}
		way := "free"
		if len(who) > 0 {
			way = "held by " + strings.Join(who, ", ")
		}
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	return strings.Join(ways, ", or ")
}
