package reports

import (
	"fmt"
	"io"
	"strings"
)

// How much of a gate is told one by one: beyond that a number says it, and the
// JSON document has it all.
const (
	mostPictures = 10
	mostListed   = 50
	mostWords    = 2000 // runes of one foreign text
)

// Text tells a person what the gate found: new findings with a picture each,
// known and vanished ones, what is unknown, and the sum.
func (g *Gate) Text(w io.Writer, opt TextOptions) error {
	p := newPage(opt)
	colour := map[int]string{ExitExpected: green, ExitViolation: red}[g.ExitCode]
	if colour == "" {
		colour = yellow
	}
	p.add(p.paint(bold+";"+colour, g.headWord()) + "  suite " + Printable(clip(g.Suite.Name)) + g.part() + ", " + g.tally())
	p.newFindings(g)
	for _, f := range g.Findings {
		if f.Known {
			p.line("known     ", fmt.Sprintf("%s%s%s", f.where(), f.often(), noteOf(f.Note)))
		}
	}
	for _, f := range g.Vanished {
		p.line("vanished  ", f.where()+": no run showed it; --update-baseline takes it out of the baseline")
	}
	for _, s := range g.unknowns() {
		p.line("unknown   ", s)
	}
	if n := len(g.Untested); n > 0 {
		p.line("untested  ", fmt.Sprintf("%d known finding%s: nothing is said of %s, since not all runs that could show %s were played to an answer here",
			n, plural(n), itOrThem(n), itOrThem(n)))
	}
	lines := make([]string, len(p.lines))
	for i, l := range p.lines {
		lines[i] = inert(l)
	}
	p.lines = lines
	return p.flush(w)
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func noteOf(note string) string {
	if note == "" {
		return ""
	}
	return " (" + clip(note) + ")"
}

// line is an entry below the findings.
func (p *page) line(head, text string) { p.say(head, clip(text)) }

// newFindings tells what is new. Findings that were first seen in the same run
// share its command and its picture.
func (p *page) newFindings(g *Gate) {
	fresh := g.fresh()
	pictures := 0
	for i, f := range fresh {
		if i == mostListed {
			p.add("", fmt.Sprintf("... and %d more new findings, all of them in the JSON document", len(fresh)-i))
			break
		}
		p.add("")
		title := wrapBehind("NEW       ", clip(f.where()+f.often()), p.width)
		title[0] = p.paint(bold+";"+red, "NEW") + strings.TrimPrefix(title[0], "NEW")
		p.add(title...)
		p.say("          ", clip(f.Sentence))
		p.say("          ", "expected: "+f.Expected)
		if i+1 < len(fresh) && fresh[i+1].Index == f.Index {
			continue
		}
		p.add("          repeat: " + Printable(clip(f.Repeat)))
		if picture := g.pictureOf(f); len(picture) > 0 && pictures < mostPictures {
			pictures++
			p.add("")
			for _, l := range picture {
				p.add(Printable(clip(l)))
			}
		}
	}
	if len(g.Findings)+len(g.Vanished)+len(g.Untested) > 0 || len(g.unknowns()) > 0 {
		p.add("")
	}
}

// fresh are the findings that the baseline does not know.
func (g *Gate) fresh() []GateFinding {
	var out []GateFinding
	for _, f := range g.Findings {
		if !f.Known {
			out = append(out, f)
		}
	}
	return out
}

// pictureOf is the picture of the first case that shows a finding.
func (g *Gate) pictureOf(f GateFinding) []string {
	for _, c := range g.Cases {
		if c.Index == f.Index {
			return c.Picture
		}
	}
	return nil
}

// where is "basic in kleppmann-gc-pause: exclusion, overrun".
func (f Finding) where() string {
	s := fmt.Sprintf("%s in %s: %s", clip(f.Lock), clip(f.Scenario), clip(f.Check))
	switch f.Kind {
	case f.Check:
	case "pass":
		s += ", a violation is expected and was not seen"
	default:
		s += ", " + clip(f.Kind)
	}
	return s
}

// often is " (2 of 3 runs)".
func (f GateFinding) often() string {
	return fmt.Sprintf(" (%d of %d run%s)", f.Runs, f.Of, plural(f.Of))
}

// part is ", shard 2 of 5", or what is missing, or nothing of a whole.
func (g *Gate) part() string {
	switch {
	case g.Incomplete:
		return fmt.Sprintf(", shard%s %s of %d missing", plural(len(g.Shards.missing())), words(g.Shards.missing()), g.Shards.Of)
	case !g.Shards.whole():
		return fmt.Sprintf(", shard %s of %d", words(g.Shards.Have), g.Shards.Of)
	}
	return ""
}

func words(ns []int) string {
	var out []string
	for _, n := range ns {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ", ")
}

// unknowns says what is not known and why, runs for the same reason together.
func (g *Gate) unknowns() []string {
	var order []string
	count, first := map[string]int{}, map[string]string{}
	for _, c := range g.Cases {
		why := ""
		switch c.Status {
		case CaseSkipped:
			why = "not played, " + c.Reason
		case CaseError, CaseUnknown:
			why = fmt.Sprintf("%s in %s: %s", c.Lock, c.Scenario, c.why())
		default:
			continue
		}
		if count[why] == 0 {
			order = append(order, why)
			first[why] = c.Repeat
		}
		count[why]++
	}
	var out []string
	for i, why := range order {
		if i == mostListed {
			out = append(out, fmt.Sprintf("and %d more reasons", len(order)-i))
			break
		}
		out = append(out, fmt.Sprintf("%d run%s: %s (the first: %s)", count[why], plural(count[why]), clip(why), clip(first[why])))
	}
	if g.Incomplete {
		out = append(out, fmt.Sprintf("%d run%s of the missing shards", g.Suite.Runs-len(g.Cases), plural(g.Suite.Runs-len(g.Cases))))
	}
	if g.Interrupted {
		out = append(out, "the gate was interrupted")
	}
	return out
}

// why says why a run gave no answer.
func (c *Case) why() string {
	if c.Run.Error != "" {
		return "the run failed: " + firstLine(c.Run.Error)
	}
	for _, m := range compare(c.Run.Checks, c.Run.Expected) {
		if !m.definite {
			return m.words
		}
	}
	return "nothing proven"
}

// clip shortens a foreign text: a name or an error of a megabyte must not bury
// the rest of a report.
func clip(s string) string {
	n := 0
	for i := range s {
		if n == mostWords {
			return fmt.Sprintf("%s... (%d bytes more)", s[:i], len(s)-i)
		}
		n++
	}
	return s
}

// inert keeps CI servers from reading a line as a command to them. GitHub takes
// "::" at a line's beginning, blanks before it or not, and "##[" anywhere.
func inert(line string) string {
	line = strings.ReplaceAll(line, "##[", "##\\[")
	if trimmed := strings.TrimLeft(line, " \t"); strings.HasPrefix(trimmed, "::") {
		return line[:len(line)-len(trimmed)] + "\\" + trimmed
	}
	return line
}
