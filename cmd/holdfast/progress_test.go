package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// TestProgress: a single run says what is being played and for how long; many
// say how fast they go, how long the rest takes, and what was found.
func TestProgress(t *testing.T) {
	jobs := []store.Job{
		{Scenario: "calm", Lock: "basic", World: "process", Seed: 1},
		{Scenario: "calm", Lock: "redlock", World: "process", Seed: 1},
	}
	var w bytes.Buffer
	one := newProgress(&w, jobs[:1], true)
	if got := one.line(3*time.Second, barWidth); got != "calm / basic on process, 3s" {
		t.Errorf("a single run: %q", got)
	}
	two := newProgress(&w, jobs, true)
	if got, want := two.line(time.Second, barWidth), "[........................] 0 of 2 runs, 1s, calm / basic on process"; got != want {
		t.Errorf("before the first: %q, want %q", got, want)
	}
	// The second is done first; what is shown is still the one that is not.
	two.step(reports.Run{Scenario: "calm", Lock: "redlock", Seed: 1, Repeat: campaign.Repeat(jobs[1])})
	if got, want := two.line(4*time.Second, barWidth), "[############............] 1 of 2 runs, 1 not as expected, 15.0 a minute, 4s left, calm / basic on process"; got != want {
		t.Errorf("half way: %q, want %q", got, want)
	}
	if got, want := two.line(50*time.Millisecond, 0), "1 of 2 runs, 1 not as expected, 20 a second, 0s left, calm / basic on process"; got != want {
		t.Errorf("in a pipe: %q, want %q", got, want)
	}
	x := newExploreProgress(&w, "basic", true)
	if got := x.line(2*time.Second, barWidth); got != "exploring basic, 2s" {
		t.Errorf("before the plan: %q", got)
	}
	x.planned(10)
	x.step()
	x.step()
	if got, want := x.line(time.Second, barWidth), "[####....................] 2 of 10 runs, 0 causes found, 2.0 a second, 4s left"; got != want {
		t.Errorf("exploring: %q, want %q", got, want)
	}
	if w.Len() > 0 {
		t.Errorf("quiet, and it wrote %q", w.String())
	}
}

// buffer may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestProgressInAPipe: plain lines, after 10 s, 30 s, 70 s and then every
// minute, and none for short work or with --quiet.
func TestProgressInAPipe(t *testing.T) {
	jobs := make([]store.Job, 100)
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			lasts time.Duration
			quiet bool
			lines int
		}{
			{9 * time.Second, false, 0}, {11 * time.Second, false, 1}, {31 * time.Second, false, 2}, {71 * time.Second, false, 3},
			{time.Hour, false, 61}, {time.Hour, true, 0},
		} {
			var w buffer
			p := newProgress(&w, jobs, c.quiet)
			time.Sleep(c.lasts)
			p.end()
			out := w.String()
			if n := strings.Count(out, "\n"); n != c.lines || strings.ContainsAny(out, "\r\x1b[") {
				t.Errorf("after %v there are %d lines, want %d: %.300q", c.lasts, n, c.lines, out)
			}
			if c.lines > 0 && !strings.HasPrefix(out, "holdfast: 0 of 100 runs, 10s") {
				t.Errorf("the first line is %.100q", out)
			}
		}
	})
}

// onTerminal runs the program with a terminal as its stderr and gives what it
// wrote there.
func onTerminal(t *testing.T, env []string, columns uint16, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.TempDir(), append(os.Environ(), env...), slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close() // the program has its own
	var out buffer
	var reading sync.WaitGroup
	reading.Go(func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			_, _ = out.Write(b[:n])
			if err != nil { // the last writer has gone
				return
			}
		}
	})
	_ = cmd.Wait() // its exit code is not the question
	reading.Wait()
	return out.String()
}

// TestProgressOnATerminal looks at what people see: a bar with the rate, the
// time left and the findings, which fits into the line and is gone at the end.
func TestProgressOnATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	color := []string{"TERM=xterm-256color", "NO_COLOR="}
	for _, c := range []struct {
		name string
		env  []string
		args []string
	}{
		{"run", color, []string{"run", "slow-work", "--lock", "release-without-owner-check", "--seeds", "600", "--out", ""}},
		{"matrix", color, []string{"matrix", "--scenario", "slow-work", "--lock", "release-without-owner-check", "--seeds", "600", "--out", ""}},
		{"gate", color, []string{"gate", "--suite", "quick", "--lock", "release-without-owner-check", "--seeds", "150", "--out", ""}},
		{"explore", color, []string{"explore", "basic", "--out", ""}},
	} {
		const columns = 100
		out := onTerminal(t, c.env, columns, c.args...)
		for _, want := range []string{"\r[#", " runs, ", " a second", " left", "\x1b[31m"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in %.600q", c.name, want, out)
			}
		}
		if !strings.HasSuffix(out, "\r\x1b[K") {
			t.Errorf("%s: the bar is left behind: %q", c.name, out[max(0, len(out)-100):])
		}
		plain := strings.NewReplacer("\x1b[K", "", "\x1b[31m", "", "\x1b[0m", "").Replace(out)
		for line := range strings.SplitSeq(plain, "\r") {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n >= columns && strings.HasPrefix(line, "[") {
				t.Errorf("%s: a line of %d columns on %d: %q", c.name, n, columns, line)
			}
		}
	}
	run := []string{"run", "slow-work", "--lock", "release-without-owner-check", "--seeds", "600", "--out", ""}
	if out := onTerminal(t, color, 80, run...); !strings.Contains(out, "\x1b[31m") || !strings.Contains(out, " left") {
		t.Errorf("on 80 columns: %.300q", out)
	}
	if out := onTerminal(t, []string{"TERM=xterm", "NO_COLOR=1"}, 80, run...); !strings.Contains(out, "\r[#") || strings.Contains(out, "\x1b[31m") {
		t.Errorf("with NO_COLOR: %.300q", out)
	}
	if out := onTerminal(t, []string{"TERM=dumb", "NO_COLOR="}, 80, run...); strings.ContainsAny(out, "\x1b") {
		t.Errorf("on a dumb terminal: %.300q", out)
	}
	if out := onTerminal(t, color, 80, append(run, "--quiet")...); out != "" {
		t.Errorf("quiet: %.300q", out)
	}
	if out := onTerminal(t, color, 80, "run", "calm", "--lock", "basic", "--out", ""); out != "" {
		t.Errorf("short work: %.300q", out)
	}
}
