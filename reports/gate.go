package reports

import (
	"cmp"
	"slices"

	"github.com/holdfast-io/holdfast/checker"
)

// GateSchema names the JSON format of a gate's result.
const GateSchema = "holdfast/gate/v1"

// Finding is what a baseline knows a run's surprise by. The seed is no part of
// it: a defect that shows with another seed is the same defect.
type Finding struct {
	Lock     string `json:"lock"`
	Scenario string `json:"scenario"`
	Check    string `json:"check"`
	// Kind of violation, or "pass" where a violation was expected and not seen.
	Kind string `json:"kind"`
	// Note is a person's: why the finding is accepted. It is no part of the
	// identity.
	Note string `json:"note,omitempty"`
}

func (f Finding) id() Finding { f.Note = ""; return f }

// CompareFindings orders findings as baselines and reports list them.
func CompareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Scenario, b.Scenario),
		cmp.Compare(a.Check, b.Check), cmp.Compare(a.Kind, b.Kind))
}

// Has says whether a finding is in a list, whatever its note.
func Has(list []Finding, f Finding) bool {
	return slices.ContainsFunc(list, func(o Finding) bool { return o.id() == f.id() })
}

// The names of what is found although no check found it.
const (
	leakCheck, leakKind = "leaks", "leak"
	runCheck, runKind   = "run", "mismatch"
)

// Findings are the definite answers of a run that its scenario does not
// expect: none unless the run stands as a [Surprise].
func Findings(r Run) []Finding {
	if Stand(r) != Surprise {
		return nil
	}
	var out []Finding
	add := func(check, kind string) {
		if f := (Finding{Lock: r.Lock, Scenario: r.Scenario, Check: check, Kind: kind}); !Has(out, f) {
			out = append(out, f)
		}
	}
	failed := r.Error != "" || r.Verdict == checker.Error
	for _, m := range compare(r.Checks, r.Expected) {
		switch {
		case m.unexpected:
			for _, kind := range kindsOf(m.result) {
				if kind != r.Expected[m.result.Name] {
					add(m.result.Name, kind)
				}
			}
		case m.definite && !failed: // a run that failed has acquitted nobody
			add(m.result.Name, string(m.result.Verdict))
		}
	}
	if !failed && len(r.Leaks) > 0 {
		add(leakCheck, leakKind)
	}
	if len(out) == 0 { // the run says that it did not match, and not why
		add(runCheck, runKind)
	}
	slices.SortFunc(out, CompareFindings)
	return out
}

// kindsOf are the kinds of a check's violations, each once.
func kindsOf(c checker.Result) []string {
	out := []string{kindOf(c)}
	for _, v := range c.Violations {
		if v.Kind != "" && !slices.Contains(out, v.Kind) {
			out = append(out, v.Kind)
		}
	}
	return out
}

// Status is what a gate makes of one run.
type Status string

// The statuses, the gravest first.
const (
	CaseFailed  Status = "failed"  // a finding that the baseline does not know
	CaseError   Status = "error"   // the run itself failed
	CaseUnknown Status = "unknown" // a check gave no answer
	CaseSkipped Status = "skipped" // not played: nothing is known
	CaseKnown   Status = "known"   // findings, all in the baseline
	CasePassed  Status = "passed"  // as the scenario expects
)

// Case is one planned run of a gate and what came of it.
type Case struct {
	// Index is its place in the suite, counted from 0 over all shards.
	Index    int    `json:"index"`
	Scenario string `json:"scenario"`
	Lock     string `json:"lock"`
	World    string `json:"world"`
	Topology string `json:"topology,omitempty"`
	Seed     uint64 `json:"seed"`
	TTLNanos int64  `json:"ttl_ns,omitempty"`
	Status   Status `json:"status"`
	// Reason says why the run was not played.
	Reason string `json:"reason,omitempty"`
	// File is the path of a scenario that is not built in.
	File string `json:"file,omitempty"`
	// Findings are not as expected; new and known ones.
	Findings []Finding `json:"findings,omitempty"`
	// Picture is the lane diagram of a case that failed. The document carries
	// it, since whoever joins shards does not have their histories.
	Picture []string `json:"picture,omitempty"`
	// Repeat is the command that plays this case.
	Repeat string `json:"repeat"`
	// Run is absent where the case was not played.
	Run *Run `json:"run,omitempty"`
}

// settle finds the status. Findings of a run are settled by the baseline
// alone; what remains of the run when they are known is judged as ever.
func (c *Case) settle(known []Finding) {
	c.Findings = nil
	if c.Run == nil {
		c.Status = CaseSkipped
		return
	}
	c.Findings = Findings(*c.Run)
	if slices.ContainsFunc(c.Findings, func(f Finding) bool { return !Has(known, f) }) {
		c.Status = CaseFailed
		return
	}
	switch Stand(*c.Run) {
	case Failed:
		c.Status = CaseError
	case Undecided:
		c.Status = CaseUnknown
	case AsExpected:
		c.Status = CasePassed
	default:
		c.Status = c.beneath()
	}
}

// beneath is the status of a run whose findings are all known: they must not
// hide that the run failed, or that another check gave no answer.
func (c *Case) beneath() Status {
	if c.Run.Error != "" || c.Run.Verdict == checker.Error {
		return CaseError
	}
	for _, m := range compare(c.Run.Checks, c.Run.Expected) {
		if !m.definite {
			return CaseUnknown
		}
	}
	return CaseKnown
}

// GateSuite says which suite a gate played.
type GateSuite struct {
	Name string `json:"name"`
	// File is the suite's own, if it is not built in.
	File string `json:"file,omitempty"`
	// Fingerprint of the whole plan: shards are joined only if it is equal.
	Fingerprint string `json:"fingerprint"`
	// Runs of the whole suite, over all shards.
	Runs int `json:"runs"`
}

// GateShards says which parts of the suite a document has.
type GateShards struct {
	Of   int   `json:"of"`
	Have []int `json:"have"` // counted from 1, in order
}

// whole says whether no shard is missing.
func (s GateShards) whole() bool { return len(s.Have) == s.Of }

func (s GateShards) missing() []int {
	var out []int
	for i := 1; i <= s.Of; i++ {
		if !slices.Contains(s.Have, i) {
			out = append(out, i)
		}
	}
	return out
}

// GateBaseline is what was known before.
type GateBaseline struct {
	File     string    `json:"file"`
	Findings []Finding `json:"findings"`
}

// GateFinding is a finding with the runs that show it.
type GateFinding struct {
	Finding
	// Known says that it is in the baseline.
	Known bool `json:"known"`
	// Expected is what the scenario expects of the check.
	Expected string `json:"expected"`
	// Sentence says it in words, as seen in the first run that shows it.
	Sentence string `json:"sentence"`
	// Runs that show it, of the runs of this lock in this scenario.
	Runs int `json:"runs"`
	Of   int `json:"of"`
	// Index of the first case that shows it.
	Index  int    `json:"index"`
	Repeat string `json:"repeat"`
}

// Gate is the result of a suite, or of some shards of it.
type Gate struct {
	Schema string     `json:"schema"`
	Suite  GateSuite  `json:"suite"`
	Shards GateShards `json:"shards"`
	// ExitCode is what the program that made the document exits with.
	ExitCode int `json:"exit_code"`
	// Incomplete says that shards were joined and some are missing.
	Incomplete bool `json:"incomplete,omitempty"`
	// Interrupted says that it was ended from outside.
	Interrupted bool           `json:"interrupted,omitempty"`
	Counts      map[Status]int `json:"counts"`
	// Findings that are not as expected, new ones first.
	Findings []GateFinding `json:"findings"`
	// Vanished are in the baseline, and every run that could show them was
	// played to a verdict and did not.
	Vanished []Finding `json:"vanished"`
	// Untested are in the baseline, and nothing is known about them now.
	Untested []Finding     `json:"untested"`
	Baseline *GateBaseline `json:"baseline,omitempty"`
	Cases    []Case        `json:"cases"`
}
