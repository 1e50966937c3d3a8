package page_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/serve"
	"github.com/holdfast-io/holdfast/store"
)

// serving plays runs into a folder and serves it.
func serving(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	var jobs []store.Job
	for _, scenario := range []string{"calm", "kleppmann-gc-pause", "kleppmann-clock-jump", "slow-work"} {
		for _, lock := range []string{"basic", "watchdog", "redlock", "reference"} {
			jobs = append(jobs, store.Job{Scenario: scenario, Lock: lock, World: "sim", Seed: 1})
		}
	}
	campaign.Runner{Keep: campaign.Keep{Root: root}}.Play(t.Context(), jobs)
	h, closeRoot, err := serve.New(root)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections() // a browser keeps some
		s.Close()
		_ = closeRoot()
	})
	return s.URL
}

// TestServeInABrowser goes the way of somebody who looks for a run: the list,
// a filter, a report, back, two marks, the comparison.
func TestServeInABrowser(t *testing.T) {
	base := serving(t)
	b := open(t)
	b.visit(base+"/", base)
	for _, c := range []struct {
		name, theme   string
		width, height int64
	}{{"list-dark", "dark", 1280, 900}, {"list-narrow-dark", "dark", 390, 844}, {"list-narrow", "light", 390, 844}, {"list-light", "light", 1280, 900}} {
		b.look(c.theme, c.width, c.height)
		b.fits(c.name)
		b.picture(c.name)
		if c.width > 600 {
			continue
		}
		// Nothing of a run has to be scrolled to, or lies under the head of the table.
		if got := ask[string](b, `[...document.querySelectorAll(".runs td, .runs td *")].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.innerText).join()`); got != "" {
			t.Errorf("%s: beyond the right edge: %s", c.name, got)
		}
		if ask[float64](b, `document.querySelector(".runs thead").getBoundingClientRect().right`) > 0 {
			t.Errorf("%s: the head of the table lies over the runs", c.name)
		}
	}

	b.do(chromedp.SetValue(chromedp.CSS("select[name=lock]"), "basic"), chromedp.Click(chromedp.CSS(".filters button")),
		chromedp.WaitReady(chromedp.CSS("select[name=lock] option[value=basic][selected]")))
	rows := `[...document.querySelectorAll("form[action='/compare'] tbody tr")].map((r) => r.innerText).join("\n")`
	if got := ask[string](b, "%s", rows); strings.Count(got, "\n") != 3 || strings.Contains(got, "redlock") || !strings.Contains(got, "kleppmann-gc-pause / basic") {
		t.Errorf("the filter for basic leaves\n%s", got)
	}

	b.do(chromedp.Click(chromedp.CSS(`table.matrix a[href="/run/kleppmann-gc-pause/basic/sim-1/report.html"]`)),
		chromedp.WaitReady(chromedp.CSS("body[data-ready=yes]")))
	if got := ask[string](b, `document.querySelector("h1").innerText`); !strings.Contains(got, "VIOLATION") {
		t.Errorf("the report has the headline %q", got)
	}
	if b.red() == 0 {
		t.Error("no violation is drawn in the report")
	}

	b.visit(base+"/", base)
	b.do(chromedp.Click(chromedp.CSS(`input[value="calm/basic/sim-1"]`)), chromedp.Click(chromedp.CSS(`input[value="slow-work/basic/sim-1"]`)),
		chromedp.Click(chromedp.CSS(`form[action="/compare"] button`)), chromedp.WaitVisible(chromedp.CSS(".pair")))
	if n := ask[int](b, `document.querySelectorAll("tr.differs").length`); n < 2 {
		t.Errorf("%d checks differ between calm and slow-work, want exclusion and updates at least", n)
	}
	for _, c := range []struct {
		name, theme   string
		width, height int64
	}{{"compare-light", "light", 1280, 900}, {"compare-dark", "dark", 1280, 900}, {"compare-narrow", "light", 390, 844}, {"compare-narrow-dark", "dark", 390, 844}} {
		b.look(c.theme, c.width, c.height)
		b.fits(c.name)
		b.picture(c.name)
	}
}
