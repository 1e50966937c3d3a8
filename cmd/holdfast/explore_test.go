package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
)

// TestExploreRepeats explores a lock, and types the commands that it prints.
func TestExploreRepeats(t *testing.T) {
	t.Chdir(t.TempDir())
	r := invoke(t, "explore", "basic", "--format", "json", "--params=false", "--ttl", "4s", "--seed", "3")
	r.want(t, reports.ExitViolation, "found  ")
	var f campaign.Findings
	if err := json.Unmarshal([]byte(r.out), &f); err != nil {
		t.Fatal(err)
	}
	if f.Schema != campaign.ExploreSchema || f.Played != f.Plans || len(f.Groups) < 5 {
		t.Errorf("schema %q, %d of %d played, %d groups", f.Schema, f.Played, f.Plans, len(f.Groups))
	}
	for _, g := range f.Groups {
		words := strings.Fields(g.Repeat)
		if words[0] != "holdfast" || !strings.Contains(g.Repeat, "--seed 3 --ttl 4s") {
			t.Errorf("repeat: %s", g.Repeat)
		}
		again := invoke(t, append(words[1:], "--format", "json")...)
		again.want(t, reports.ExitViolation, `"kind": "`+g.Kind+`"`)
	}
}

func TestExploreReference(t *testing.T) {
	if testing.Short() {
		t.Skip("over a thousand runs")
	}
	r := invoke(t, "explore", "reference", "--out", "", "--quiet")
	r.want(t, reports.ExitExpected, "Nothing found", headExcused, "broken after deleted keys",
		"6 in which the lock rightly refused its parameters")
	if strings.Contains(r.out, "holdfast run") || r.errs != "" {
		t.Errorf("nothing is stored, so nothing can be repeated; and it is quiet: %s%s", r.out, r.errs)
	}
}

func TestExploreUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		says string
	}{
		{"explore", "takes one lock"},
		{"explore basik", `did you mean "basic"`},
		{"explore basic --depth 3", "--depth 3: write a number from 1 to 2"},
		{"explore basic --depth 2 --budget 0s", "a budget is positive"},
		{"explore basic --budget 5s", "--depth 2"},
		{"explore redlock --nodes 0", "--nodes 0: write a number from 1 to 9"},
		{"explore basic --clients 1", "--clients 1: write a number from 2 to 5"},
		{"explore basic --ttl -5s", "a TTL is positive"},
		{"explore basic --format yaml", `there is no format "yaml"`},
	} {
		invoke(t, strings.Fields(c.args)...).want(t, exitUsage, c.says, "Try: ")
	}
	invoke(t, "explore", "basic", "--out", "/proc/nowhere").want(t, reports.ExitError, "--out /proc/nowhere")
}

// some findings, for the formats.
func someFindings() *campaign.Findings {
	return &campaign.Findings{
		Lock: "basic", Topology: "single", Nodes: 1, Clients: 2, Depth: 1, Seed: 1, Points: 132, Plans: 800, Played: 751,
		Seconds: 2, Unstruck: 3, Refused: 6, Failures: []string{"odd\nthing"},
		Groups: []campaign.Group{
			{Check: "exclusion", Kind: "overrun", Cause: "client pause at worked", Faults: 1, Plans: 3,
				Plan: "client pause of 1.2 TTL at worked 1 of c1", Summary: "c2 was granted | the lock", Remark: "no lease survives it",
				Also: map[string]int{"updates lost-update": 2}, Repeat: "holdfast run x.yaml --lock basic --seed 1"},
			{Check: "panic", Kind: "panic", Cause: "a TTL of 0s", Plans: 1, Plan: "a TTL of 0s", Summary: "the lock took its process with it",
				Stack: "panic: \x1b[31moh\ngoroutine 1"},
			{Check: "exclusion", Kind: "broken", Cause: "deleted keys", Plans: 9, Plan: "deleted keys at SET 1 from c1 to n1", Excused: true},
		},
	}
}

func TestExploreText(t *testing.T) {
	var b bytes.Buffer
	if err := exploreText(&b, someFindings(), reports.TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	const want = `explore basic on single, 1 node, 2 clients, depth 1, seed 1
132 moments, 751 runs in 2.0 s (376 a second), 49 more were planned, 3 in which a fault found nothing to strike, 6 in which the lock rightly refused its parameters

What breaks basic: 2 causes

  1  exclusion: overrun after client pause at worked
     what     c2 was granted | the lock
     remark   no lease survives it
     plan     client pause of 1.2 TTL at worked 1 of c1; 3 plans like it
     also     updates lost-update (2)
     repeat   holdfast run x.yaml --lock basic --seed 1

  2  panic with a TTL of 0s
     what     the lock took its process with it
     plan     a TTL of 0s; 1 plan like it
       | panic: ?[31moh
       | goroutine 1

What no lock on this topology survives: 1 cause

  3  exclusion: broken after deleted keys
     what     ` + `
     plan     deleted keys at SET 1 from c1 to n1; 9 plans like it

Runs that failed for a reason that is not the lock's: 1
  - odd thing
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestExploreMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := exploreMarkdown(&b, someFindings()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# explore basic\n", "## What breaks basic\n", "## " + headExcused + "\n",
		"| 1 | exclusion | overrun | client pause at worked | 3 | c2 was granted \\| the lock (no lease survives it) | `holdfast run x.yaml --lock basic --seed 1` |\n",
		"| 3 | exclusion | broken | deleted keys | 9 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestExploreBar(t *testing.T) {
	var out bytes.Buffer
	b := newExploreProgress(&out, "basic", false)
	if got := b.line(3*time.Second, barWidth); got != "exploring basic, 3s" {
		t.Error(got)
	}
	b.planned(200)
	for range 50 {
		b.step()
	}
	b.say("found  something")
	if got, want := b.line(10*time.Second, barWidth), "[######..................] 50 of 200 runs, 1 cause found, 5.0 a second, 30s left"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.began = time.Now().Add(-10 * time.Second)
	b.lasts(40 * time.Second) // pairs: how many of them there will be says nothing
	if got, want := b.line(22*time.Second, barWidth), "[#######.................] 50 runs, 1 cause found, 2.3 a second, 28s left"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.end()
	if out.String() != "found  something\n" {
		t.Errorf("in a pipe: %q", out.String())
	}
}

// TestExploreInterrupted is Ctrl-C at the terminal: what was found is printed.
func TestExploreInterrupted(t *testing.T) {
	cmd := exec.CommandContext(context.Background(), binary, "explore", "basic", "--out", "")
	cmd.Dir = t.TempDir()
	var out, errs bytes.Buffer
	news := &firstLine{w: &errs, seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, news
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-news.seen:
	case <-time.After(time.Minute):
		t.Error("nothing was found in a minute")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	_ = cmd.Wait() // its exit code is looked at
	if took := time.Since(asked); took > 10*time.Second {
		t.Errorf("it took %v to end", took)
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	result{code: status.ExitStatus(), out: out.String(), errs: errs.String()}.want(t, reports.ExitError,
		"What breaks basic", "interrupted: keeping what was found", "more were planned")
}

// firstLine says when something was found.
type firstLine struct {
	mu   sync.Mutex
	w    *bytes.Buffer
	seen chan struct{}
	once sync.Once
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes.Contains(b, []byte("found  ")) {
		f.once.Do(func() { close(f.seen) })
	}
	return f.w.Write(b)
}
