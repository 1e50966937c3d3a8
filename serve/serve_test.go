package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// runs makes a folder with a violated run, a passed one, one with a hostile
// name, and one that died; and a secret beside the folder.
func runs(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	root := filepath.Join(top, "runs")
	if err := os.WriteFile(filepath.Join(top, "secret"), []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	put := func(scenario, lock string, verdict checker.Verdict, outcome string, matched, died bool) {
		j := store.Job{Scenario: scenario, Lock: lock, World: "sim", Seed: 1}
		dir := j.Dir(root)
		release, err := store.Begin(dir, j)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		h := &history.History{Header: history.Header{Schema: history.Schema, Scenario: scenario, Lock: lock, World: "sim", TTL: time.Second, Clients: 1, Nodes: 1}}
		if err := store.SaveHistory(dir, h); err != nil {
			t.Fatal(err)
		}
		if died {
			return
		}
		r := reports.Run{Scenario: scenario, Lock: lock, World: "sim", Seed: 1, Verdict: verdict, Outcome: outcome, Matched: matched,
			HistorySHA256: h.SHA256(), Expected: map[string]string{}, Repeat: "holdfast run " + scenario,
			Checks: []checker.Result{{Name: "exclusion", Verdict: verdict, Applies: true, Kind: outcome}}}
		if err := store.SaveVerdict(dir, r); err != nil {
			t.Fatal(err)
		}
	}
	put("slow-work", "basic", checker.Violation, "overrun", false, false)
	put("calm", "basic", checker.Pass, "pass", true, false)
	put("calm", "<script>alert(1)<", checker.Pass, "\x1b[31mred", true, false)
	put("calm", "service", "", "", false, true)
	return root
}

func serving(t *testing.T, root string) *httptest.Server {
	t.Helper()
	h, closeRoot, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.Close(); _ = closeRoot() })
	return s
}

func get(t *testing.T, s *httptest.Server, path, host string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	// As it is, without the client's own tidying of dots.
	req.URL.Opaque = path
	if host != "" {
		req.Host = host
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), "the secret") {
		t.Errorf("%s shows what lies outside the folder", path)
	}
	return res.StatusCode, string(body), res.Header
}

// TestPages holds what each page shows, and that markup in a name is none.
func TestPages(t *testing.T) {
	s := serving(t, runs(t))
	for _, c := range []struct {
		path          string
		want, unwants []string
	}{
		{"/", []string{"4 runs", "slow-work / basic", "overrun !", "no verdict", "?[31mred"}, nil},
		{"/?lock=basic", []string{"2 runs", "slow-work / basic"}, []string{"calm / service"}},
		{"/?verdict=violation&world=sim", []string{"1 runs", "overrun"}, []string{"calm / basic"}},
		{"/?lock=nobody", []string{"There are no runs here", "with lock nobody"}, nil},
		{"/run/slow-work/basic/sim-1/report.html", []string{"slow-work", "overrun"}, nil},
		{"/run/calm/service/sim-1/report.html", []string{"ended before it was judged"}, nil},
		{"/run/slow-work/basic/sim-1/verdict.json", []string{`"outcome": "overrun"`}, nil},
		{"/compare?run=slow-work/basic/sim-1&run=calm/basic/sim-1", []string{"Two runs", `class="differs"`, "holdfast run calm"}, nil},
	} {
		code, body, header := get(t, s, c.path, "")
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", c.path, code, body)
		}
		for _, w := range c.want {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %q\n%.1500s", c.path, w, body)
			}
		}
		for _, w := range append(c.unwants, "<script>alert") {
			if strings.Contains(body, w) {
				t.Errorf("%s shows %q", c.path, w)
			}
		}
		if header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", c.path, header)
		}
		if strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			if _, err := html.Parse(strings.NewReader(body)); err != nil {
				t.Errorf("%s: %v", c.path, err)
			}
		}
	}
}

// TestNothingElseIsServed: no path leads out of the folder, and no other site's
// name is answered.
func TestNothingElseIsServed(t *testing.T) {
	root := runs(t)
	if err := os.Symlink("..", filepath.Join(root, "calm", "basic", "up")); err != nil {
		t.Fatal(err)
	}
	leak := filepath.Join(root, "calm", "leak", "sim-1")
	if err := os.MkdirAll(leak, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{store.RunFile, store.HistoryFile, store.VerdictFile} {
		if err := os.Symlink(filepath.Join(root, "..", "secret"), filepath.Join(leak, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := serving(t, root)
	for _, path := range []string{
		"/run/../../secret", "/run/%2e%2e/%2e%2e/x/secret", "/run/calm/basic/..%2f..%2f../secret", "/run/calm/basic/sim-1/..%2f..%2f..%2f..%2fsecret",
		"/run/calm/basic/sim-1/go.mod", "/run/calm/basic/up/run.json", "/run/calm/leak/sim-1/history.jsonl", "/run/calm/leak/sim-1/report.html",
		"/run/calm/basic/sim-2/report.html", "/run/calm/basic/sim-1%00/report.html", "/etc/passwd", "/compare", "/compare?run=../..&run=..",
	} {
		if code, body, _ := get(t, s, path, ""); code == http.StatusOK {
			t.Errorf("%s is answered: %.300s", path, body)
		}
	}
	if code, _, _ := get(t, s, "/", "evil.example"); code != http.StatusForbidden {
		t.Errorf("a foreign name is answered with %d", code)
	}
	for _, host := range []string{"localhost:1", "127.0.0.1", "[::1]:7780"} {
		if code, _, _ := get(t, s, "/", host); code != http.StatusOK {
			t.Errorf("%s is answered with %d", host, code)
		}
	}
}

// TestANewVerdictIsSeen: the index does not keep what has changed.
func TestANewVerdictIsSeen(t *testing.T) {
	root := runs(t)
	s := serving(t, root)
	if _, body, _ := get(t, s, "/?lock=service", ""); !strings.Contains(body, "no verdict") {
		t.Fatal("the run that died is not told")
	}
	dir := store.Job{Scenario: "calm", Lock: "service", World: "sim", Seed: 1}.Dir(root)
	if err := store.SaveVerdict(dir, reports.Run{Scenario: "calm", Lock: "service", World: "sim", Verdict: checker.Pass, Outcome: "pass", Matched: true}); err != nil {
		t.Fatal(err)
	}
	if _, body, _ := get(t, s, "/?lock=service", ""); strings.Contains(body, "no verdict") {
		t.Error("the new verdict is not seen")
	}
}

// TestPipesAreNotAwaited: a pipe among a run's files is refused, and holds up
// neither its own page nor the list.
func TestPipesAreNotAwaited(t *testing.T) {
	root := runs(t)
	at := func(scenario, file string) string { return filepath.Join(root, scenario, "basic", "sim-1", file) }
	for _, path := range []string{at("calm", store.HistoryFile), at("slow-work", store.VerdictFile), at("slow-work", store.HistoryFile)} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := serving(t, root)
	s.Client().Timeout = 10 * time.Second
	t.Cleanup(s.CloseClientConnections) // or a failure of this test would wait for its handlers
	for path, says := range map[string]string{
		"/":                                      "4 runs",
		"/run/calm/basic/sim-1/report.html":      "calm",
		"/run/calm/basic/sim-1/history.jsonl":    "history.jsonl is no regular file",
		"/run/slow-work/basic/sim-1/report.html": "verdict.json is no regular file",
	} {
		if _, body, _ := get(t, s, path, ""); !strings.Contains(body, says) {
			t.Errorf("%s lacks %q: %.300s", path, says, body)
		}
	}
}
