package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// exploreBar shows on a terminal how far an exploration has come, and prints
// news above the bar. In a pipe there is no bar, only the news.
type exploreBar struct {
	w     io.Writer
	lock  string
	bar   bool
	began time.Time
	quit  chan struct{} // nil where there is no bar
	ended chan struct{}

	mu    sync.Mutex
	total int
	done  int
	found int
	shown bool
}

func newExploreBar(w io.Writer, lock string, quiet bool) *exploreBar {
	f, ok := w.(*os.File)
	b := &exploreBar{w: w, lock: lock, began: time.Now(), bar: ok && !quiet && term.IsTerminal(int(f.Fd()))}
	if b.bar {
		b.quit, b.ended = make(chan struct{}), make(chan struct{})
		go b.tick() // ends with end
	}
	return b
}

func (b *exploreBar) tick() {
	defer close(b.ended)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			b.mu.Lock()
			b.shown = true
			line := []rune(b.line(now.Sub(b.began)))
			fmt.Fprintf(b.w, "\r%s\x1b[K", string(line[:min(len(line), b.columns()-1)]))
			b.mu.Unlock()
		case <-b.quit:
			return
		}
	}
}

func (b *exploreBar) columns() int {
	if f, ok := b.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			return width
		}
	}
	return 80
}

// line is the progress in words.
func (b *exploreBar) line(spent time.Duration) string {
	if b.done == 0 || b.total == 0 {
		return fmt.Sprintf("exploring %s, %v", b.lock, spent.Round(time.Second))
	}
	filled := min(barWidth*b.done/b.total, barWidth)
	rate := float64(b.done) / max(spent.Seconds(), 0.001)
	left := time.Duration(float64(b.total-b.done) / rate * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("[%s%s] %d of %d runs, %.0f a second, %v left, %s found",
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), b.done, b.total, rate, left, count(b.found, "cause"))
}

func (b *exploreBar) planned(total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = total
}

func (b *exploreBar) step() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
}

// say prints news above the bar.
func (b *exploreBar) say(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found++
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	fmt.Fprintln(b.w, line)
}

// end takes the bar away.
func (b *exploreBar) end() {
	if b.quit == nil {
		return
	}
	close(b.quit)
	<-b.ended
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
