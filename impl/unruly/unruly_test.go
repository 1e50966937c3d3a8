package unruly_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl/internal/redistest"
	"github.com/holdfast-io/holdfast/impl/unruly"
)

// In peace they are locks like any other, and a failed acquire panics where
// the name says so.
func TestRulyInPeace(t *testing.T) {
	t.Parallel()
	for _, u := range unruly.All() {
		synctest.Test(t, func(t *testing.T) {
			n := redistest.Start(t, 1)[0]
			l, err := u.New(redistest.Env(time.Second, n))
			if err != nil {
				t.Fatal(err)
			}
			defer l.(io.Closer).Close()
			if err := redistest.Acquire(t, l).Release(t.Context()); err != nil {
				t.Errorf("%s: %v", u.Name, err)
			}
			if u.Name != "panics" {
				return // the others would take this test with them
			}
			n.SetError("OOM command not allowed")
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not", u.Name)
				}
			}()
			_, err = l.Acquire(t.Context())
			t.Errorf("acquire: %v", err)
		})
	}
}
