package page_test

import (
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/reports"
)

// What a person wants of a page of 100,000 ops. It is held with HOLDFAST_LONG=1,
// on a machine that does nothing else; otherwise the figures are only told, and
// the patience of the test is the limit.
const (
	longestWait = 2 * time.Second // until the diagram is there
	fewest      = 20.0            // frames a second while it is dragged
)

// TestHundredThousandOpsInABrowser holds that a long run's page comes up and
// moves: zoomed out, where every pixel stands for dozens of ops, and zoomed in,
// where every command is an arrow.
func TestHundredThousandOpsInABrowser(t *testing.T) {
	h := many(100_000)
	r := campaign.Conclude(reports.Run{Scenario: "many", Lock: "basic", World: "sim", Checks: []checker.Result{{Name: "exclusion", Applies: true, Verdict: checker.Pass}}})
	address := onDisk(t, r, h)
	b := open(t)
	b.read(address)
	strict := os.Getenv("HOLDFAST_LONG") == "1"
	since := func(name string) time.Duration {
		ms := ask[float64](b, `performance.getEntriesByName(%q)[0].startTime`, name)
		return time.Duration(ms * 1e6).Round(time.Millisecond)
	}
	paint, ready := since("first-contentful-paint"), since("drawn")
	t.Logf("first paint after %v, the diagram after %v", paint, ready)
	if strict && max(paint, ready) > longestWait {
		t.Errorf("first paint after %v, the diagram after %v, want %v", paint, ready, longestWait)
	}
	b.do(chromedp.ScrollIntoView(chromedp.CSS("#lanes")))
	for _, c := range []struct {
		what string
		zoom int
	}{{"the whole run", 1}, {"a hundredth of it", 7}, {"a few ops", 11}} {
		b.do(chromedp.Click(chromedp.CSS("#fit")))
		for range c.zoom {
			b.do(chromedp.Click(chromedp.CSS("#in")))
		}
		before := b.drawn()
		rate := max(b.pan(), b.pan(), b.pan()) // the best: others use the machine too
		t.Logf("%s: %.0f frames a second", c.what, rate)
		if strict && rate < fewest {
			t.Errorf("%s pans with %.1f frames a second, want %.0f", c.what, rate, fewest)
		}
		if after := b.drawn(); after == before {
			t.Errorf("%s was not moved: %s", c.what, after)
		}
	}
	b.look("light", 1280, 2200)
	b.picture("many")
}

// pan turns the wheel sideways before each of 60 frames, and gives how many
// frames were drawn in a second.
func (b *tab) pan() float64 {
	b.t.Helper()
	return ask[float64](b, `new Promise((done) => {
	  const lanes = document.getElementById("lanes"), frames = 60;
	  let n = 0, began = 0;
	  const frame = (now) => {
	    if (n === 0) began = now;
	    if (n++ === frames) return done((1000 * frames) / (now - began));
	    lanes.dispatchEvent(new WheelEvent("wheel", { deltaX: n %% 20 < 10 ? 9 : -6, cancelable: true }));
	    requestAnimationFrame(frame);
	  };
	  requestAnimationFrame(frame);
	})`)
}
