// Package sessions keeps the sessions of one client of a store whose locks
// belong to sessions, as etcd's and ZooKeeper's do. An acquisition has a session
// for itself, since such a store lets everybody in who has the session. One that
// ended without a doubt goes back and serves the next acquisition; one that did
// not is closed, and the store takes away what it left.
//
// It is no connection pool: it makes no more sessions than there are
// acquisitions at a time, and bounds nothing.
package sessions

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrClosed says that the lock was closed.
var ErrClosed = errors.New("the lock is closed")

// Pool is the sessions of one client. Its functions may be called by several
// goroutines.
type Pool[S any] struct {
	// Open makes a session. It ends when its context does.
	Open func(context.Context) (S, error)
	// Alive says whether a session has not been lost as far as is known here.
	Alive func(S) bool
	// Close ends a session, bounded in time.
	Close func(S)

	mu      sync.Mutex // orders running.Add before running.Wait
	idle    []S
	closed  bool
	running sync.WaitGroup

	_ struct{} // named fields only
}

// Take gives a session: one that served before, or a new one.
func (p *Pool[S]) Take(ctx context.Context) (s S, used bool, err error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		s, p.idle = p.idle[len(p.idle)-1], p.idle[:len(p.idle)-1]
		if p.Alive(s) {
			p.mu.Unlock()
			return s, true, nil
		}
		p.goLocked(func() { p.Close(s) })
	}
	p.mu.Unlock()
	s, err = p.Open(ctx)
	return s, false, err
}

// Back takes a session for the next acquisition. Nothing may be left in it.
func (p *Pool[S]) Back(s S) {
	p.mu.Lock()
	if !p.closed {
		p.idle = append(p.idle, s)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.Close(s)
}

// Drop closes a session behind its user's back, who need not wait for that.
func (p *Pool[S]) Drop(s S) { p.Go(func() { p.Close(s) }) }

// Go runs f on a goroutine that End waits for; after End it runs f at once.
func (p *Pool[S]) Go(f func()) {
	p.mu.Lock()
	started := p.goLocked(f)
	p.mu.Unlock()
	if !started {
		f()
	}
}

func (p *Pool[S]) goLocked(f func()) bool {
	if p.closed {
		return false
	}
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		f()
	}()
	return true
}

// Run runs f and waits for it, but no longer than ctx and then the grace, in
// which f is to clean up. Done says that f has ended. Otherwise it goes on
// alone, and then comes after.
func (p *Pool[S]) Run(ctx context.Context, grace time.Duration, f, after func()) (done bool) {
	ended := make(chan struct{})
	var mu sync.Mutex
	left := false // nobody waits any more
	p.Go(func() {
		f()
		mu.Lock()
		alone := left
		close(ended)
		mu.Unlock()
		if alone {
			after()
		}
	})
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case <-ended: // just now
		return true
	default:
	}
	left = true
	return false
}

// End closes the sessions that nobody uses and waits for everything that runs.
// What is not over after the patience is hastened.
func (p *Pool[S]) End(patience time.Duration, hasten func()) {
	p.mu.Lock()
	for _, s := range p.idle {
		p.goLocked(func() { p.Close(s) })
	}
	p.idle = nil
	p.closed = true
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() { // joined below
		p.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	hasten()
	<-ended
}
