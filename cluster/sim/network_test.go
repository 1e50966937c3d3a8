package sim

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

var up, down = cluster.Link{From: "c1", To: "n1"}, cluster.Link{From: "n1", To: "c1"}

func TestPausedClientStandsStill(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("delay", s.Delay(s.ctx, down, 100*time.Millisecond))
		done := make(chan error)
		began := time.Now()
		go func() { done <- rdb.Set(s.ctx, "k", "v", 0).Err() }()
		time.Sleep(10 * time.Millisecond) // the request is on its way, the reply is not here
		s.ok("pause", s.PauseClient(s.ctx, "c1"))
		s.refused("second pause", s.PauseClient(s.ctx, "c1"))
		time.Sleep(5 * time.Second) // its read time-out of 300 ms passes
		select {
		case err := <-done:
			t.Errorf("a paused client went on: %v", err)
		default:
		}
		s.ok("resume", s.ResumeClient(s.ctx, "c1"))
		// Data that has arrived wins over the deadline that passed meanwhile.
		s.ok("SET over the pause", <-done)
		s.took("SET", began, 5*time.Second, 5*time.Second+100*time.Millisecond)
	})
}

func TestPausedClientTimesOutAfterItsPause(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("cut", s.Cut(s.ctx, down, cluster.Drop))
		done := make(chan error)
		began := time.Now()
		go func() { done <- rdb.Set(s.ctx, "k", "v", 0).Err() }()
		time.Sleep(10 * time.Millisecond)
		s.ok("pause", s.PauseClient(s.ctx, "c1"))
		time.AfterFunc(2*time.Second, func() { s.ok("resume", s.ResumeClient(s.ctx, "c1")) })
		if err := <-done; !timedOut(err) {
			t.Errorf("no data, and the deadline has passed: %v", err)
		}
		s.took("SET", began, 2*time.Second, 2*time.Second+100*time.Millisecond)
	})
}

func TestPausedClientNeitherWritesNorDials(t *testing.T) {
	play(t, single(1), func(s stage) {
		conn, err := s.dial(s.ctx, s.clients["c1"], "n1")
		if err != nil {
			t.Error(err)
			return
		}
		s.ok("pause", s.PauseClient(s.ctx, "c1"))
		done := make(chan string, 3)
		for i, f := range []func(){
			func() { _, _ = conn.Write([]byte("PING")); done <- "write" },
			func() { _, _ = s.dial(s.ctx, s.clients["c1"], "n1"); done <- "dial" },
			func() { s.Step("c1"); done <- "step" },
		} {
			time.Sleep(time.Duration(i) * time.Millisecond)
			go f()
		}
		time.Sleep(time.Second)
		if n := len(done); n != 0 {
			t.Errorf("a paused client did %d things", n)
		}
		s.ok("resume", s.ResumeClient(s.ctx, "c1"))
		order := []string{<-done, <-done, <-done}
		// In the order in which they came, apart from the dial's round trip.
		if !slices.Equal(order, []string{"write", "step", "dial"}) {
			t.Errorf("went on in the order %v", order)
		}
	})
}

func TestCutsDropOneDirection(t *testing.T) {
	for _, c := range []struct {
		name string
		link cluster.Link
		left string
	}{{"up", up, ""}, {"down", down, "v"}} {
		t.Run(c.name, func(t *testing.T) {
			play(t, single(1), func(s stage) {
				rdb := s.redis("c1", "n1")
				defer rdb.Close()
				s.ok("cut", s.Cut(s.ctx, c.link, cluster.Drop))
				began := time.Now()
				if err := rdb.Set(s.ctx, "k", "v", 0).Err(); !timedOut(err) {
					t.Errorf("SET over a cut link: %v", err)
				}
				s.took("SET", began, 300*time.Millisecond, 310*time.Millisecond)
				s.holds("n1", "k", c.left)
				ctx, cancel := context.WithTimeout(s.ctx, time.Second)
				defer cancel()
				if _, err := s.dial(ctx, s.clients["c1"], "n1"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("dial over a cut link: %v", err)
				}
				s.ok("mend", s.Mend(s.ctx, c.link))
				s.ok("SET after healing", rdb.Set(s.ctx, "k", "w", 0).Err())
				s.holds("n1", "k", "w")
			})
		})
	}
}

func TestMendResetsConnectionsWithHoles(t *testing.T) {
	play(t, single(1), func(s stage) {
		conn, err := s.dial(s.ctx, s.clients["c1"], "n1")
		s.ok("dial", err)
		s.ok("cut", s.Cut(s.ctx, up, cluster.Drop))
		_, err = conn.Write(encode([]string{"SET", "k", "v"}))
		s.ok("write into the hole", err)
		s.ok("mend", s.Mend(s.ctx, up))
		if _, err := conn.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read after the hole: %v", err)
		}
		s.holds("n1", "k", "")
	})
}

// A node off the network is silent to everybody, and neither verb touches what
// the other has done to a link.
func TestDisconnectAndReconnect(t *testing.T) {
	play(t, Config{Topology: cluster.Independent, Nodes: 2, Clients: 2, Seed: 1}, func(s stage) {
		one, two, other := s.redis("c1", "n1"), s.redis("c2", "n1"), s.redis("c1", "n2")
		defer one.Close()
		defer two.Close()
		defer other.Close()
		s.ok("cut before", s.Cut(s.ctx, up, cluster.Drop))
		s.ok("disconnect", s.Disconnect(s.ctx, "n1"))
		s.refused("second disconnect", s.Disconnect(s.ctx, "n1"))
		s.ok("mend meanwhile", s.Mend(s.ctx, up))
		if err := one.Set(s.ctx, "k", "v", 0).Err(); !timedOut(err) {
			t.Errorf("mended, but the node is off the network: %v", err)
		}
		if err := two.Set(s.ctx, "k", "v", 0).Err(); !timedOut(err) {
			t.Errorf("a node off the network says %v", err)
		}
		s.ok("another node", other.Set(s.ctx, "k", "v", 0).Err())
		s.ok("cut meanwhile", s.Cut(s.ctx, cluster.Link{From: "c2", To: "n1"}, cluster.Drop))
		s.ok("reconnect", s.Reconnect(s.ctx, "n1"))
		s.ok("second reconnect", s.Reconnect(s.ctx, "n1"))
		s.holds("n1", "k", "")
		s.ok("SET when it is back", one.Set(s.ctx, "k", "v", 0).Err())
		if err := two.Get(s.ctx, "k").Err(); !timedOut(err) {
			t.Errorf("the node is back, but the link is cut: %v", err)
		}
	})
}

func TestResetRefusesAtOnce(t *testing.T) {
	play(t, single(1), func(s stage) {
		conn, err := s.dial(s.ctx, s.clients["c1"], "n1")
		s.ok("dial", err)
		began := time.Now()
		s.ok("cut", s.Cut(s.ctx, up, cluster.Reset))
		if _, err := conn.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read after a reset: %v", err)
		}
		if _, err := s.dial(s.ctx, s.clients["c1"], "n1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
		s.took("both", began, 0, 2*time.Millisecond)
		s.ok("mend", s.Mend(s.ctx, up))
		_, err = s.dial(s.ctx, s.clients["c1"], "n1")
		s.ok("dial after healing", err)
	})
}

func TestDelayedRequestArrivesAfterHealing(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.refused("negative delay", s.Delay(s.ctx, up, -1))
		s.ok("delay", s.Delay(s.ctx, up, 5*time.Second))
		if err := rdb.Set(s.ctx, "k", "late", 0).Err(); !timedOut(err) {
			t.Errorf("SET over a slow link: %v", err)
		}
		s.ok("heal", s.Delay(s.ctx, up, 0))
		s.ok("a fast SET", rdb.Set(s.ctx, "k", "early", 0).Err())
		s.holds("n1", "k", "early")
		time.Sleep(5 * time.Second)
		s.holds("n1", "k", "late")
	})
}

func TestLostReplyIsTheNthOfItsName(t *testing.T) {
	play(t, single(2), func(s stage) {
		rdb, other := s.redis("c1", "n1"), s.redis("c2", "n1")
		defer rdb.Close()
		defer other.Close()
		s.ok("lose", s.LoseReply(s.ctx, "c1", "n1", "SET", 2))
		s.ok("first", rdb.Set(s.ctx, "k", "1", 0).Err())
		s.ok("another command", rdb.Get(s.ctx, "k").Err())
		s.ok("another client", other.Set(s.ctx, "k", "x", 0).Err())
		began := time.Now()
		if err := rdb.Set(s.ctx, "k", "2", 0).Err(); !errors.Is(err, io.EOF) {
			t.Errorf("the lost reply: %v", err)
		}
		s.took("the lost reply", began, 0, 2*time.Millisecond)
		s.holds("n1", "k", "2")
		s.ok("third", rdb.Set(s.ctx, "k", "3", 0).Err())
	})
}

func TestCrashedClientReachesNobody(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		done := make(chan error)
		s.ok("crash", s.CrashClient(s.ctx, "c1"))
		go func() { done <- rdb.Set(s.ctx, "k", "v", 0).Err() }()
		time.Sleep(time.Second)
		s.ok("resume of the dead", s.ResumeClient(s.ctx, "c1"))
		time.Sleep(time.Second)
		select {
		case err := <-done:
			t.Errorf("a dead client went on: %v", err)
		default:
		}
		s.holds("n1", "k", "")
		s.ok("close", s.Close()) // lets it run to its end
		s.refused("SET of the dead", <-done)
		_ = rdb.Close()
	})
}

func TestUnknownNamesAreErrors(t *testing.T) {
	play(t, single(1), func(s stage) {
		bad := cluster.Link{From: "c1", To: "n9"}
		for what, err := range map[string]error{
			"PauseClient": s.PauseClient(s.ctx, "c9"), "ResumeClient": s.ResumeClient(s.ctx, "c9"), "CrashClient": s.CrashClient(s.ctx, "c9"),
			"Cut": s.Cut(s.ctx, bad, cluster.Drop), "Mend": s.Mend(s.ctx, bad), "Delay": s.Delay(s.ctx, bad, 1),
			"LoseReply": s.LoseReply(s.ctx, "c1", "n9", "", 1), "JumpClock": s.JumpClock(s.ctx, "n9", 1), "RateClock": s.RateClock(s.ctx, "n9", 1),
			"RateClock 0": s.RateClock(s.ctx, "n1", 0), "ResetClock": s.ResetClock(s.ctx, "n9"), "Kill": s.Kill(s.ctx, "n9"),
			"Restart": s.Restart(s.ctx, "n9", cluster.Keep), "Restart of a running node": s.Restart(s.ctx, "n1", cluster.Keep),
			"Stall": s.Stall(s.ctx, "n9"), "Unstall": s.Unstall(s.ctx, "n9"), "Flush": s.Flush(s.ctx, "n9", false),
			"ErrorReply": s.ErrorReply(s.ctx, "n9", "x"), "Promote": s.Promote(s.ctx, "n9"), "Promote in single": s.Promote(s.ctx, "n1"),
		} {
			s.refused(what, err)
		}
		_, err := s.dial(s.ctx, s.clients["c1"], "n9")
		s.refused("dial", err)
	})
}
