package reports

import (
	"strings"
	"unicode"
)

// The colours that reports use: few, and each with one meaning.
const (
	red    = "31" // went wrong
	green  = "32" // as it should be
	yellow = "33" // look here
	bold   = "1"
)

// ink colours text, or leaves it alone. The command decides which.
type ink struct{ on bool }

func (k ink) paint(code, s string) string {
	if !k.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// markColour is the colour of a mark in a client's lane.
func markColour(r rune, alarm bool) string {
	switch {
	case alarm || strings.ContainsRune("#!*X^", r):
		return red
	case strings.ContainsRune("pP~", r):
		return yellow
	case r == '=':
		return green
	case r == 'W':
		return bold
	}
	return ""
}

// lane writes a lane with its label, coloured in runs of the same colour.
func (k ink) lane(l *lane, gutter int) string {
	plain := row(l.label, l.cells, gutter)
	if !k.on {
		return plain
	}
	runes := []rune(plain)
	var b strings.Builder
	b.WriteString(string(runes[:min(gutter, len(runes))]))
	for i := gutter; i < len(runes); {
		j, code := i, markColour(runes[i], l.alarm)
		for j < len(runes) && markColour(runes[j], l.alarm) == code {
			j++
		}
		if s := string(runes[i:j]); code == "" {
			b.WriteString(s)
		} else {
			b.WriteString(k.paint(code, s))
		}
		i = j
	}
	return b.String()
}

// Printable makes one line of any text and takes out control characters, so
// that a name in a history cannot move the cursor of whoever reads the report.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

// wrap breaks text into lines of at most width, the later ones indented. A
// word that is longer than a line stands alone, unbroken, so that commands and
// paths can be copied.
func wrap(text string, width int, indent string) []string {
	return list(strings.Fields(Printable(text)), " ", width, indent)
}

// list joins items into lines of at most width.
func list(items []string, sep string, width int, indent ...string) []string {
	in := strings.Join(indent, "")
	var lines []string
	line := ""
	for _, item := range items {
		switch {
		case line == "":
			line = item
		case len([]rune(line))+len(sep)+len([]rune(item)) > width:
			lines = append(lines, line)
			line = in + item
		default:
			line += sep + item
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
