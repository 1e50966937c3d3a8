package holdfast

import (
	"context"
	"io"
	"sync"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
)

// probe finds out in a calm run what a lock and its leases can do.
type probe struct {
	mu        sync.Mutex
	err       error // of the constructor
	granted   bool
	refused   string
	abilities []string
	kind      catalogue.Kind
	permits   int
}

// wrap puts the probe between the harness and the locks that are built.
func (p *probe) wrap(build func(Env) (Lock, error)) impl.New {
	return func(env Env) (Lock, error) {
		lock, err := build(env)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil {
			p.err = err
			return nil, err
		}
		switch l := lock.(type) {
		case impl.RWLock:
			p.kind = catalogue.RW
		case impl.Semaphore:
			p.kind, p.permits = catalogue.Semaphore, l.Permits()
		}
		return &probed{lock: lock, probe: p}, nil
	}
}

// probed is a lock whose leases are looked at.
type probed struct {
	lock  Lock
	probe *probe
}

func (l *probed) Acquire(ctx context.Context) (Lease, error) {
	lease, err := l.lock.Acquire(ctx)
	p := l.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.refused = err.Error()
	case !p.granted:
		p.granted, p.abilities = true, abilities(lease)
	}
	return lease, err
}

func (l *probed) Close() error {
	if c, ok := l.lock.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// abilities are the methods that a lease has beyond Release.
func abilities(l Lease) []string {
	var all []string
	if _, ok := l.(impl.Fencer); ok {
		all = append(all, catalogue.AbilityFence)
	}
	if _, ok := l.(impl.Extender); ok {
		all = append(all, catalogue.AbilityExtend)
	}
	if _, ok := l.(impl.Validity); ok {
		all = append(all, catalogue.AbilityUntil)
	}
	if _, ok := l.(impl.LossNotifier); ok {
		all = append(all, catalogue.AbilityLost)
	}
	return all
}
