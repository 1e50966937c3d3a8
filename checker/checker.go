// Package checker reads a history and says what broke, whose fault it was and
// what it damaged. One file per check.
//
// It runs nothing and knows no lock, world or scenario: what a check needs to
// know stands in the history and its header. The words (belief, guaranteed
// lease, overrun, broken) are defined in docs/concepts.md and beside the code.
package checker

import (
	"fmt"
	"runtime/debug"

	"github.com/holdfast-io/holdfast/history"
)

// Verdict of a check or a run.
type Verdict string

// The verdicts, worst first: violation > error > unknown > pass.
const (
	Violation Verdict = "violation"
	Error     Verdict = "error"
	Unknown   Verdict = "unknown"
	Pass      Verdict = "pass"
)

var rank = map[Verdict]int{Pass: 0, Unknown: 1, Error: 2, Violation: 3}

// Worst is the one order of verdicts. It is pass for no verdict at all.
func Worst(vs ...Verdict) Verdict {
	worst := Pass
	for _, v := range vs {
		if rank[v] > rank[worst] {
			worst = v
		}
	}
	return worst
}

// Kinds of an exclusion violation.
const (
	// Overrun: the holder outlived its own lease.
	Overrun = "overrun"
	// Broken: the lock service broke its promise inside a guaranteed lease.
	Broken = "broken"
)

// Found is one violation.
type Found struct {
	// Kind within the check: overrun, broken, lost-update, ...
	Kind string `json:"kind"`
	// Code of the error that the violation amounts to, where it is one that
	// nobody returns: CONCURRENT_MODIFICATION or DEADLOCK.
	Code string `json:"code,omitempty"`
	// Ops are indices into the history's events.
	Ops []int `json:"ops"`
	// Fault that was active at some moment since its first op began, in words;
	// empty when none was.
	Fault string `json:"fault"`
	// Earlier is a fault that was over by then and may be the cause all the same:
	// it may have held up a request, or left the state behind. Only where none was
	// active.
	Earlier string `json:"earlier_fault,omitempty"`
	// Summary is one sentence a person can read.
	Summary string `json:"summary"`

	// suspects are what [Facts.attribute] makes Fault and Earlier of.
	suspects []*Fault
}

// Result of one check.
type Result struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Applies is false where the check has nothing to judge, such as fencing
	// of a lock without fences: its verdict is unknown, with the reason, and
	// does not count for the run.
	Applies bool   `json:"applies"`
	Reason  string `json:"reason,omitempty"`
	// Kind is the gravest kind among the violations; empty on a pass.
	Kind       string  `json:"kind,omitempty"`
	Violations []Found `json:"violations,omitempty"`
	// Figures of the check, such as acknowledged writes and lost ones.
	Figures map[string]float64 `json:"figures,omitempty"`
}

// Check judges one property of a history.
type Check struct {
	Name  string
	About string // one line for holdfast list
	Run   func(*Facts) Result
}

// All is the table of checks, in the order of reports.
func All() []Check {
	return []Check{
		{assumptionsName, "the history is well formed; otherwise nothing else counts", assumptions},
		{independenceName, "the nodes of a lock that needs a quorum are independent of each other", independence},
		{exclusionName, "no two believe at once that they hold the lock, or more than it has permits", exclusion},
		{updatesName, "no write is applied over a version its writer had not read", updates},
		{fencingName, "fencing tokens grow with every grant and stale writes are refused", fencing},
		{linearizabilityName, "the ops are a history of a lock of its kind with leases and owners", linearizability},
		{leaseName, "while a guaranteed lease runs, the nodes carry its token", truth},
		{ownershipName, "a command changes only a key that carries its own acquisition's token", ownership},
		{continuityName, "an extend that succeeds means that the lock was held all the time", continuity},
		{validityName, "the validity end told to a holder is not after the server's expiry", validity},
		{ttlName, "a key's TTL is what was asked for, never none and never over at once", timeToLive},
		{orphansName, "no key is left when nobody holds it and its client could delete it", orphans},
		{lossNoticeName, "a holder learns of a loss within a bound, and of none after a release", lossNotice},
		{renewalName, "a lock that renews itself does not let a lease run out that nothing kept it from renewing", renewal},
		{answersName, "a definite answer agrees with what the lock's own commands did", answers},
		{deadlineName, "every call returns soon after its deadline", deadline},
		{orderName, "a fair lock serves in the order of the queue", order},
		{loadName, "no commands beyond what renewals need, and none after the release", load},
		{livenessName, "after faults heal, a free lock is granted to a waiter within the bound; nobody waits in a circle", liveness},
		{coverageName, "the run exercised what its scenario is about", coverage},
	}
}

// Judge runs every check. A malformed history is an error, and no other
// verdict counts.
func Judge(h *history.History) []Result {
	return judge(h, All())
}

func judge(h *history.History, checks []Check) []Result {
	facts, failed := gather(h)
	var results []Result
	for _, c := range checks {
		r := run(c, facts)
		if failed != "" && r.Verdict != Error {
			r = Result{Name: c.Name, Verdict: Error, Applies: true, Reason: failed}
		}
		results = append(results, r)
		if c.Name == assumptionsName && r.Verdict != Pass {
			break
		}
	}
	return results
}

// gather is [Gather], but a panic in it comes back as a reason: the history
// may be malformed in a way that only the first check can put into words.
func gather(h *history.History) (f *Facts, failed string) {
	defer func() {
		if p := recover(); p != nil {
			f, failed = &Facts{History: h}, fmt.Sprintf("reading the history panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return Gather(h), ""
}

// run turns a checker's panic into an error with its stack: a judge that fell
// over has not acquitted anybody.
func run(c Check, facts *Facts) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Name: c.Name, Verdict: Error, Applies: true,
				Reason: fmt.Sprintf("the checker panicked: %v\n%s", p, debug.Stack())}
		}
	}()
	r = c.Run(facts)
	r.Name = c.Name
	for i := range r.Violations {
		facts.attribute(&r.Violations[i])
	}
	return r
}

// Overall is the verdict of a run: the worst of the checks that apply.
func Overall(results []Result) Verdict {
	worst := Pass
	for _, r := range results {
		if r.Applies {
			worst = Worst(worst, r.Verdict)
		}
	}
	return worst
}
