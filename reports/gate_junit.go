package reports

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// The elements of JUnit's XML that are used here, with the attributes that
// Jenkins, GitLab and the rest agree on.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string     `xml:"name,attr"`
		Classname string     `xml:"classname,attr"`
		Time      string     `xml:"time,attr"`
		Failure   *junitFact `xml:"failure"`
		Error     *junitFact `xml:"error"`
		Skipped   *junitFact `xml:"skipped"`
		Out       *junitText `xml:"system-out"`
	}
	junitFact struct {
		Type    string `xml:"type,attr,omitempty"`
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
)

// JUnit writes a test suite for each scenario and a test case for each lock
// and seed. New findings are failures, with the sentences, the picture and the
// command that repeats the run; what is unknown is skipped, with the reason.
func (g *Gate) JUnit(w io.Writer) error {
	out := junitSuites{Name: "holdfast gate " + line(g.Suite.Name)}
	at := map[string]int{}
	wall := map[string]float64{}
	var all float64
	for _, c := range g.Cases {
		i, ok := at[c.Scenario]
		if !ok {
			i = len(out.Suites)
			at[c.Scenario] = i
			out.Suites = append(out.Suites, junitSuite{Name: line(c.Scenario)})
		}
		s := &out.Suites[i]
		tc := c.junit()
		s.Cases = append(s.Cases, tc)
		s.Tests++
		out.Tests++
		if c.Run != nil {
			wall[c.Scenario] += c.Run.WallSeconds
			all += c.Run.WallSeconds
		}
		switch {
		case tc.Failure != nil:
			s.Failures++
			out.Failures++
		case tc.Error != nil:
			s.Errors++
			out.Errors++
		case tc.Skipped != nil:
			s.Skipped++
		}
		s.Time = seconds(wall[c.Scenario])
	}
	out.Time = seconds(all)
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	b.WriteByte('\n')
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	return nil
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// line is a foreign text on one line, without what a terminal or XML would
// take for more than text.
func line(s string) string { return inert(Printable(clip(s))) }

// name tells a case from the others of its scenario.
func (c *Case) name() string {
	s := c.Lock
	if c.World != "sim" {
		s += " on " + c.World
	}
	if c.Topology != "" {
		s += ", " + c.Topology
	}
	if c.TTLNanos != 0 {
		s += ", TTL " + time.Duration(c.TTLNanos).String()
	}
	return line(fmt.Sprintf("%s, seed %d", s, c.Seed))
}

func (c *Case) junit() junitCase {
	t := junitCase{Name: c.name(), Classname: line(c.Scenario), Time: "0.000"}
	if c.Run != nil {
		t.Time = seconds(c.Run.WallSeconds)
	}
	switch c.Status {
	case CaseFailed:
		t.Failure = c.failure()
		t.Out = c.output()
	case CaseError:
		t.Error = &junitFact{Type: "error", Message: line(c.why()), Text: line(c.Repeat)}
		t.Out = c.output()
	case CaseUnknown:
		t.Skipped = &junitFact{Message: line("unknown, which is no pass: " + c.why())}
	case CaseSkipped:
		t.Skipped = &junitFact{Message: line("not played, which is no pass: " + c.Reason)}
	case CaseKnown:
		t.Out = c.output()
	}
	return t
}

// failure says each finding; the first stands in the message.
func (c *Case) failure() *junitFact {
	var lines []string
	for _, f := range c.Findings {
		lines = append(lines, line(f.Check+": "+f.Kind+": "+sentenceOf(*c.Run, f)))
	}
	first := c.Findings[0]
	lines = append(lines, "", "repeat: "+line(c.Repeat))
	return &junitFact{Type: line(first.Check + "/" + first.Kind), Message: line(sentenceOf(*c.Run, first)), Text: strings.Join(lines, "\n")}
}

// output is what a person needs to see: the verdict, the picture, the command.
func (c *Case) output() *junitText {
	word, detail := headline(*c.Run)
	lines := []string{line(strings.TrimSpace(word + "  " + detail))}
	for _, f := range c.Findings {
		lines = append(lines, "  - "+line(f.Check+", "+f.Kind+": "+sentenceOf(*c.Run, f)))
	}
	if len(c.Picture) > 0 {
		lines = append(lines, "")
	}
	for _, l := range c.Picture {
		lines = append(lines, line(l))
	}
	return &junitText{strings.Join(append(lines, "", "repeat: "+line(c.Repeat)), "\n") + "\n"}
}
