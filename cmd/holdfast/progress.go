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

// progress shows on a terminal how far long work has come: a bar, what is
// being played, the time so far and the time left, and what was found. In a
// pipe, or for short work, it is silent.
type progress struct {
	w     io.Writer
	jobs  []store.Job
	began time.Time
	quit  chan struct{} // nil when it is silent
	ended chan struct{}

	mu       sync.Mutex
	over     map[string]bool // runs that are done, by the command that repeats them
	first    int             // of the jobs, the first that is not done
	done     int
	surprise int
	shown    bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
	barWidth      = 24
)

func newProgress(w io.Writer, jobs []store.Job, quiet bool) *progress {
	f, ok := w.(*os.File)
	on := ok && !quiet && term.IsTerminal(int(f.Fd()))
	return startProgress(w, jobs, on)
}

func startProgress(w io.Writer, jobs []store.Job, on bool) *progress {
	p := &progress{w: w, jobs: jobs, began: time.Now(), over: map[string]bool{}}
	if !on {
		return p
	}
	p.quit, p.ended = make(chan struct{}), make(chan struct{})
	go p.tick() // ends with end
	return p
}

// tick draws by the clock and not by finished runs, since a single run on real
// servers takes seconds.
func (p *progress) tick() {
	defer close(p.ended)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if now.Sub(p.began) >= progressAfter {
				p.draw(now)
			}
		case <-p.quit:
			return
		}
	}
}

// step counts a run.
func (p *progress) step(r reports.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.over[r.Repeat] = true
	if reports.Stand(r) != reports.AsExpected {
		p.surprise++
	}
}

func (p *progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	spent := now.Sub(p.began)
	line := []rune(p.line(spent))
	// A line that wraps cannot be taken back.
	fmt.Fprintf(p.w, "\r%s\x1b[K", string(line[:min(len(line), p.columns()-1)]))
}

func (p *progress) columns() int {
	if f, ok := p.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			return width
		}
	}
	return 80
}

// line is the progress in words.
func (p *progress) line(spent time.Duration) string {
	total := len(p.jobs)
	playing := ""
	for p.first < total && p.over[campaign.Repeat(p.jobs[p.first])] {
		p.first++
	}
	if p.first < total {
		j := p.jobs[p.first]
		playing = fmt.Sprintf("%s / %s on %s", j.Scenario, j.Lock, j.World)
	}
	if total == 1 {
		return fmt.Sprintf("%s, %v", playing, spent.Round(time.Second))
	}
	filled := barWidth * p.done / total
	bar := strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled)
	if p.done == 0 {
		return fmt.Sprintf("[%s] 0 of %d runs, %v, %s", bar, total, spent.Round(time.Second), playing)
	}
	left := time.Duration(float64(spent) / float64(p.done) * float64(total-p.done)).Round(time.Second)
	return fmt.Sprintf("[%s] %d of %d runs, %v left, %d not as expected, %s", bar, p.done, total, left, p.surprise, playing)
}

// end takes the line away.
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
