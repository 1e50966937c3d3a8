package reports

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
)

// Limits of a picture that still fits a screen.
const (
	mostClients = 10
	mostNodes   = 7
	mostFaults  = 6
)

// says puts a fault in words: "c1 paused, 15s".
func says(ft checker.Fault) string {
	words := ft.What
	if words == "" { // a history from elsewhere
		words = strings.Join(ft.On, " ")
	}
	if ft.StopIndex >= 0 {
		words = strings.TrimPrefix(words+", "+sec(ft.Stop-ft.Start), ", ")
	}
	return Printable(words)
}

// faultLanes draws a lane for each kind of fault and target, in order of
// their first start.
func (p *picture) faultLanes() (lanes []*lane, left int) {
	byName := map[string]*lane{}
	for _, ft := range p.faults {
		if !p.shows(ft.Start, ft.Stop) {
			continue
		}
		name := ft.Fault + "\x00" + strings.Join(ft.On, ",")
		l := byName[name]
		if l == nil {
			if len(lanes) == mostFaults {
				left++
				continue
			}
			l = &lane{label: ft.Fault, cells: blank(p.cols, ' ')}
			byName[name] = l
			lanes = append(lanes, l)
		}
		p.band(l, ft.Start, ft.Stop, '~', says(ft))
	}
	return lanes, left
}

// band draws a stretch as [~~~~] with its words inside, or behind it where
// there is no room inside, or before it.
func (p *picture) band(l *lane, from, to int64, fill rune, words string) {
	a, b := p.col(from), p.col(to)
	for c := a; c <= b; c++ {
		l.cells[c] = fill
	}
	if from >= p.from {
		l.cells[a] = '['
	}
	if p.shows(to, to) && b > a {
		l.cells[b] = ']'
	}
	text := []rune(" " + words + " ")
	places := []int{a + (b-a-len(text))/2 + 1, b + 1, a - len(text)}
	if b-a-1 < len(text) {
		places = places[1:]
	}
	inside := len(places) == 3
	for i, at := range places {
		end := at + len(text)
		if at < 0 || end > p.cols+1 {
			continue
		}
		end = min(end, p.cols)
		room := inside && i == 0
		if room || strings.TrimSpace(string(l.cells[at:end])) == "" {
			copy(l.cells[at:end], text)
			return
		}
	}
}

// change is who owns a key from an instant on.
type change struct {
	t     int64
	owner rune
}

// truthLanes draws who the nodes say owns the lock. Keys that never have an
// owner, such as counters of fences, are left out.
func (p *picture) truthLanes() (lanes []*lane, left int) {
	type place struct{ node, key string }
	changes := map[place][]change{}
	owned := map[place]bool{}
	labels, counts := keyLabels(p.h), counting(p.h)
	for _, e := range p.h.Events {
		if e.Server == nil {
			continue
		}
		at := place{node: e.Server.Node, key: e.Server.Key}
		owner := '.'
		if e.Server.Owner != "" {
			client, _, _ := strings.Cut(e.Server.Owner, "#")
			owner = p.badge(client)
			owned[at] = true
			if what := counts[at.key]; what != "" {
				owner = digit(countOf(e.Server, what))
			}
		}
		changes[at] = append(changes[at], change{t: e.T, owner: owner})
	}
	places := make([]place, 0, len(owned))
	for at := range owned {
		places = append(places, at)
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.key, b.key), natural(a.node, b.node))
	})
	if len(places) > mostNodes {
		left, places = len(places)-mostNodes, places[:mostNodes]
	}
	for _, at := range places {
		lanes = append(lanes, &lane{label: at.node + " " + labels[at.key], cells: p.ownership(changes[at]), counts: counts[at.key] != ""})
	}
	return lanes, left
}

// ownership gives each column to the owner that had most of it.
func (p *picture) ownership(changes []change) []rune {
	cells := blank(p.cols, '.')
	share := make([]map[rune]int64, p.cols)
	now := change{owner: '.'}
	give := func(until int64) {
		for c := p.col(now.t); now.t < until && c <= p.col(until) && p.shows(now.t, until); c++ {
			a := max(now.t, p.from+int64(c)*p.step)
			b := min(until, p.from+int64(c+1)*p.step)
			if share[c] == nil {
				share[c] = map[rune]int64{}
			}
			share[c][now.owner] += max(b-a, 0)
		}
	}
	for _, ch := range changes {
		if ch.owner != now.owner {
			give(ch.t)
			now = ch
		}
	}
	give(p.end + p.step)
	for c, owners := range share {
		most := int64(-1)
		for owner, ns := range owners {
			if ns > most || ns == most && owner > cells[c] {
				cells[c], most = owner, ns
			}
		}
	}
	return cells
}

// natural orders c2 before c10.
func natural(a, b string) int {
	stemA, stemB := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if stemA != stemB {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
