package scenarios

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-io/holdfast/cluster"
)

//go:embed *.yaml
var files embed.FS

// maxFile bounds a scenario file: the longest of ours has two thousand bytes,
// and the parser's time grows with the square of nested brackets.
const maxFile = 64 << 10

// Names lists the embedded scenarios in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("scenarios: the embedded files cannot be listed: %v", err))
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(out) // as names: permits.yaml comes after permits-clock-jump.yaml
	return out
}

// NamesIn lists those of the embedded scenarios that a world has the servers for,
// for at least one of their locks. Whoever asks for one by its name gets it all the
// same, and is told what is missing.
func NamesIn(world cluster.World) []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		s, err := Load(name)
		if err != nil {
			panic(fmt.Sprintf("scenarios: the embedded %s: %v", name, err)) // a test loads them all
		}
		return world == cluster.Sim && !slices.ContainsFunc(slices.Collect(maps.Values(s.Topology)), cluster.Topology.Simulated)
	})
}

// parsed keeps the embedded scenarios that have been read: a campaign plays the
// same few thousands of times.
var parsed sync.Map // name -> *Scenario

// Load reads an embedded scenario. Its maps and slices are shared by all who
// load it and must not be changed.
func Load(name string) (*Scenario, error) {
	if s, ok := parsed.Load(name); ok {
		shallow := *s.(*Scenario)
		return &shallow, nil
	}
	s, err := load(name)
	if err != nil {
		return nil, err
	}
	parsed.Store(name, s)
	shallow := *s
	return &shallow, nil
}

func load(name string) (*Scenario, error) {
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("there is no scenario %q%s", name, meant(name, Names()))
	}
	return Parse(name+".yaml", data)
}

// ReadFile reads a scenario from a file of the user's.
func ReadFile(path string) (*Scenario, error) {
	data, err := ReadText("scenario", path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// ReadText reads the text of a scenario or of another document, which errors
// call by its name. It takes regular files only, and no more than a scenario may
// have: a device or a pipe would be read for ever.
func ReadText(what, path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", what, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: %s is no regular file", what, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return data, nil
}

// Parse reads a scenario. The error joins all mistakes, each an [*Error] with
// the file's name as given, in the order of the file. Names of locks are the
// caller's to check, since the catalogue is not known here; see [ParseFor].
func Parse(file string, data []byte) (*Scenario, error) { return ParseFor(file, data, nil) }

// ParseFor is [Parse], and every lock that the scenario names must be one of
// those that are given.
func ParseFor(file string, data []byte, locks []string) (*Scenario, error) {
	d := &decoder{file: file, at: map[string]position{}, locks: locks}
	if len(data) > maxFile {
		d.fail("", "the file has %d bytes, and a scenario at most %d", len(data), maxFile)
		return nil, d.err()
	}
	root := d.parse(data)
	if root == nil {
		return nil, d.err()
	}
	doc := defaults()
	d.decode("", root, reflect.ValueOf(&doc).Elem())
	if len(d.errs) > 0 { // half a document has no meaning to check
		return nil, d.err()
	}
	d.check(&doc)
	if len(d.errs) > 0 {
		return nil, d.err()
	}
	// Our own checks come first, since they say it better; the schema comes
	// last, so that it never refuses what the loader takes.
	d.checkSchema(root)
	if len(d.errs) > 0 {
		return nil, d.err()
	}
	return doc.scenario(), nil
}
