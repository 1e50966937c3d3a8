package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
)

// onDisk writes a page into a file and gives its address.
func onDisk(t testing.TB, r reports.Run, h *history.History) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(write(t, r, h)), 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// read opens a report and waits until its diagram is drawn.
func (b *tab) read(address string) {
	b.t.Helper()
	file, _, _ := strings.Cut(address, "#")
	b.visit("about:blank", "about:blank") // a new address behind the # alone opens nothing
	b.visit(address, file)
	b.do(chromedp.WaitReady(chromedp.CSS("body[data-ready=yes]")))
	b.settle()
}

// red counts the pixels of the diagram that have the colour of violations.
func (b *tab) red() int {
	b.t.Helper()
	b.settle()
	return ask[int](b, `(() => {
	  const cv = document.getElementById("canvas"), copy = document.createElement("canvas");
	  copy.width = cv.width;
	  copy.height = cv.height + 1;
	  const cx = copy.getContext("2d", { willReadFrequently: true });
	  cx.drawImage(cv, 0, 1);
	  cx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad");
	  cx.fillRect(0, 0, 1, 1);
	  const px = cx.getImageData(0, 0, copy.width, copy.height).data;
	  let n = 0;
	  for (let i = 4 * copy.width; i < px.length; i += 4) if (px[i] === px[0] && px[i + 1] === px[1] && px[i + 2] === px[2]) n++;
	  return n;
	})()`)
}

// drawn gives the part of the run that the diagram shows, as it is written
// beside the buttons.
func (b *tab) drawn() string {
	b.t.Helper()
	b.settle()
	return b.text("range")
}

// text is what stands in an element.
func (b *tab) text(id string) string {
	b.t.Helper()
	return ask[string](b, `document.getElementById(%q).textContent`, id)
}

// inWindow says whether an element is seen without scrolling.
func (b *tab) inWindow(id string) bool {
	b.t.Helper()
	return ask[bool](b, `new Promise((done) => new IntersectionObserver((seen) => done(seen[0].isIntersecting)).observe(document.getElementById(%q)))`, id)
}

// TestReportInABrowser plays what a reader does with the report of a run that
// went wrong.
func TestReportInABrowser(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	address := onDisk(t, r, h)
	b := open(t)
	b.read(address)
	b.fits("the report")
	if got := ask[string](b, `document.querySelector("h1").innerText`); !strings.Contains(got, "VIOLATION") || !strings.Contains(got, "overrun") {
		t.Errorf("the headline is %q", got)
	}
	if !b.inWindow("violation-1") {
		t.Error("the first violation is not seen without scrolling")
	}

	// The violation is marked in the text and in the picture.
	b.do(chromedp.Click(chromedp.CSS(`a.see[data-violation="0"]`)))
	chosen := b.red()
	if got := ask[string](b, `getComputedStyle(document.getElementById("violation-1")).outlineStyle`); got != "solid" {
		t.Errorf("the chosen violation has an outline %s", got)
	}
	b.do(chromedp.Focus(chromedp.CSS("#lanes")), chromedp.KeyEvent("\x1b"))
	plain := b.red()
	t.Logf("%d red pixels, %d without a choice", chosen, plain)
	if chosen <= plain+600 {
		t.Errorf("the chosen violation takes %d red pixels, none chosen %d", chosen, plain)
	}

	b.do(chromedp.KeyEvent("n"))
	if got := ask[string](b, `location.hash`); got != "#violation-1" {
		t.Errorf("the next violation has the address %q", got)
	}
	if got := b.text("said"); !strings.HasPrefix(got, "Violation 1 of 5: c2 was granted the lock") {
		t.Errorf("a screen reader is told %q", got)
	}
}

// TestZoomAndPan holds that buttons, keys, wheel and mouse move the diagram.
func TestZoomAndPan(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	b := open(t)
	b.read(onDisk(t, r, h))
	b.do(chromedp.Click(chromedp.CSS("#fit")))
	whole := b.drawn()
	if want := "0 s to 25.3309 s"; whole != want {
		t.Errorf("the whole run is %q, want %q", whole, want)
	}
	b.do(chromedp.ScrollIntoView(chromedp.CSS("#lanes")))
	at := ask[[]float64](b, `(() => { const r = document.getElementById("lanes").getBoundingClientRect(); return [r.x + r.width / 2, r.y + 60]; })()`)
	before := whole
	for _, step := range []struct {
		what string
		do   chromedp.Action[chromedp.Void]
	}{
		{"the button +", chromedp.Click(chromedp.CSS("#in"))},
		{"the button for later", chromedp.Click(chromedp.CSS("#later"))},
		{"a drag", chromedp.DragAndDropXY(at[0], at[1], at[0]+150, at[1])},
		{"a turn of the wheel with Ctrl", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseWheel, at[0], at[1], wheel(-120))},
		{"the key +", chromedp.Steps(chromedp.Focus(chromedp.CSS("#lanes")), chromedp.KeyEvent("+"))},
		{"the button for earlier", chromedp.Click(chromedp.CSS("#earlier"))},
	} {
		b.do(step.do)
		after := b.drawn()
		if after == before {
			t.Errorf("%s changes nothing: %s", step.what, after)
		}
		before = after
	}
	b.do(chromedp.Focus(chromedp.CSS("#lanes")), chromedp.KeyEvent("0"))
	if got := b.drawn(); got != whole {
		t.Errorf("the key 0 shows %s, want %s", got, whole)
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
	b.settle()
	if got := b.text("tip"); !strings.Contains(got, "c1") || ask[bool](b, `document.getElementById("tip").hidden`) {
		t.Errorf("under the mouse stands %q", got)
	}
}

// wheel turns it with Ctrl held down. The protocol wants both deltas.
func wheel(up float64) chromedp.MouseOption {
	return func(p *input.DispatchMouseEventParams) { p.DeltaX, p.DeltaY, p.Modifiers = 1, up, 2 }
}

// TestDeepLinks holds that an address with an op or a violation shows it.
func TestDeepLinks(t *testing.T) {
	r, h := played(t, "kleppmann-gc-pause", "basic")
	address := onDisk(t, r, h)
	v := r.Checks[slices.IndexFunc(r.Checks, func(c checker.Result) bool { return c.Name == "updates" })].Violations[0]
	op := v.Ops[0]
	b := open(t)

	b.read(fmt.Sprintf("%s#op-%d", address, op))
	if got, want := b.text("detail"), fmt.Sprintf("Line %d of history.jsonl.", op+2); !strings.Contains(got, want) {
		t.Errorf("the address of op %d shows %q", op, got)
	}
	if !b.inWindow("lanes") {
		t.Error("the diagram is not in the window")
	}
	near := b.drawn()

	b.read(address + "#violation-4")
	if got := b.text("said"); !strings.Contains(got, v.Summary) {
		t.Errorf("the address of violation 4 tells %q, want %q", got, v.Summary)
	}
	if !b.inWindow("violation-4") || !ask[bool](b, `document.getElementById("violation-4").classList.contains("chosen")`) {
		t.Error("violation 4 is not chosen, or not in the window")
	}
	if far := b.drawn(); far == near {
		t.Errorf("op %d and the violation are both drawn as %s", op, far)
	}

	// The links in the page do the same.
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`#violation-4 a[href="#op-%d"]`, op))))
	b.settle()
	if got := b.text("detail"); !strings.Contains(got, fmt.Sprintf("#op-%d", op)) {
		t.Errorf("the link to op %d shows %q", op, got)
	}
}

// TestPicturesOfReports leaves a picture of each look of a report, and holds
// that none is wider than its window.
func TestPicturesOfReports(t *testing.T) {
	b := open(t)
	for _, run := range [][2]string{{"kleppmann-gc-pause", "basic"}, {"kleppmann-clock-jump", "redlock"}} {
		r, h := played(t, run[0], run[1])
		b.read(onDisk(t, r, h))
		for _, c := range []struct {
			name, theme   string
			width, height int64
		}{{"light", "light", 1280, 900}, {"dark", "dark", 1280, 900}, {"narrow", "light", 390, 844}, {"narrow-dark", "dark", 390, 844}} {
			b.look(c.theme, c.width, c.height)
			b.fits(run[0] + " " + c.name)
			b.picture(run[0] + "-" + c.name)
		}
	}
}

// TestHostileReportInABrowser holds that hostile names run nothing, ask for
// nothing, and leave nothing on the console.
func TestHostileReportInABrowser(t *testing.T) {
	b := open(t)
	for _, bad := range hostile[:5] {
		r, h := spoiled(t, bad)
		b.read(onDisk(t, r, h))
		if n := ask[int](b, `document.querySelectorAll("#x, img, svg[onload]").length`); n != 0 {
			t.Errorf("%q became %d elements", bad, n)
		}
	}
}
