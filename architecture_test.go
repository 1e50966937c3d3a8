// Package holdfast_test holds the shape of the code: which folder may import
// which, and the rules of style that can be counted.
package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-io/holdfast"

// layers is the architecture: a folder and the folders whose packages it may
// import. The longest entry that is a prefix of a package's folder counts.
// Data flows one way, from a scenario through the harness into a history, and
// from the history through the checker into reports:
//
//	scenarios -> harness -> history -> checker -> reports
var layers = map[string][]string{
	"impl":            {},
	"impl/internal":   {"impl"},
	"impl/basic":      {"impl"},
	"impl/reentrant":  {"impl"},
	"impl/watchdog":   {"impl"},
	"impl/redlock":    {"impl"},
	"impl/service":    {"impl"},
	"impl/reference":  {"impl"},
	"impl/fair":       {"impl"},
	"impl/rwlock":     {"impl"},
	"impl/semaphore":  {"impl"},
	"impl/thirdparty": {"impl"},
	"impl/baselines":  {"impl"},
	"impl/mutants":    {"impl"},
	"impl/unruly":     {"impl"},
	"impl/catalogue":  {"impl"},
	"history":         {},
	"cluster":         {"impl"},
	"cluster/sim":     {"cluster", "history", "impl"},
	// It starts what package programs describes.
	"cluster/process": {"cluster", "cluster/programs", "history", "impl"},
	// It is a place for the servers of the process world, which knows of it only
	// what an interface says.
	"cluster/container": {"cluster", "cluster/process"},
	"resource":          {},
	"internal":          {}, // what several packages or their tests start on this machine
	"nemesis":           {"cluster", "history"},
	"scenarios":         {"nemesis", "cluster", "impl", "history"},
	"harness":           {"impl", "history", "cluster", "nemesis", "scenarios", "resource"},
	"checker":           {"history"},
	"reports":           {"history", "checker"},
	"reports/plots":     {"history", "checker", "reports"},
	"reports/page":      {"history", "checker", "reports"},
	"store":             {"history", "checker", "reports", "resource"},
	"suite":             {"impl", "history", "cluster", "nemesis", "scenarios", "resource", "checker", "reports", "store"},
	"campaign":          {"impl", "history", "cluster", "nemesis", "scenarios", "resource", "harness", "checker", "reports", "store", "suite"},
	"study":             {"impl", "history", "cluster", "nemesis", "scenarios", "resource", "harness", "checker", "reports", "store", "suite", "campaign"},
	"serve":             {"history", "checker", "reports", "store"},
	"inspect":           {},
	".":                 {"impl", "cluster", "history", "scenarios", "checker", "reports", "store", "campaign"},
	"cmd":               {"inspect", "serve", "impl", "history", "cluster", "nemesis", "scenarios", "resource", "harness", "checker", "reports", "store", "suite", "campaign", "study"},
	// Descriptions of servers: what to start knows no world that starts it.
	"cluster/programs":             {},
	"cluster/programs/programtest": {"cluster/programs"},
}

// source is one Go file of ours.
type source struct {
	path string // with slashes, from the module's root
	file *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "runs"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{path: filepath.ToSlash(p), file: f, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d Go files found: the test looks in the wrong place", len(out))
	}
	return out
}

// layerOf finds the entry for a folder.
func layerOf(dir string) (string, bool) {
	for d := dir; ; d = path.Dir(d) {
		if _, ok := layers[d]; ok {
			return d, true
		}
		if d == "." {
			return "", false
		}
	}
}

func TestImportsRunOneWay(t *testing.T) {
	for _, s := range sources(t) {
		dir := path.Dir(s.path)
		if strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(dir, "examples/") {
			continue // tests may look further than the code, and an example is a module of its own
		}
		layer, ok := layerOf(dir)
		if !ok {
			t.Errorf("%s: folder %s is not in the table of layers", s.path, dir)
			continue
		}
		for _, imp := range s.file.Imports {
			target, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			target, ours := strings.CutPrefix(target, module+"/")
			if !ours || allowed(dir, layer, target) {
				continue
			}
			t.Errorf("%s imports %s: a package in %s may import only %v", s.path, target, layer, layers[layer])
		}
	}
}

// allowed says whether a package may import another: one of its own layer's
// folder, or one in a folder that its layer names.
func allowed(dir, layer, target string) bool {
	if target == dir || strings.HasPrefix(target, layer+"/") && layer != "cluster" && layer != "impl" {
		return true
	}
	for _, ok := range layers[layer] {
		if target == ok || strings.HasPrefix(target, ok+"/") {
			return true
		}
	}
	return false
}

func TestImportTableCanFail(t *testing.T) {
	for _, c := range []struct {
		dir, target string
		want        bool
	}{
		{"checker", "harness", false},
		{"reports", "harness", false},
		{"impl/basic", "cluster/sim", false},
		{"impl", "impl/basic", false},
		{"cluster", "cluster/sim", false},
		{"cluster/sim", "cluster", true},
		{"harness", "cluster/process", true},
	} {
		layer, ok := layerOf(c.dir)
		if !ok {
			t.Fatalf("no layer for %s", c.dir)
		}
		if got := allowed(c.dir, layer, c.target); got != c.want {
			t.Errorf("may %s import %s: %v, want %v", c.dir, c.target, got, c.want)
		}
	}
}

// Limits that keep a function on a screen and a file in a head.
const (
	maxFunction = 75
	maxFile     = 450
)

func TestFunctionsAndFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		if n := s.fset.File(s.file.Pos()).LineCount(); n > maxFile {
			t.Errorf("%s has %d lines, more than %d", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			first, last := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
			if last-first+1 > maxFunction {
				t.Errorf("%s:%d: %s has %d lines, more than %d", s.path, first, f.Name.Name, last-first+1, maxFunction)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		dir := path.Dir(s.path)
		documented[dir] = documented[dir] || s.file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// TestOnlyMainExits holds that library code never ends the process.
func TestOnlyMainExits(t *testing.T) {
	const exits = "impl/unruly/unruly.go" // a lock whose misbehaviour is just that
	banned := []string{"os.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln"}
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "cmd/") || strings.HasSuffix(s.path, "_test.go") || s.path == exits {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(banned, x.Name+"."+sel.Sel.Name) {
				t.Errorf("%v: %s.%s belongs into cmd/", s.fset.Position(n.Pos()), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// TestTextsAreInPlainPunctuation keeps em dashes out of everything we write.
func TestTextsAreInPlainPunctuation(t *testing.T) {
	const emDash = "\u2014"
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && (d.Name() == ".git" || d.Name() == "runs" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".lua", ".sh", ".json"}, filepath.Ext(p)) {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(b), "\n") {
			if strings.Contains(line, emDash) {
				t.Errorf("%s:%d has an em dash", p, i+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
