package sim

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

func TestStrikes(t *testing.T) {
	const late = time.Second
	for _, c := range []struct {
		deed  cluster.Deed
		err   error  // of the struck SET
		at    string // what the key holds right after
		later string // and when everything has arrived
	}{
		{deed: cluster.LoseRequest, err: io.EOF, at: "1", later: "1"},
		{deed: cluster.LoseReply, err: io.EOF, at: "2", later: "2"},
		{deed: cluster.DelayRequest, err: os.ErrDeadlineExceeded, at: "1", later: "2"},
		{deed: cluster.DelayReply, err: os.ErrDeadlineExceeded, at: "2", later: "2"},
	} {
		t.Run(string(c.deed), func(t *testing.T) {
			play(t, single(1), func(s stage) {
				rdb := s.redis("c1", "n1")
				defer rdb.Close()
				s.ok("first", rdb.Set(s.ctx, "k", "1", 0).Err())
				blow := cluster.Blow{Client: "c1", Node: "n1", Command: "set", Nth: 1, Deed: c.deed}
				if c.deed == cluster.DelayRequest || c.deed == cluster.DelayReply {
					blow.By = late
				}
				s.ok("strike", s.Strike(s.ctx, blow))
				s.ok("another command", rdb.Get(s.ctx, "k").Err())
				if err := rdb.Set(s.ctx, "k", "2", 0).Err(); !errors.Is(err, c.err) {
					t.Errorf("the struck SET: %v, want %v", err, c.err)
				}
				s.holds("n1", "k", c.at)
				time.Sleep(2 * late)
				s.holds("n1", "k", c.later)
				s.ok("the next one", rdb.Set(s.ctx, "k", "3", 0).Err())
				s.holds("n1", "k", "3")
			})
		})
	}
}

// TestDelayedRequestHoldsUpItsConnectionOnly: what comes in behind it waits
// and is executed after it; other connections are served meanwhile.
func TestDelayedRequestHoldsUpItsConnectionOnly(t *testing.T) {
	play(t, single(2), func(s stage) {
		rdb, other := s.redis("c1", "n1"), s.redis("c2", "n1")
		defer rdb.Close()
		defer other.Close()
		s.ok("strike", s.Strike(s.ctx, cluster.Blow{
			Client: "c1", Node: "n1", Command: "APPEND", Nth: 1, Deed: cluster.DelayRequest, By: 200 * time.Millisecond,
		}))
		pipe := rdb.Pipeline()
		pipe.Append(s.ctx, "k", "a")
		pipe.Append(s.ctx, "k", "b")
		done := make(chan error)
		go func() {
			_, err := pipe.Exec(s.ctx)
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		s.ok("the other connection", other.Append(s.ctx, "k", "c").Err())
		s.ok("the pipeline", <-done)
		s.holds("n1", "k", "cab")
	})
}

func TestStrikesThatMakeNoSense(t *testing.T) {
	play(t, single(1), func(s stage) {
		s.refused("no such deed", s.Strike(s.ctx, cluster.Blow{Client: "c1", Node: "n1", Deed: "eat"}))
		s.refused("no such link", s.Strike(s.ctx, cluster.Blow{Client: "c1", Node: "n9", Deed: cluster.LoseReply}))
		s.refused("a delay of nothing", s.Strike(s.ctx, cluster.Blow{Client: "c1", Node: "n1", Deed: cluster.DelayReply}))
	})
}

func TestCancelCall(t *testing.T) {
	play(t, single(1), func(s stage) {
		s.refused("nobody", s.CancelCall(s.ctx, "c9"))
		s.refused("no call", s.CancelCall(s.ctx, "c1"))
		called := 0
		s.OnCancel("c1", func() { called++ })
		s.ok("cancel", s.CancelCall(s.ctx, "c1"))
		if called != 1 {
			t.Errorf("cancelled %d times", called)
		}
	})
}
