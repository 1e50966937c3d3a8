package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
)

// oneLine makes one printable line of what a lock may have written.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// titleOf is a group in a few words.
func titleOf(g campaign.Group) string {
	what := g.Check
	if g.Kind != g.Check {
		what += ": " + g.Kind
	}
	// What struck nothing was not a fault but how the lock was used.
	word := " after "
	if g.Faults < 2 && !strings.Contains(g.Cause, " at ") && !strings.HasPrefix(g.Cause, "connection cut") && !g.Excused {
		word = " with "
	}
	return oneLine(what + word + g.Cause)
}

func newsLine(g campaign.Group) string {
	excused := ""
	if g.Excused {
		excused = " (which no lock on this topology survives)"
	}
	return "found  " + titleOf(g) + excused
}

// sums are the figures of an exploration in a sentence.
func sums(f *campaign.Findings) string {
	s := fmt.Sprintf("%d moments, %d runs in %.1f s", f.Points, f.Played, f.Seconds)
	if f.Seconds > 0 {
		s += fmt.Sprintf(" (%.0f a second)", float64(f.Played)/f.Seconds)
	}
	if f.Played < f.Plans {
		s += fmt.Sprintf(", %d more were planned", f.Plans-f.Played)
	}
	if f.Left > 0 {
		s += fmt.Sprintf(", %d that break the same step in the same way were left out", f.Left)
	}
	if f.Unstruck > 0 {
		s += fmt.Sprintf(", %d in which a fault found nothing to strike", f.Unstruck)
	}
	if f.Refused > 0 {
		s += fmt.Sprintf(", %d in which the lock rightly refused its parameters", f.Refused)
	}
	return s
}

// what the exploration was, in a few words.
func setUp(f *campaign.Findings) string {
	return fmt.Sprintf("%s on %s, %s, %d clients, depth %d, seed %d", f.Lock, f.Topology,
		count(f.Nodes, "node"), f.Clients, f.Depth, f.Seed)
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// parts of the report: what is the lock's own, and what is nobody's.
func split(f *campaign.Findings) (own, excused []campaign.Group) {
	for _, g := range f.Groups {
		if g.Excused {
			excused = append(excused, g)
		} else {
			own = append(own, g)
		}
	}
	return own, excused
}

const headExcused = "What no lock on this topology survives"

// exploreText tells a person what was found.
func exploreText(w io.Writer, f *campaign.Findings, opt reports.TextOptions) error {
	var b strings.Builder
	own, excused := split(f)
	fmt.Fprintf(&b, "explore %s\n%s\n", setUp(f), sums(f))
	switch {
	case len(own) == 0 && f.Played == 0:
		b.WriteString("\nNothing was played.\n")
	case len(own) == 0:
		b.WriteString("\nNothing found: the lock survives each of these faults.\n")
	default:
		fmt.Fprintf(&b, "\nWhat breaks %s: %s\n", f.Lock, count(len(own), "cause"))
	}
	n := 0
	for _, g := range own {
		n++
		groupText(&b, n, g, opt)
	}
	if len(excused) > 0 {
		fmt.Fprintf(&b, "\n%s: %s\n", headExcused, count(len(excused), "cause"))
	}
	for _, g := range excused {
		n++
		groupText(&b, n, g, opt)
	}
	failures(&b, f)
	_, err := io.WriteString(w, b.String())
	return err
}

// stackShown is how many lines of a stack are shown in text.
const stackShown = 12

func groupText(b *strings.Builder, n int, g campaign.Group, opt reports.TextOptions) {
	title := titleOf(g)
	if opt.Color {
		code := "31"
		if g.Excused {
			code = "33"
		}
		title = "\x1b[1;" + code + "m" + title + "\x1b[0m"
	}
	fmt.Fprintf(b, "\n%3d  %s\n", n, title)
	line := func(head, text string) {
		for i, l := range wrapped(oneLine(text), opt.Width-14) {
			if i > 0 {
				head = ""
			}
			fmt.Fprintf(b, "     %-9s%s\n", head, l)
		}
	}
	line("what", g.Summary)
	if g.Remark != "" {
		line("remark", g.Remark)
	}
	line("plan", fmt.Sprintf("%s; %s like it", g.Plan, count(g.Plans, "plan")))
	if also := alsoWords(g); also != "" {
		line("also", also)
	}
	if g.Stack != "" {
		lines := strings.Split(strings.TrimSpace(g.Stack), "\n")
		for _, l := range lines[:min(len(lines), stackShown)] {
			fmt.Fprintf(b, "       | %s\n", oneLine(l))
		}
	}
	if g.Repeat != "" {
		fmt.Fprintf(b, "     %-9s%s\n", "repeat", oneLine(g.Repeat))
	}
}

func alsoWords(g campaign.Group) string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(g.Also)) {
		out = append(out, fmt.Sprintf("%s (%d)", what, g.Also[what]))
	}
	return strings.Join(out, ", ")
}

// wrapped breaks text at spaces.
func wrapped(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width:
			out = append(out, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}

func failures(b *strings.Builder, f *campaign.Findings) {
	if len(f.Failures) == 0 {
		return
	}
	const most = 5
	fmt.Fprintf(b, "\nRuns that failed for a reason that is not the lock's: %d\n", len(f.Failures))
	for _, what := range f.Failures[:min(len(f.Failures), most)] {
		fmt.Fprintf(b, "  - %s\n", oneLine(what))
	}
}

// exploreMarkdown is the same as a table for a page.
func exploreMarkdown(w io.Writer, f *campaign.Findings) error {
	var b strings.Builder
	own, excused := split(f)
	fmt.Fprintf(&b, "# explore %s\n\n%s, %s.\n", f.Lock, setUp(f), sums(f))
	table := func(title string, groups []campaign.Group, from int) {
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		if len(groups) == 0 {
			b.WriteString("Nothing.\n")
			return
		}
		b.WriteString("| # | check | kind | cause | plans | what happens | repeat |\n|--:|---|---|---|--:|---|---|\n")
		for i, g := range groups {
			what := g.Summary
			if g.Remark != "" {
				what += " (" + g.Remark + ")"
			}
			repeat := ""
			if g.Repeat != "" {
				repeat = "`" + g.Repeat + "`"
			}
			cells := []string{fmt.Sprint(from + i), g.Check, g.Kind, g.Cause, fmt.Sprint(g.Plans), what, repeat}
			for j := range cells {
				cells[j] = strings.ReplaceAll(oneLine(cells[j]), "|", "\\|")
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	table("What breaks "+f.Lock, own, 1)
	if len(excused) > 0 {
		table(headExcused, excused, len(own)+1)
	}
	failures(&b, f)
	_, err := io.WriteString(w, b.String())
	return err
}
