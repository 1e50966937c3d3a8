package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
)

// page is markdown in the making. Paragraphs are wrapped, so that a change of
// the evidence is a small change of the file.
type page struct{ b strings.Builder }

// columns of a line of text, and of a picture.
const columns = 118

func (p *page) heading(level int, text string) {
	fmt.Fprintf(&p.b, "%s %s\n\n", strings.Repeat("#", level), text)
}

// text adds paragraphs, which blank lines separate.
func (p *page) text(paragraphs ...string) {
	for _, s := range paragraphs {
		p.b.WriteString(wrapped(s, "", ""))
		p.b.WriteString("\n")
	}
}

// list adds a bulleted list.
func (p *page) list(items ...string) {
	for _, s := range items {
		p.b.WriteString(wrapped(s, "- ", "  "))
	}
	p.b.WriteString("\n")
}

// table adds a table. A bar in a cell would end it.
func (p *page) table(head []string, rows [][]string) {
	line := func(cells []string) {
		safe := make([]string, len(cells))
		for i, c := range cells {
			safe[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&p.b, "| %s |\n", strings.Join(safe, " | "))
	}
	line(head)
	fmt.Fprintf(&p.b, "|%s\n", strings.Repeat("---|", len(head)))
	for _, r := range rows {
		line(r)
	}
	p.b.WriteString("\n")
}

// block adds preformatted lines.
func (p *page) block(kind string, lines ...string) {
	fmt.Fprintf(&p.b, "```%s\n%s\n```\n\n", kind, strings.Join(lines, "\n"))
}

// tests adds the table of what was played.
func (p *page) tests(b Book, tests []Test) {
	rows := make([][]string, len(tests))
	for i, t := range tests {
		a := b[t.Case].Ask(t.Asks)
		rows[i] = []string{scenarioLink(t.Scenario), "`" + t.Lock + "`", t.Asks.Words, fmt.Sprintf("**%s**, %s", a.Share(), a)}
	}
	p.table([]string{"scenario", "lock", "question", "yes in"}, rows)
}

// scenarioLink leads from a page in docs/ to the scenario's file.
func scenarioLink(name string) string { return fmt.Sprintf("[%s](../scenarios/%s.yaml)", name, name) }

// Picture is a run to look at, with the nodes whose key is of interest.
type Picture struct {
	Case
	Nodes []string
}

// picture adds the command that repeats a run, its lanes, and what the checks
// say of it.
func (p *page) picture(b Book, pic Picture) {
	e := b[pic.Case]
	run := e.Runs[0]
	p.block("console", "$ "+campaign.Repeat(e.Job(run.Seed)))
	p.block("text", lanes(reports.Diagram(e.Shown, run.Checks, columns, false), pic.Nodes)...)
	var said []string
	for _, t := range reports.Tell(run, 1).Violations {
		if t.Check == "exclusion" || t.Check == "updates" || len(said) == 0 {
			sentence, _, _ := strings.Cut(t.Sentence, activeFault)
			said = append(said, reports.Printable(sentence))
		}
	}
	if len(said) > 0 {
		p.list(said...)
	}
}

// activeFault begins what a sentence says of the faults, which have lanes.
const activeFault = " Active fault"

// keyLegend begins what a diagram says of its key lanes.
const keyLegend = "in the key lanes:"

// lanes takes from a diagram the key lanes of nodes that are not of interest,
// and what only they need to be understood.
func lanes(diagram, nodes []string) []string {
	var out []string
	legend := []string{}
	for _, line := range diagram {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[1] == "key" && !slices.Contains(nodes, words[0]):
		case len(legend) > 0 || strings.HasPrefix(line, ". idle") || strings.HasPrefix(line, "- waits") || strings.HasPrefix(line, "= holds"):
			legend = append(legend, strings.TrimSpace(line))
		default:
			out = append(out, line)
		}
	}
	line := ""
	for _, entry := range strings.Split(strings.Join(legend, gap), gap) {
		switch {
		case entry == "" || strings.HasPrefix(entry, keyLegend) && len(nodes) == 0:
		case line != "" && len([]rune(line+gap+entry)) <= columns:
			line += gap + entry
		default:
			if line != "" {
				out = append(out, line)
			}
			line = entry
		}
	}
	return append(out, line)
}

// gap stands between two entries of a diagram's legend.
const gap = "   "

// wrapped breaks a text between its words.
func wrapped(text, first, later string) string {
	var b strings.Builder
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > columns {
			b.WriteString(line + "\n")
			line, empty = later, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	b.WriteString(line + "\n")
	return b.String()
}
