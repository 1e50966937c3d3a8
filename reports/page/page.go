// Package page tells a run as one HTML file that needs nothing else: no
// network, no other file. It says what the text report says, in the same words,
// and draws the run as lanes that can be zoomed to a single command.
//
// The same run gives the same bytes. Whatever comes from a history (names,
// errors, replies) is text to be shown and never markup; the page's own policy
// forbids every script but its own, and every request.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/plots"
)

var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/palette.css
	paletteCSS string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/logic.js
	logicJS string
	//go:embed assets/chart.js
	chartJS string
	//go:embed assets/view.js
	viewJS string

	styleCSS = paletteCSS + pageCSS

	layout = template.Must(template.New("page").Parse(pageHTML))
	script = logicJS + chartJS + viewJS
	policy = contentPolicy(script)
)

// Palette is the style sheet with the colours of all pages, as custom
// properties, light and dark.
func Palette() string { return paletteCSS }

// contentPolicy allows the one script by its hash, and no request at all. A
// name that found a way into the markup still could not run or fetch anything.
func contentPolicy(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// mostTold is how many violations of one check the page tells.
const mostTold = 10

// textWidth is the width of the diagram in text.
const textWidth = 110

// longest is how much of a text from a history is shown.
const longest = 2000

// content is what the template shows.
type content struct {
	Policy, Word, Detail, Class string
	Standing, StandingClass     string
	Scenario, Lock, About       string
	Seed                        uint64
	Grounds                     []string
	Blame, Damage               string
	Violations                  []violation
	Label, Nothing, Text        string
	Plots                       []figure
	Checks                      []check
	Config                      [][2]string
	Leaks                       []string
	Repeat                      string
	CSS                         template.CSS
	JS, Data                    template.JS
}

// figure is a plot: markup that package plots made and escaped, and what it
// shows in words.
type figure struct {
	SVG     template.HTML
	Caption string
	Story   bool
}

type violation struct {
	Number, Index, More   int
	Check, Kind, Sentence string
	Ops                   []int
}

type check struct{ Name, Answer, Class, Expected, Reason string }

// Write writes the page of a run. The history may be nil, as after a run that
// died at once; there is no diagram then.
func Write(w io.Writer, r reports.Run, h *history.History) error {
	c := tell(r)
	switch {
	case h == nil:
		c.Nothing = "the run has no history."
	case len(h.Events) == 0:
		c.Nothing = "the history has no events."
		c.Config = append(c.Config, headerLines(h)...)
	default:
		if err := c.draw(r, h); err != nil {
			return err
		}
	}
	if err := layout.Execute(w, c); err != nil {
		return fmt.Errorf("writing the HTML report: %w", err)
	}
	return nil
}

// draw fills in what needs the history. A history that is malformed in a way
// that nobody thought of costs the picture, never the page: the verdict is what
// it is for.
func (c *content) draw(r reports.Run, h *history.History) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Data, c.Nothing = "", shown(fmt.Sprintf("drawing the history failed: %v", p))
		}
	}()
	c.Config = append(c.Config, headerLines(h)...)
	tamed := reports.Tame(h)
	facts := checker.Gather(tamed)
	c.Text = clip(strings.Join(reports.DiagramOf(facts, r.Checks, textWidth, false), "\n"), 100_000)
	for _, p := range plots.Of(facts, r.Checks) {
		c.Plots = append(c.Plots, figure{SVG: template.HTML(p.Inline()), Caption: shown(p.Caption), Story: p.Name == plots.Story})
	}
	var data []byte
	data, err = encode(tamed, facts, r.Checks, c.Violations)
	if err != nil {
		return err
	}
	c.Data = template.JS(data)
	c.Label = fmt.Sprintf("Lane diagram of %s with %s: %s, %s, %s over %s.", c.Scenario, c.Lock,
		count(len(clientsOf(tamed)), "client"), count(len(placesOf(tamed)), "key on a node"), count(len(facts.Faults), "fault"), seconds(facts.End))
	return nil
}

// tell fills in what the verdict says.
func tell(r reports.Run) content {
	s := reports.Tell(r, mostTold)
	c := content{
		Policy: policy, CSS: template.CSS(styleCSS), JS: template.JS(script),
		Word: shown(s.Word), Detail: shown(s.Detail), Class: classOf(r.Verdict),
		Standing: s.Standing.String(), StandingClass: "violation",
		Scenario: shown(r.Scenario), Lock: shown(r.Lock), Seed: r.Seed, About: shown(r.About),
		Blame: shown(s.Blame), Damage: shown(s.Damage), Repeat: shown(s.Repeat),
	}
	if s.Standing == reports.AsExpected {
		c.StandingClass = "pass"
	}
	for _, g := range s.Grounds {
		c.Grounds = append(c.Grounds, shown(g))
	}
	for _, l := range r.Leaks {
		c.Leaks = append(c.Leaks, shown(l))
	}
	for i, v := range s.Violations {
		c.Violations = append(c.Violations, violation{Number: i + 1, Index: i, Check: shown(v.Check), Kind: shown(v.Kind),
			Sentence: shown(v.Sentence), Ops: v.Ops, More: v.More})
	}
	for _, a := range s.Checks {
		k := check{Name: shown(a.Name), Answer: shown(a.Answer), Class: classOf(a.Verdict), Expected: shown(a.Expected), Reason: shown(a.Reason)}
		if !a.Applies {
			k.Class = "none"
		}
		c.Checks = append(c.Checks, k)
	}
	r.WallSeconds = 0 // it differs each time, and the page must not
	c.Config = [][2]string{{"run", shown(reports.RunLine(r))}}
	if s.Errors != "" {
		c.Config = append(c.Config, [2]string{"errors", shown(s.Errors)})
	}
	if r.HistorySHA256 != "" {
		c.Config = append(c.Config, [2]string{"history", "history.jsonl, sha256 " + shown(r.HistorySHA256)})
	}
	return c
}

// headerLines are what the history says of the run beyond the verdict.
func headerLines(h *history.History) [][2]string {
	hd := h.Header
	out := [][2]string{
		{"resource", shown(hd.Resource)}, {"nodes", fmt.Sprint(hd.Nodes)}, {"clients", fmt.Sprint(hd.Clients)},
		{"events", fmt.Sprint(len(h.Events))}, {"liveness bound", hd.LivenessBound.String()},
	}
	if hd.Quorum > 0 {
		out = append(out, [2]string{"quorum", fmt.Sprint(hd.Quorum)})
	}
	if hd.Drift > 0 {
		out = append(out, [2]string{"drift allowed for", fmt.Sprintf("%g of the TTL", hd.Drift)})
	}
	if len(hd.Abilities) > 0 {
		out = append(out, [2]string{"the lock's leases", shown(strings.Join(hd.Abilities, ", "))})
	}
	var names []string
	for name := range hd.Versions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, [2]string{shown(name), shown(hd.Versions[name])})
	}
	return out
}

func classOf(v checker.Verdict) string {
	switch v {
	case checker.Pass, checker.Violation, checker.Error:
		return string(v)
	}
	return string(checker.Unknown)
}

// shown is text from a run: on one line, without control characters, and not
// longer than anybody reads.
func shown(s string) string { return clip(reports.Printable(s), longest) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if head, tail, found := strings.Cut(what, " "); found {
		return fmt.Sprintf("%d %ss %s", n, head, tail)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func seconds(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }
