package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
)

// MatrixSchema names the JSON format of a matrix.
const MatrixSchema = "holdfast/matrix/v1"

// Matrix is locks down and scenarios across.
type Matrix struct {
	Schema    string     `json:"schema"`
	Scenarios []string   `json:"scenarios"`
	Rows      []Row      `json:"rows"`
	Claims    []Measured `json:"claims"`
	// Tally is the last line of the text.
	Tally string `json:"tally"`
}

// Row is one lock.
type Row struct {
	Lock  string `json:"lock"`
	Cells []Cell `json:"cells"`
}

// Cell is one lock in one scenario, over all its seeds and worlds.
type Cell struct {
	Scenario string `json:"scenario"`
	// Outcome is the worst of the runs; empty where nothing was run.
	Outcome string `json:"outcome"`
	// Verdict of the worst run; empty where nothing was run.
	Verdict checker.Verdict `json:"verdict,omitempty"`
	// Count of the Runs had that outcome.
	Count int `json:"count"`
	Runs  int `json:"runs"`
	// Rate of violations over the runs.
	Rate Rate `json:"rate"`
	// Expected says that every run of the cell is as expected.
	Expected bool `json:"as_expected"`
	// Harmless: exclusion was violated and yet no run lost an update, as when
	// a resource refuses the stale write.
	Harmless bool `json:"harmless,omitempty"`
	// Repeat is the command of the run that the cell shows, and Report the path
	// of its HTML report, if one was written.
	Repeat string `json:"repeat,omitempty"`
	Report string `json:"report,omitempty"`
	// Availability while something was broken; absent where nothing lasted.
	Availability *Availability `json:"availability,omitempty"`
}

// MatrixOf lays runs out. Locks and scenarios give the order and may name ones
// that were not run; what they leave out follows in the order of the runs.
func MatrixOf(runs []Run, locks, scenarios []string, claims []Claim) Matrix {
	locks, scenarios = slices.Clone(locks), slices.Clone(scenarios)
	cells := map[[2]string][]Run{}
	for _, r := range runs {
		if !slices.Contains(locks, r.Lock) {
			locks = append(locks, r.Lock)
		}
		if !slices.Contains(scenarios, r.Scenario) {
			scenarios = append(scenarios, r.Scenario)
		}
		at := [2]string{r.Lock, r.Scenario}
		cells[at] = append(cells[at], r)
	}
	m := Matrix{Schema: MatrixSchema, Scenarios: append([]string{}, scenarios...), Rows: []Row{}, Claims: []Measured{}, Tally: tally(runs)}
	for _, lock := range locks {
		row := Row{Lock: lock, Cells: []Cell{}}
		for _, scenario := range scenarios {
			row.Cells = append(row.Cells, cellOf(scenario, cells[[2]string{lock, scenario}]))
		}
		m.Rows = append(m.Rows, row)
	}
	for _, c := range claims {
		m.Claims = append(m.Claims, measure(c, runs))
	}
	return m
}

// ShownRuns lists the places of the runs that a matrix of them shows: the worst
// of each lock in each scenario.
func ShownRuns(runs []Run) []int {
	var order [][2]string
	worst := map[[2]string]int{}
	for i, r := range runs {
		at := [2]string{r.Lock, r.Scenario}
		switch k, known := worst[at]; {
		case !known:
			order = append(order, at)
			worst[at] = i
		case worse(r, runs[k]):
			worst[at] = i
		}
	}
	out := make([]int, 0, len(order))
	for _, at := range order {
		out = append(out, worst[at])
	}
	return out
}

func cellOf(scenario string, runs []Run) Cell {
	c := Cell{Scenario: scenario, Runs: len(runs), Expected: true, Rate: Violations(runs)}
	worst := worstOf(runs)
	if worst == nil {
		return c
	}
	c.Outcome, c.Verdict, c.Repeat = outcomeOf(*worst), worst.Verdict, repeatOf(*worst)
	c.Report = worst.Report
	for _, r := range runs {
		if outcomeOf(r) == c.Outcome {
			c.Count++
		}
		c.Expected = c.Expected && Stand(r) == AsExpected
	}
	c.Harmless = harmless(runs)
	c.Availability = availabilityOf(runs)
	return c
}

// harmless says that runs violated exclusion and lost nothing.
func harmless(runs []Run) bool {
	shared := false
	for _, r := range runs {
		for _, c := range r.Checks {
			switch {
			case c.Name == "exclusion":
				shared = shared || c.Verdict == checker.Violation
			case c.Name == "updates" && c.Verdict != checker.Pass:
				return false
			}
		}
	}
	return shared
}

// worstOf is the run with the worst verdict, and among violations the gravest;
// among equals the one that is not as expected. It is nil for no runs.
func worstOf(runs []Run) *Run {
	var worst *Run
	for i := range runs {
		if worst == nil || worse(runs[i], *worst) {
			worst = &runs[i]
		}
	}
	return worst
}

func worse(a, b Run) bool {
	if a.Verdict != b.Verdict {
		return checker.Worst(a.Verdict, b.Verdict) == a.Verdict
	}
	return cmp.Or(
		cmp.Compare(gravest(b), gravest(a)),
		cmp.Compare(Stand(a), Stand(b)),
	) > 0
}

// gravest ranks what a run violated; the smaller the graver. A lock service
// that broke its promise comes before a holder that outlived its lease.
func gravest(r Run) int {
	bad := violated(r.Checks)
	if len(bad) == 0 {
		return 2 * (len(gravity) + 1)
	}
	rank := 2 * gravityOf(bad[0].Name)
	if kindOf(bad[0]) != checker.Broken {
		rank++
	}
	return rank
}

// word is a cell in the text: "overrun! 3/20 (5.2-36 %)".
func (c Cell) word() string {
	if c.Outcome == "" {
		return "-"
	}
	s := Printable(c.Outcome) + c.Marks()
	if c.Runs > 1 {
		s += strings.TrimRight(fmt.Sprintf(" %d/%d %s", c.Count, c.Runs, c.Rate.Interval()), " ")
	}
	return s
}

// Marks stand behind the outcome; [Matrix.Key] explains them.
func (c Cell) Marks() string {
	s := ""
	if c.Harmless {
		s += "~"
	}
	if !c.Expected {
		s += "!"
	}
	return s
}

func (c Cell) colour() string {
	switch {
	case c.Outcome == "":
		return ""
	case !c.Expected:
		return bold + ";" + red
	case c.Verdict == checker.Pass:
		return green
	}
	return yellow
}

// Text writes the matrix for a person. Where the scenarios do not fit the
// width, it goes on in a second block under the same locks.
func (m Matrix) Text(w io.Writer, opt TextOptions) error {
	p := newPage(opt)
	first := len("lock")
	for _, r := range m.Rows {
		first = max(first, len([]rune(Printable(r.Lock))))
	}
	wide := make([]int, len(m.Scenarios))
	for i, s := range m.Scenarios {
		wide[i] = len([]rune(Printable(s)))
		for _, r := range m.Rows {
			wide[i] = max(wide[i], len([]rune(r.Cells[i].word())))
		}
	}
	for from := 0; from < len(m.Scenarios); {
		to, used := from, first
		for to < len(wide) && (to == from || used+2+wide[to] <= p.width) {
			used += 2 + wide[to]
			to++
		}
		if from > 0 {
			p.add("")
		}
		m.block(p, from, to, first, wide)
		from = to
	}
	p.add("", m.Key())
	m.claims(p)
	p.add("", m.Tally)
	return p.flush(w)
}

// block writes the columns of some of the scenarios.
func (m Matrix) block(p *page, from, to, first int, wide []int) {
	line := fmt.Sprintf("%-*s", first, "lock")
	for i := from; i < to; i++ {
		line += fmt.Sprintf("  %-*s", wide[i], Printable(m.Scenarios[i]))
	}
	p.add(strings.TrimRight(line, " "))
	for _, r := range m.Rows {
		line, gap := fmt.Sprintf("%-*s", first, Printable(r.Lock)), 0
		for i := from; i < to; i++ {
			word := r.Cells[i].word()
			line += strings.Repeat(" ", gap+2) + p.paint(r.Cells[i].colour(), word)
			gap = wide[i] - len([]rune(word))
		}
		p.add(line)
	}
}

// Key explains the marks that occur.
func (m Matrix) Key() string {
	var odd, seeds, empty, mild bool
	for _, r := range m.Rows {
		for _, c := range r.Cells {
			odd = odd || !c.Expected
			seeds = seeds || c.Runs > 1
			empty = empty || c.Outcome == ""
			mild = mild || c.Harmless
		}
	}
	parts := []string{"the worst outcome of each lock in each scenario"}
	if seeds {
		parts = append(parts, "n/m: in n of m runs", "(a-b %): 95 % confidence interval of the rate of violations")
	}
	if mild {
		parts = append(parts, "~: two holders at once, but no update was lost")
	}
	if odd {
		parts = append(parts, "!: not as expected")
	}
	if empty {
		parts = append(parts, "-: not run")
	}
	return strings.Join(parts, "; ")
}

// claims writes promises beside what was measured.
func (m Matrix) claims(p *page) {
	if len(m.Claims) == 0 {
		return
	}
	rows := [][3]string{{"lock", "property", "promised"}}
	for _, c := range m.Claims {
		rows = append(rows, [3]string{Printable(c.Lock), Printable(c.Claim.Claim), Printable(c.Promise)})
	}
	var wide [3]int
	for _, r := range rows {
		for i := range r {
			wide[i] = max(wide[i], len([]rune(r[i])))
		}
	}
	p.add("", "What the authors promise, and what was measured")
	for i, r := range rows {
		head := fmt.Sprintf("%-*s  %-*s  %-*s  ", wide[0], r[0], wide[1], r[1], wide[2], r[2])
		found := "measured"
		if i > 0 {
			found = m.Claims[i-1].Finding
		}
		if p.width-len([]rune(head)) < 24 {
			p.add(strings.TrimRight(head, " "))
			if i > 0 {
				p.say("    ", found)
			}
			continue
		}
		p.say(head, found)
	}
}

// Markdown writes the matrix for a job summary or for documentation.
func (m Matrix) Markdown(w io.Writer) error {
	var b strings.Builder
	cells := []string{"lock"}
	for _, s := range m.Scenarios {
		cells = append(cells, md(s))
	}
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n" + strings.Repeat("|---", len(cells)) + "|\n")
	for _, r := range m.Rows {
		cells = []string{md(r.Lock)}
		for _, c := range r.Cells {
			word := md(c.word())
			if !c.Expected {
				word = "**" + word + "**"
			}
			cells = append(cells, word)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString("\n" + md(m.Key()) + "\n")
	if len(m.Claims) > 0 {
		b.WriteString("\n| lock | property | promised | measured |\n|---|---|---|---|\n")
		for _, c := range m.Claims {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", md(c.Lock), md(c.Claim.Claim), md(c.Promise), md(c.Finding))
		}
	}
	b.WriteString("\n" + m.Tally + "\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	return nil
}

// JSON writes the matrix for machines.
func (m Matrix) JSON(w io.Writer) error {
	return writeJSON(w, m)
}
