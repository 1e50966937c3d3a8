package harness

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// module is the path of this program's packages; locks lie in its folder impl.
const (
	module  = "github.com/holdfast-io/holdfast/"
	lockDir = module + "impl/"
)

// ours are the modules that the worlds are built of. What panics in them is
// not the lock.
var ours = []string{"github.com/alicebob/miniredis/", "github.com/yuin/gopher-lua", "github.com/Shopify/toxiproxy/"}

// LockIsToBlame says whether a goroutine's stack is one of the lock's code. From
// the innermost call outwards, the first function that is either a lock's or the
// harness's decides; libraries in between belong to whoever has called them:
//
//	go-redis, nil dereference        nobody yet
//	impl/thirdparty/redsync.Acquire  the lock
//	harness.(*Client).round
//
// A goroutine that a library has started for itself has neither. It is the
// lock's, unless the library is one that a world is built of.
func LockIsToBlame(stack string) bool {
	foreign := false
	for line := range strings.Lines(firstGoroutine(stack)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "created by "))
		switch {
		case strings.HasPrefix(line, lockDir):
			return true
		case strings.HasPrefix(line, module), strings.HasPrefix(line, "main."):
			return false
		case slices.ContainsFunc(ours, func(m string) bool { return strings.HasPrefix(line, m) }):
			return false
		case isForeign(line):
			foreign = true
		}
	}
	return foreign
}

// What a lock can do to the process that it is in. The process's last words
// follow.
var (
	ErrLockPanics = errors.New("the lock panicked")
	ErrLockExits  = errors.New("the lock ended the process")
)

// OwnWord begins what this program says before it exits with an error of its own.
const OwnWord = "holdfast:"

// Blame says what the lock had to do with the end of a process of ours that was
// not to end, by how it ended and what it wrote to stderr; nil if nothing points
// to the lock:
//
//	a signal                       a kill from outside
//	a trace of the lock's code     it panicked
//	any other trace                a mistake of this program
//	our own word                   an error of this program
//	none of these                  somebody called os.Exit, and that is the lock:
//	                               nothing of ours does but the end of main
func Blame(state *os.ProcessState, words string) error {
	switch {
	case state == nil || !state.Exited():
		return nil
	case LockIsToBlame(words):
		return fmt.Errorf("%w\n%s", ErrLockPanics, words)
	case firstGoroutine(words) != "" || ownWord(words):
		return nil
	}
	return fmt.Errorf("%w with exit status %d\n%s", ErrLockExits, state.ExitCode(), words)
}

func ownWord(words string) bool {
	for line := range strings.Lines(words) {
		if strings.HasPrefix(line, OwnWord) {
			return true
		}
	}
	return false
}

// LastWords keeps the beginning of what a process wrote to stderr: a panic and
// where it happened stand before the stacks of everybody else.
type LastWords struct {
	mu sync.Mutex
	b  []byte
}

const mostWords = 8 << 10

// Write implements [io.Writer].
func (w *LastWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, b[:min(len(b), mostWords-len(w.b))]...)
	return len(b), nil
}

func (w *LastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.b))
}

// firstGoroutine cuts a dump after its first goroutine, which is the one that
// panicked.
func firstGoroutine(dump string) string {
	at := strings.Index(dump, "\ngoroutine ")
	if strings.HasPrefix(dump, "goroutine ") {
		at = 0
	}
	if at < 0 {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(dump[at:], "\n"), "\n\n")
	return first
}

// isForeign says whether a line of a stack names a function of a package that
// is not the standard library's: the first part of its path has a dot.
func isForeign(line string) bool {
	host, _, ok := strings.Cut(line, "/")
	return ok && strings.Contains(host, ".") && !strings.ContainsAny(host, " \t(")
}

// waiting begins the states in which a goroutine of a bubble lets virtual time
// go on.
const waiting = "(durable)"

// stuckInLock gives the stacks of the lock's goroutines that keep virtual time
// from going on or, with all, of every one that is in the lock's code.
func stuckInLock(all bool) string {
	dump := make([]byte, 1<<20)
	dump = dump[:runtime.Stack(dump, true)]
	var out []string
	for _, g := range strings.Split(string(dump), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if !strings.Contains(head, "synctest bubble") || !all && strings.Contains(head, waiting) {
			continue
		}
		if LockIsToBlame(g) && strings.Contains(g, lockDir) {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}
