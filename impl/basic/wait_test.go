package basic_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
)

// Without a replica a grant is taken back, and a lock that somebody holds is
// refused as such. That a replica's word lets it through is tested on real
// servers.
func TestNoReplicaNoGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := redistest.Start(t, 1)[0]
		waiting, plain := client(t, basic.NewWaiting, n), client(t, basic.New, n)
		if _, err := waiting.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("got %v, want not obtained", err)
		}
		if n.Exists("lock:job") {
			t.Error("the grant was not taken back")
		}
		held := redistest.Acquire(t, plain)
		if _, err := waiting.Acquire(t.Context()); !errors.Is(err, impl.ErrNotObtained) {
			t.Errorf("got %v, want not obtained", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the refused one took it away: %v", err)
		}
	})
}
