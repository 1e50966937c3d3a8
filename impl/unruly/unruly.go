// Package unruly has locks that misbehave in ways that no check of a history
// sees: they panic, exit, spin, or never come back. They show that the harness
// outlives a lock under test and says what it did. Nothing lists them; they are
// found by name.
//
// Each is package basic's lock until an acquire fails for another reason than
// that somebody else holds the lock: a bug in the handling of an error, as most
// are.
package unruly

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/basic"
)

// Unruly is one of the locks.
type Unruly struct {
	Name  string
	About string // one sentence without a full stop
	New   impl.New
}

// All returns the table of the locks.
func All() []Unruly {
	return []Unruly{
		{Name: "panics", About: "an acquire that fails panics", New: with(panics)},
		{Name: "panics-in-background", About: "an acquire that fails panics in a goroutine of its own",
			New: with(func(l *lock) { go panics(l) })},
		{Name: "exits", About: "an acquire that fails ends the process with log.Fatal", New: with(exits)},
		{Name: "spins", About: "an acquire that fails tries again for ever, and waits for nothing",
			New: with(func(l *lock) { l.spin() })},
		{Name: "spins-in-background", About: "an acquire that fails leaves a goroutine that never rests",
			New: with(func(l *lock) { go l.spin() })},
		{Name: "deadlocks", About: "an acquire that fails locks a mutex that it holds",
			New: with(func(l *lock) { l.mu.Lock(); l.mu.Lock() })},
		{Name: "waits-for-ever", About: "an acquire that fails waits for a message that nobody sends",
			New: with(func(l *lock) { <-l.never })},
	}
}

// panics does what a map does that was never made.
func panics(l *lock) { l.failures["acquire"]++ }

// exits does what a command-line tool does, and a library must not.
func exits(*lock) { log.Fatal("cannot get the lock") }

func with(misbehave func(*lock)) impl.New {
	return func(env impl.Env) (impl.Lock, error) {
		inner, err := basic.New(env)
		if err != nil {
			return nil, err
		}
		return &lock{Lock: inner, misbehave: misbehave, never: make(chan struct{})}, nil
	}
}

type lock struct {
	impl.Lock
	misbehave func(*lock)
	failures  map[string]int // never made
	never     chan struct{}
	mu        sync.Mutex
	spun      int
}

// Acquire is basic's, and what follows where that fails.
func (l *lock) Acquire(ctx context.Context) (impl.Lease, error) {
	lease, err := l.Lock.Acquire(ctx)
	if err != nil && !errors.Is(err, impl.ErrNotObtained) {
		l.misbehave(l)
	}
	return lease, err
}

func (l *lock) spin() {
	for l.spun >= 0 {
		l.mu.Lock()
		l.spun &= 0xff // never below 0
		l.spun++
		l.mu.Unlock()
	}
}

// Close closes what basic opened.
func (l *lock) Close() error { return l.Lock.(io.Closer).Close() }
