package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/reports"
)

// handover is a history in which process 2 is granted the lock under a partition
// while process 1 holds it.
const handover = `[{:process 0, :type :invoke, :f :acquire, :value nil, :time 1000000}
{:process 0, :type :ok, :f :acquire, :value 1, :time 3200000}
{:process 0, :type :invoke, :f :release, :value nil, :time 9000000}
{:process 0, :type :ok, :f :release, :value nil, :time 11000000}
{:process 1, :type :invoke, :f :acquire, :value nil, :time 12000000}
{:process 1, :type :ok, :f :acquire, :value 2, :time 12500000}
{:process :nemesis, :type :info, :f :start-partition, :value nil, :time 13000000}
{:process 2, :type :invoke, :f :acquire, :value nil, :time 15000000}
{:process 2, :type :ok, :f :acquire, :value 3, :time 21000000}
{:process 1, :type :invoke, :f :release, :value nil, :time 30000000}
{:process 1, :type :info, :f :release, :value nil, :time 35000000}
{:process :nemesis, :type :info, :f :stop-partition, :value nil, :time 40000000}]
`

const operations = `{"ClientId":0,"Input":{"op":"acquire","lock":"x"},"Output":{"ok":true},"Call":10,"Return":20}
{"ClientId":1,"Input":{"op":"acquire","lock":"x"},"Output":{"ok":false},"Call":30,"Return":40}
{"ClientId":0,"Input":{"op":"release","lock":"x"},"Output":{"ok":true},"Call":22,"Return":25}
`

func TestCheckForeign(t *testing.T) {
	edn, ops := write(t, "handover.edn", handover), write(t, "ops.json", operations)
	nobody := write(t, "nobody.edn", strings.ReplaceAll(handover, ":type :ok", ":type :fail"))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{reports.ExitViolation, "the acquire of process 2 (line 8) was granted by 0.021s although the acquire of process 1 (line 5)", []string{edn}},
		{reports.ExitViolation, "Active fault: partition", []string{edn, "--model", "rw"}},
		{reports.ExitViolation, "process 1", []string{edn, "--model", "fenced"}},
		{reports.ExitViolation, "process 1", []string{edn, "--model", "reentrant"}},
		{reports.ExitExpected, "acquires granted: 3", []string{edn, "--model", "semaphore", "--permits", "2"}},
		{reports.ExitExpected, "PASS", []string{edn, "--lease", "5ms"}},
		{reports.ExitExpected, "porcupine, calls: 3, processes: 2", []string{ops}},
		{reports.ExitViolation, "was refused between 0.00000003s and 0.00000004s although nobody can have held the lock", []string{ops, "--strict-busy"}},
		{reports.ExitUnknown, "no acquire succeeded", []string{nobody}},
		{reports.ExitError, "ops.json: line 1: a keyword has no name", []string{ops, "--from", "jepsen"}},
		{reports.ExitError, "ops.json: line 1:", []string{ops, "--from", "holdfast"}},
		{reports.ExitError, "cas.edn: line 1: a lock has no :f :cas", []string{write(t, "cas.edn", strings.ReplaceAll(handover, ":acquire", ":cas"))}},
		{reports.ExitError, "cut.edn: line 12: the file ends before the ']'", []string{write(t, "cut.edn", handover[:len(handover)-2])}},
		{reports.ExitError, "text.edn: line 1: an entry of a history is a map, not no", []string{write(t, "text.edn", "no history")}},
		{reports.ExitError, "no acquire up to here got a fence", []string{ops, "--model", "fenced"}},
		{exitUsage, `there is no model "mutx"; did you mean "mutex"?`, []string{edn, "--model", "mutx"}},
		{exitUsage, `there is no format "edn"`, []string{edn, "--from", "edn"}},
		{exitUsage, "--permits belongs to --model semaphore", []string{edn, "--permits", "2"}},
		{exitUsage, "a semaphore has at least one", []string{edn, "--model", "semaphore", "--permits", "0"}},
		{exitUsage, "a lease is not negative", []string{edn, "--lease", "-1s"}},
	} {
		r := invoke(t, append([]string{"check"}, c.args...)...)
		if said := strings.Join(strings.Fields(r.out+r.errs), " "); r.code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("check %v: exit code %d, want %d with %q\n%s%s", c.args[1:], r.code, c.code, c.says, r.out, r.errs)
		}
	}
}

// TestCheckForeignJSON: the verdict names the entries of the file, and is of the
// same schema as every other.
func TestCheckForeignJSON(t *testing.T) {
	r := invoke(t, "check", write(t, "handover.edn", handover), "--format", "json")
	run := validRun(t, r)
	found := run.Checks[0].Violations
	if len(found) != 1 || len(found[0].Ops) != 3 || found[0].Ops[0] != 4 || found[0].Ops[1] != 7 || found[0].Ops[2] != 9 {
		t.Errorf("found %+v", found)
	}
	if run.World != "jepsen" || run.HistorySHA256 == "" {
		t.Errorf("run %+v", run)
	}
}

// TestViewer: the page holds the calls of the contradiction and the fault.
func TestViewer(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	holds := func(what ...string) {
		t.Helper()
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range what {
			if !strings.Contains(string(b), w) {
				t.Errorf("the page does not hold %q", w)
			}
		}
		if len(b) > 200_000 {
			t.Errorf("the page has %d bytes", len(b))
		}
		_ = os.Remove(page)
	}
	if r := invoke(t, "check", write(t, "handover.edn", handover), "--viewer", page); r.code != reports.ExitViolation {
		t.Fatalf("%d %s", r.code, r.errs)
	}
	holds("process 1: acquire ok, fence 2 (line 5)", "process 2: acquire ok, fence 3 (line 8)", "process 1: release no answer (line 10)", `"Description":"partition"`)

	dir := t.TempDir()
	invoke(t, "run", "kleppmann-clock-jump", "--lock", "basic", "--out", dir)
	if r := invoke(t, "check", filepath.Join(dir, "kleppmann-clock-jump", "basic", "sim-1"), "--viewer", page); r.code != reports.ExitExpected {
		t.Fatalf("%d %s", r.code, r.errs)
	}
	holds("c1: acquire ok", "c2: acquire ok", "clock (n1 clock jumps 2 TTL forward", "held by c1")

	if r := invoke(t, "check", write(t, "ops.json", operations), "--viewer", "/proc/nowhere.html"); r.code != reports.ExitError {
		t.Errorf("a page that cannot be written: exit code %d", r.code)
	}
}

// TestForeignFlagsOfOwnHistories: a flag that would do nothing is refused.
func TestForeignFlagsOfOwnHistories(t *testing.T) {
	dir := t.TempDir()
	invoke(t, "run", "calm", "--lock", "basic", "--out", dir)
	r := invoke(t, "check", filepath.Join(dir, "calm", "basic", "sim-1"), "--model", "rw")
	if r.code != exitUsage || !strings.Contains(r.errs, "--model is for foreign histories") {
		t.Errorf("%d %s", r.code, r.errs)
	}
}
