package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/reports"
)

func TestUsageErrors(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		args string
		say  string
	}{
		{"run", "which scenario?"},
		{"run --lock basic", "which scenario?"},
		{"run kleppman-gc-pause", `did you mean "kleppmann-gc-pause"?`},
		{"run calm --lock redlok", `did you mean "redlock"?`},
		{"run calm --lock=", "--lock is empty"},
		{"matrix --scenario=", "--scenario is empty"},
		{"run calm --loc x", `did you mean "--lock"?`},
		{"run calm -q", "there is no flag -q"},
		{"runn calm", `there is no command "runn"; did you mean "run"?`},
		{"help runn", `did you mean "run"?`},
		{"run calm --on simm", `did you mean "sim"?`},
		{"run calm --topology singel", `did you mean "single"?`},
		{"run calm --format jsn", `did you mean "json"?`},
		{"run calm --format xml", "write text, json, markdown\nTry: holdfast run --help"},
		{"run calm --report sometimes", "write always, failed, never\nTry: holdfast run --help"},
		{"run calm --topology foo", "write single, replicated, independent, sentinel, cluster, etcd, zookeeper, postgres\nTry: holdfast run --help"},
		{"matrix --on foo", "write sim, process, container\nTry: holdfast matrix --help"},
		{"check " + folder + " --format xml", `there is no format "xml"`},
		{"gate --config nofile.yaml", "read suite: stat nofile.yaml: no such file"},
		{"run calm --seeds 0", "at least one seed"},
		{"run calm --seeds 100000000", "at most 1000000"},
		{"matrix --seeds 900000", "at most 1000000"},
		{"run calm --seeds many", `--seeds "many" is not a whole number`},
		{"run calm --seed -1", `--seed "-1" is not a whole number from 0 up`},
		{"run calm --seed 18446744073709551615 --seeds 2", "too large"},
		{"run calm --ttl -1s", "a TTL is positive"},
		{"run calm --ttl 1ms", "at least 20ms"},
		{"run calm --ttl 1000000h", "at most 24h"},
		{"run calm --ttl 10", "write 500ms, 10s or 2m"},
		{"run " + folder, "is a folder"},
		{"run ./nothing.yaml", "no such file"},
		{"run calm a/calm.yaml", "no such file"},
		{"matrix calm", `takes no argument, not "calm"`},
		{"check", "takes one path, not 0"},
		{"check a b", "takes one path, not 2"},
		{"replay", "takes one path, not 0"},
		{"list sceanrios", `did you mean "scenarios"?`},
		{"list --jsn", `did you mean "--json"?`},
		{"completion bsh", `did you mean "bash"?`},
		{"completion bash now", "takes no argument"},
		{"--on process", `there is no flag "--on"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := invoke(t, strings.Fields(c.args)...)
			r.want(t, exitUsage, c.say, "\nTry: holdfast ")
			if r.out != "" {
				t.Errorf("a usage error belongs on stderr, and stdout has %q", r.out)
			}
		})
	}
}

func TestScenarioFilesWithMistakes(t *testing.T) {
	path := write(t, "wrong.yaml", "name: wrong\nabout: Two mistakes.\nclient: 2\nnemesis:\n  - when: {op: write, type: ok}\n    paus: {client: caller}\n")
	invoke(t, "run", path).want(t, exitUsage, path+":3:1", path+":6:5", `"clients"`, `"pause"`)

	unreadable := write(t, "secret.yaml", "name: secret\n")
	if err := os.Chmod(unreadable, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(unreadable); err != nil { // root reads everything
		invoke(t, "run", unreadable).want(t, exitUsage, "permission denied")
	}
	t.Chdir(filepath.Dir(path))
	invoke(t, "run", "wrong").want(t, exitUsage, "there is a file wrong.yaml", "Try: holdfast run ./wrong.yaml")
}

func TestScenariosThatWouldOverwriteEachOther(t *testing.T) {
	path := write(t, "calm.yaml", "name: calm\nabout: Another calm.\n")
	invoke(t, "run", "calm", path).want(t, exitUsage, "stored under the same name")
}

// TestExamplesParse keeps help texts honest: every command line that they
// show is understood, down to its flags and words.
func TestExamplesParse(t *testing.T) {
	root := newRoot(streams{})
	t.Chdir(t.TempDir())
	if err := os.WriteFile("my-scenario.yaml", []byte("name: my-scenario\nabout: Nothing breaks.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		r := invoke(t, strings.Fields(cmd.CommandPath() + " --help")[1:]...)
		r.want(t, reports.ExitExpected, "Examples:", "Usage:")
		for line := range strings.Lines(cmd.Example) {
			// Two blanks and more begin the explanation.
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
			line, _, _ = strings.Cut(line, " >")
			parses(t, line)
		}
	}
}

// parses looks a command line up and checks its flags and arguments without
// running it.
func parses(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "holdfast" {
		t.Errorf("%q is no command line of holdfast", line)
		return
	}
	root := newRoot(streams{})
	var ran *cobra.Command
	var args []string
	commands := []*cobra.Command{root}
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		cmd.RunE = func(cmd *cobra.Command, a []string) error { ran, args = cmd, a; return nil }
	}
	root.SetArgs(words[1:])
	if err := root.Execute(); err != nil || ran == nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	sel := selection{seeds: 1, world: "sim"}
	for flag, into := range map[string]*string{"on": &sel.world, "format": &sel.format, "topology": &sel.topology} {
		if f := ran.Flags().Lookup(flag); f != nil && f.Value.String() != "" {
			*into = f.Value.String()
		}
	}
	if ran.Flags().Lookup("lock") == nil {
		return
	}
	sel.locks, _ = ran.Flags().GetStringSlice("lock")
	names := args
	if ran.Name() == "inspect" { // whose argument is a lock on a server
		names = nil
	}
	if f := ran.Flags().Lookup("scenario"); f != nil {
		names, _ = ran.Flags().GetStringSlice("scenario")
	}
	if slices.Contains(worldNames(), sel.world) { // which need not be here
		sel.world = string(cluster.Sim)
	}
	if _, err := sel.plan(names, "holdfast"); err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

func TestCompletion(t *testing.T) {
	for shell, say := range map[string]string{
		"bash": "__start_holdfast", "zsh": "#compdef holdfast", "fish": "complete -c holdfast", "powershell": "Register-ArgumentCompleter",
	} {
		invoke(t, "completion", shell).want(t, reports.ExitExpected, say)
	}
	invoke(t, "__complete", "run", "kl").want(t, reports.ExitExpected, "kleppmann-gc-pause")
	invoke(t, "__complete", "run", "calm", "--lock", "").want(t, reports.ExitExpected, "redlock", "mutants")
	invoke(t, "__complete", "run", "calm", "--on", "").want(t, reports.ExitExpected, "process")
	invoke(t, "__complete", "matrix", "--scenario", "").want(t, reports.ExitExpected, "calm")
}

func TestWithoutServers(t *testing.T) {
	r := program(t, []string{"PATH=/nonexistent"}, "run", "calm", "--lock", "basic", "--on", "process")
	r.want(t, reports.ExitError, "redis-server", "apt-get install")
	r = program(t, []string{"PATH=/nonexistent"}, "list", "worlds")
	r.want(t, reports.ExitExpected, "not here", "apt-get install")
}
