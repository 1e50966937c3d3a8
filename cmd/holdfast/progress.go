package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-io/holdfast/reports"
)

// progress shows on a terminal how far long work has come: a bar, the rate,
// the time left and what was found. In a pipe, or for short work, it is silent.
type progress struct {
	w        io.Writer
	total    int
	done     int
	surprise int
	began    time.Time
	shown    time.Time
	on       bool
}

const (
	progressAfter = time.Second
	progressEvery = 100 * time.Millisecond
	barWidth      = 24
)

func newProgress(w io.Writer, total int, quiet bool) *progress {
	f, ok := w.(*os.File)
	return &progress{
		w: w, total: total, began: time.Now(),
		on: ok && !quiet && total > 1 && term.IsTerminal(int(f.Fd())),
	}
}

// step counts a run.
func (p *progress) step(r reports.Run) {
	p.done++
	if reports.Stand(r) != reports.AsExpected {
		p.surprise++
	}
	now := time.Now()
	if !p.on || now.Sub(p.began) < progressAfter || now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	rate := float64(p.done) / now.Sub(p.began).Seconds()
	left := time.Duration(float64(p.total-p.done) / rate * float64(time.Second)).Round(time.Second)
	filled := barWidth * p.done / p.total
	fmt.Fprintf(p.w, "\r[%s%s] %d of %d runs, %.0f a second, %v left, %d not as expected \x1b[K",
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), p.done, p.total, rate, left, p.surprise)
}

// end takes the bar away.
func (p *progress) end() {
	if p.on && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
