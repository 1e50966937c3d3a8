package reports

import (
	"fmt"
	"io"
	"strings"
)

// SummaryLimit is what GitHub takes as the summary of one step.
const SummaryLimit = 1024 << 10

// footRoom is kept free for the line that says what was left out.
const footRoom = 1 << 10

// block is a part of a summary. Its lines stay together, then come its rows,
// each of which may be left out.
type block struct {
	lines []string
	rows  []string
	// what the block and each of its rows are, for the line that says how many
	// were left out: "finding", "picture".
	what, row string
}

// Markdown tells the gate's result for a job summary, in at most limit bytes:
// the new findings, the known and the vanished ones, what is unknown, a
// picture of each new finding, and all locks and scenarios. What does not fit
// is left out by whole rows and whole pictures, and the end says how much.
func (g *Gate) Markdown(w io.Writer, limit int) error {
	blocks := []block{
		{lines: []string{fmt.Sprintf("## holdfast gate: %s", g.headWord()), "",
			fmt.Sprintf("Suite **%s**%s. %s.", md(clip(g.Suite.Name)), md(g.part()), g.tally())}},
		g.findingTable(), g.knownTable(), g.vanishedTable(), g.unknownList(),
	}
	blocks = append(blocks, g.stories()...)
	blocks = append(blocks, g.groupTable())
	if _, err := io.WriteString(w, fit(blocks, limit)); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return nil
}

// fit writes blocks until there is no more room.
func fit(blocks []block, limit int) string {
	var b strings.Builder
	room := limit - footRoom
	left := map[string]int{}
	var order []string
	leave := func(what string, n int) {
		if n > 0 && left[what] == 0 {
			order = append(order, what)
		}
		left[what] += n
	}
	for _, bl := range blocks {
		if len(bl.lines) == 0 || bl.row != "" && len(bl.rows) == 0 {
			continue
		}
		head := strings.Join(bl.lines, "\n") + "\n"
		first := ""
		if len(bl.rows) > 0 {
			first = bl.rows[0] + "\n"
		}
		if b.Len()+len(head)+len(first)+1 > room { // a table without a row says nothing
			leave(bl.what, 1)
			leave(bl.row, len(bl.rows))
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(head)
		for i, row := range bl.rows {
			if b.Len()+len(row)+1 > room {
				leave(bl.row, len(bl.rows)-i)
				break
			}
			b.WriteString(row + "\n")
		}
	}
	var parts []string
	for _, what := range order {
		if what != "" {
			parts = append(parts, fmt.Sprintf("%d %s%s", left[what], what, plural(left[what])))
		}
	}
	if len(parts) > 0 {
		b.WriteString("\n**Left out, since a summary has a limit:** " + strings.Join(parts, ", ") + ". The JSON document has them all.\n")
	}
	return b.String()
}

func (g *Gate) findingTable() block {
	bl := block{row: "new finding", lines: []string{"### New findings", "",
		"| lock | scenario | check | found | expected | runs | in a sentence |", "|---|---|---|---|---|---|---|"}}
	for _, f := range g.fresh() {
		bl.rows = append(bl.rows, fmt.Sprintf("| %s | %s | %s | **%s** | %s | %d of %d | %s |", cell(f.Lock), cell(f.Scenario),
			cell(f.Check), cell(f.Kind), cell(f.Expected), f.Runs, f.Of, cell(f.Sentence)))
	}
	return bl
}

func (g *Gate) knownTable() block {
	bl := block{row: "known finding", lines: []string{"### Known findings (in the baseline)", "",
		"| lock | scenario | check | found | runs | note |", "|---|---|---|---|---|---|"}}
	for _, f := range g.Findings {
		if f.Known {
			bl.rows = append(bl.rows, fmt.Sprintf("| %s | %s | %s | %s | %d of %d | %s |", cell(f.Lock), cell(f.Scenario),
				cell(f.Check), cell(f.Kind), f.Runs, f.Of, cell(f.Note)))
		}
	}
	return bl
}

func (g *Gate) vanishedTable() block {
	bl := block{row: "vanished finding", lines: []string{"### Vanished", "",
		"No run showed these any more. `holdfast gate --update-baseline` takes them out of the baseline.", "",
		"| lock | scenario | check | kind |", "|---|---|---|---|"}}
	for _, f := range g.Vanished {
		bl.rows = append(bl.rows, fmt.Sprintf("| %s | %s | %s | %s |", cell(f.Lock), cell(f.Scenario), cell(f.Check), cell(f.Kind)))
	}
	return bl
}

func (g *Gate) unknownList() block {
	bl := block{row: "reason", lines: []string{"### Unknown: no pass", ""}}
	for _, s := range g.unknowns() {
		bl.rows = append(bl.rows, "- "+cell(s))
	}
	return bl
}

// stories are a block for each run in which a new finding was first seen: the
// sentences, the command and the picture.
func (g *Gate) stories() []block {
	var out []block
	fresh := g.fresh()
	for i := 0; i < len(fresh); {
		first := fresh[i]
		lines := []string{fmt.Sprintf("### %s in %s", cell(first.Lock), cell(first.Scenario)), ""}
		for ; i < len(fresh) && fresh[i].Index == first.Index; i++ {
			lines = append(lines, fmt.Sprintf("- **%s**: %s", cell(fresh[i].Check), cell(fresh[i].Sentence)))
		}
		picture := []string{line(first.Repeat)}
		for k, l := range g.pictureOf(first) {
			if k == 0 {
				picture = append(picture, "")
			}
			picture = append(picture, line(l))
		}
		lines = append(lines, "")
		out = append(out, block{what: "picture", lines: append(lines, fence(picture...)...)})
	}
	return out
}

// groupTable has a row for each lock and scenario.
func (g *Gate) groupTable() block {
	bl := block{row: "row of the table of all runs", lines: []string{"### All runs", "",
		"| lock | scenario | runs | as expected | known | new | error | unknown | not played |", "|---|---|---|---|---|---|---|---|---|"}}
	type pair struct{ lock, scenario string }
	count := map[pair]map[Status]int{}
	var order []pair
	for _, c := range g.Cases {
		p := pair{c.Lock, c.Scenario}
		if count[p] == nil {
			count[p] = map[Status]int{}
			order = append(order, p)
		}
		count[p][c.Status]++
	}
	for _, p := range order {
		row, all := "", 0
		for _, s := range []Status{CasePassed, CaseKnown, CaseFailed, CaseError, CaseUnknown, CaseSkipped} {
			row += fmt.Sprintf(" %d |", count[p][s])
			all += count[p][s]
		}
		bl.rows = append(bl.rows, fmt.Sprintf("| %s | %s | %d |%s", cell(p.lock), cell(p.scenario), all, row))
	}
	return bl
}

// cell is a foreign text in a table.
func cell(s string) string { return md(clip(s)) }
