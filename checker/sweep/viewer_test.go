package sweep

import (
	"bytes"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestView: the page holds the calls in the words that it was given, who held
// the lock, and the fault.
func TestView(t *testing.T) {
	ops := history(acquire(1, 1, 2), acquire(2, 3, 4), release(1, 5, 6), acquire(3, 4, 4).lost().leased(9))
	var calls []Shown
	for i, op := range ops {
		calls = append(calls, Shown{Op: op, Client: op.Hold, Who: []string{"ann", "bob", "ann", "eve"}[i], What: []string{"acquire, line 7", "acquire, line 9", "release", "acquire without answer"}[i]})
	}
	var page bytes.Buffer
	notes := []porcupine.Annotation{{Tag: "faults", Start: 2, End: Infinity, Description: "partition of n1"}}
	if err := View(&page, Rules{}, calls, notes); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ann: acquire, line 7", "bob: acquire, line 9", "ann: release", "eve: acquire without answer", "eve: lease may end", "partition of n1", "held by ann"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	if strings.Contains(page.String(), "9223372036854775807") {
		t.Error("the page draws up to the end of time")
	}
}
