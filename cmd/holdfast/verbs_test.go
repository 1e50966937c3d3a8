package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
)

// neverFires is a scenario whose fault waits for something that does not
// happen: the run proves nothing.
const neverFires = `name: never-fires
about: The fault waits for an acquire that never comes.
clients: 2
locks: [basic]
nemesis:
  - when: {op: acquire, type: ok, nth: 100000}
    pause: {client: caller}
    for: 1ttl
coverage: {fault-overlaps-op: true}
`

// TestExitCodes provokes each exit code for real, in every format.
func TestExitCodes(t *testing.T) {
	unknown := write(t, "never-fires.yaml", neverFires)
	for _, format := range formatNames() {
		for _, c := range []struct {
			code int
			args []string
		}{
			{reports.ExitExpected, []string{"run", "kleppmann-gc-pause", "--lock", "basic"}},
			{reports.ExitExpected, []string{"matrix", "--scenario", "calm", "--lock", "basic"}},
			{reports.ExitViolation, []string{"run", "slow-work", "--lock", "release-without-owner-check", "--seeds", "2"}},
			{reports.ExitViolation, []string{"matrix", "--scenario", "slow-work", "--lock", "release-without-owner-check"}},
			{reports.ExitUnknown, []string{"run", unknown}},
			{reports.ExitUnknown, []string{"matrix", "--scenario", unknown}},
			{reports.ExitError, []string{"run", "calm", "--lock", "basic", "--out", "/proc/nowhere"}},
			{exitUsage, []string{"run", "calm", "--lock", "none"}},
		} {
			args := slices.Clone(c.args)
			if !slices.Contains(args, "--out") {
				args = append(args, "--out", t.TempDir())
			}
			r := invoke(t, append(args, "--format", format)...)
			if r.code != c.code {
				t.Errorf("%v --format %s: exit code %d, want %d\n%.3000s%s", c.args, format, r.code, c.code, r.out, r.errs)
			}
		}
	}
}

// validRun holds JSON against the published schema and gives its first run.
func validRun(t *testing.T, r result) reports.Run {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(reports.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	inst, err := jsonschema.UnmarshalJSON(strings.NewReader(r.out))
	if err == nil {
		err = c.MustCompile("schema.json").Validate(inst)
	}
	var d reports.Document
	if err == nil {
		err = json.Unmarshal([]byte(r.out), &d)
	}
	if err != nil || len(d.Runs) == 0 {
		t.Fatalf("%v\n%.2000s", err, r.out)
	}
	return d.Runs[0]
}

// TestJSON holds the JSON of run and check against the published schema.
func TestJSON(t *testing.T) {
	root := t.TempDir()
	valid := func(r result) reports.Run { return validRun(t, r) }
	valid(invoke(t, "run", "slow-work", "--lock", "release-without-owner-check", "--out", root, "--format", "json"))
	valid(invoke(t, "run", write(t, "never-fires.yaml", neverFires), "--out", root, "--format", "json"))
	run := valid(invoke(t, "run", "kleppmann-gc-pause", "--lock", "redlock", "--out", root, "--format", "json"))
	again := valid(invoke(t, "check", run.History, "--format", "json"))
	if run.Verdict != again.Verdict || run.Outcome != again.Outcome || run.Matched != again.Matched || run.HistorySHA256 != again.HistorySHA256 {
		t.Errorf("check judges %s/%s/%v, the run judged %s/%s/%v", again.Verdict, again.Outcome, again.Matched, run.Verdict, run.Outcome, run.Matched)
	}
}

// TestOrderOfFlags: flags may stand before and behind the arguments.
func TestOrderOfFlags(t *testing.T) {
	root := t.TempDir()
	first := invoke(t, "run", "calm", "--lock", "basic", "--out", root, "--format", "markdown")
	for _, args := range [][]string{
		{"run", "--lock", "basic", "--out", root, "--format", "markdown", "calm"},
		{"run", "--format=markdown", "calm", "--out=" + root, "--lock", "basic"},
		{"run", "calm", "calm", "--lock", "basic,basic", "--out", root, "--format", "markdown"},
	} {
		if r := invoke(t, args...); r.code != 0 || withoutWall(r.out) != withoutWall(first.out) {
			t.Errorf("%v: exit code %d, and another report than\n%s\n%s%s", args, r.code, first.out, r.out, r.errs)
		}
	}
}

var wall = regexp.MustCompile(`[0-9.]+ ?s wall`)

func withoutWall(s string) string { return wall.ReplaceAllString(s, "wall") }

// TestRepeat: the command that a report prints plays the same run.
func TestRepeat(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{
		{"kleppmann-gc-pause", "--lock", "basic", "--seed", "7", "--ttl", "3s"},
		{"calm", "--lock", "no-ttl", "--topology", "replicated"},
		{write(t, "it's mine.yaml", strings.Replace(neverFires, "never-fires", "it-s-mine", 1))},
	} {
		r := invoke(t, append([]string{"run", "--out", root, "--format", "json"}, args...)...)
		var d reports.Document
		if err := json.Unmarshal([]byte(r.out), &d); err != nil || len(d.Runs) != 1 {
			t.Fatalf("%v: %v\n%s%s", args, err, r.out, r.errs)
		}
		line := strings.Replace(d.Runs[0].Repeat, "holdfast ", "", 1) + " --format json"
		again := invoke(t, append(shellWords(line), "--out", root)...)
		var e reports.Document
		if err := json.Unmarshal([]byte(again.out), &e); err != nil || len(e.Runs) != 1 {
			t.Fatalf("%s: %v\n%s%s", line, err, again.out, again.errs)
		}
		if d.Runs[0].HistorySHA256 != e.Runs[0].HistorySHA256 || r.code != again.code {
			t.Errorf("%s: another history or exit code (%d, %d)", line, r.code, again.code)
		}
	}
}

// shellWords splits a line as a shell would, for words in single quotes.
func shellWords(line string) []string {
	var words []string
	for _, w := range regexp.MustCompile(`('[^']*'|\\'|[^' ])+`).FindAllString(line, -1) {
		words = append(words, strings.NewReplacer(`'\''`, `'`, `'`, ``).Replace(w))
	}
	return words
}

func TestCheckOfBrokenHistories(t *testing.T) {
	root := t.TempDir()
	invoke(t, "run", "calm", "--lock", "basic", "--out", root).want(t, reports.ExitExpected)
	dir := filepath.Join(root, "calm", "basic", "sim-1")
	whole, err := os.ReadFile(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	join := func(parts ...[]byte) string { return string(bytes.Join(parts, nil)) }
	for name, c := range map[string]struct{ content, say string }{
		"truncated":  {string(whole[:len(whole)-9]), "truncated"},
		"corrupt":    {join(lines[0], lines[1], []byte("{\"t\": what}\n"), lines[3]), "line 3:"},
		"empty":      {"", "line 1: the file is empty"},
		"huge line":  {join(lines[0], bytes.Repeat([]byte("x"), 2<<20), []byte("\n")), "line 2: the line is longer"},
		"binary":     {"\x00\x01\xff\xfe\n\x00", "line 1:"},
		"headerless": {join(lines[1:]...), "line 1:"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "history.jsonl", c.content)
			for _, format := range formatNames() {
				invoke(t, "check", path, "--format", format).want(t, reports.ExitError, c.say, path)
			}
		})
	}
	cut := write(t, "history.jsonl", string(whole[:len(whole)-9]))
	invoke(t, "check", cut, "--format", "json").want(t, reports.ExitError, `"name": "exclusion"`, "line "+strconv.Itoa(len(lines)-1)+": truncated", "what stands before it is judged")
	invoke(t, "check", t.TempDir()).want(t, reports.ExitError, "history.jsonl", "no such file")
	invoke(t, "check", filepath.Join(root, "nothing")).want(t, reports.ExitError, "is neither the folder of a run nor a history", "no such file", "Try: holdfast run ")
	for _, verb := range []string{"check", "replay", "report"} { // a folder of runs is not the folder of a run
		invoke(t, verb, root).want(t, reports.ExitError, "but runs are stored below it", "Try: holdfast "+verb+" "+shellWord(dir))
	}
	invoke(t, "serve", filepath.Join(root, "nothing")).want(t, reports.ExitError, "there is no folder", "Try: holdfast run ")
	invoke(t, "check", dir).want(t, reports.ExitExpected, "PASS", "calm / basic")
	alone := write(t, "history.jsonl", string(whole))
	invoke(t, "check", alone).want(t, reports.ExitExpected, "PASS", "calm / basic")
}

func TestReplay(t *testing.T) {
	root := t.TempDir()
	invoke(t, "run", "kleppmann-gc-pause", "--lock", "reference", "--out", root).want(t, reports.ExitExpected)
	dir := filepath.Join(root, "kleppmann-gc-pause", "reference", "sim-1")
	invoke(t, "replay", dir).want(t, reports.ExitExpected, "the same history, byte by byte")

	path := filepath.Join(dir, "history.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tampered := bytes.Replace(whole, []byte(`"client":"c2"`), []byte(`"client":"c1"`), 1)
	if err := os.WriteFile(path, tampered, 0o644); err != nil {
		t.Fatal(err)
	}
	invoke(t, "replay", dir).want(t, reports.ExitError, "ANOTHER HISTORY")
	if err := os.WriteFile(path, whole[:100], 0o644); err != nil {
		t.Fatal(err)
	}
	invoke(t, "replay", dir).want(t, reports.ExitError, "line 1")
	invoke(t, "replay", t.TempDir()).want(t, reports.ExitError, "run.json", "no such file")
}

func TestListIsComplete(t *testing.T) {
	r := invoke(t, "list", "--json")
	r.want(t, reports.ExitExpected)
	var inv inventory
	if err := json.Unmarshal([]byte(r.out), &inv); err != nil {
		t.Fatal(err)
	}
	if got, want := len(inv.Scenarios), len(scenarios.Names()); got != want {
		t.Errorf("%d scenarios, want %d", got, want)
	}
	if got, want := len(inv.Locks), len(catalogue.Everything()); got != want {
		t.Errorf("%d locks, want %d", got, want)
	}
	if got, want := len(inv.Faults), len(nemesis.Kinds()); got != want {
		t.Errorf("%d faults, want %d", got, want)
	}
	if got, want := len(inv.Checks), len(checker.All()); got != want {
		t.Errorf("%d checks, want %d", got, want)
	}
	for i, name := range worldNames() {
		if i >= len(inv.Worlds) || inv.Worlds[i].Name != name || inv.Worlds[i].Available != (inv.Worlds[i].Reason == "") {
			t.Errorf("world %s is not told, or not why it is not here: %+v", name, inv.Worlds)
		}
	}
	if !inv.Worlds[0].Available {
		t.Errorf("there is no simulator: %s", inv.Worlds[0].Reason)
	}
	text := invoke(t, "list")
	for _, s := range inv.Scenarios {
		text.want(t, reports.ExitExpected, s.Name, s.About)
	}
	invoke(t, "list", "locks").want(t, reports.ExitExpected, "redlock", "mutant of")
}

// TestNoEscapesInPipes: what is read by programs has no colours and no
// progress, with and without NO_COLOR.
func TestNoEscapesInPipes(t *testing.T) {
	for _, env := range [][]string{{"NO_COLOR=1"}, {"TERM=xterm-256color"}} {
		for _, args := range [][]string{
			{"run", "kleppmann-gc-pause"}, {"run", "calm", "--lock", "basic", "--seeds", "20"},
			{"matrix", "--scenario", "calm,slow-work"}, {"list"}, {"run", "--help"}, {"run", "calm", "--quiet", "--lock", "basic"},
		} {
			r := program(t, env, args...)
			r.want(t, reports.ExitExpected)
			if strings.ContainsAny(r.out+r.errs, "\x1b\r") || r.errs != "" {
				t.Errorf("%v: escape codes or a noisy stderr: %q", args, r.errs)
			}
		}
	}
}

func TestSeedsPrintASummary(t *testing.T) {
	invoke(t, "run", "slow-work", "--lock", "basic,reference", "--seeds", "20", "--out", t.TempDir()).
		want(t, reports.ExitExpected, "slow-work / basic: 20 of 20 overrun, all as expected", "40 runs: 40 as expected")
}
