package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// picture is a lane diagram in the making.
type picture struct {
	frame
	h        *history.History
	facts    *checker.Facts
	holds    []*checker.Acquisition
	overlaps []Overlap
	faults   []checker.Fault
	badges   map[string]rune
}

// Diagram draws the run, or the part of it that matters, with a lane for each
// client, for what the nodes say, and for each fault. It is plain text of at
// most width columns; colour marks what went wrong. It is empty for a history
// without events.
func Diagram(h *history.History, results []checker.Result, width int, colour bool) []string {
	if h == nil || len(h.Events) == 0 {
		return nil
	}
	return DiagramOf(checker.Gather(tame(h)), results, width, colour)
}

// DiagramOf is [Diagram] for facts that were gathered already, of a history
// that went through [Tame].
func DiagramOf(facts *checker.Facts, results []checker.Result, width int, colour bool) []string {
	h := facts.History
	gutter := gutterOf(h, width)
	p := &picture{h: h, facts: facts, holds: holdsOf(facts), faults: facts.Faults, badges: map[string]rune{}}
	p.frame = newFrame(facts, results, width-gutter-2)
	p.findOverlaps(results)
	clients, leftClients := p.chooseClients()

	var notes []string
	note := func(n int, what string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("(%d more %s%s not drawn)", n, what, plural(n)))
		}
	}
	clientLanes, leftLanes := p.clientLanes(clients)
	lanes := slices.Clone(clientLanes)
	lanes = append(lanes, p.overlapLane()...)
	lanes = append(lanes, p.leaseLane()...)
	truth, leftNodes := p.truthLanes()
	lanes = append(lanes, truth...)
	bands, leftFaults := p.faultLanes()
	lanes = append(lanes, bands...)
	note(leftClients, "client")
	note(leftLanes, "lane of a client")
	note(leftNodes, "key")
	note(leftFaults, "fault")

	ink := ink{on: colour}
	out := wrap(p.header(), width, "")
	labels, ticks := p.axis()
	out = append(out, row("", labels, gutter), row("", ticks, gutter))
	for _, l := range lanes {
		out = append(out, ink.lane(l, gutter))
	}
	out = append(out, notes...)
	return append(out, p.legend(clientLanes, truth, width)...)
}

// furthest is the latest instant that is drawn, about a year.
const furthest = int64(1) << 55

// tame clamps times that no run can have, so that the arithmetic below cannot
// overflow. Such a history is malformed, and its report must still be written.
func tame(h *history.History) *history.History {
	clamp := func(t int64) int64 { return min(max(t, 0), furthest) }
	out := &history.History{Header: h.Header, Events: slices.Clone(h.Events)}
	out.Header.TTL = time.Duration(clamp(int64(h.Header.TTL)))
	out.Header.Drift = min(max(h.Header.Drift, 0), 1)
	for i := range out.Events {
		out.Events[i].T = clamp(out.Events[i].T)
	}
	return out
}

// gutterOf is the width of the labels: as wide as the widest, within reason.
func gutterOf(h *history.History, width int) int {
	labels, several := keyLabels(h), 0
	locks := map[string]bool{}
	for _, e := range h.Events {
		if e.Op != nil && e.Op.F == history.Acquire {
			locks[e.Op.Lock] = true
		}
	}
	if len(locks) > 1 {
		several = 1 // lanes name the lock
	}
	widest := len("two hold")
	for _, e := range h.Events {
		switch {
		case e.Op != nil:
			widest = max(widest, len(e.Op.Client)+len(" lease"), len(e.Op.Client)+1+len(e.Op.Lock)*several)
		case e.Server != nil:
			widest = max(widest, len(e.Server.Node)+1+len(labels[e.Server.Key]))
		case e.Nemesis != nil && e.Nemesis.Phase != history.Never:
			widest = max(widest, len(e.Nemesis.Fault))
		}
	}
	return min(widest, 14, width/4) + 2
}

func row(label string, cells []rune, gutter int) string {
	name := []rune(Printable(label))
	name = name[:min(len(name), gutter-2)]
	pad := strings.Repeat(" ", gutter-len(name))
	return strings.TrimRight(string(name)+pad+string(cells), " ")
}

func (p *picture) header() string {
	s := fmt.Sprintf("Who held the lock%s, %s to %s (%s", p.theLocks(), sec(p.from), sec(p.to), p.why)
	if p.why != "the whole run" {
		s += fmt.Sprintf("; it lasted %s", sec(p.end))
	}
	s += fmt.Sprintf("); 1 column = %s", sec(p.step))
	if ttl := int64(p.h.Header.TTL); ttl > 0 {
		s += fmt.Sprintf(", TTL %s = %d columns", sec(ttl), (ttl+p.step/2)/p.step)
	}
	return s
}

// findOverlaps takes the overlaps that the frame shows.
func (p *picture) findOverlaps(results []checker.Result) {
	for _, o := range Overlaps(p.facts, results) {
		if slices.ContainsFunc(o.Times, func(i checker.Interval) bool { return p.shows(i.From, i.To) }) {
			p.overlaps = append(p.overlaps, o)
		}
	}
}

// chooseClients takes the clients of a violation first, then those that do
// something in the frame, then the rest, and gives each a badge of one letter.
func (p *picture) chooseClients() (chosen []string, left int) {
	rank := map[string]int{}
	offer := func(client string, r int) {
		if old, ok := rank[client]; client != "" && (!ok || r < old) {
			rank[client] = r
		}
	}
	for _, e := range p.h.Events {
		r := 2
		if p.shows(e.T, e.T) {
			r = 1
		}
		switch {
		case e.Op != nil:
			offer(e.Op.Client, r)
		case e.Resource != nil:
			offer(e.Resource.Client, r)
		}
	}
	for _, o := range p.overlaps {
		for _, a := range o.Holds {
			offer(a.Client, 0)
		}
	}
	all := make([]string, 0, len(rank))
	for c := range rank {
		all = append(all, c)
	}
	slices.SortFunc(all, natural)
	for _, c := range all {
		p.badge(c)
	}
	slices.SortStableFunc(all, func(a, b string) int { return rank[a] - rank[b] })
	if len(all) > mostClients {
		left, all = len(all)-mostClients, all[:mostClients]
	}
	slices.SortFunc(all, natural)
	return all, left
}

const badgeMarks = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// badge is the letter that stands for a client in the lanes of the nodes: the
// last digit of its name where that is free, else the next free letter.
func (p *picture) badge(client string) rune {
	if b, ok := p.badges[client]; ok {
		return b
	}
	taken := map[rune]bool{}
	for _, b := range p.badges {
		taken[b] = true
	}
	b := '?'
	if n := len(client); n > 1 && strings.ContainsRune("123456789", rune(client[n-1])) &&
		!unicode.IsDigit(rune(client[n-2])) && !taken[rune(client[n-1])] {
		b = rune(client[n-1])
	} else if i := strings.IndexFunc(badgeMarks, func(r rune) bool { return !taken[r] }); i >= 0 {
		b = rune(badgeMarks[i])
	}
	p.badges[client] = b
	return b
}

// overlapLane marks when two clients hold at once.
func (p *picture) overlapLane() []*lane {
	if len(p.overlaps) == 0 {
		return nil
	}
	l := &lane{label: p.tooMany(), cells: blank(p.cols, ' '), alarm: true}
	for _, o := range p.overlaps {
		for _, i := range o.Times {
			for c := p.col(i.From); p.shows(i.From, i.To-1) && c <= p.col(i.To-1); c++ {
				l.cells[c] = '^'
			}
		}
	}
	return []*lane{l}
}

// leaseLane shows the lease that the story turns on: of the two in the first
// overlap the one that ends first, else the first in the frame.
func (p *picture) leaseLane() []*lane {
	var its *checker.Acquisition
	for _, a := range p.holds {
		if p.shows(a.Done, a.Done) {
			its = a
			break
		}
	}
	if len(p.overlaps) > 0 {
		its = slices.MinFunc(p.overlaps[0].Holds, func(a, b *checker.Acquisition) int { return cmp.Compare(a.LeaseEnd, b.LeaseEnd) })
	}
	ttl := int64(p.h.Header.TTL)
	if its == nil || ttl <= 0 || !p.shows(its.LeaseStart, its.LeaseEnd) {
		return nil
	}
	l := &lane{label: its.Client + " lease", cells: blank(p.cols, ' ')}
	words := "TTL " + sec(ttl)
	if its.LeaseEnd-its.LeaseStart > ttl+ttl/100 {
		words = "lease, renewed"
	}
	p.band(l, its.LeaseStart, its.LeaseEnd, '-', words)
	return []*lane{l}
}

// legend explains the marks that were drawn, and no others.
func (p *picture) legend(clients, truth []*lane, width int) []string {
	used := map[rune]bool{}
	for _, l := range clients {
		for _, r := range l.cells {
			used[r] = true
		}
	}
	var words []string
	for _, s := range symbols {
		if used[s.mark] {
			words = append(words, fmt.Sprintf("%c %s", s.mark, s.says))
		}
	}
	if len(p.overlaps) > 0 {
		words = append(words, "^ "+p.clash())
	}
	owners := map[rune]bool{}
	for _, l := range truth {
		for _, r := range l.cells {
			owners[r] = owners[r] || !l.counts
		}
	}
	var who []string
	for client, b := range p.badges {
		if owners[b] {
			who = append(who, fmt.Sprintf("%c = %s", b, Printable(client)))
		}
	}
	slices.Sort(who)
	if what := p.counted(); what != "" {
		words = append(words, what)
	}
	if len(who) > 0 {
		words = append(words, "in the key lanes: who owns it on the node ("+strings.Join(who, ", ")+", . = nobody)")
	}
	var lines []string
	for _, line := range list(words, "   ", width) {
		if len([]rune(line)) > width {
			lines = append(lines, wrap(line, width, "  ")...)
			continue
		}
		lines = append(lines, line)
	}
	return lines
}
