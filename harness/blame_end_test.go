package harness

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestBlame: how a process of ours ended, and whether that was the lock.
func TestBlame(t *testing.T) {
	const lock = "\n\ngoroutine 7 [running]:\ngithub.com/holdfast-io/holdfast/impl/basic.(*Lock).Acquire(0x1)\n\t/src/basic.go:1"
	const ours = "\n\ngoroutine 7 [running]:\ngithub.com/holdfast-io/holdfast/harness.(*Client).round(0x1)\n\t/src/client.go:1"
	for name, c := range map[string]struct {
		says, ends string
		want       error
		words      string
	}{
		"killed from outside":   {says: "", ends: "kill -9 $$"},
		"killed while it talks": {says: "panic: oh no" + lock, ends: "kill -9 $$"},
		"os.Exit":               {ends: "exit 3", want: ErrLockExits, words: "exit status 3"},
		"os.Exit with success":  {ends: "exit 0", want: ErrLockExits, words: "exit status 0"},
		"log.Fatal":             {says: "2026/01/02 no lock today", ends: "exit 1", want: ErrLockExits, words: "no lock today"},
		"panic of the lock":     {says: "panic: oh no" + lock, ends: "exit 2", want: ErrLockPanics, words: "panic: oh no"},
		"panic of ours":         {says: "panic: oh no" + ours, ends: "exit 2"},
		"error of ours":         {says: OwnWord + " worker: no assignment came in", ends: "exit 12"},
	} {
		var said LastWords
		cmd := exec.Command("sh", "-c", `printf %s "$1" >&2; `+c.ends, "sh", c.says)
		cmd.Stderr = &said
		_ = cmd.Run() // how it ends is the question
		got := Blame(cmd.ProcessState, said.String())
		if !errors.Is(got, c.want) || c.want == nil && got != nil {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got != nil && !strings.Contains(got.Error(), c.words) {
			t.Errorf("%s: %q is not in %q", name, c.words, got)
		}
	}
}
