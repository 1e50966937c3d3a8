package redsync_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/thirdparty/redsync"
)

const (
	ttl = 9 * time.Second
	key = "redsync:job"
)

func client(t *testing.T, build impl.New, nodes ...*redistest.Node) impl.Lock {
	t.Helper()
	lock, err := build(redistest.Env(ttl, nodes...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.(io.Closer).Close() })
	return lock
}

func extend(t *testing.T, lease impl.Lease) error {
	t.Helper()
	return lease.(impl.Extender).Extend(t.Context())
}

func TestLockExtendUnlock(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]impl.New{
		"quorum": redsync.New, "single": redsync.NewSingle, "fail fast": redsync.NewFailFast,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := redistest.Start(t, 5)
				a, b := client(t, build, nodes...), client(t, build, nodes...)
				lease := redistest.Acquire(t, a)
				usable := ttl - ttl/100
				if left := time.Until(lease.(impl.Validity).Until()); left != usable {
					t.Errorf("valid for %v, want %v", left, usable)
				}
				if _, err := b.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
					t.Errorf("second client: %v, want not obtained", err)
				}
				if err := extend(t, lease); err != nil {
					t.Errorf("extend: %v", err)
				}
				if left := time.Until(lease.(impl.Validity).Until()); left != usable {
					t.Errorf("valid for %v after the extend, want %v", left, usable)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
				// A newer lease of the same client is another acquisition.
				late := redistest.Acquire(t, a)
				time.Sleep(ttl)
				held := redistest.Acquire(t, a)
				if err := extend(t, late); !errors.Is(err, impl.ErrNotHeld) {
					t.Errorf("late extend: %v, want not held", err)
				}
				if err := late.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
					t.Errorf("late release: %v, want not held", err)
				}
				if err := held.Release(t.Context()); err != nil {
					t.Errorf("the next release: %v", err)
				}
			})
		})
	}
}

// What is definite depends on how many nodes say so.
func TestErrorsAreCountedByNodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name             string
		gone, silent     int // nodes that lost the key, nodes that refuse
		release, further error
	}{
		{"two of five have lost it", 2, 0, nil, nil},
		{"three of five have lost it", 3, 0, impl.ErrNotHeld, impl.ErrNotHeld},
		{"one has lost it and two are silent", 1, 2, impl.ErrUnknownOutcome, impl.ErrUnknownOutcome},
		{"three are silent", 0, 3, impl.ErrUnknownOutcome, impl.ErrUnknownOutcome},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := redistest.Start(t, 5)
				lease := redistest.Acquire(t, client(t, redsync.New, nodes...))
				for i, n := range nodes {
					switch {
					case i < tt.gone:
						n.FlushAll()
					case i >= 5-tt.silent:
						n.Refuse(true)
					}
				}
				if err := extend(t, lease); !errors.Is(err, tt.further) || tt.further == nil && err != nil {
					t.Errorf("extend: %v, want %v", err, tt.further)
				}
				if err := lease.Release(t.Context()); !errors.Is(err, tt.release) || tt.release == nil && err != nil {
					t.Errorf("release: %v, want %v", err, tt.release)
				}
			})
		})
	}
}

// A Lock that gives up because its ctx has ended does not say why: unknown.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, redsync.NewSingle, n), client(t, redsync.NewSingle, n)
		redistest.Acquire(t, a)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
			t.Errorf("got %v, want unknown", err)
		}
	})
}

// The clean-up of a failed Lock runs on the caller's context. A documented
// weakness: the vote that was won stays.
func TestCleanUpOnTheCallersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 3)
		lock := client(t, redsync.New, nodes...)
		nodes[1].BlackHole(true)
		nodes[2].BlackHole(true)
		ctx, cancel := context.WithTimeout(t.Context(), ttl/100)
		defer cancel()
		if _, err := lock.Acquire(ctx); !errors.Is(err, impl.ErrUnknownOutcome) {
			t.Errorf("got %v, want unknown", err)
		}
		if !nodes[0].Exists(key) {
			t.Error("the vote was given back")
		}
		nodes[1].BlackHole(false)
		nodes[2].BlackHole(false)
		time.Sleep(time.Minute) // dials in the background end
	})
}

// The option makes a key that is gone again, also when another client has had
// the lock in between. A documented weakness.
func TestSetNXOnExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.Start(t, 3)
		a, b := client(t, redsync.NewSetNXOnExtend, nodes...), client(t, redsync.New, nodes...)
		lease := redistest.Acquire(t, a)
		time.Sleep(ttl)
		held := redistest.Acquire(t, b)
		if err := extend(t, lease); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("while another holds it: %v, want not held", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := extend(t, lease); err != nil {
			t.Errorf("after another has held it: %v, want a yes", err)
		}
	})
}
