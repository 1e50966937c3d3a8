package scenarios

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// TestSchemaAndLoaderAgree: both take the embedded files, and both refuse the
// files with mistakes, save those that a schema cannot see.
func TestSchemaAndLoaderAgree(t *testing.T) {
	takes := func(file string) bool {
		d := &decoder{file: "f.yaml", at: map[string]position{}}
		root := d.parse([]byte(file))
		if root == nil {
			return false
		}
		d.checkSchema(root)
		return len(d.errs) == 0
	}
	for _, name := range Names() {
		data, err := files.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !takes(string(data)) {
			t.Errorf("the schema refuses %s", name)
		}
	}
	if !takes(full) {
		t.Error("the schema refuses a file with every key")
	}
	for _, c := range bad {
		if takes(c.file) != c.schemaTakes {
			t.Errorf("%s: the schema takes it: %v, want %v", c.name, !c.schemaTakes, c.schemaTakes)
		}
	}
	for _, c := range badSteps {
		if takes(stepFile(c.step)) != c.schemaTakes {
			t.Errorf("%s: the schema takes it: %v, want %v", c.name, !c.schemaTakes, c.schemaTakes)
		}
	}
}

// TestSchemaRefusesWithAPlace guards the last check of Parse, which no file
// should reach: what the schema refuses has its place too.
func TestSchemaRefusesWithAPlace(t *testing.T) {
	d := &decoder{file: "f.yaml", at: map[string]position{"/clients": {line: 3, column: 10}}}
	d.checkSchema(d.parse([]byte("name: x\nabout: A.\nclients: 0\n")))
	if want := "f.yaml:3:10: the schema refuses this: minimum: got 0, want 1"; d.err() == nil || d.err().Error() != want {
		t.Errorf("got %v, want %s", d.err(), want)
	}
}

func TestSchemaNamesEveryWord(t *testing.T) {
	var doc struct {
		Schema     string `json:"$schema"`
		Properties map[string]json.RawMessage
		Defs       map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("the schema is of draft %s", doc.Schema)
	}
	want := append(faultKinds(), stepKeys...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(doc.Defs["step"].Properties)); !slices.Equal(got, want) {
		t.Errorf("a step of the schema has %v, want %v", got, want)
	}
	for _, check := range checks {
		got := doc.Defs["expectation"].Properties[check].Enum
		if want := values(check); len(kinds[check]) > 0 && !slices.Equal(got, want) {
			t.Errorf("the schema expects %v of %s, want %v", got, check, want)
		}
	}
	Schema()[0] = 'x'
	if !bytes.HasPrefix(Schema(), []byte("{")) {
		t.Error("a caller can change the schema")
	}
}
