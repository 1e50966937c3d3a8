package reports

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-io/holdfast/checker"
)

// hostile is what a lock's name or error may hold.
var hostile = []string{
	"<script>alert(1)</script>", "\x1b[31mred\x1b[0m \x1b]0;title\x07", "\u009b31m", "\u202etxt.exe", "\xff\xfe\xc3(", "\x00\x01\x7f",
	"a\r\nb\n::error::forged\n  ::add-mask::x\n##[error]forged", "x ::set-output name=a::b ::stop-commands::t", strings.Repeat("long ", 20_000),
	strings.Repeat("x", 100_000), "| a | b |\n|---|---|", "```\n# head", "]]> <!-- & \" '", "%0A::error::x", "[link](javascript:alert(1)) ![i](http://x/y)",
	"$\\color{red}{x}$ @everyone", "\uffff\ufffe", "</system-out></testcase>",
}

func hostileGate() *Gate {
	var runs []*Run
	for i, h := range hostile {
		r := verdictOf(h, h, uint64(i), map[string]string{"exclusion": h}, checker.Result{
			Name: h, Verdict: checker.Violation, Applies: true, Kind: h, Reason: h,
			Violations: []checker.Found{{Kind: h, Ops: []int{1}, Fault: h, Summary: h}},
		}, isUnknown("coverage", h))
		d := verdictOf(h, h, uint64(i), nil, passes("exclusion"))
		d.Error, d.Verdict, d.Matched, d.Leaks = h, checker.Error, false, []string{h}
		runs = append(runs, &r, &d)
	}
	g := gateOf([]Finding{{Lock: hostile[0], Scenario: "s", Check: "c", Kind: hostile[1], Note: hostile[6]}}, 1, 1, runs...)
	for i := range g.Cases {
		g.Cases[i].Picture = hostile
		g.Cases[i].Repeat = hostile[i%len(hostile)]
	}
	g.Suite.Name, g.Suite.File, g.Baseline.File = hostile[6], hostile[6], hostile[1]
	g.Settle()
	return g
}

// TestHostileTextIsInert in every format: nothing moves a terminal's cursor,
// nothing turns the text, nothing is a command to GitHub, and a megabyte does
// not bury the rest.
func TestHostileTextIsInert(t *testing.T) {
	for format, text := range forms(t, hostileGate()) {
		if !utf8.ValidString(text) {
			t.Errorf("%s is not valid UTF-8", format)
		}
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s has the character %U", format, r)
				break
			}
		}
		if format != "json" && len(text) > 4<<20 {
			t.Errorf("%s has %d bytes", format, len(text))
		}
		for line := range strings.Lines(text) {
			if format != "annotations" && strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
				t.Errorf("%s has a line that GitHub takes for a command: %.100q", format, line)
				break
			}
		}
	}
}

// TestJSONKeepsHostileTextWhole: escapes are no loss.
func TestJSONKeepsHostileTextWhole(t *testing.T) {
	g := hostileGate()
	read := again(t, g)
	for i, c := range g.Cases {
		// How many marks stand for invalid bytes is the encoder's affair.
		if utf8.ValidString(c.Lock) && read.Cases[i].Lock != c.Lock {
			t.Errorf("%.60q came back as %.60q", c.Lock, read.Cases[i].Lock)
		}
	}
	if got := string(inertJSON([]byte("\"a\u009b\U000e0001##[x\""))); got != `"a\u009b\udb40\udc01##\u005bx"` {
		t.Errorf("escaped as %s", got)
	}
}

func TestMarkdownTakesNoMarkupFromOutside(t *testing.T) {
	text := forms(t, hostileGate())["markdown"]
	fence := ""
	escaped := regexp.MustCompile(`\\.`)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence = strings.TrimSuffix(line, "text")
			continue
		case fence == line:
			fence = ""
			continue
		case fence != "":
			continue
		}
		line = escaped.ReplaceAllString(line, "")
		for _, bad := range []string{"<script", "<!--", "](", "$", "@"} {
			if strings.Contains(line, bad) {
				t.Errorf("%q in %.200q", bad, line)
			}
		}
	}
	if fence != "" {
		t.Error("a code block is open at the end")
	}
}

func TestAnnotationsAreEscaped(t *testing.T) {
	for _, c := range []struct {
		a    annotation
		want string
	}{
		{annotation{"error", "", "a: b, c", "100% sure\r\nyes: a, b"}, "::error title=a%3A b%2C c::100%25 sure?%0Ayes: a, b"},
		{annotation{"warning", "dir/a,b:c%.yaml", "t\n::x", "m"}, "::warning file=dir/a%2Cb%3Ac%25.yaml,title=t %3A%3Ax::m"},
		{annotation{"notice", "", "t", "\x1b[1m::error::x"}, "::notice title=t::?[1m::error::x"},
		{annotation{"notice", "", "t", "::error::x"}, `::notice title=t::\::error::x`},
	} {
		if got := c.a.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	// Each is one line, and a command of the three levels.
	command := regexp.MustCompile(`^::(error|warning|notice) (file=[^,:\n]+,)?title=[^,:\n]+::.+$`)
	for line := range strings.Lines(forms(t, hostileGate())["annotations"]) {
		if !command.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("no annotation: %.200q", line)
		}
	}
}

func TestAnnotationsSayHowManyMore(t *testing.T) {
	var runs []*Run
	for i := range 14 {
		r := verdictOf(fmt.Sprintf("s%02d", i), "basic", 1, nil, violates("exclusion", "broken"))
		runs = append(runs, &r)
	}
	lines := strings.Split(strings.TrimSpace(forms(t, gateOf(nil, 1, 1, runs...))["annotations"]), "\n")
	if len(lines) != mostAnnotations || !strings.Contains(lines[len(lines)-1], "5 more") {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
	if lines := strings.Split(strings.TrimSpace(forms(t, gateOf(nil, 1, 1, runs[:10]...))["annotations"]), "\n"); len(lines) != 10 || strings.Contains(lines[9], "more") {
		t.Errorf("ten fit, and there are %d lines: %s", len(lines), lines[len(lines)-1])
	}
}

// TestSummaryIsCutBetweenRows: whatever the limit, no row and no code block is
// cut, and the end counts what is missing.
func TestSummaryIsCutBetweenRows(t *testing.T) {
	var runs []*Run
	for i := range 60 {
		r := verdictOf(fmt.Sprintf("scenario-%02d", i), "basic", 1, nil, violates("exclusion", "broken"))
		runs = append(runs, &r)
	}
	g := gateOf(nil, 1, 1, runs...)
	var whole strings.Builder
	if err := g.Markdown(&whole, SummaryLimit); err != nil || strings.Contains(whole.String(), "Left out") {
		t.Fatalf("%v, or something is left out of %d bytes", err, whole.Len())
	}
	lines := map[string]bool{}
	for line := range strings.Lines(whole.String()) {
		lines[line] = true
	}
	for limit := 2 * footRoom; limit < whole.Len()+footRoom; limit += 97 {
		var b strings.Builder
		if err := g.Markdown(&b, limit); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if len(text) > limit {
			t.Fatalf("limit %d: %d bytes", limit, len(text))
		}
		if n := strings.Count("\n"+text, "\n```"); n%2 != 0 {
			t.Fatalf("limit %d: an open code block in\n%s", limit, text)
		}
		body, foot, cut := strings.Cut(text, "\n**Left out")
		for line := range strings.Lines(body) {
			if !lines[line] {
				t.Fatalf("limit %d: half a line: %q", limit, line)
			}
		}
		if !cut {
			t.Fatalf("limit %d of %d, and nothing is said to be left out", limit, whole.Len())
		}
		rows := strings.Count(body, "| **broken** |")
		if want := fmt.Sprintf("%d new finding%s", 60-rows, plural(60-rows)); rows < 60 && !strings.Contains(foot, want) {
			t.Fatalf("limit %d: %d rows are there, and the end says %q", limit, rows, foot)
		}
		pictures := strings.Count(body, "```text")
		if want := fmt.Sprintf("%d picture%s", 60-pictures, plural(60-pictures)); pictures < 60 && !strings.Contains(foot, want) {
			t.Fatalf("limit %d: %d pictures are there, and the end says %q", limit, pictures, foot)
		}
	}
}

func TestTextOfAGate(t *testing.T) {
	golden(t, "gate.txt", func(w io.Writer) error { return gateOf(mixedKnown, 1, 1, mixed()...).Text(w, TextOptions{}) })
	golden(t, "gate.md", func(w io.Writer) error { return gateOf(mixedKnown, 1, 1, mixed()...).Markdown(w, SummaryLimit) })
}
