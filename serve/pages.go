package serve

import (
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/reports"
)

// mostRows is how many runs the table shows; filters find the others.
const mostRows = 500

// row is a run in the table.
type row struct {
	entry
	Class, Standing, When string
}

// filter is what the table is narrowed to.
type filter struct {
	Name, Value string
	Words       []string
}

// cell is the newest verdict of a lock in a scenario.
type cell struct{ ID, Word, Class string }

type listing struct {
	Filters   []filter
	Rows      []row
	Found     int
	Scenarios []string
	Matrix    []line
}

type line struct {
	Lock  string
	Cells []cell
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	all := s.runs.all()
	fields := []struct {
		name string
		of   func(entry) string
	}{
		{"scenario", func(e entry) string { return e.Run.Scenario }},
		{"lock", func(e entry) string { return e.Run.Lock }},
		{"verdict", func(e entry) string { return string(e.Run.Verdict) }},
		{"world", func(e entry) string { return e.Run.World }},
	}
	var l listing
	shown := all
	for _, f := range fields {
		words := map[string]bool{}
		for _, e := range all {
			words[f.of(e)] = true
		}
		delete(words, "")
		want := r.URL.Query().Get(f.name)
		l.Filters = append(l.Filters, filter{Name: f.name, Value: want, Words: sorted(words)})
		if want != "" {
			shown = slices.DeleteFunc(slices.Clone(shown), func(e entry) bool { return f.of(e) != want })
		}
	}
	l.Found = len(shown)
	for _, e := range shown[:min(len(shown), mostRows)] {
		l.Rows = append(l.Rows, rowOf(e))
	}
	l.newest(shown)
	render(w, list, l)
}

func sorted(set map[string]bool) []string {
	var words []string
	for w := range set {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

func rowOf(e entry) row {
	r := row{entry: e, Class: classOf(e), When: e.At.UTC().Format("2006-01-02 15:04:05")}
	if !e.Died {
		r.Standing = reports.Stand(e.Run).String()
	}
	return r
}

// classOf is the colour of a run: what matters first is whether it came out as
// its scenario expects.
func classOf(e entry) string {
	switch {
	case e.Died:
		return "error"
	case e.Run.Verdict == "violation" && e.Run.Matched:
		return "known"
	}
	return string(e.Run.Verdict)
}

// newest fills the matrix: the runs come newest first.
func (l *listing) newest(runs []entry) {
	scenarios, locks := map[string]bool{}, map[string]bool{}
	cells := map[[2]string]cell{}
	for _, e := range runs {
		at := [2]string{e.Run.Lock, e.Run.Scenario}
		if _, ok := cells[at]; ok || e.Run.Lock == "" {
			continue
		}
		word := e.Run.Outcome
		if !e.Died && !e.Run.Matched {
			word += " !"
		}
		cells[at] = cell{ID: e.ID, Word: word, Class: classOf(e)}
		scenarios[e.Run.Scenario], locks[e.Run.Lock] = true, true
	}
	l.Scenarios = sorted(scenarios)
	for _, lock := range sorted(locks) {
		row := line{Lock: lock}
		for _, sc := range l.Scenarios {
			row.Cells = append(row.Cells, cells[[2]string{lock, sc}])
		}
		l.Matrix = append(l.Matrix, row)
	}
}

// side is one of two runs.
type side struct {
	row
	Text string
}

// difference is one check in both runs.
type difference struct {
	Check, A, B string
	Differs     bool
}

type comparison struct {
	A, B  side
	Rows  []difference
	Equal bool // the same history, byte by byte
}

func (s *server) compare(w http.ResponseWriter, r *http.Request) {
	var ids []string
	for _, id := range r.URL.Query()["run"] {
		if _, ok := s.runs.find(id); ok {
			ids = append(ids, id)
		}
	}
	if len(ids) != 2 {
		http.Error(w, "mark two runs in the table to compare them", http.StatusBadRequest)
		return
	}
	var c comparison
	c.A, c.B = s.side(ids[0]), s.side(ids[1])
	c.Equal = c.A.Run.HistorySHA256 != "" && c.A.Run.HistorySHA256 == c.B.Run.HistorySHA256
	answers := [2]map[string]string{}
	var order []string
	for i, run := range []reports.Run{c.A.Run, c.B.Run} {
		answers[i] = map[string]string{}
		for _, check := range run.Checks {
			if answers[0][check.Name] == "" && answers[i][check.Name] == "" {
				order = append(order, check.Name)
			}
			word := string(check.Verdict)
			if check.Kind != "" {
				word = check.Kind
			}
			if !check.Applies {
				word = "n/a"
			}
			answers[i][check.Name] = word
		}
	}
	for _, name := range order {
		a, b := answers[0][name], answers[1][name]
		c.Rows = append(c.Rows, difference{Check: name, A: a, B: b, Differs: a != b})
	}
	render(w, pair, c)
}

// side reads one run with its picture in text.
func (s *server) side(id string) side {
	e, _ := s.runs.find(id)
	out := side{row: rowOf(e)}
	run, h, err := s.read(id)
	if err != nil {
		out.Text = err.Error()
		return out
	}
	var text strings.Builder
	if err := reports.Text(&text, run, h, reports.TextOptions{}); err != nil {
		out.Text = err.Error()
		return out
	}
	out.Text = text.String()
	return out
}
