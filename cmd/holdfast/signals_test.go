//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// breaking has a client stopped and a node stalled from early on until long
// after the test: whoever interrupts it, interrupts both.
const breaking = `name: breaking
about: A client is paused and a node stalls until the end.
clients: 3
locks: [basic]
length: 300ttl
workload: {hold: 0.005ttl, stagger: 0.0005ttl, call-timeout: 100ttl, acquire-timeout: 100ttl, write-timeout: 100ttl}
nemesis:
  - when: {op: write, type: invoke, nth: 1}
    pause: {client: caller}
  - when: {op: write, type: invoke, nth: 1, after: 0.002ttl}
    stall: {node: [n1]}
expect: {exclusion: pass}
`

// leases are long enough to outlast the test, so that nobody loses one.
const leases = 30 * time.Second

// marker in the environment tells our processes from all others, whoever
// their parent is by then.
const marker = "HOLDFAST_TEST_MARK"

// victim is a running holdfast with everything that belongs to it.
type victim struct {
	t         *testing.T
	cmd       *exec.Cmd
	mark      string
	temp, dir string
	began     time.Time
	known     map[int]string // pid to start
	world     string
	patience  time.Duration // of await
}

// launch starts the scenario and returns when a worker and a server are
// stopped.
func launch(t *testing.T) *victim {
	t.Helper()
	needServers(t)
	v := start(t, t.TempDir(), "run", write(t, "breaking.yaml", breaking), "--on", "process", "--lock", "basic", "--ttl", leases.String())
	v.awaitBreakage()
	return v
}

// start starts a command line in a folder.
func start(t *testing.T, dir string, args ...string) *victim {
	t.Helper()
	v := &victim{t: t, mark: fmt.Sprintf("%s=%d-%d", marker, os.Getpid(), time.Now().UnixNano()), temp: t.TempDir(), dir: dir, began: time.Now(), known: map[int]string{}, world: "process", patience: 10 * time.Second}
	v.cmd = exec.Command(binary, args...)
	v.cmd.Dir, v.cmd.Stdout, v.cmd.Stderr = v.dir, v.file("stdout"), v.file("stderr")
	v.cmd.Env = append(os.Environ(), v.mark, "TMPDIR="+v.temp)
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range v.pids() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // ours by its mark or its parent
		}
		// Who was killed cannot tidy up, and a later process with the same pid
		// would be blamed for it.
		for pid := range v.known {
			for _, file := range sharedMemory(pid) {
				_ = os.Remove(file) // the next start of libfaketime does not mind
			}
		}
	})
	return v
}

// awaitBreakage waits until the scenario breaking has struck.
func (v *victim) awaitBreakage() {
	v.t.Helper()
	v.await("a stopped worker and a stopped server", func() bool {
		return len(v.stopped("worker")) == 1 && len(v.stopped("redis-server")) == 1
	})
}

// file takes one of the program's streams: tests read it while it runs.
func (v *victim) file(name string) *os.File {
	v.t.Helper()
	f, err := os.Create(filepath.Join(v.dir, name))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (v *victim) said(name string) string {
	b, err := os.ReadFile(filepath.Join(v.dir, name))
	if err != nil {
		v.t.Error(err)
	}
	return string(b)
}

// await polls, by default for at most ten seconds.
func (v *victim) await(what string, ok func() bool) {
	v.t.Helper()
	for limit := time.Now().Add(v.patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			v.t.Fatalf("waited in vain for %s\n%s%s", what, v.said("stdout"), v.said("stderr"))
		}
	}
}

// pids are all processes of ours that run: those with the mark, the children
// of the program, and those that were found before. A redis-server writes its
// title over its environment, and who has lost its parent is no child any more,
// so that neither is enough.
func (v *victim) pids() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is fine
	var out []int
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Behind the name in brackets: the state, the parent, and as the
		// twentieth the start, which tells a pid from its next owner.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 20 || fields[0] == "Z" {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // it may have ended
		ours := v.known[pid] == fields[19] || fields[1] == strconv.Itoa(v.cmd.Process.Pid) ||
			slices.Contains(strings.Split(string(env), "\x00"), v.mark)
		if ours {
			v.known[pid] = fields[19]
			out = append(out, pid)
		}
	}
	return out
}

// sharedMemory are the files that libfaketime makes for a process.
func sharedMemory(pid int) []string {
	found, _ := filepath.Glob(fmt.Sprintf("/dev/shm/*faketime*_%d", pid)) // the pattern is fine
	return found
}

// running are the processes of ours whose command line has a word.
func (v *victim) running(word string) []int {
	return slices.DeleteFunc(v.pids(), func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(string(line), word)
	})
}

// stopped are those that stand still under SIGSTOP.
func (v *victim) stopped(word string) []int {
	return slices.DeleteFunc(v.running(word), func(pid int) bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || !strings.Contains(string(stat), ") T ")
	})
}

// signal sends one to the program alone.
func (v *victim) signal(sig syscall.Signal) {
	v.t.Helper()
	if err := v.cmd.Process.Signal(sig); err != nil {
		v.t.Fatal(err)
	}
}

// exit waits for the program's end, which must come soon.
func (v *victim) exit() *os.ProcessState {
	v.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _ = v.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		v.t.Fatalf("it did not end\n%s%s", v.said("stdout"), v.said("stderr"))
	}
	return v.cmd.ProcessState
}

// leftNothing looks for everything that a run could leave behind. Pids are
// those of the run's processes.
func (v *victim) leftNothing(pids []int, scratchToo bool) {
	v.t.Helper()
	v.await("the end of all processes", func() bool { return len(v.pids()) == 0 })
	if !scratchToo {
		return
	}
	for _, pid := range pids {
		for _, file := range sharedMemory(pid) {
			info, err := os.Stat(file)
			if err == nil && info.ModTime().After(v.began) { // or it is of an earlier owner of the pid
				v.t.Errorf("left in shared memory: %s", file)
			}
		}
	}
	err := filepath.WalkDir(v.temp, func(path string, _ fs.DirEntry, err error) error {
		if path != v.temp {
			v.t.Errorf("left in the temporary folder: %s", path)
		}
		return err
	})
	if err != nil {
		v.t.Error(err)
	}
}

// folder is where the run is stored.
func (v *victim) folder() string {
	j := store.Job{Scenario: "breaking.yaml", Lock: "basic", World: v.world, Seed: 1, TTL: leases}
	return j.Dir(filepath.Join(v.dir, "runs"))
}

// judged wants exit code 12 with words on stderr, the verdict of what was
// recorded on stdout, every fault healed, and a history that check can read.
func (v *victim) judged(words ...string) {
	v.t.Helper()
	r := result{code: v.exit().ExitCode(), out: v.said("stdout"), errs: v.said("stderr")}
	r.want(v.t, reports.ExitError, append(words, "RUN FAILED", "breaking / basic")...)
	path := v.folder()
	text, err := os.ReadFile(filepath.Join(path, store.HistoryFile))
	if err != nil {
		v.t.Fatal(err)
	}
	for _, fault := range []string{"pause", "stall"} {
		for _, phase := range []string{"start", "stop"} {
			if !strings.Contains(string(text), fmt.Sprintf(`"fault":%q,"phase":%q`, fault, phase)) {
				v.t.Errorf("the history does not know the %s of %s", phase, fault)
			}
		}
	}
	check := invoke(v.t, "check", path)
	if check.code == reports.ExitError || check.code == exitUsage {
		v.t.Errorf("check: exit code %d\n%s%s", check.code, check.out, check.errs)
	}
	if strings.Contains(check.out, "VIOLATION") {
		v.t.Errorf("the interruption was taken for a violation of the lock\n%s", check.out)
	}
}

func TestInterrupt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			v := launch(t)
			pids := v.pids()
			v.signal(sig)
			v.judged("interrupted: healing", "interrupted: 1 of 1 runs", "stored under runs")
			v.leftNothing(pids, true)
		})
	}
}

// TestWorkerKilledFromOutside, at once and in order: neither is the lock's deed.
func TestWorkerKilledFromOutside(t *testing.T) {
	for sig, says := range map[syscall.Signal]string{
		syscall.SIGKILL: "ended by itself: signal: killed",
		syscall.SIGTERM: "worker: told by a signal",
	} {
		t.Run(sig.String(), func(t *testing.T) { killWorker(t, sig, says) })
	}
}

func killWorker(t *testing.T, sig syscall.Signal, says string) {
	t.Parallel()
	v := launch(t)
	pids := v.pids()
	workers := v.running("worker")
	paused := v.stopped("worker")
	for _, pid := range workers {
		if !slices.Contains(paused, pid) {
			if err := syscall.Kill(pid, sig); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	v.judged(says)
	text, err := os.ReadFile(filepath.Join(v.folder(), store.HistoryFile))
	if err != nil || !strings.Contains(string(text), `"f":"crash"`) {
		t.Errorf("the history does not know that the client died, and would believe in it for ever: %v", err)
	}
	v.leftNothing(pids, true)
}

// TestHarnessKilled: nobody can tidy up then, but the kernel ends everybody,
// and the next run removes what is left. Meanwhile nobody else may write to
// the run's folder.
func TestHarnessKilled(t *testing.T) {
	t.Parallel()
	v := launch(t)
	pids := v.pids()
	second := exec.Command(binary, v.cmd.Args[1:]...)
	second.Dir = v.dir
	if out, _ := second.CombinedOutput(); second.ProcessState.ExitCode() != reports.ExitError || !strings.Contains(string(out), "another run is writing there") {
		t.Errorf("a second run into the same folder: exit code %d\n%s", second.ProcessState.ExitCode(), out)
	}
	v.signal(syscall.SIGKILL)
	v.exit()
	v.leftNothing(nil, false)
	next := exec.Command(binary, "run", "calm", "--on", "process", "--lock", "basic", "--out", t.TempDir())
	next.Env = v.cmd.Env
	if out, err := next.CombinedOutput(); err != nil {
		t.Errorf("the next run: %v\n%s", err, out)
	}
	v.leftNothing(pids, true)
}

// TestSecondInterrupt ends the program at once, in the middle of what the first
// one began: here it waits for a server that somebody stops again and again.
// Now and then the server gets through all the same between two stops, and the
// first interrupt has done its work before the second one comes: that says
// nothing, and is tried again.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	for range 5 {
		if interruptTwice(t) {
			return
		}
	}
	t.Error("the first interrupt was done five times before the second one came")
}

// interruptTwice says whether the second interrupt came in time.
func interruptTwice(t *testing.T) bool {
	t.Helper()
	v := launch(t)
	servers := v.running("redis-server")
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
				_ = syscall.Kill(servers[0], syscall.SIGSTOP) // it may have ended
			}
		}
	}()
	defer func() { close(quit); <-ended }()
	v.signal(syscall.SIGINT)
	v.await("the first interrupt's message", func() bool {
		return strings.Contains(v.said("stderr"), "once more to end at once")
	})
	began := time.Now()
	_ = v.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	state := v.exit()
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Exited() && status.ExitStatus() == reports.ExitError {
		return false
	}
	if !ok || !status.Signaled() || time.Since(began) > 2*time.Second {
		t.Errorf("it took %v, and ended with %v", time.Since(began), state)
	}
	v.leftNothing(nil, false)
	return true
}
