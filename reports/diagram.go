package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// overlap is the time in which the holds of an exclusion violation overlap.
type overlap struct {
	span
	holds []*hold
}

// picture is a lane diagram in the making.
type picture struct {
	frame
	h        *history.History
	holds    []*hold
	overlaps []overlap
	faults   []*fault
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
	h = tame(h)
	gutter := gutterOf(h, width)
	p := &picture{h: h, holds: holdsOf(h), badges: map[string]rune{}}
	p.frame = newFrame(h, results, p.holds, width-gutter-2)
	p.faults = faultsOf(h, p.end)
	p.findOverlaps(results)
	clients, leftClients := p.chooseClients()

	var notes []string
	note := func(n int, what string) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("(%d more %s%s not drawn)", n, what, plural(n)))
		}
	}
	clientLanes := p.clientLanes(clients)
	lanes := slices.Clone(clientLanes)
	lanes = append(lanes, p.overlapLane()...)
	lanes = append(lanes, p.leaseLane()...)
	truth, leftNodes := p.truthLanes()
	lanes = append(lanes, truth...)
	bands, leftFaults := p.faultLanes()
	lanes = append(lanes, bands...)
	note(leftClients, "client")
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
	widest := len("two hold")
	for _, e := range h.Events {
		switch {
		case e.Op != nil:
			widest = max(widest, len(e.Op.Client)+len(" lease"))
		case e.Server != nil:
			widest = max(widest, len(e.Server.Node)+len(" key"))
		case e.Nemesis != nil:
			widest = max(widest, len(e.Nemesis.Fault))
		}
	}
	return min(widest, 14, width/4) + 2
}

func row(label string, cells []rune, gutter int) string {
	name := []rune(printable(label))
	name = name[:min(len(name), gutter-2)]
	pad := strings.Repeat(" ", gutter-len(name))
	return strings.TrimRight(string(name)+pad+string(cells), " ")
}

func (p *picture) header() string {
	s := fmt.Sprintf("Who held the lock, %s to %s (%s", sec(p.from), sec(p.to), p.why)
	if p.why != "the whole run" {
		s += fmt.Sprintf("; it lasted %s", sec(p.end))
	}
	s += fmt.Sprintf("); 1 column = %s", sec(p.step))
	if ttl := int64(p.h.Header.TTL); ttl > 0 {
		s += fmt.Sprintf(", TTL %s = %d columns", sec(ttl), (ttl+p.step/2)/p.step)
	}
	return s
}

// findOverlaps reads from the verdict which holds overlapped, and from the
// holds when.
func (p *picture) findOverlaps(results []checker.Result) {
	byKey := map[acqKey]*hold{}
	for _, hd := range p.holds {
		byKey[hd.key] = hd
	}
	for _, r := range results {
		if r.Name != "exclusion" || r.Verdict != checker.Violation {
			continue
		}
		for _, v := range r.Violations {
			var o overlap
			for _, e := range eventsOf(p.h, v) {
				hd := byKey[keyOf(e)]
				if hd == nil || slices.Contains(o.holds, hd) {
					continue
				}
				s := span{from: hd.from, to: hd.until}
				if len(o.holds) > 0 {
					s = span{from: max(s.from, o.from), to: min(s.to, o.to)}
				}
				o.span, o.holds = s, append(o.holds, hd)
			}
			if len(o.holds) > 1 && o.to >= o.from {
				p.overlaps = append(p.overlaps, o)
			}
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
		for _, hd := range o.holds {
			if p.shows(o.from, o.to) {
				offer(hd.key.client, 0)
			}
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
	l := &lane{label: "two hold", cells: blank(p.cols, ' '), alarm: true}
	drawn := false
	for _, o := range p.overlaps {
		if !p.shows(o.from, o.to) {
			continue
		}
		for c := p.col(o.from); c <= p.col(o.to); c++ {
			l.cells[c], drawn = '^', true
		}
	}
	if !drawn {
		return nil
	}
	return []*lane{l}
}

// leaseLane shows the lease that the story turns on: that of the earlier
// holder of the first overlap, else the first in the frame.
func (p *picture) leaseLane() []*lane {
	var hd *hold
	for _, o := range p.overlaps {
		if p.shows(o.from, o.to) {
			hd = slices.MinFunc(o.holds, func(a, b *hold) int { return int(max(-1, min(1, a.from-b.from))) })
			break
		}
	}
	for _, h := range p.holds {
		if hd == nil && p.shows(h.from, h.from) {
			hd = h
		}
	}
	if hd == nil || p.h.Header.TTL <= 0 {
		return nil
	}
	l := &lane{label: hd.key.client + " lease", cells: blank(p.cols, ' ')}
	end, words := hd.lease, "TTL "+sec(int64(p.h.Header.TTL))
	if hd.renewed {
		words = "lease, renewed"
	}
	p.band(l, hd.invoked, end, '-', words)
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
	if slices.ContainsFunc(p.overlaps, func(o overlap) bool { return p.shows(o.from, o.to) }) {
		words = append(words, "^ two clients believe at once that they hold it")
	}
	owners := map[rune]bool{}
	for _, l := range truth {
		for _, r := range l.cells {
			owners[r] = true
		}
	}
	var who []string
	for client, b := range p.badges {
		if owners[b] {
			who = append(who, fmt.Sprintf("%c = %s", b, printable(client)))
		}
	}
	slices.Sort(who)
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
