package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
)

// The exit codes, the same in every format.
const (
	ExitExpected  = 0
	ExitViolation = 10
	ExitUnknown   = 11
	ExitError     = 12
)

// gravity orders the checks by what a violation of them costs: two holders at
// once come before the damage they do, damage before a wrong answer, and a
// wrong answer before a slow one. Nodes that are not what the lock needs come
// before all that follows from it. Checks that are not listed come after these,
// in the order of the results.
var gravity = []string{"conduct", "independence", "exclusion", "updates", "fencing", "linearizability", "ownership", "lease", "liveness"}

func gravityOf(check string) int {
	if i := slices.Index(gravity, check); i >= 0 {
		return i
	}
	return len(gravity)
}

// Violated gives the results that found a violation, gravest first.
func Violated(results []checker.Result) []checker.Result { return violated(results) }

// Gravity orders checks by what a violation of them costs: smaller is graver.
func Gravity(check string) int { return gravityOf(check) }

// violated gives the results that found a violation, gravest first.
func violated(results []checker.Result) []checker.Result {
	var bad []checker.Result
	for _, r := range results {
		if r.Applies && r.Verdict == checker.Violation {
			bad = append(bad, r)
		}
	}
	slices.SortStableFunc(bad, func(a, b checker.Result) int {
		return cmp.Compare(gravityOf(a.Name), gravityOf(b.Name))
	})
	return bad
}

// kindOf is the gravest kind of a violated check. A check without kinds is
// named itself, so that a cell never reads just "violation".
func kindOf(r checker.Result) string {
	if r.Kind != "" {
		return r.Kind
	}
	for _, v := range r.Violations {
		if v.Kind != "" {
			return v.Kind
		}
	}
	return r.Name
}

// Outcome is the one word for a run: the kind of its gravest violation, or its
// verdict where nothing was violated.
func Outcome(results []checker.Result, verdict checker.Verdict) string {
	if verdict == checker.Violation {
		if bad := violated(results); len(bad) > 0 {
			return kindOf(bad[0])
		}
	}
	return string(verdict)
}

// mismatch is one expectation that was not met.
type mismatch struct {
	words string
	// definite says that the check gave a real answer and it was the wrong
	// one; otherwise it gave no answer.
	definite bool
	// unexpected says that a violation was found that nobody expected.
	unexpected bool
	// result is the check's; it has no name where the check was not run.
	result checker.Result
}

// Match compares results with the expectations of a scenario. A check that is
// named must have the verdict, or the kind, that is expected of it;
// "violation" is met by any kind. A check that is not named must pass, unless
// it does not apply.
func Match(results []checker.Result, expected map[string]string) (matched bool, mismatches []string) {
	for _, m := range compare(results, expected) {
		mismatches = append(mismatches, m.words)
	}
	return len(mismatches) == 0, mismatches
}

func compare(results []checker.Result, expected map[string]string) []mismatch {
	// A run that did not exercise its scenario has shown nothing by not being
	// violated, so its passes are no answers.
	proves := !slices.ContainsFunc(results, func(r checker.Result) bool {
		return r.Applies && r.Name == "coverage" && r.Verdict != checker.Pass
	})
	var out []mismatch
	judged := map[string]bool{}
	for _, r := range results {
		judged[r.Name] = true
		want, named := expected[r.Name]
		if !named {
			if !r.Applies {
				continue
			}
			want = string(checker.Pass)
		}
		if met(r, want) {
			continue
		}
		bad := r.Verdict == checker.Violation
		out = append(out, mismatch{
			words:      r.Name + ": " + complaint(r, want, named),
			definite:   bad || (r.Verdict == checker.Pass && proves),
			unexpected: bad,
			result:     r,
		})
	}
	for _, name := range sortedKeys(expected) {
		if !judged[name] {
			out = append(out, mismatch{words: fmt.Sprintf("%s: expected %s, but the check was not run", name, expected[name])})
		}
	}
	return out
}

// anyAnswer is the expectation that a check gives an answer, whichever, if it
// applies at all.
const anyAnswer = "any"

func met(r checker.Result, want string) bool {
	if want == anyAnswer {
		return r.Verdict == checker.Pass || r.Verdict == checker.Violation || !r.Applies
	}
	if r.Verdict != checker.Violation {
		return want == string(r.Verdict)
	}
	return want == string(checker.Violation) || want == kindOf(r)
}

// complaint says an unmet expectation in words.
func complaint(r checker.Result, want string, named bool) string {
	switch {
	case named:
		return fmt.Sprintf("expected %s, got %s", want, got(r))
	case r.Verdict == checker.Violation:
		return fmt.Sprintf("expected no violation, got %s", got(r))
	}
	return got(r)
}

// got says a check's answer with what a reader needs to act on it.
func got(r checker.Result) string {
	switch {
	case r.Verdict == checker.Violation:
		return kindOf(r)
	case !r.Applies:
		return withReason("does not apply", r.Reason)
	}
	return withReason(string(r.Verdict), r.Reason)
}

func withReason(word, reason string) string {
	if reason == "" {
		return word
	}
	return word + " (" + firstLine(reason) + ")"
}

// Standing is where a run stands against its expectations.
type Standing int

// The standings, best first. A surprise is worse than a failed run, because
// the surprise is a finding about the lock and stands whatever else failed.
const (
	AsExpected Standing = iota
	Undecided           // some check gave no answer
	Failed              // the harness or a checker failed
	Surprise            // a real answer, and not the expected one
)

// String says the standing so that it cannot be misread at the end of a line.
func (s Standing) String() string {
	switch s {
	case AsExpected:
		return "as expected"
	case Undecided:
		return "NOTHING PROVEN"
	case Failed:
		return "RUN FAILED"
	}
	return "NOT AS EXPECTED"
}

// Stand says where a run stands. Match decides, with these refinements:
//
//   - A run that failed has not acquitted its lock: a missing violation is
//     then the fault of the failure, while a violation that nobody expected
//     was seen before the failure and remains a surprise.
//   - A pass from a run that did not reach its coverage is no answer, so the
//     run is undecided.
//   - Where the run says that it did not match for a reason that is not in its
//     checks, it is believed.
func Stand(r Run) Standing {
	failed := r.Error != "" || r.Verdict == checker.Error
	found := compare(r.Checks, r.Expected)
	definite, unexpected := false, false
	for _, m := range found {
		definite = definite || m.definite
		unexpected = unexpected || m.unexpected
	}
	switch {
	case unexpected && !r.Matched:
		return Surprise
	case failed:
		return Failed
	case r.Matched:
		return AsExpected
	case definite:
		return Surprise
	case len(found) > 0 || r.Verdict == checker.Unknown:
		return Undecided
	}
	return Surprise
}

// ExitCode is the exit code for runs: 10 if any run is a surprise (a
// violation that was not expected, or an expectation that failed), else 12 if
// any run failed, else 11 if any is undecided, else 0. No runs at all prove
// nothing: 11, so that a gate that selected nothing is not green.
func ExitCode(runs []Run) int {
	if len(runs) == 0 {
		return ExitUnknown
	}
	worst := AsExpected
	for _, r := range runs {
		worst = max(worst, Stand(r))
	}
	return map[Standing]int{
		AsExpected: ExitExpected, Undecided: ExitUnknown, Failed: ExitError, Surprise: ExitViolation,
	}[worst]
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// FirstLine is the first line of a text.
func FirstLine(s string) string { return firstLine(s) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
