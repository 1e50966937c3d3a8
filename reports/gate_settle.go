package reports

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Settle fills in everything that follows from the cases and the baseline.
func (g *Gate) Settle() {
	g.Schema = GateSchema
	known := g.known()
	slices.SortFunc(g.Cases, func(a, b Case) int { return cmp.Compare(a.Index, b.Index) })
	g.Counts = map[Status]int{}
	for _, s := range []Status{CaseFailed, CaseError, CaseUnknown, CaseSkipped, CaseKnown, CasePassed} {
		g.Counts[s] = 0
	}
	for i := range g.Cases {
		c := &g.Cases[i]
		c.settle(known)
		g.Counts[c.Status]++
		if c.Status != CaseFailed {
			c.Picture = nil
		}
	}
	g.gather(known)
	g.compareBaseline(known)
	g.ExitCode = g.exitCode()
}

func (g *Gate) known() []Finding {
	if g.Baseline == nil {
		return nil
	}
	return g.Baseline.Findings
}

// gather sums the cases' findings up, new ones first.
func (g *Gate) gather(known []Finding) {
	g.Findings = []GateFinding{}
	at := map[Finding]int{}
	of := map[[2]string]int{}
	for _, c := range g.Cases {
		if c.Run != nil {
			of[[2]string{c.Lock, c.Scenario}]++
		}
		for _, f := range c.Findings {
			i, ok := at[f]
			if !ok {
				i = len(g.Findings)
				at[f] = i
				g.Findings = append(g.Findings, GateFinding{
					Finding: f, Known: Has(known, f), Expected: expectedOf(*c.Run, f.Check),
					Sentence: sentenceOf(*c.Run, f), Index: c.Index, Repeat: c.Repeat,
				})
			}
			g.Findings[i].Runs++
		}
	}
	for i := range g.Findings {
		f := &g.Findings[i]
		f.Of = of[[2]string{f.Lock, f.Scenario}]
		if k := slices.IndexFunc(known, func(o Finding) bool { return o.id() == f.Finding }); k >= 0 {
			f.Note = known[k].Note
		}
	}
	slices.SortFunc(g.Findings, func(a, b GateFinding) int {
		if a.Known != b.Known {
			if b.Known {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Scenario, b.Scenario),
			cmp.Compare(gravityOf(a.Check), gravityOf(b.Check)), CompareFindings(a.Finding, b.Finding))
	})
}

func expectedOf(r Run, check string) string {
	if want := r.Expected[check]; want != "" {
		return want
	}
	return "pass"
}

// sentenceOf says a finding in the words of the run that shows it.
func sentenceOf(r Run, f Finding) string {
	for _, c := range r.Checks {
		if c.Name != f.Check {
			continue
		}
		for _, v := range c.Violations {
			if v.Kind == f.Kind {
				return sentence(v)
			}
		}
		if f.Kind == string(c.Verdict) {
			return fmt.Sprintf("The scenario expects %s of this lock, and nothing of it was seen.", expectedOf(r, f.Check))
		}
		if c.Reason != "" {
			return firstLine(c.Reason)
		}
	}
	if f.Check == leakCheck && len(r.Leaks) > 0 {
		return "The lock left behind: " + firstLine(r.Leaks[0])
	}
	if len(r.Mismatches) > 0 {
		return r.Mismatches[0]
	}
	return f.Check + ": " + f.Kind
}

// compareBaseline tells what has vanished from what nothing is known about.
// One seed that was not played could have shown the finding, and so could
// another shard:
//
//	baseline   overrun in kleppmann-gc-pause
//	shard 1    seeds 1, 3: no overrun       <- not vanished yet
//	shard 2    seed 2: overrun
func (g *Gate) compareBaseline(known []Finding) {
	g.Vanished, g.Untested = []Finding{}, []Finding{}
	for _, f := range known {
		switch {
		case slices.ContainsFunc(g.Findings, func(o GateFinding) bool { return o.Finding.id() == f.id() }):
		case g.answered(f):
			g.Vanished = append(g.Vanished, f)
		default:
			g.Untested = append(g.Untested, f)
		}
	}
}

// answered says whether every case of a finding's lock and scenario came to an
// answer.
func (g *Gate) answered(f Finding) bool {
	if !g.Shards.whole() {
		return false
	}
	any := false
	for _, c := range g.Cases {
		if c.Lock != f.Lock || c.Scenario != f.Scenario {
			continue
		}
		any = true
		if c.Status == CaseSkipped || c.Status == CaseUnknown || c.Status == CaseError {
			return false
		}
	}
	return any
}

// exitCode is 10 for a new finding, whatever else happened; else 12 if a run
// or the gate itself failed; else 11 if anything is unknown: a check, a run
// that was not played, a shard that is missing, or a suite without runs.
func (g *Gate) exitCode() int {
	switch {
	case g.Counts[CaseFailed] > 0:
		return ExitViolation
	case g.Counts[CaseError] > 0 || g.Interrupted:
		return ExitError
	case g.Counts[CaseUnknown]+g.Counts[CaseSkipped] > 0 || len(g.Cases) == 0 || g.Incomplete:
		return ExitUnknown
	}
	return ExitExpected
}

// MergeGates joins shards into the document that one run would have made. A
// shard that is there twice, since it was tried again, counts with the
// gravest of its answers: a failure is not tried away.
func MergeGates(gs []*Gate) (*Gate, error) {
	if len(gs) == 0 {
		return nil, errors.New("there is nothing to join")
	}
	first := gs[0]
	out := &Gate{Suite: first.Suite, Baseline: first.Baseline, Shards: GateShards{Of: first.Shards.Of}}
	byIndex := map[int]Case{}
	for i, g := range gs {
		if err := joinable(first, g); err != nil {
			return nil, fmt.Errorf("document %d does not belong to the first: %w", i+1, err)
		}
		out.Interrupted = out.Interrupted || g.Interrupted
		for _, n := range g.Shards.Have {
			if !slices.Contains(out.Shards.Have, n) {
				out.Shards.Have = append(out.Shards.Have, n)
			}
		}
		for _, c := range g.Cases {
			c.settle(out.known())
			if old, ok := byIndex[c.Index]; !ok || weight(c) > weight(old) {
				byIndex[c.Index] = c
			}
		}
	}
	for _, c := range byIndex {
		out.Cases = append(out.Cases, c)
	}
	slices.Sort(out.Shards.Have)
	out.Incomplete = !out.Shards.whole()
	if out.Shards.whole() {
		out.Shards = GateShards{Of: 1, Have: []int{1}}
		if len(out.Cases) != out.Suite.Runs {
			return nil, fmt.Errorf("the shards are all there, and have %d of %d runs", len(out.Cases), out.Suite.Runs)
		}
	}
	out.Settle()
	return out, nil
}

// weight orders two answers to the same case. A finding stands whatever a
// second try says; an answer is better than none.
func weight(c Case) int {
	return slices.Index([]Status{CaseSkipped, CaseError, CaseUnknown, CasePassed, CaseKnown, CaseFailed}, c.Status)
}

func joinable(a, b *Gate) error {
	same := func(x, y *GateBaseline) bool {
		return (x == nil) == (y == nil) && (x == nil || slices.Equal(x.Findings, y.Findings))
	}
	switch {
	case a.Suite.Fingerprint != b.Suite.Fingerprint || a.Suite.Runs != b.Suite.Runs:
		return errors.New("it is of another suite, or of another version of its scenarios")
	case a.Shards.Of != b.Shards.Of:
		return fmt.Errorf("it is a shard of %d, the first is one of %d", b.Shards.Of, a.Shards.Of)
	case !same(a.Baseline, b.Baseline):
		return errors.New("it was compared with another baseline")
	}
	return nil
}

// ReadGate reads a document that [Gate.JSON] wrote.
func ReadGate(r io.Reader) (*Gate, error) {
	var g Gate
	d := json.NewDecoder(r)
	if err := d.Decode(&g); err != nil {
		return nil, fmt.Errorf("not a gate's document: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // two files in one, say: the second may hold what failed
		return nil, errors.New("not a gate's document: something follows the document in the file; give merge one file a shard")
	}
	if g.Schema != GateSchema {
		return nil, fmt.Errorf("not a gate's document: the schema is %q, not %s", g.Schema, GateSchema)
	}
	for i, n := range g.Shards.Have {
		if n < 1 || n > g.Shards.Of || i > 0 && n <= g.Shards.Have[i-1] {
			return nil, fmt.Errorf("not a gate's document: shards %v of %d", g.Shards.Have, g.Shards.Of)
		}
	}
	for i, c := range g.Cases {
		if c.Index < 0 || c.Index >= g.Suite.Runs || i > 0 && c.Index <= g.Cases[i-1].Index {
			return nil, fmt.Errorf("not a gate's document: case %d has the index %d of %d runs", i, c.Index, g.Suite.Runs)
		}
	}
	return &g, nil
}

// JSON writes the document, indented and in a stable order.
func (g *Gate) JSON(w io.Writer) error {
	out := *g
	out.Cases = make([]Case, 0, len(g.Cases))
	for _, c := range g.Cases {
		if c.Run != nil {
			r := filled(*c.Run)
			c.Run = &r
		}
		out.Cases = append(out.Cases, c)
	}
	return writeJSON(w, out)
}

// headWord says the whole in a word.
func (g *Gate) headWord() string {
	word := map[int]string{ExitExpected: "PASSED", ExitViolation: "FAILED", ExitError: "ERROR", ExitUnknown: "UNKNOWN"}[g.ExitCode]
	return cmp.Or(word, "UNKNOWN")
}

// tally is how many cases stand where, without the zeros.
func (g *Gate) tally() string {
	parts := []string{}
	for _, s := range []Status{CasePassed, CaseKnown, CaseFailed, CaseError, CaseUnknown, CaseSkipped} {
		if n := g.Counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, statusWords[s]))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing was played")
	}
	return fmt.Sprintf("%d run%s: %s", len(g.Cases), plural(len(g.Cases)), strings.Join(parts, ", "))
}

var statusWords = map[Status]string{
	CasePassed: "as expected", CaseKnown: "with known findings only", CaseFailed: "with new findings",
	CaseError: "failed to run", CaseUnknown: "unknown", CaseSkipped: "not played (unknown)",
}
