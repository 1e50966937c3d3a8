package reports

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-io/holdfast/history"
)

var update = flag.Bool("update", false, "write the golden files anew")

var stories = map[string]func() (Run, *history.History){
	"kleppmann": kleppmann, "clock-jump": clockJump, "calm": calm, "died": died, "unproven": unproven,
}

// golden compares with testdata/name and shows both where they differ.
func golden(t *testing.T, name string, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew)\n--- got\n%s\n--- want\n%s", path, got, want)
	}
	return b.String()
}

func TestTextGolden(t *testing.T) {
	for name, story := range stories {
		run, h := story()
		for _, width := range []struct {
			name string
			cols int
		}{{"", 0}, {"-60", 60}} {
			out := golden(t, name+width.name+".txt", func(w io.Writer) error {
				return Text(w, run, h, TextOptions{Width: width.cols})
			})
			if strings.Contains(out, "\x1b") {
				t.Errorf("%s: an escape sequence without colour", name)
			}
			if first, _, _ := strings.Cut(out, "\n"); first != run.Repeat {
				t.Errorf("%s: the first line is %q, not the command that repeats the run", name, first)
			}
			for line := range strings.Lines(out) {
				line = strings.TrimRight(line, "\n")
				if width.cols > 0 && len(line) > width.cols && strings.Contains(line, " ") &&
					!strings.HasPrefix(line, "holdfast run") && !strings.HasPrefix(line, "sha256") && !strings.HasPrefix(line, "history") {
					t.Errorf("%s: %d columns: %s", name, len(line), line)
				}
			}
		}
	}
}

// allRuns are the stories in a fixed order, with more seeds of the calm one.
func allRuns() []Run {
	var runs []Run
	for _, name := range []string{"kleppmann", "clock-jump", "calm", "died", "unproven"} {
		r, _ := stories[name]()
		runs = append(runs, r)
	}
	for seed := range 3 {
		r, _ := calm()
		r.Seed = uint64(8 + seed)
		r.Repeat = strings.Replace(r.Repeat, "--seed 7", "--seed "+string(rune('8'+seed)), 1)
		runs = append(runs, r)
	}
	return runs
}

var claims = []Claim{
	{Lock: "basic", Claim: "tolerance of GC pauses", Promise: "high", Scenarios: []string{"kleppmann-gc-pause"}},
	{Lock: "basic", Claim: "keeps to its clock", Promise: "no", Scenarios: []string{"clock-jump"}},
	{Lock: "redlock", Claim: "survives the loss of a node", Promise: "yes", Scenarios: []string{"calm", "partition-minority"}},
	{Lock: "watchdog", Claim: "tolerance of GC pauses", Promise: "medium", Scenarios: []string{"kleppmann-gc-pause"}},
	{Lock: "service", Claim: "survives the loss of a node", Promise: "optional"},
}

func TestManyGolden(t *testing.T) {
	runs := allRuns()
	m := MatrixOf(runs, []string{"basic", "reentrant"}, []string{"calm"}, claims)
	histories := func(r Run) *history.History {
		for _, story := range stories {
			if same, h := story(); same.Repeat == r.Repeat {
				return h
			}
		}
		return nil
	}
	golden(t, "summary.txt", func(w io.Writer) error { return Summary(w, runs, TextOptions{}) })
	golden(t, "runs.md", func(w io.Writer) error { return Markdown(w, runs, histories) })
	golden(t, "matrix.txt", func(w io.Writer) error { return m.Text(w, TextOptions{}) })
	golden(t, "matrix-60.txt", func(w io.Writer) error { return m.Text(w, TextOptions{Width: 60}) })
	golden(t, "matrix.md", func(w io.Writer) error { return m.Markdown(w) })
	golden(t, "matrix.json", func(w io.Writer) error { return m.JSON(w) })
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("verdict.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("verdict.schema.json")
}

func TestJSONFollowsItsSchema(t *testing.T) {
	schema := compileSchema(t)
	for name, d := range map[string]Document{
		"runs.json":  {Runs: allRuns()},
		"empty.json": {},
	} {
		out := golden(t, name, func(w io.Writer) error { return JSON(w, d) })
		inst, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(inst); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var back Document
		if err := json.Unmarshal([]byte(out), &back); err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := JSON(&again, back); err != nil || again.String() != out {
			t.Errorf("%s: reading and writing it again changes it (%v)", name, err)
		}
	}
	// Lists that nobody filled must not become null, and the schema must bite.
	var bare bytes.Buffer
	if err := JSON(&bare, Document{Runs: []Run{{Verdict: "pass"}}}); err != nil {
		t.Fatal(err)
	}
	inst, _ := jsonschema.UnmarshalJSON(bytes.NewReader(bare.Bytes()))
	if err := schema.Validate(inst); err != nil {
		t.Errorf("a bare run: %v", err)
	}
	wrong, _ := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(bare.String(), `"pass"`, `"passed"`, 1)))
	if schema.Validate(wrong) == nil {
		t.Error("the schema accepts a verdict that does not exist")
	}
}
