package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long anything in the browser may take on a busy machine.
const patience = 90 * time.Second

// chromium finds the browser. Without one the test skips on a laptop, and fails
// where everything must be tested.
func chromium(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is none of %v: scripts/install-test-tools.sh installs chromium", names)
	}
	t.Skipf("there is none of %v: the pages are not tested in a browser", names)
	return ""
}

// tab is a page in a headless browser of the test's own. It notes what goes
// wrong there.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	wrong  []string // errors on the console
	asked  []string // addresses that were requested
	inside []string // what addresses may begin with
}

// open starts a browser with one empty page. The browser, its children and its
// profile are gone when the test ends, and the test fails if something was
// written to the console or if a request went anywhere but to an address that
// was visited.
func open(t testing.TB) *tab {
	t.Helper()
	path := chromium(t)
	// The profile is made below TMPDIR; the folder is the mark by which the
	// processes of this browser are found again.
	home := t.TempDir()
	t.Setenv("TMPDIR", home)
	var said bytes.Buffer
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.CombinedOutput(&said), chromedp.WindowSize(1280, 900),
		chromedp.WSURLReadTimeout(patience),
		// Nothing resolves: a page that asked for anything would fail at it.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("hide-scrollbars", true))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // there is none for root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		stop()
		if left := processesOf(home); len(left) > 0 {
			t.Errorf("processes of the browser are left: %v", left)
		}
		b.judge()
	})
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		stop() // and with it what writes to said
		t.Fatalf("%s does not start: %v\n%s", path, err, said.String())
	}
	b.do(chromedp.Func(func(ctx context.Context, at *chromedp.Target) error {
		_, err := cdp.Call(ctx, at, network.Enable, network.EnableParams{})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, at, log.Enable, cdp.Empty{})
		return err
	}), media("light"))
	return b
}

// hear notes what the page asks for and what it complains about.
func (b *tab) hear(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, "exception: "+told(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		b.wrong = append(b.wrong, fmt.Sprintf("console.%s: %s", e.Type, told(e.Args)))
	case *log.EventEntryAdded:
		b.wrong = append(b.wrong, fmt.Sprintf("%s: %s %v", e.Entry.Level, e.Entry.Text, told(e.Entry)))
	}
}

func told(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// judge holds that the console is empty and that no request left.
func (b *tab) judge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		b.t.Errorf("the browser says: %s", w)
	}
	for _, address := range b.asked {
		if strings.HasPrefix(address, "data:") {
			continue // is in the page
		}
		if !slices.ContainsFunc(b.inside, func(base string) bool { return strings.HasPrefix(address, base) }) {
			b.t.Errorf("the page asks for %s", address)
		}
	}
}

// do runs steps one after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// visit opens an address; requests may go to what begins with base.
func (b *tab) visit(address, base string) {
	b.t.Helper()
	b.mu.Lock()
	b.inside = append(b.inside, base)
	b.mu.Unlock()
	b.do(chromedp.Navigate(address))
}

// ask evaluates a script.
func ask[T any](b *tab, script string, args ...any) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(script, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// settle waits until what was asked for is drawn: a frame is drawn in the one
// after the request.
func (b *tab) settle() {
	b.t.Helper()
	ask[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// look gives the page a theme and a width.
func (b *tab) look(theme string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), media(theme))
	b.settle()
}

// media is what the system of the reader asks for: a theme, and nothing that
// moves, since a page that still scrolls is not what a test looks at.
func media(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, at *chromedp.Target) error {
		_, err := cdp.Call(ctx, at, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	})
}

// picture keeps a picture of the whole page among the test's artifacts.
func (b *tab) picture(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	file := filepath.Join(b.t.ArtifactDir(), name+".png")
	if err := os.WriteFile(file, png, 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%s, %d bytes", file, len(png))
}

// fits holds that nobody has to scroll sideways to read.
func (b *tab) fits(what string) {
	b.t.Helper()
	if over := ask[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		b.t.Errorf("%s is %d pixels wider than the window", what, over)
	}
}

// processesOf lists the processes that were started with the folder in their
// command line.
func processesOf(folder string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is fine; elsewhere there is none
	var found []string
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(folder)) {
			found = append(found, f+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
