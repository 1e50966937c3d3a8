package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
)

func TestClockJumpsAndRates(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		pttl := func() time.Duration { return rdb.PTTL(s.ctx, "lock").Val().Round(100 * time.Millisecond) }
		set := func() { s.ok("SET", rdb.Set(s.ctx, "lock", "v", 10*time.Second).Err()) }
		set()
		s.ok("jump", s.JumpClock(s.ctx, "n1", -5*time.Second))
		if d := pttl(); d != 15*time.Second {
			t.Errorf("a jump back prolongs: %v", d)
		}
		s.ok("jump", s.JumpClock(s.ctx, "n1", 16*time.Second))
		s.holds("n1", "lock", "") // at once, with nobody asking
		set()
		s.ok("rate", s.RateClock(s.ctx, "n1", 2))
		time.Sleep(2 * time.Second)
		if d := pttl(); d != 6*time.Second {
			t.Errorf("a fast clock shortens: %v", d)
		}
		time.Sleep(2990 * time.Millisecond)
		s.holds("n1", "lock", "v")
		time.Sleep(10 * time.Millisecond)
		s.holds("n1", "lock", "")
		s.ok("reset", s.ResetClock(s.ctx, "n1"))
		set()
		time.Sleep(9990 * time.Millisecond)
		s.holds("n1", "lock", "v")
		time.Sleep(20 * time.Millisecond)
		s.holds("n1", "lock", "")
	})
}

func TestRestartKeepsLosesOrHasTheLastFsync(t *testing.T) {
	for data, want := range map[cluster.Data][2]string{
		cluster.Keep: {"v", "w"}, cluster.Lose: {"", ""}, cluster.Fsynced: {"v", ""},
	} {
		t.Run(string(data), func(t *testing.T) {
			play(t, Config{Topology: cluster.Single, Nodes: 1, Clients: 1, Fsync: true}, func(s stage) {
				rdb := s.redis("c1", "n1")
				defer rdb.Close()
				s.ok("load", rdb.ScriptLoad(s.ctx, "return 1").Err())
				s.ok("old", rdb.Set(s.ctx, "lock:old", "v", 0).Err())
				time.Sleep(1500 * time.Millisecond) // a full second has passed since
				s.ok("young", rdb.Set(s.ctx, "lock:young", "w", 0).Err())
				s.ok("kill", s.Kill(s.ctx, "n1"))
				s.refused("second kill", s.Kill(s.ctx, "n1"))
				s.refused("SET to the dead", rdb.Set(s.ctx, "k", "v", 0).Err())
				s.ok("restart", s.Restart(s.ctx, "n1", data))
				s.holds("n1", "lock:old", want[0])
				s.holds("n1", "lock:young", want[1])
				if err := rdb.EvalSha(s.ctx, sha("return 1"), nil).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT") {
					t.Errorf("the script cache is still there: %v", err)
				}
				lost := 0
				for _, ev := range *s.events {
					if ev.Cmd == "lost" {
						lost++
					}
				}
				if want := strings.Count(want[0]+"|"+want[1], "") - 1; lost != 3-want {
					t.Errorf("%d keys reported lost, trace %q", lost, s.trace())
				}
			})
		})
	}
}

// TestOldDataIsOverdue: a key that the disk had, and another had taken its place
// since, comes back when its time is up already.
func TestOldDataIsOverdue(t *testing.T) {
	play(t, Config{Topology: cluster.Single, Nodes: 1, Clients: 1, Fsync: true}, func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("old", rdb.Set(s.ctx, "lock", "v", 2*time.Second).Err())
		time.Sleep(1500 * time.Millisecond) // a full second has passed since
		s.ok("young", rdb.Set(s.ctx, "lock", "w", 0).Err())
		s.ok("kill", s.Kill(s.ctx, "n1"))
		time.Sleep(5 * time.Second)
		s.ok("restart", s.Restart(s.ctx, "n1", cluster.Fsynced))
		s.holds("n1", "lock", "")
		for _, ev := range *s.events {
			if ev.PTTL < -2 {
				t.Errorf("a key with a PTTL of %d ms: %+v", ev.PTTL, ev)
			}
		}
	})
}

// TestOldDataComesBack: a key that was deleted after the last fsync is there
// again, and the trace says so.
func TestOldDataComesBack(t *testing.T) {
	play(t, Config{Topology: cluster.Single, Nodes: 1, Clients: 1, Fsync: true}, func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", time.Minute).Err())
		time.Sleep(1500 * time.Millisecond) // a full second has passed since
		s.ok("DEL", rdb.Del(s.ctx, "lock").Err())
		s.ok("kill", s.Kill(s.ctx, "n1"))
		s.ok("restart", s.Restart(s.ctx, "n1", cluster.Fsynced))
		s.holds("n1", "lock", "v")
		last := (*s.events)[len(*s.events)-1]
		if last.Cmd != history.Lostkeys || last.Owner != "c1#1" {
			t.Errorf("trace %q", s.trace())
		}
	})
}

func TestFsyncNeedsDisks(t *testing.T) {
	play(t, single(1), func(s stage) {
		s.ok("kill", s.Kill(s.ctx, "n1"))
		s.refused("restart", s.Restart(s.ctx, "n1", cluster.Fsynced))
	})
}

func TestKeysExpireWhileTheirNodeIsDown(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", time.Second).Err())
		s.ok("kill", s.Kill(s.ctx, "n1"))
		time.Sleep(2 * time.Second)
		s.ok("restart", s.Restart(s.ctx, "n1", cluster.Keep))
		s.holds("n1", "lock", "")
	})
}

func TestStalledNodeAnswersLaterInOrder(t *testing.T) {
	play(t, single(2), func(s stage) {
		a, b := s.redis("c1", "n1"), s.redis("c2", "n1")
		defer a.Close()
		defer b.Close()
		s.ok("SET", a.Set(s.ctx, "lock:ttl", "v", time.Second).Err())
		s.ok("stall", s.Stall(s.ctx, "n1"))
		s.refused("second stall", s.Stall(s.ctx, "n1"))
		if err := a.Append(s.ctx, "k", "a").Err(); !timedOut(err) {
			t.Errorf("a stalled node answered: %v", err)
		}
		if err := b.Append(s.ctx, "k", "b").Err(); !timedOut(err) {
			t.Errorf("a stalled node answered: %v", err)
		}
		s.holds("n1", "k", "")
		time.Sleep(time.Second)
		s.ok("unstall", s.Unstall(s.ctx, "n1"))
		s.holds("n1", "k", "ab")
		s.holds("n1", "lock:ttl", "") // TTLs ran
	})
}

func TestFlushAndErrorReply(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 0).Err())
		s.ok("load", rdb.ScriptLoad(s.ctx, "return 1").Err())
		s.ok("flush scripts", s.Flush(s.ctx, "n1", true))
		s.holds("n1", "lock", "v")
		if rdb.ScriptExists(s.ctx, sha("return 1")).Val()[0] {
			t.Error("the script is still there")
		}
		s.ok("flush", s.Flush(s.ctx, "n1", false))
		s.holds("n1", "lock", "")
		const oom = "OOM command not allowed when used memory > 'maxmemory'."
		s.ok("error reply", s.ErrorReply(s.ctx, "n1", oom))
		for what, err := range map[string]error{
			"SET": rdb.Set(s.ctx, "lock", "v", 0).Err(), "EVAL": rdb.Eval(s.ctx, "return 1", []string{"lock"}).Err(),
		} {
			if err == nil || err.Error() != oom {
				t.Errorf("%s: %v", what, err)
			}
		}
		s.ok("PING has no key", rdb.Ping(s.ctx).Err())
		s.ok("end", s.ErrorReply(s.ctx, "n1", ""))
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 0).Err())
	})
}

func replicated(lag time.Duration) Config {
	return Config{Topology: cluster.Replicated, Nodes: 2, Clients: 1, ReplicationLag: lag}
}

func TestReplicationLagsAndIsReadOnly(t *testing.T) {
	play(t, replicated(50*time.Millisecond), func(s stage) {
		rdb, replica := s.redis("c1", cluster.Primary), s.redis("c1", "n2")
		defer rdb.Close()
		defer replica.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 10*time.Second).Err())
		s.holds("n2", "lock", "")
		time.Sleep(60 * time.Millisecond)
		s.holds("n2", "lock", "v")
		for what, err := range map[string]error{
			"SET": replica.Set(s.ctx, "k", "v", 0).Err(), "script": replica.Eval(s.ctx, "return redis.call('set', KEYS[1], 1)", []string{"k"}).Err(),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
				t.Errorf("%s on a replica: %v", what, err)
			}
		}
		s.ok("GET on a replica", replica.Get(s.ctx, "lock").Err())
		s.ok("DEL", rdb.Del(s.ctx, "lock").Err())
		time.Sleep(60 * time.Millisecond)
		s.holds("n2", "lock", "")
	})
}

func TestPromotionWithoutTheKey(t *testing.T) {
	play(t, replicated(0), func(s stage) {
		rdb := s.redis("c1", cluster.Primary)
		defer rdb.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock:old", "v", 0).Err())
		time.Sleep(10 * time.Millisecond)
		repl := cluster.Link{From: "n1", To: "n2"}
		s.ok("cut", s.Cut(s.ctx, repl, cluster.Drop))
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 0).Err())
		s.ok("promote", s.Promote(s.ctx, "n2"))
		time.Sleep(10 * time.Millisecond) // the reset reaches the client
		if s.PrimaryNode() != "n2" {
			t.Errorf("the primary is %s", s.PrimaryNode())
		}
		if err := rdb.Get(s.ctx, "lock").Err(); err != redis.Nil {
			rdbErr := rdb.Get(s.ctx, "lock").Err() // the first one may meet the reset
			if rdbErr != redis.Nil {
				t.Errorf("the new primary has the key: %v, %v", err, rdbErr)
			}
		}
		s.holds("n1", "lock", "v")
		s.holds("n2", "lock:old", "v")
	})
}

func TestMendedReplicationLinkCatchesUp(t *testing.T) {
	play(t, replicated(0), func(s stage) {
		rdb := s.redis("c1", cluster.Primary)
		defer rdb.Close()
		repl := cluster.Link{From: "n1", To: "n2"}
		s.ok("cut", s.Cut(s.ctx, repl, cluster.Drop))
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 0).Err())
		s.ok("HSET", rdb.HSet(s.ctx, "lock:h", "f", "v").Err())
		s.ok("ZADD", rdb.ZAdd(s.ctx, "lock:z", redis.Z{Score: 1.5, Member: "m"}).Err())
		time.Sleep(time.Second)
		s.holds("n2", "lock", "")
		s.ok("mend", s.Mend(s.ctx, repl))
		time.Sleep(10 * time.Millisecond)
		s.holds("n2", "lock", "v")
		n2 := s.byName["n2"]
		if h, z := n2.stateOf("lock:h"), n2.stateOf("lock:z"); h.hash["f"] != "v" || z.zset["m"] != 1.5 {
			t.Errorf("the replica has %v and %v", h.hash, z.zset)
		}
	})
}

func TestPromotedReplicaHasTheAbsoluteExpiry(t *testing.T) {
	play(t, replicated(0), func(s stage) {
		rdb := s.redis("c1", cluster.Primary)
		defer rdb.Close()
		s.ok("jump", s.JumpClock(s.ctx, "n1", 11*time.Second))
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 10*time.Second).Err())
		time.Sleep(10 * time.Millisecond)
		s.ok("promote", s.Promote(s.ctx, "n2"))
		time.Sleep(10 * time.Millisecond)
		n2 := s.redis("c1", "n2")
		defer n2.Close()
		if d := n2.PTTL(s.ctx, "lock").Val().Round(100 * time.Millisecond); d != 21*time.Second {
			t.Errorf("the replica's clock is 11 s behind, and it gives the key %v", d)
		}
		s.ok("restart of the old primary", func() error {
			if err := s.Kill(s.ctx, "n1"); err != nil {
				return err
			}
			return s.Restart(s.ctx, "n1", cluster.Keep)
		}())
		time.Sleep(10 * time.Millisecond)
		if !s.byName["n1"].replica {
			t.Error("the old primary came back as a primary")
		}
	})
}
