//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

// spinning is a suite in which one run never comes to an end: its lock spins in
// the child process, deaf to everything, until the harness gives it up after
// seconds.
const spinning = "baseline: known.json\nruns:\n" +
	"  - {locks: [basic, release-without-owner-check], scenarios: [calm, slow-work], seeds: 3}\n" +
	"  - {locks: unruly-spins, scenarios: [node-refuses]}\n"

// withoutSpin is the same suite without that run.
var withoutSpin = spinning[:strings.Index(spinning, "  - {locks: unruly-spins")]

// gateFiles are the outputs of the gates here.
func gateFiles() []string {
	return []string{"-o", "gate.json", "--junit", "gate.xml", "--summary", "gate.md"}
}

// gateFolder has a suite, and a baseline without findings.
func gateFolder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, suite.FileName), text)
	put(t, filepath.Join(dir, "breaking.yaml"), breaking)
	if err := (&suite.Baseline{}).Write(filepath.Join(dir, "known.json")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wholeOrAbsent reads every file that a gate writes, as its readers do.
func wholeOrAbsent(t *testing.T, dir string) {
	t.Helper()
	readers := map[string]func(path string) error{
		"known.json": func(path string) error { _, err := suite.ReadBaseline(path); return err },
		"gate.json": func(path string) error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			_, err = reports.ReadGate(f)
			return errors.Join(err, f.Close())
		},
		"gate.xml":        wellFormed,
		"gate.md":         endsWith("\n"),
		store.RunFile:     func(path string) error { _, err := store.ReadJob(path); return err },
		store.HistoryFile: func(path string) error { _, _, err := store.ReadHistory(path); return err },
		store.VerdictFile: func(path string) error { _, err := store.ReadVerdict(filepath.Dir(path)); return err },
		store.ReportFile:  endsWith("</html>\n"),
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if check := readers[filepath.Base(path)]; err == nil && check != nil {
			if err := check(path); err != nil {
				t.Errorf("half a file: %v", err)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func wellFormed(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func endsWith(end string) func(string) error {
	return func(path string) error {
		b, err := os.ReadFile(path)
		if err == nil && !strings.HasSuffix(string(b), end) {
			err = errors.New(path + " breaks off")
		}
		return err
	}
}

// begun waits until the run that spins is at work, and everything else done.
func (v *victim) begun() {
	v.t.Helper()
	j := store.Job{Scenario: "node-refuses", Lock: "unruly-spins", World: "sim", Seed: 1}
	v.await("the run that spins, alone", func() bool {
		_, err := os.Stat(filepath.Join(j.Dir(filepath.Join(v.dir, "runs")), store.RunFile))
		verdicts, _ := filepath.Glob(filepath.Join(v.dir, "runs/*/*/*", store.VerdictFile)) // the pattern is fine
		return err == nil && len(verdicts) == 12 && len(v.running(childVerb)) == 1
	})
}

// again plays the gate in the victim's folder and wants its outputs.
func (v *victim) again(code int, args ...string) {
	v.t.Helper()
	next := exec.Command(binary, append(append([]string{"gate"}, gateFiles()...), args...)...)
	next.Dir, next.Env = v.dir, v.cmd.Env
	out, _ := next.CombinedOutput() // its exit code says more
	if got := next.ProcessState.ExitCode(); got != code {
		v.t.Errorf("the next gate exits with %d, want %d\n%s", got, code, out)
	}
	for _, name := range []string{"gate.json", "gate.xml", "gate.md"} {
		if _, err := os.Stat(filepath.Join(v.dir, name)); err != nil {
			v.t.Error(err)
		}
	}
	wholeOrAbsent(v.t, v.dir)
	err := filepath.WalkDir(v.dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			v.t.Errorf("left: %s", path)
		}
		return err
	})
	if err != nil {
		v.t.Error(err)
	}
}

// TestGateKilled in the midst of a run that would take seconds: its child
// process ends with it, the results of a gate before it are not there to be
// taken for its own, the baseline is as it was, and the next gate plays into
// the same folder.
func TestGateKilled(t *testing.T) {
	t.Parallel()
	dir := gateFolder(t, spinning)
	known := read(t, filepath.Join(dir, "known.json"))
	put(t, filepath.Join(dir, suite.FileName), withoutSpin)
	before := start(t, dir, append([]string{"gate"}, gateFiles()...)...)
	if code := before.exit().ExitCode(); code != reports.ExitViolation {
		t.Fatalf("the gate before exits with %d\n%s%s", code, before.said("stdout"), before.said("stderr"))
	}
	if err := os.RemoveAll(filepath.Join(dir, "runs")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, suite.FileName), spinning)
	v := start(t, dir, append([]string{"gate", "--update-baseline"}, gateFiles()...)...)
	v.begun()
	v.signal(syscall.SIGKILL)
	v.exit()
	killed := time.Now()
	v.leftNothing(nil, false)
	if took := time.Since(killed); took > 2*time.Second { // by itself the run takes longer
		t.Errorf("the child process went on for %v", took)
	}
	for _, name := range []string{"gate.json", "gate.xml", "gate.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is of the gate before, and looks like that of the one that was killed", name)
		}
	}
	if got := read(t, filepath.Join(dir, "known.json")); got != known {
		t.Errorf("the baseline has changed:\n%s", got)
	}
	wholeOrAbsent(t, dir)
	v.again(reports.ExitViolation, "--lock", "basic,release-without-owner-check")
	v.leftNothing(nil, true)
}

// TestGateKilledAtAnyMoment leaves whole files or none.
func TestGateKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir := gateFolder(t, withoutSpin)
	took := time.Duration(0)
	const moments = 16
	for i := range moments + 1 {
		v := start(t, dir, append([]string{"gate", "--update-baseline"}, gateFiles()...)...)
		if i == 0 { // how long it takes when nobody kills it
			v.exit()
			took = time.Since(v.began)
			continue
		}
		time.Sleep(took * time.Duration(i) / moments)
		_ = v.cmd.Process.Kill() // it may have ended
		v.exit()
		v.leftNothing(nil, false)
		wholeOrAbsent(t, dir)
		if t.Failed() {
			t.Fatalf("killed after %d/%d of %v", i, moments, took)
		}
	}
	last := &victim{t: t, cmd: exec.Command(binary), dir: dir}
	last.again(reports.ExitExpected, "--update-baseline")
}

// TestGateOnServersKilled: as for one run, and the next gate takes away what is
// left in scratch folders and shared memory.
func TestGateOnServersKilled(t *testing.T) {
	t.Parallel()
	needServers(t)
	dir := gateFolder(t, "on: process\nbaseline: known.json\nruns:\n  - {locks: basic, scenarios: ./breaking.yaml, ttl: "+leases.String()+"}\n")
	v := start(t, dir, append([]string{"gate"}, gateFiles()...)...)
	v.awaitBreakage()
	pids := v.pids()
	v.signal(syscall.SIGKILL)
	v.exit()
	v.leftNothing(nil, false)
	wholeOrAbsent(t, dir)
	put(t, filepath.Join(dir, suite.FileName), "on: process\nruns:\n  - {locks: basic, scenarios: calm}\n")
	v.again(reports.ExitExpected)
	v.leftNothing(pids, true)
}

// TestGatesChildKilled: the run that it played has failed, which is no pass,
// and the others are as they were.
func TestGatesChildKilled(t *testing.T) {
	t.Parallel()
	dir := gateFolder(t, strings.ReplaceAll(spinning, "basic, release-without-owner-check", "basic, reference"))
	v := start(t, dir, append([]string{"gate", "--update-baseline"}, gateFiles()...)...)
	v.begun()
	if err := syscall.Kill(v.running(childVerb)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := result{code: v.exit().ExitCode(), out: v.said("stdout"), errs: v.said("stderr")}
	r.want(t, reports.ExitError, "ERROR", "12 as expected, 1 failed to run", "unruly-spins in node-refuses")
	f, err := os.Open(filepath.Join(dir, "gate.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := reports.ReadGate(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Cases {
		want, says := reports.CasePassed, ""
		if c.Lock == "unruly-spins" {
			want, says = reports.CaseError, "the child process died during the run: EOF (signal: killed)"
		}
		if c.Status != want || !strings.HasPrefix(c.Run.Error, says) {
			t.Errorf("%s in %s, seed %d: %s, want %s: %s", c.Lock, c.Scenario, c.Seed, c.Status, want, c.Run.Error)
		}
	}
	if len(g.Cases) != 13 || slices.ContainsFunc(g.Findings, func(f reports.GateFinding) bool { return f.Lock == "unruly-spins" }) {
		t.Errorf("%d cases, findings %v", len(g.Cases), g.Findings)
	}
	if xml := read(t, filepath.Join(dir, "gate.xml")); !strings.Contains(xml, `errors="1"`) || strings.Count(xml, "<error ") != 1 {
		t.Errorf("the JUnit file does not say that one run failed\n%s", xml)
	}
	v.leftNothing(nil, true)
}
