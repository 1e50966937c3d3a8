package sim

import (
	"slices"
	"testing"
	"time"
)

func TestTraceNamesOwnersByClient(t *testing.T) {
	play(t, single(2), func(s stage) {
		a, b := s.redis("c1", "n1"), s.redis("c2", "n1")
		defer a.Close()
		defer b.Close()
		s.ok("SET", a.SetNX(s.ctx, "lock", "random-1", 2*time.Second).Err())
		s.ok("SET", b.SetNX(s.ctx, "lock", "random-2", 2*time.Second).Err())
		s.ok("INCR", a.Incr(s.ctx, "lock:fence").Err())
		s.refused("GET of nothing", a.Get(s.ctx, "unrelated").Err())
		time.Sleep(3 * time.Second)
		s.ok("HSET", b.HSet(s.ctx, "lock:h", "random-2", "1").Err())
		s.ok("EVAL", b.Eval(s.ctx, "return redis.call('set', KEYS[1], ARGV[1], 'px', 100)", []string{"lock"}, "random-2").Err())
		s.ok("flush", s.Flush(s.ctx, "n1", false))
		want := []string{
			`n1 c1 SET lock "OK" owner=c1#1 value= pttl=2000`,
			`n1 c2 SET lock "nil" owner=c1#1 value= pttl=1999`,
			`n1 c1 INCR lock:fence "1" owner= value=1 pttl=-1`,
			`n1  expired lock "" owner=c1#1 value= pttl=-2`,
			`n1 c2 HSET lock:h "1" owner=c2#1 value=1 pttl=-1`,
			`n1 c2 EVAL lock "OK" owner=c2#1 value= pttl=100`,
			`n1  lost lock "" owner= value= pttl=-2`,
			`n1  lost lock:fence "" owner= value= pttl=-2`,
			`n1  lost lock:h "" owner= value= pttl=-2`,
		}
		if got := s.trace(); !slices.Equal(got, want) {
			t.Errorf("the trace is\n%q, want\n%q", got, want)
		}
	})
}

func TestLeftoversAreWhatIsStillThere(t *testing.T) {
	play(t, single(1), func(s stage) {
		rdb := s.redis("c1", "n1")
		defer rdb.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 0).Err())
		s.ok("SET", rdb.Set(s.ctx, "unrelated", "v", 0).Err())
		left := s.Leftovers()
		if len(left) != 1 || left[0].Key != "lock" || left[0].Cmd != "left" || left[0].PTTL != -1 {
			t.Errorf("left over: %+v", left)
		}
	})
}

func TestPromotionIsInTheTrace(t *testing.T) {
	play(t, replicated(0), func(s stage) {
		rdb := s.redis("c1", "primary")
		defer rdb.Close()
		s.ok("SET", rdb.Set(s.ctx, "lock", "v", 0).Err())
		time.Sleep(10 * time.Millisecond)
		s.ok("promote", s.Promote(s.ctx, "n2"))
		got := s.trace()
		if want := `n2  promoted lock "" owner=c1#1 value= pttl=-1`; got[len(got)-1] != want {
			t.Errorf("the trace is %q", got)
		}
	})
}
