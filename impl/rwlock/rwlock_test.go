package rwlock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/rwlock"
)

const (
	ttl     = 1500 * time.Millisecond
	writer  = "rwlock:job"
	readers = "rwlock_readers:job"
)

type lock interface {
	impl.Lock
	impl.RWLock
}

func client(t *testing.T, m rwlock.Mistakes, n *redistest.Node) lock {
	t.Helper()
	l, err := rwlock.NewWith(redistest.Env(ttl, n), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.(io.Closer).Close() })
	return l.(lock)
}

type acquire func(context.Context) (impl.Lease, error)

func must(t *testing.T, a acquire) impl.Lease {
	t.Helper()
	lease, err := a(t.Context())
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

func refused(t *testing.T, a acquire) {
	t.Helper()
	if _, err := a(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
		t.Errorf("got %v, want not obtained", err)
	}
}

func release(t *testing.T, lease impl.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestReadersShareAndAWriterDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, rwlock.Mistakes{}, n), client(t, rwlock.Mistakes{}, n)
		r1, r2 := must(t, a.AcquireRead), must(t, b.AcquireRead)
		refused(t, a.AcquireWrite)
		if n.Exists(writer) {
			t.Error("the refused writer left its key")
		}
		release(t, r1)
		refused(t, a.AcquireWrite)
		release(t, r2)
		w := must(t, a.Acquire) // as a mutex
		if got := n.TTL(writer); got != ttl {
			t.Errorf("TTL %v, want %v", got, ttl)
		}
		refused(t, b.AcquireRead)
		refused(t, b.AcquireWrite)
		release(t, w)
		if err := w.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("second release: %v, want not held", err)
		}
		if err := r1.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("release without readers: %v, want not held", err)
		}
		if keys := n.Keys(); len(keys) > 0 {
			t.Errorf("keys %v are left", keys)
		}
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, rwlock.Mistakes{}, n), client(t, rwlock.Mistakes{}, n)
		r := must(t, a.AcquireRead)
		time.Sleep(ttl)
		w := must(t, b.AcquireWrite)
		if err := r.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("late read release: %v, want not held", err)
		}
		time.Sleep(ttl)
		next := must(t, a.AcquireWrite)
		if err := w.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("late write release: %v, want not held", err)
		}
		release(t, next)
	})
}

// A reader whose lease has ended takes away another's count, and a writer
// enters beside that other. A documented weakness.
func TestReadersHaveNoNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, rwlock.Mistakes{}, n), client(t, rwlock.Mistakes{}, n)
		late := must(t, a.AcquireRead)
		time.Sleep(ttl)
		reads := must(t, b.AcquireRead)
		release(t, late) // says yes
		w := must(t, a.AcquireWrite)
		if err := reads.Release(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("the reader that was robbed: %v, want not held", err)
		}
		release(t, w)
	})
}

// The count of a reader that crashed lives as long as others come, and no
// writer enters. A documented weakness.
func TestOneTTLForAllReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a, b := client(t, rwlock.Mistakes{}, n), client(t, rwlock.Mistakes{}, n)
		must(t, a.AcquireRead) // and crashes
		for range 20 {
			time.Sleep(ttl / 2)
			release(t, must(t, b.AcquireRead))
			refused(t, b.AcquireWrite)
		}
	})
}

// A writer that is paused between its two steps finds no readers and does not
// see that another writer is inside. A documented weakness.
func TestTheWritersSecondStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		link := n.Link()
		slow, b := client(t, rwlock.Mistakes{}, link), client(t, rwlock.Mistakes{}, n)
		release(t, must(t, slow.AcquireWrite)) // the connection is made now
		link.Delay(ttl)
		done := make(chan error)
		go func() {
			_, err := slow.AcquireWrite(t.Context())
			done <- err
		}()
		time.Sleep(ttl + time.Millisecond)
		must(t, b.AcquireWrite)
		if err := <-done; err != nil {
			t.Errorf("got %v, want a second writer", err)
		}
	})
}

func TestWriterThatCannotLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		a := client(t, rwlock.Mistakes{}, n)
		if err := n.Set(readers, "not a hash, but it exists"); err != nil {
			t.Fatal(err)
		}
		refused(t, a.AcquireWrite)
		if _, err := a.AcquireRead(t.Context()); !errors.Is(err, impl.ErrScript) {
			t.Errorf("read: %v, want a script error", err)
		}
		n.SetError("OOM command not allowed")
		if _, err := a.AcquireWrite(t.Context()); !errors.Is(err, impl.ErrOOM) {
			t.Errorf("write: %v, want OOM", err)
		}
	})
}

// With the mistake the TTL is the first reader's, and a writer enters beside a
// later one.
func TestFirstReadersTTL(t *testing.T) {
	t.Parallel()
	for _, wrong := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			m := rwlock.Mistakes{FirstReadersTTL: wrong}
			a, b := client(t, m, n), client(t, m, n)
			must(t, a.AcquireRead)
			time.Sleep(ttl / 2)
			must(t, b.AcquireRead)
			time.Sleep(ttl / 2)
			if _, err := a.AcquireWrite(t.Context()); wrong != (err == nil) {
				t.Errorf("mistake %v: a writer beside the second reader gets %v", wrong, err)
			}
		})
	}
}
