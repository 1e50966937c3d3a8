// Package serve shows stored runs in a browser: a table that can be filtered,
// the newest verdict of each lock in each scenario, two runs side by side, and
// every run's report.
//
// It only reads, and only below one folder: no path of a request is ever opened
// that was not found there, and symbolic links that lead out are not followed.
// It judges nothing; what it says is what the stored verdicts say.
package serve

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/reports/page"
	"github.com/holdfast-io/holdfast/store"
)

var (
	//go:embed assets/list.html
	listHTML string
	//go:embed assets/compare.html
	compareHTML string
	//go:embed assets/style.css
	styleCSS string

	funcs = template.FuncMap{"path": pathOf, "show": reports.Printable, "parts": parts, "css": func() template.CSS { return template.CSS(page.Palette() + styleCSS) }}
	list  = template.Must(template.New("list").Funcs(funcs).Parse(listHTML))
	pair  = template.Must(template.New("compare").Funcs(funcs).Parse(compareHTML))
)

// parts are the parts of a run's name, between which a narrow page may break it.
func parts(id string) []string { return strings.SplitAfter(id, "/") }

// policy lets a page of ours run nothing and ask nobody. Reports bring a policy
// of their own, which allows their one script.
const policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// server serves one folder.
type server struct {
	root *os.Root
	runs *index
}

// New makes the handler for a folder of runs, and what closes it.
func New(dir string) (http.Handler, func() error, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open the folder of runs: %w", err)
	}
	s := &server{root: root, runs: newIndex(root)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.list)
	mux.HandleFunc("GET /compare", s.compare)
	mux.HandleFunc("GET /run/{scenario}/{lock}/{leaf}/{file}", s.file)
	return guarded(mux), root.Close, nil
}

// guarded refuses what a browser sends here on behalf of another site: names
// other than this machine's own, by which a foreign page could read a server
// that listens on loopback.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && local.IP.IsLoopback() && !ownName(r.Host) {
			http.Error(w, "this server answers to localhost only", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func ownName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pathOf is where a file of a run is served.
func pathOf(id, file string) string {
	var parts []string
	for _, p := range append(strings.Split(id, "/"), file) {
		parts = append(parts, url.PathEscape(p))
	}
	return "/run/" + strings.Join(parts, "/")
}

// render sends a page of ours.
func render(w http.ResponseWriter, t *template.Template, content any) {
	var b bytes.Buffer
	if err := t.Execute(&b, content); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the browser may have gone
}

// file serves what a run left. Text of a run is shown as text, whatever is in it.
func (s *server) file(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("scenario") + "/" + r.PathValue("lock") + "/" + r.PathValue("leaf")
	if _, ok := s.runs.find(id); !ok {
		http.NotFound(w, r)
		return
	}
	switch name := r.PathValue("file"); name {
	case store.ReportFile:
		s.report(w, r, id)
	case store.RunFile, store.HistoryFile, store.VerdictFile:
		text, err := store.ReadRegular(s.root.OpenFile, id+"/"+name)
		switch {
		case errors.Is(err, store.ErrNotRegular):
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		case err != nil:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(text) // the browser may have gone
	default:
		http.NotFound(w, r)
	}
}

// report draws a run anew, so that a run without a report has one too.
func (s *server) report(w http.ResponseWriter, _ *http.Request, id string) {
	run, h, err := s.read(id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	var b bytes.Buffer
	if err := page.Write(&b, run, h); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the browser may have gone
}

// read reads a run's verdict and history; either may be missing, not both.
func (s *server) read(id string) (reports.Run, *history.History, error) {
	f, err := store.OpenRegular(s.root.OpenFile, id+"/"+store.HistoryFile)
	var h *history.History
	if err == nil {
		defer f.Close()
		// What can be read of a history that breaks off is better than nothing.
		h, err = history.ReadAll(f)
	}
	run, verdict := s.runs.verdict(id)
	switch {
	case verdict == nil:
		return run, h, nil
	case h != nil:
		return reports.Run{Scenario: h.Header.Scenario, Lock: h.Header.Lock, World: h.Header.World, Seed: h.Header.Seed,
			TTLNanos: int64(h.Header.TTL), Verdict: checker.Error, Outcome: string(checker.Error),
			Error: "the run ended before it was judged: holdfast check " + id}, h, nil
	}
	return run, nil, errors.Join(verdict, err)
}

// valid says whether an id can be one: three plain names.
func valid(id string) bool {
	return fs.ValidPath(id) && strings.Count(id, "/") == 2
}
