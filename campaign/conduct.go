package campaign

import (
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/reports"
)

// What a lock can do that ends its run before a history could tell of it: the
// check that no history is needed for, and its kinds.
const (
	conductName = "conduct"
	kindPanic   = "panic"
	kindHang    = "hang"
	kindExit    = "exit"
)

// conduct turns the error of a run into a violation where it was the lock that
// ended the run: it panicked or exited, and took the process of the run or of a
// client with it, or it hangs. That is an answer about the lock and no failure of the harness. A panic
// of the harness's own code stays an error.
func conduct(run reports.Run) reports.Run {
	kind, summary := "", ""
	_, stack, _ := strings.Cut(run.Error, "\n")
	switch {
	case strings.Contains(run.Error, harness.ErrLockHangs.Error()):
		kind, summary = kindHang, reports.FirstLine(run.Error)+"."
	case strings.Contains(run.Error, harness.ErrLockExits.Error()):
		kind, summary = kindExit, exitLine(run.Error)+", which is the process of its user."
	case strings.Contains(run.Error, harness.ErrLockPanics.Error()):
		kind, summary = kindPanic, panicked(run.Error)
	case !strings.Contains(run.Error, childDied) && !strings.Contains(run.Error, harness.ErrEndedEarly.Error()):
	case harness.LockIsToBlame(run.Error):
		kind, summary = kindPanic, panicked(run.Error)
	}
	if kind == "" {
		return run
	}
	run.Error = ""
	run.Checks = append([]checker.Result{{
		Name: conductName, Verdict: checker.Violation, Applies: true, Kind: kind, Reason: strings.TrimSpace(stack),
		Violations: []checker.Found{{Kind: kind, Ops: []int{}, Summary: summary}},
	}}, run.Checks...)
	return run
}

// misconduct is what a run says about its lock's conduct, if anything.
func misconduct(run reports.Run) (checker.Result, bool) {
	if len(run.Checks) > 0 && run.Checks[0].Name == conductName {
		return run.Checks[0], true
	}
	return checker.Result{}, false
}

// place is the innermost function of a stack that is not the runtime's: where the
// lock panicked or hangs, whatever made it.
func place(stack string) string {
	for line := range strings.Lines(stack) {
		host, _, ok := strings.Cut(line, "/")
		if ok && strings.Contains(host, ".") && !strings.ContainsAny(host, " \t") {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "(0x")
			return strings.TrimSuffix(line, "(...)")
		}
	}
	return ""
}

func panicked(text string) string {
	return "the lock panicked, which ends the process of its user: " + panicLine(text) + "."
}

// exitLine is what an error says of a lock that ended its process.
func exitLine(text string) string {
	at := strings.Index(text, harness.ErrLockExits.Error())
	return reports.FirstLine(text[at:])
}

// panicLine is the line of a dying program that says why.
func panicLine(text string) string {
	for line := range strings.Lines(text) {
		at := strings.Index(line, "panic: ")
		if at < 0 {
			at = strings.Index(line, "panic in the simulation: ")
		}
		if at >= 0 {
			line, _, _ = strings.Cut(line[at:], " [recovered") // by sync.WaitGroup, which panics again
			return strings.TrimSpace(line)
		}
		if strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return "it left no word"
}
