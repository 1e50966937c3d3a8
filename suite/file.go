package suite

import (
	"bytes"
	"cmp"
	_ "embed" // the schema
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/scenarios"
)

// FileName is where a gate looks for its suite when none is named.
const FileName = "holdfast.yaml"

//go:embed suite.schema.json
var schema []byte

// Schema is the published JSON Schema (draft 2020-12) of suite files.
func Schema() []byte { return slices.Clone(schema) }

const schemaURL = "https://github.com/holdfast-io/holdfast/suite/suite.schema.json"

var compiled = sync.OnceValue(func() *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic(fmt.Sprintf("suite: the embedded schema is not JSON: %v", err))
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, doc); err != nil {
		panic(fmt.Sprintf("suite: %v", err))
	}
	return c.MustCompile(schemaURL)
})

// document is a suite as its file has it.
type document struct {
	Name     string   `yaml:"name"`
	Baseline string   `yaml:"baseline"`
	On       string   `yaml:"on" words:"sim,process"`
	Seed     int      `yaml:"seed"`
	Seeds    int      `yaml:"seeds"`
	TTL      duration `yaml:"ttl"`
	Runs     []item   `yaml:"runs"`
}

// item is an entry as the file has it.
type item struct {
	Locks     []string `yaml:"locks"`
	Scenarios []string `yaml:"scenarios"`
	Topology  string   `yaml:"topology" words:"single,replicated,independent,sentinel,cluster"`
	Seed      int      `yaml:"seed"`
	Seeds     int      `yaml:"seeds"`
	TTL       duration `yaml:"ttl"`
}

// duration is written 500ms, 10s or 2m.
type duration time.Duration

// UnmarshalText reads a duration from a suite file.
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write 500ms, 10s or 2m", b)
	}
	*d = duration(v)
	return nil
}

// The bounds of a TTL: below the least the network's own latency decides the
// run, and a scenario lasts several TTLs.
const (
	LeastTTL = 20 * time.Millisecond
	MostTTL  = 24 * time.Hour
)

// ReadFile reads a suite from a file.
func ReadFile(path string) (*Suite, error) {
	data, err := scenarios.ReadText("suite", path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a suite. The error joins all mistakes, each with file, line and
// column.
func Parse(path string, data []byte) (*Suite, error) {
	doc := document{On: string(cluster.Sim), Seed: 1, Seeds: 1}
	if err := scenarios.ReadDocument(path, data, &doc, compiled(), func(p *scenarios.Places) { doc.check(path, p) }); err != nil {
		return nil, err
	}
	s := &Suite{Name: doc.Name, File: path, World: doc.On}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if doc.Baseline != "" {
		s.Baseline = beside(path, doc.Baseline)
	}
	for _, it := range doc.Runs {
		names, _ := Locks(it.Locks)
		e := Entry{
			Locks: names, Topology: it.Topology, Seed: uint64(it.Seed), Seeds: it.Seeds, //nolint:gosec // checked to be positive
			TTL: time.Duration(it.TTL),
		}
		for _, name := range it.Scenarios {
			e.Scenarios = append(e.Scenarios, scenarioPath(path, name))
		}
		if len(it.Scenarios) == 0 {
			e.Scenarios, e.Fitting = scenarios.NamesIn(cmp.Or(cluster.World(doc.On), cluster.Sim)), true
		}
		s.Entries = append(s.Entries, e)
	}
	return s, nil
}

// check looks at the whole and hands the defaults down to the entries.
func (doc *document) check(path string, p *scenarios.Places) {
	numbers(p, "", doc.Seed, doc.Seeds, doc.TTL)
	if p.Has("/baseline") && doc.Baseline == "" {
		p.Fail("/baseline", "here belongs the path of a file")
	}
	if len(doc.Runs) == 0 {
		p.Fail("/runs", "what shall be played? write runs: with a list of locks and scenarios")
	}
	for i := range doc.Runs {
		it, at := &doc.Runs[i], fmt.Sprintf("/runs/%d", i)
		if !p.Has(at + "/seed") {
			it.Seed = doc.Seed
		}
		if !p.Has(at + "/seeds") {
			it.Seeds = doc.Seeds
		}
		if !p.Has(at + "/ttl") {
			it.TTL = doc.TTL
		}
		numbers(p, at, it.Seed, it.Seeds, it.TTL)
		for j, word := range it.Locks {
			if _, wrong := Locks([]string{word}); wrong != "" {
				p.Word(listed(p, at+"/locks", j), word, append(LockNames(), Groups()...))
			}
		}
		for j, name := range it.Scenarios {
			checkScenario(p, listed(p, at+"/scenarios", j), path, name)
		}
		for _, list := range []struct {
			key string
			n   int
		}{{"locks", len(it.Locks)}, {"scenarios", len(it.Scenarios)}} {
			if p.Has(at+"/"+list.key) && list.n == 0 {
				p.Fail(at+"/"+list.key, "the list is empty: leave %s out to play all that fit", list.key)
			}
		}
	}
}

// listed is the path of an item, or of the word that stands for a list of one.
func listed(p *scenarios.Places, list string, i int) string {
	if at := fmt.Sprintf("%s/%d", list, i); p.Has(at) {
		return at
	}
	return list
}

// numbers checks what the file and its entries have in common.
func numbers(p *scenarios.Places, at string, seed, seeds int, ttl duration) {
	if p.Has(at+"/seed") && seed < 0 {
		p.Fail(at+"/seed", "a seed is a whole number from 0 up")
	}
	if p.Has(at+"/seeds") && (seeds < 1 || seeds > MaxRuns) {
		p.Fail(at+"/seeds", "here belongs a number from 1 to %d", MaxRuns)
	}
	if d := time.Duration(ttl); p.Has(at+"/ttl") && (d < LeastTTL || d > MostTTL) {
		p.Fail(at+"/ttl", "here belongs a duration from %v to %v", LeastTTL, MostTTL)
	}
}

func checkScenario(p *scenarios.Places, at, path, name string) {
	if !isFile(name) {
		p.Word(at, name, scenarios.Names())
		return
	}
	if _, err := scenarios.ReadFile(beside(path, name)); err != nil {
		p.Fail(at, "%v", err)
	}
}

// isFile tells a file from a built-in name, as the command line does.
func isFile(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// scenarioPath is a built-in name, or a path that can be opened.
func scenarioPath(path, name string) string {
	if isFile(name) {
		return beside(path, name)
	}
	return name
}

// beside is a path that is written relative to a file's folder. It keeps a
// slash, by which a path is told from a built-in name.
func beside(path, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	full := filepath.Join(filepath.Dir(path), name)
	if !strings.ContainsRune(full, filepath.Separator) {
		full = "." + string(filepath.Separator) + full
	}
	return full
}
