package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// group is the runs of one scenario and lock.
type group struct {
	name string
	runs []Run
}

// grouped gathers runs by scenario, lock and, where there are several, world,
// in the order in which they appear.
func grouped(runs []Run) []*group {
	worlds := map[string]bool{}
	for _, r := range runs {
		worlds[r.World] = true
	}
	byName := map[string]*group{}
	var out []*group
	for _, r := range runs {
		name := r.Scenario + " / " + r.Lock
		if len(worlds) > 1 {
			name += " on " + r.World
		}
		g := byName[name]
		if g == nil {
			g = &group{name: name}
			byName[name] = g
			out = append(out, g)
		}
		g.runs = append(g.runs, r)
	}
	return out
}

// Summary tells many runs to a person: a line for each scenario and lock with
// its counts, each run that is not as expected with the command that repeats
// it, and the sum.
func Summary(w io.Writer, runs []Run, opt TextOptions) error {
	p := newPage(opt)
	for _, g := range grouped(runs) {
		colour := green
		if slices.ContainsFunc(g.runs, func(r Run) bool { return Stand(r) != AsExpected }) {
			colour = red
		}
		counts, standing := g.counts(), g.standing()
		p.add(Printable(g.name) + ": " + Printable(counts) + ", " + p.paint(colour, standing))
	}
	for _, r := range worstFirst(runs) {
		s := Stand(r)
		if s == AsExpected {
			break
		}
		word, detail := headline(r)
		p.add("", p.paint(bold+";"+red, s.String())+"  "+Printable(fmt.Sprintf("%s / %s seed %d: %s %s", r.Scenario, r.Lock, r.Seed, word, detail)))
		for _, g := range grounds(r) {
			p.say("  - ", g)
		}
		if first := firstSentence(r); len(violated(r.Checks)) > 0 {
			p.say("  ", first)
		}
		p.add("  repeat: " + Printable(repeatOf(r)))
	}
	p.add("", tally(runs))
	return p.flush(w)
}

// worstFirst sorts surprises before failed runs before undecided ones.
func worstFirst(runs []Run) []Run {
	sorted := slices.Clone(runs)
	slices.SortStableFunc(sorted, func(a, b Run) int { return cmp.Compare(Stand(b), Stand(a)) })
	return sorted
}

// counts is "20 of 20 pass" or "18 of 20 overrun, 2 of 20 pass", most first.
func (g *group) counts() string {
	count := map[string]int{}
	var words []string
	for _, r := range g.runs {
		o := outcomeOf(r)
		if count[o] == 0 {
			words = append(words, o)
		}
		count[o]++
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	for i, o := range words {
		words[i] = fmt.Sprintf("%d of %d %s", count[o], len(g.runs), o)
	}
	return strings.Join(words, ", ")
}

// standing is "all as expected" or how many are not.
func (g *group) standing() string {
	n := count(g.runs)
	if n[AsExpected] == len(g.runs) {
		return "all as expected"
	}
	var parts []string
	for _, s := range []Standing{Surprise, Failed, Undecided} {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], strings.ToLower(s.String())))
		}
	}
	return strings.Join(parts, ", ")
}

// outcomeOf is the run's own word, or is made from its checks.
func outcomeOf(r Run) string {
	if r.Outcome != "" {
		return r.Outcome
	}
	return Outcome(r.Checks, r.Verdict)
}

func count(runs []Run) map[Standing]int {
	n := map[Standing]int{}
	for _, r := range runs {
		n[Stand(r)]++
	}
	return n
}

// tally is the last line: how many runs stand where.
func tally(runs []Run) string {
	n := count(runs)
	return fmt.Sprintf("%d run%s: %d as expected, %d not as expected, %d unknown, %d error%s",
		len(runs), plural(len(runs)), n[AsExpected], n[Surprise], n[Undecided], n[Failed], plural(n[Failed]))
}
