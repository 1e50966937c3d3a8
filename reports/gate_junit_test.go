package reports

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ValidateJUnit asks xmllint whether a document follows our schema of JUnit's
// XML. Without xmllint the test skips on a laptop, and fails where everything
// must be tested. It is exported for the tests outside of this package.
func ValidateJUnit(t testing.TB, text string) error {
	t.Helper()
	const tool = "xmllint"
	if _, err := exec.LookPath(tool); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v: scripts/install-test-tools.sh installs it", err)
		}
		t.Skipf("the XML is not held against the schema: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), tool, "--noout", "--nonet", "--schema", "testdata/junit.xsd", "-")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && (exit.ExitCode() == 1 || exit.ExitCode() == 3): // no XML, or not as the schema wants it
		return fmt.Errorf("%w\n%.2000s", err, out)
	}
	t.Fatalf("%s gave no answer: %v\n%s", tool, err, out)
	return nil
}

// countElements counts the elements of a document by name.
func countElements(text string) (map[string]int, error) {
	counts := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts, nil
		}
		if err != nil {
			return nil, err
		}
		if e, ok := token.(xml.StartElement); ok {
			counts[e.Name.Local]++
		}
	}
}

func TestJUnitOfAGate(t *testing.T) {
	text := forms(t, gateOf(mixedKnown, 1, 1, mixed()...))["junit"]
	counts, err := countElements(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// mixed: one as expected, one known, two that fail, one unknown, one that
	// failed to run, one not played.
	want := map[string]int{"testsuites": 1, "testsuite": 2, "testcase": 7, "failure": 2, "error": 1, "skipped": 2, "system-out": 4}
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("%v, want %v\n%s", counts, want, text)
	}
	for _, say := range []string{
		`<testcase name="basic, seed 3" classname="calm" time="0.250">`, `<failure type="exclusion/broken" message="c2 saw broken.">`,
		"c1  r==*", "repeat: holdfast run calm --lock basic --seed 3", `tests="7" failures="2" errors="1" time="1.500"`,
		`<testsuite name="slow-work" tests="2" failures="1" errors="0" skipped="1" time="0.500">`,
		"<![CDATA[exclusion: broken: c2 saw broken.\nexclusion: overrun: c2 saw overrun.\nupdates: lost-update: c2 saw lost-update.\n\nrepeat: ",
		`<skipped message="unknown, which is no pass: coverage: unknown (too few grants)">`,
		`<skipped message="not played, which is no pass: the budget was used up">`,
	} {
		if !strings.Contains(text, say) {
			t.Errorf("%q is missing in\n%s", say, text)
		}
	}
}

// TestJUnitFollowsTheSchema: with every outcome, with hostile text, and with
// nothing at all.
func TestJUnitFollowsTheSchema(t *testing.T) {
	for name, g := range map[string]*Gate{
		"mixed": gateOf(mixedKnown, 1, 1, mixed()...), "a shard": gateOf(mixedKnown, 2, 3, mixed()...), "hostile": hostileGate(), "no case": gateOf(nil, 1, 1),
	} {
		if err := ValidateJUnit(t, forms(t, g)["junit"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheSchemaRefuses what is broken. Each is one change to a document that
// the schema takes, or there would be another reason.
func TestTheSchemaRefuses(t *testing.T) {
	whole := forms(t, gateOf(mixedKnown, 1, 1, mixed()...))["junit"]
	if err := ValidateJUnit(t, whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new string }{
		{"</testsuites>\n", ""},                                      // half of a file
		{"testsuites", "suites"},                                     // another root
		{" tests=\"2\"", ""},                                         // a count is missing
		{" errors=\"1\"", " errors=\"one\""},                         // and is no number
		{" time=\"1.500\"", " time=\"1.5s\""},                        // a unit
		{" time=\"0.250\"", " time=\"2.5e-1\""},                      // an exponent
		{"<testcase name=", "<testcase title="},                      // an attribute nobody knows
		{" classname=\"calm\"", ""},                                  // a case without its class
		{"<failure ", "<skipped></skipped><failure "},                // two outcomes
		{"</failure>", "</failure><failure></failure>"},              // one outcome twice
		{"<testsuite name=\"calm\"", "text<testsuite name=\"calm\""}, // text where nobody shows it
		{"<system-out>", "<system-out><b></b>"},                      // markup in a text
		{"name=\"slow-work\" tests", "name=\"calm\" tests"},          // two suites of a name
		{"name=\"basic, seed 3\"", "name=\" \""},                     // a case without a name
		{"c2 saw broken", "c2 saw \x01"},                             // no character of XML
	} {
		if !strings.Contains(whole, c.old) {
			t.Fatalf("%q is not in the document", c.old)
		}
		if ValidateJUnit(t, strings.ReplaceAll(whole, c.old, c.new)) == nil {
			t.Errorf("the schema takes %q for %q", c.new, c.old)
		}
	}
}
