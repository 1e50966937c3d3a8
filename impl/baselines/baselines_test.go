// Package baselines_test holds the baselines to what their package comments say,
// on real servers that each test starts for itself.
package baselines_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
)

// Two clients contend: never two holders, and every grant has a larger fence
// than the one before, over more than twenty grants.
func TestExclusionAndFence(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		const rounds = 12
		var holders, grants atomic.Int32
		var last uint64 // guarded by the lock under test: the race detector would see it broken
		var clients sync.WaitGroup
		for _, name := range []string{"c1", "c2"} {
			lock, _ := s.client(t, name)
			clients.Go(func() {
				for range rounds {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					lease, err := lock.Acquire(ctx)
					cancel()
					if err != nil {
						t.Errorf("%s: acquire: %v", name, err)
						return
					}
					if n := holders.Add(1); n != 1 {
						t.Errorf("%s: %d holders", name, n)
					}
					if f, ok := lease.(impl.Fencer); ok != s.fence {
						t.Errorf("fence %v, want %v", ok, s.fence)
					} else if ok {
						if f.Fence() <= last {
							t.Errorf("%s: fence %d after %d", name, f.Fence(), last)
						}
						last = f.Fence()
					}
					grants.Add(1)
					time.Sleep(2 * time.Millisecond)
					holders.Add(-1)
					if err := release(t, lease); err != nil {
						t.Errorf("%s: release: %v", name, err)
						return
					}
				}
			})
		}
		clients.Wait()
		if n := grants.Load(); n != 2*rounds {
			t.Errorf("%d grants", n)
		}
	})
}

// The catalogue is right about what the leases can do.
func TestAbilities(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		lock, _ := s.client(t, "c1")
		lease := acquire(t, lock)
		_, fence := lease.(impl.Fencer)
		extender, extend := lease.(impl.Extender)
		_, until := lease.(impl.Validity)
		_, lost := lease.(impl.LossNotifier)
		entry, _ := catalogue.Find(s.name)
		for ability, has := range map[string]bool{
			catalogue.AbilityFence: fence, catalogue.AbilityExtend: extend, catalogue.AbilityUntil: until, catalogue.AbilityLost: lost,
		} {
			if slices.Contains(entry.Abilities, ability) != has {
				t.Errorf("%s: %v, the catalogue says %v", ability, has, entry.Abilities)
			}
		}
		if extend {
			time.Sleep(ttl * 3 / 4)
			if err := extender.Extend(t.Context()); err != nil {
				t.Errorf("extend: %v", err)
			}
			time.Sleep(ttl * 3 / 4)
		}
		if err := release(t, lease); err != nil {
			t.Errorf("release: %v", err)
		}
		if extend {
			if err := extender.Extend(t.Context()); !errors.Is(err, impl.ErrNotHeld) {
				t.Errorf("extend after the release: %v, want not held", err)
			}
		}
	})
}

// Two threads that share a lock object are two, not one.
func TestSharedObject(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		lock, _ := s.client(t, "c1")
		first := acquire(t, lock)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := lock.Acquire(ctx); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("second thread: %v, want not obtained", err)
		}
		if err := release(t, first); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// A holder whose lock was taken away behind its back does not hold it, and
// neither does one that has released.
func TestReleaseOfALostLease(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		lock, _ := s.client(t, "c1")
		lease := acquire(t, lock)
		s.steal(t, s)
		if err := release(t, lease); !errors.Is(err, impl.ErrNotHeld) && !(s.name == "postgres-advisory" && errors.Is(err, impl.ErrUnknownOutcome)) {
			t.Errorf("release of a stolen lock: %v, want not held", err)
		}
		again := acquire(t, lock)
		if err := release(t, again); err != nil {
			t.Errorf("release: %v", err)
		}
		if err := release(t, again); !errors.Is(err, impl.ErrNotHeld) {
			t.Errorf("second release: %v, want not held", err)
		}
		if l, ok := again.(impl.LossNotifier); ok {
			select {
			case <-l.Lost():
				t.Error("a loss after a clean release")
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
}

// A lease that ends by itself is not held after the TTL, and the next client
// gets the lock: the holder is cut off, and nothing it does arrives.
func TestLossNotice(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		holder, way := s.client(t, "c1")
		other, _ := s.client(t, "c2")
		lease := acquire(t, holder)
		time.Sleep(ttl) // renewed, where it is renewed at all
		if notifier, ok := lease.(impl.LossNotifier); ok != (s.lostWithin > 0) {
			t.Fatalf("loss notice %v", ok)
		} else if ok {
			select {
			case <-notifier.Lost():
				t.Fatal("lost without a reason")
			default:
			}
		}
		way.set(silent)
		cut := time.Now()
		granted := make(chan time.Time, 1)
		go func() { // ends with its context; read below
			ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
			defer cancel()
			if next, err := other.Acquire(ctx); err == nil {
				granted <- time.Now()
				_ = next.Release(ctx)
			}
			close(granted)
		}()
		var lost time.Time
		if notifier, ok := lease.(impl.LossNotifier); ok {
			select {
			case <-notifier.Lost():
				lost = time.Now()
				t.Logf("lost %v after the cut", lost.Sub(cut))
				if lost.Sub(cut) > s.lostWithin {
					t.Errorf("lost %v after the cut, want at most %v", lost.Sub(cut), s.lostWithin)
				}
			case <-time.After(s.lostWithin + 5*time.Second):
				t.Fatal("no loss notice")
			}
		}
		at, ok := <-granted
		switch {
		case ok != s.expires:
			t.Errorf("the next client was granted: %v, want %v", ok, s.expires)
		case ok:
			t.Logf("granted to the next %v after the cut", at.Sub(cut))
			if s.order && at.Before(lost) {
				t.Errorf("granted %v before the loss was told", lost.Sub(at))
			}
		}
		way.set(open)
		// ZooKeeper's client says that it has no server before it has tried again.
		if err := release(t, lease); !errors.Is(err, impl.ErrNotHeld) && !(s.name == "zookeeper" && errors.Is(err, impl.ErrUnknownOutcome)) {
			t.Errorf("late release: %v, want not held", err)
		}
	})
}

// Connections that are closed and may be made again cost no lease, but where the
// connection is the lease.
func TestReconnect(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		lock, way := s.client(t, "c1")
		lease := acquire(t, lock)
		way.set(refused)
		way.set(open)
		notifier, ok := lease.(impl.LossNotifier)
		if s.name == "postgres-advisory" {
			select {
			case <-notifier.Lost():
			case <-time.After(s.lostWithin):
				t.Error("no loss notice")
			}
			return
		}
		if ok {
			select {
			case <-notifier.Lost():
				t.Error("lost, though it could connect again")
			case <-time.After(2 * ttl):
			}
		}
		if err := release(t, lease); err != nil && ok {
			t.Errorf("release: %v", err)
		}
	})
}

// Whoever gives up waiting comes back in time, knows that it has nothing, and
// leaves nothing in the queue.
func TestDeadlineLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		holder, _ := s.client(t, "c1")
		waiter, _ := s.client(t, "c2")
		third, _ := s.client(t, "c3")
		lease := acquire(t, holder)
		const patience = 500 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		_, err := waiter.Acquire(ctx)
		if took := time.Since(began); took > patience+ttl/4+slack || took < patience/2 {
			t.Errorf("gave up after %v", took)
		}
		if !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("gave up with %v, want not obtained", err)
		}
		// A lease without renewal may be over by now; the third would wait for
		// nothing then, which is what this is about.
		if err := release(t, lease); err != nil {
			t.Errorf("release: %v", err)
		}
		began = time.Now()
		next := acquire(t, third)
		if took := time.Since(began); took > ttl/2 {
			t.Errorf("the next waited for %v", took)
		}
		if err := release(t, next); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// Without servers an acquire ends with its context and knows that nothing
// happened.
func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, m := range []mode{refused, silent} {
			lock, way := s.client(t, "c1")
			way.set(m)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			began := time.Now()
			_, err := lock.Acquire(ctx)
			cancel()
			if took := time.Since(began); took > 500*time.Millisecond+ttl/4+slack {
				t.Errorf("mode %d: back after %v", m, took)
			}
			if !errors.Is(err, impl.ErrUnreachable) {
				t.Errorf("mode %d: %v, want unreachable", m, err)
			}
		}
	})
}

// A release without an answer is an unknown outcome, the lock comes free within
// the TTL, and the same client's next grant has a larger fence: on the same
// session it would have found its old key.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		lock, way := s.client(t, "c1")
		lease := acquire(t, lock)
		way.set(silent)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := lease.Release(ctx); impl.Classify(err).Definite || err == nil {
			t.Errorf("release: %v, want an unknown outcome", err)
		}
		if !s.expires {
			return // the server keeps it: this client is cut off for good
		}
		time.Sleep(ttl / 4)
		way.set(open)
		began := time.Now()
		next := acquire(t, lock)
		t.Logf("the next grant %v later", time.Since(began))
		before, after := lease.(impl.Fencer).Fence(), next.(impl.Fencer).Fence()
		if after <= before {
			t.Errorf("fence %d after %d", after, before)
		}
		if err := release(t, next); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// A lock that is closed under its holder tells the holder, and the next client
// need not wait much longer than a lease.
func TestCloseUnderAHolder(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		lock, _ := s.client(t, "c1")
		lease := acquire(t, lock)
		if err := lock.(io.Closer).Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if notifier, ok := lease.(impl.LossNotifier); ok {
			select {
			case <-notifier.Lost():
			case <-time.After(time.Second):
				t.Error("no loss notice")
			}
		}
		other, _ := s.client(t, "c2")
		if err := release(t, acquire(t, other)); err != nil {
			t.Errorf("release: %v", err)
		}
	})
}

// One server of three is killed: a holder keeps its lease, and the next is
// granted all the same.
func TestOneServerLess(t *testing.T) {
	t.Parallel()
	for _, b := range baselines() {
		if b.name == "postgres" || b.name == "postgres-advisory" {
			continue // one server
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := &store{baseline: b, servers: b.start(t)}
			lock, _ := s.client(t, "c1")
			other, _ := s.client(t, "c2")
			lease := acquire(t, lock)
			s.servers[0].Kill()
			select {
			case <-lease.(impl.LossNotifier).Lost():
				t.Log("lost: an election took longer than the lease had left")
			case <-time.After(2 * ttl):
				if err := release(t, lease); err != nil {
					t.Errorf("release: %v", err)
				}
			}
			if err := release(t, acquire(t, other)); err != nil {
				t.Errorf("release: %v", err)
			}
		})
	}
}
