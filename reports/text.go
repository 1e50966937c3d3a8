package reports

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// TextOptions say how text is laid out. The command decides about colour: a
// terminal, and NO_COLOR not set.
type TextOptions struct {
	Color bool
	// Width in columns; 0 stands for 100, and less than 60 is treated as 60.
	Width int
}

func (o TextOptions) width() int {
	switch {
	case o.Width <= 0:
		return 100
	case o.Width < 60:
		return 60
	}
	return o.Width
}

// mostViolations is how many violations of one check are told one by one.
const mostViolations = 5

// page gathers lines.
type page struct {
	ink
	width int
	lines []string
}

func newPage(opt TextOptions) *page {
	return &page{ink: ink{on: opt.Color}, width: opt.width()}
}

func (p *page) add(lines ...string) { p.lines = append(p.lines, lines...) }

// say wraps a sentence; later lines are indented like the first.
func (p *page) say(head, text string) {
	p.add(wrapBehind(head, text, p.width)...)
}

// wrapBehind puts text behind a head, wrapped within what is left of the width.
func wrapBehind(head, text string, width int) []string {
	n := len([]rune(head))
	lines := wrap(text, width-n, "")
	for i := range lines {
		lead := head
		if i > 0 {
			lead = strings.Repeat(" ", n)
		}
		lines[i] = lead + lines[i]
	}
	return lines
}

func (p *page) flush(w io.Writer) error {
	if _, err := io.WriteString(w, strings.Join(p.lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Text tells one run to a person: the command that repeats it, the verdict,
// what went wrong, whose fault it was, what it damaged, a picture of it, and
// the checks. The history may be nil; there is no picture then.
func Text(w io.Writer, run Run, h *history.History, opt TextOptions) error {
	p := newPage(opt)
	p.add(Printable(repeatOf(run)))
	p.verdict(run)
	p.story(run)
	p.contradiction(run, h)
	if picture := Diagram(h, run.Checks, p.width, opt.Color); len(picture) > 0 {
		p.add("")
		p.add(picture...)
	}
	p.checks(run)
	p.foot(run)
	return p.flush(w)
}

// repeatOf is the command that repeats a run.
func repeatOf(r Run) string {
	if r.Repeat != "" {
		return r.Repeat
	}
	return fmt.Sprintf("holdfast run %s --lock %s --on %s --seed %d", r.Scenario, r.Lock, r.World, r.Seed)
}

// headline is what happened, before whether it was expected:
// "VIOLATION  exclusion: overrun, updates: lost-update".
func headline(r Run) (word, detail string) {
	word = strings.ToUpper(string(r.Verdict))
	if word == "" {
		word = "NOT JUDGED"
	}
	var parts []string
	for _, c := range violated(r.Checks) {
		parts = append(parts, kindPhrase(c))
	}
	if len(parts) == 0 {
		for _, c := range r.Checks {
			if c.Applies && c.Verdict != checker.Pass && c.Verdict != checker.Violation {
				parts = append(parts, c.Name)
			}
		}
	}
	if r.Error != "" {
		parts = append(parts, "the run failed")
	}
	return word, Printable(strings.Join(parts, ", "))
}

// kindPhrase is "exclusion: overrun", or just "liveness" where the kind says
// no more than the check.
func kindPhrase(c checker.Result) string {
	if k := kindOf(c); k != c.Name {
		return c.Name + ": " + k
	}
	return c.Name
}

func (p *page) verdict(r Run) {
	word, detail := headline(r)
	colour := map[checker.Verdict]string{checker.Pass: green, checker.Violation: red}[r.Verdict]
	if colour == "" {
		colour = yellow
	}
	parts := []string{word}
	if detail != "" {
		parts = append(parts, detail)
	}
	line := strings.Join(parts, "  ")
	what := Printable(r.Scenario + " / " + r.Lock)
	standing := Stand(r).String()
	whole := line + "   " + what + "   " + standing
	if len([]rune(whole)) > p.width {
		if len([]rune(line)) > p.width {
			p.add(wrap(line, p.width, "  ")...)
		} else {
			p.add(p.emphasize(line, word, colour, ""))
		}
		whole = "  " + what + "   " + standing
		p.add(p.emphasize(whole, "", colour, standing))
	} else {
		p.add(p.emphasize(whole, word, colour, standing))
	}
	for _, m := range grounds(r) {
		p.say("  - ", m)
	}
}

// emphasize colours the verdict and the standing in a line.
func (p *page) emphasize(line, word, colour, standing string) string {
	if !p.on {
		return line
	}
	line = strings.TrimSuffix(line, standing)
	line = p.paint(bold+";"+colour, word) + strings.TrimPrefix(line, word)
	if standing == AsExpected.String() || standing == "" {
		return line + p.paint(green, standing)
	}
	return line + p.paint(bold+";"+red, standing)
}

// grounds says why a run is not as expected.
func grounds(r Run) []string {
	if Stand(r) == AsExpected {
		return nil
	}
	out := r.Mismatches
	if len(out) == 0 {
		_, out = Match(r.Checks, r.Expected)
	}
	if r.Error != "" {
		out = append([]string{"the run failed: " + r.Error}, out...)
	}
	return out
}

// story says what went wrong, whose fault it was, and what it damaged.
func (p *page) story(r Run) {
	if r.About != "" {
		p.add("")
		p.say("", r.About)
	}
	bad := violated(r.Checks)
	if len(bad) == 0 {
		return
	}
	p.add("")
	for _, c := range bad {
		for i, v := range c.Violations {
			if i == mostViolations {
				p.add(fmt.Sprintf("  %s  and %d more", strings.Repeat(" ", checkWidth(bad)), found(c)-i))
				break
			}
			name := c.Name
			if i > 0 {
				name = ""
			}
			p.say(fmt.Sprintf("  %-*s  ", checkWidth(bad), name), sentence(v))
		}
		p.stack(c)
	}
	for _, line := range []struct{ head, text string }{{"Whose fault: ", blame(bad)}, {"Damage: ", damage(r)}} {
		if line.text != "" {
			p.say(line.head, line.text)
		}
	}
}

// stackShown is how many lines of a stack are shown; the JSON has all.
const stackShown = 12

// stack shows where a lock panicked or hangs: the reason of a violation that
// has several lines.
func (p *page) stack(c checker.Result) {
	lines := strings.Split(c.Reason, "\n")
	if len(lines) < 2 {
		return
	}
	for _, l := range lines[:min(len(lines), stackShown)] {
		p.add("    | " + Printable(strings.ReplaceAll(l, "\t", "  ")))
	}
}

// found is how many violations a check found. It lists only the first of very
// many; its figures count all.
func found(c checker.Result) int {
	n := len(c.Violations)
	for _, name := range []string{"overlaps", "lost"} {
		if v, ok := c.Figures[name]; ok {
			n = max(n, int(v))
		}
	}
	return n
}

func checkWidth(rs []checker.Result) int {
	n := 0
	for _, r := range rs {
		n = max(n, len(r.Name))
	}
	return n
}

// sentence is a violation in words, with the fault that was active or may have
// led to it before.
func sentence(v checker.Found) string {
	s := strings.TrimSpace(v.Summary)
	if s == "" {
		s = v.Kind
	}
	if v.Fault != "" && !strings.Contains(s, v.Fault) {
		s += " Active fault: " + strings.TrimSuffix(v.Fault, ".") + "."
	}
	if v.Earlier != "" {
		s += " Earlier fault: " + strings.TrimSuffix(v.Earlier, ".") + "."
	}
	return s
}

// blame says whose fault the exclusion violations were.
func blame(bad []checker.Result) string {
	count := map[string]int{}
	for _, r := range bad {
		if r.Name != "exclusion" {
			continue
		}
		for _, v := range r.Violations {
			count[v.Kind]++
		}
		if len(r.Violations) == 0 {
			count[r.Kind]++
		}
		for kind := range count {
			count[kind] = max(count[kind], int(r.Figures[kind]))
		}
	}
	holder := "the HOLDER outlived its lease (overrun): the lock had run out as promised, but its holder still acted as the owner"
	service := "the LOCK SERVICE broke its promise (broken): it gave the lock away while a lease was still guaranteed"
	switch o, b := count[checker.Overrun], count[checker.Broken]; {
	case o > 0 && b > 0:
		return fmt.Sprintf("both. %s, %s; %s, %s.", times(b), service, times(o), holder)
	case o > 0:
		return holder + "."
	case b > 0:
		return service + "."
	}
	return ""
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// damage says how many acknowledged writes were lost.
func damage(r Run) string {
	for _, c := range r.Checks {
		if c.Name != "updates" || !c.Applies {
			continue
		}
		if c.Verdict == checker.Pass {
			return "none seen, every acknowledged write is still there."
		}
		if c.Verdict != checker.Violation {
			return ""
		}
		lost, all := found(c), c.Figures["writes"]
		if all <= 0 {
			return fmt.Sprintf("%d acknowledged write%s lost.", lost, plural(lost))
		}
		return fmt.Sprintf("%d of %.0f acknowledged writes lost, %s %%.", lost, all, trim(100*float64(lost)/all))
	}
	return ""
}

// trim writes a number with one decimal, and none where that would be zero. A
// small one keeps two digits, so that a share that is there is never told as
// none: 2 of 6901 are 0.029 %.
func trim(v float64) string {
	if v > 0 && v < 0.95 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// checks is the table of checks.
func (p *page) checks(r Run) {
	if len(r.Checks) == 0 {
		return
	}
	p.add("")
	rows := [][3]string{{"check", "verdict", "expected"}}
	for _, c := range r.Checks {
		rows = append(rows, [3]string{Printable(c.Name), answer(c), Printable(r.Expected[c.Name])})
	}
	var wide [3]int
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], len([]rune(cell)))
		}
	}
	for i, row := range rows {
		head := fmt.Sprintf("%-*s  %-*s  %-*s  ", wide[0], row[0], wide[1], row[1], wide[2], row[2])
		why := "reason"
		if i > 0 {
			why = firstLine(r.Checks[i-1].Reason)
		}
		switch narrow := p.width-len([]rune(head)) < 30; {
		case why == "" || narrow && i == 0:
			p.add(strings.TrimRight(head, " "))
		case narrow:
			p.add(strings.TrimRight(head, " "))
			p.say("    ", why)
		default:
			p.say(head, why)
		}
	}
}

// answer is one word for a check: its kind, its verdict, or that it has
// nothing to judge.
func answer(c checker.Result) string {
	switch {
	case !c.Applies:
		return "n/a"
	case c.Verdict == checker.Violation:
		if n := found(c); n > 1 {
			return Printable(fmt.Sprintf("VIOLATION %s (%d)", kindOf(c), n))
		}
		return Printable("VIOLATION " + kindOf(c))
	}
	return string(c.Verdict)
}

func (p *page) foot(r Run) {
	p.add("")
	for _, l := range r.Leaks {
		p.say("leak     ", l)
	}
	if s := errorLine(r, Printable); s != "" {
		p.say("errors   ", s)
	}
	if r.Report != "" {
		p.add("report   " + Printable(r.Report))
	}
	if r.History != "" {
		p.add("history  " + Printable(r.History))
	}
	if r.HistorySHA256 != "" {
		p.add("sha256   " + Printable(r.HistorySHA256))
	}
	p.say("run      ", runLine(r))
}

// runLine is where and how long it ran.
func runLine(r Run) string {
	lasted, kind := num(r.VirtualSeconds)+" virtual", " wall"
	if r.World != "sim" {
		lasted, kind = num(r.VirtualSeconds)+" of real time", " with the set-up"
	}
	if r.WallSeconds > 0 { // a history that is judged again does not say
		lasted += ", " + num(r.WallSeconds) + kind
	}
	return fmt.Sprintf("world %s, topology %s, seed %d, TTL %s, %d ops, %s",
		r.World, r.Topology, r.Seed, sec(r.TTLNanos), r.Ops, lasted)
}

func num(seconds float64) string {
	return sec(int64(seconds * 1e9))
}
