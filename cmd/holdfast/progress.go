package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/store"
)

// progress shows how far work has come that takes longer than a second. On a
// terminal it is one line that is drawn over and over: a bar, the rate, the
// time left, and what was found so far. In a pipe, or on a terminal that can
// do no such thing, a plain line comes now and then, more and more seldom.
type progress struct {
	w     io.Writer
	look  look
	color bool
	began time.Time
	quit  chan struct{} // nil when it is silent
	ended chan struct{}

	// What is being done, before anything is done of it: "exploring basic".
	what string
	// What is found, in the singular and the plural.
	thing, things string

	mu      sync.Mutex
	total   int
	done    int
	found   int
	playing func() string // what is being played now; may be nil
	shown   bool
	// from and until are since the beginning, where it goes on for as long as a
	// budget lasts and not until a number of runs is played.
	from, until time.Duration
}

// look is how progress is shown.
type look int

const (
	noLook    look = iota
	linesLook      // in a pipe
	drawnLook      // on a terminal
)

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
	barWidth      = 24
	narrowBar     = 10 // where there are less than 100 columns

	// In a pipe the first line comes after ten seconds, and each gap is twice
	// the one before, up to a minute: a log of an hour has 61 lines.
	pipeAfter     = 10 * time.Second
	widestPipeGap = time.Minute
)

// lookOf says how progress is shown on a stream.
func lookOf(w io.Writer, quiet bool) (look, bool) {
	f, ok := w.(*os.File)
	switch {
	case quiet:
		return noLook, false
	case !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb":
		return linesLook, false
	}
	return drawnLook, os.Getenv("NO_COLOR") == ""
}

// newProgress shows how far runs have come.
func newProgress(w io.Writer, jobs []store.Job, quiet bool) *runProgress {
	p := &runProgress{progress: &progress{w: w, total: len(jobs), thing: "not as expected", things: "not as expected"},
		jobs: jobs, over: map[string]bool{}}
	p.playing = p.current
	p.look, p.color = lookOf(w, quiet)
	p.start()
	return p
}

// newExploreProgress shows how far an exploration has come. How many runs it
// will play is not known at the start.
func newExploreProgress(w io.Writer, lock string, quiet bool) *progress {
	p := &progress{w: w, what: "exploring " + lock, thing: "cause found", things: "causes found"}
	p.look, p.color = lookOf(w, quiet)
	p.start()
	return p
}

// newStudyProgress shows how far a study has come. It finds nothing that is not
// as expected: then it fails.
func newStudyProgress(w io.Writer, study string, quiet bool) *progress {
	p := &progress{w: w, what: "study " + study, thing: "failed", things: "failed"}
	p.look, p.color = lookOf(w, quiet)
	p.start()
	return p
}

func (p *progress) start() {
	p.began = time.Now()
	if p.look == noLook {
		return
	}
	p.quit, p.ended = make(chan struct{}), make(chan struct{})
	go p.tick() // ends with end
}

// tick draws by the clock and not by finished runs, since a single run on real
// servers takes seconds.
func (p *progress) tick() {
	defer close(p.ended)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	next, gap := pipeAfter, pipeAfter
	for {
		select {
		case now := <-ticker.C:
			spent := now.Sub(p.began)
			switch {
			case p.look == drawnLook && spent >= progressAfter:
				p.draw(spent)
			case p.look == linesLook && spent >= next:
				p.tell(spent)
				gap = min(2*gap, widestPipeGap)
				next += gap
			}
		case <-p.quit:
			return
		}
	}
}

func (p *progress) draw(spent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	columns, width := p.columns(), barWidth
	if columns < 100 {
		width = narrowBar
	}
	line := []rune(p.line(spent, width))
	// A line that wraps cannot be taken back.
	cut := string(line[:min(len(line), columns-1)])
	if n := p.findings(); p.color && p.found > 0 {
		cut = strings.Replace(cut, n, "\x1b[31m"+n+"\x1b[0m", 1)
	}
	fmt.Fprintf(p.w, "\r%s\x1b[K", cut)
}

// tell writes a plain line.
func (p *progress) tell(spent time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, "holdfast:", p.line(spent, 0))
}

func (p *progress) columns() int {
	if f, ok := p.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			return width
		}
	}
	return 80
}

// line is the progress in words, behind a bar of some width, or of none.
func (p *progress) line(spent time.Duration, bar int) string {
	var parts []string
	switch {
	case p.total == 0 || p.total > 1 && p.done == 0 && p.what != "":
		parts = append(parts, p.what, spent.Round(time.Second).String())
	case p.total == 1:
		return p.now() + ", " + spent.Round(time.Second).String()
	case p.done == 0:
		parts = append(parts, fmt.Sprintf("0 of %d runs", p.total), spent.Round(time.Second).String())
	default:
		runs, left := fmt.Sprintf("%d of %d runs", p.done, p.total), time.Duration(0)
		if p.until > 0 {
			runs, left = fmt.Sprintf("%d runs", p.done), max(p.until-spent, 0)
		} else {
			left = time.Duration(float64(spent) / float64(p.done) * float64(max(p.total-p.done, 0)))
		}
		parts = append(parts, runs, p.findings(), rate(p.done, spent), left.Round(time.Second).String()+" left")
	}
	if now := p.now(); now != "" {
		parts = append(parts, now)
	}
	text := strings.Join(parts, ", ")
	if bar > 0 && p.total > 0 {
		filled := min(bar*p.done/p.total, bar)
		if p.until > p.from {
			filled = min(max(int(int64(bar)*int64(spent-p.from)/int64(p.until-p.from)), 0), bar)
		}
		text = "[" + strings.Repeat("#", filled) + strings.Repeat(".", bar-filled) + "] " + text
	}
	return text
}

func (p *progress) findings() string {
	if p.found == 1 {
		return "1 " + p.thing
	}
	return fmt.Sprintf("%d %s", p.found, p.things)
}

func (p *progress) now() string {
	if p.playing == nil {
		return ""
	}
	return p.playing()
}

// rate is how fast it goes, in the unit in which that is a number to read.
func rate(done int, spent time.Duration) string {
	perSecond := float64(done) / max(spent.Seconds(), 0.001)
	switch {
	case perSecond >= 10:
		return fmt.Sprintf("%.0f a second", perSecond)
	case perSecond >= 1:
		return fmt.Sprintf("%.1f a second", perSecond)
	}
	return fmt.Sprintf("%.1f a minute", 60*perSecond)
}

// planned says how many runs there are, when more become known.
func (p *progress) planned(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
}

// lasts says that it goes on until a budget is spent.
func (p *progress) lasts(budget time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from = time.Since(p.began)
	p.until = p.from + budget
}

// step counts a run.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
}

// say counts something found and prints it above the bar.
func (p *progress) say(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found++
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprintln(p.w, line)
}

// end takes the bar away.
func (p *progress) end() {
	if p.quit == nil {
		return
	}
	close(p.quit)
	<-p.ended
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// runProgress is the progress of a list of runs.
type runProgress struct {
	*progress
	jobs  []store.Job
	over  map[string]bool // runs that are done, by the command that repeats them
	first int             // of the jobs, the first that is not done
}

// step counts a run.
func (p *runProgress) step(r reports.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.over[r.Repeat] = true
	if reports.Stand(r) != reports.AsExpected {
		p.found++
	}
}

// current is the first run that is not done.
func (p *runProgress) current() string {
	for p.first < len(p.jobs) && p.over[campaign.Repeat(p.jobs[p.first])] {
		p.first++
	}
	if p.first == len(p.jobs) {
		return ""
	}
	j := p.jobs[p.first]
	return reports.Printable(fmt.Sprintf("%s / %s on %s", j.Scenario, j.Lock, j.World))
}
