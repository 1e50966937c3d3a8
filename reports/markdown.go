package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

// markdownWidth keeps a diagram within the code block of a job summary.
const markdownWidth = 100

// Markdown tells runs for a job summary or for documentation: a table of all,
// then each that found something or is not as expected, with its picture.
// histories gives the history of a run, or nil where it is not at hand; it may
// itself be nil.
func Markdown(w io.Writer, runs []Run, histories func(Run) *history.History) error {
	var lines []string
	add := func(more ...string) { lines = append(lines, more...) }
	add("| scenario | lock | world | seed | verdict | expected | in a sentence |", "|---|---|---|---|---|---|---|")
	for _, r := range runs {
		word, detail := headline(r)
		add(fmt.Sprintf("| %s | %s | %s | %d | %s | %s | %s |", md(r.Scenario), md(r.Lock), md(r.World), r.Seed,
			strings.TrimSpace("**"+md(word)+"** "+md(detail)), standingMark(r), md(firstSentence(r))))
	}
	add("", tally(runs))
	for _, r := range runs {
		if len(violated(r.Checks)) == 0 && Stand(r) == AsExpected && len(runs) > 1 {
			continue
		}
		var h *history.History
		if histories != nil {
			h = histories(r)
		}
		add(markdownRun(r, h)...)
	}
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("writing markdown: %w", err)
	}
	return nil
}

func standingMark(r Run) string {
	if s := Stand(r); s != AsExpected {
		return "**" + s.String() + "**"
	}
	return AsExpected.String()
}

// firstSentence is the gravest violation, or why the run is not as expected.
func firstSentence(r Run) string {
	for _, c := range violated(r.Checks) {
		for _, v := range c.Violations {
			// The sentence belongs to the headline: a check that is broken may
			// list an overrun first.
			if v.Kind == kindOf(c) {
				return sentence(v)
			}
		}
		if len(c.Violations) > 0 {
			return sentence(c.Violations[0])
		}
	}
	for _, g := range grounds(r) {
		return g
	}
	return ""
}

func markdownRun(r Run, h *history.History) []string {
	word, detail := headline(r)
	lines := []string{"", fmt.Sprintf("### %s / %s, seed %d: %s", md(r.Scenario), md(r.Lock), r.Seed, word), ""}
	lines = append(lines, fence(Printable(repeatOf(r)))...)
	lines = append(lines, "", fmt.Sprintf("%s (%s)", strings.TrimSpace("**"+md(word)+"** "+md(detail)), standingMark(r)))
	for _, g := range grounds(r) {
		lines = append(lines, "- "+md(g))
	}
	if r.About != "" {
		lines = append(lines, "", md(r.About))
	}
	bad := violated(r.Checks)
	if len(bad) > 0 {
		lines = append(lines, "")
	}
	for _, c := range bad {
		for i, v := range c.Violations {
			if i == mostViolations {
				lines = append(lines, fmt.Sprintf("- **%s**: and %d more", md(c.Name), found(c)-i))
				break
			}
			lines = append(lines, fmt.Sprintf("- **%s**: %s", md(c.Name), md(sentence(v))))
		}
	}
	if s := blame(bad); s != "" {
		lines = append(lines, "", "**Whose fault:** "+md(s))
	}
	if s := damage(r); s != "" && len(bad) > 0 {
		lines = append(lines, "", "**Damage:** "+md(s))
	}
	if picture := Diagram(h, r.Checks, markdownWidth, false); len(picture) > 0 {
		lines = append(lines, "")
		lines = append(lines, fence(picture...)...)
	}
	return append(lines, markdownChecks(r)...)
}

func markdownChecks(r Run) []string {
	lines := []string{"", "| check | verdict | expected | reason |", "|---|---|---|---|"}
	for _, c := range r.Checks {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |", md(c.Name), md(answer(c)), md(r.Expected[c.Name]), md(firstLine(c.Reason))))
	}
	lines = append(lines, "")
	for _, l := range r.Leaks {
		lines = append(lines, "Left behind: "+md(l), "")
	}
	if s := errorLine(r, mdCode); s != "" {
		lines = append(lines, "Errors "+s, "")
	}
	return append(lines, md(runLine(r))+historyLine(r))
}

func historyLine(r Run) string {
	var s string
	if r.History != "" {
		s += ", history " + md(r.History)
	}
	if r.HistorySHA256 != "" {
		s += ", sha256 " + md(r.HistorySHA256)
	}
	return s
}

// md makes text safe inside a table cell: what markdown or HTML would read as
// markup is escaped, and it stays on one line.
func md(s string) string {
	return markdownEscapes.Replace(Printable(s))
}

// mdCode writes a code as one can search for it, without escapes inside.
func mdCode(s string) string {
	return "`" + strings.ReplaceAll(Printable(s), "`", "'") + "`"
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "~", `\~`,
	"$", "&#36;", "@", "&#64;", // mathematics and mentions on GitHub
)

// fence puts lines into a code block that they cannot close.
func fence(lines ...string) []string {
	mark := "```"
	for strings.Contains(strings.Join(lines, "\n"), mark) {
		mark += "`"
	}
	out := append([]string{mark + "text"}, lines...)
	return append(out, mark)
}
