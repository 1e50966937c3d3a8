package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// nodes starts servers, and adds one that is down.
func nodes(t *testing.T, up int) ([]Node, []*miniredis.Miniredis) {
	t.Helper()
	var list []Node
	var servers []*miniredis.Miniredis
	for i := range up + 1 {
		s := miniredis.RunT(t)
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { _ = c.Close() })
		if i == up {
			s.Close()
		}
		list, servers = append(list, Node{Name: "n" + string(rune('1'+i)), Client: c}), append(servers, s)
	}
	return list, servers[:up]
}

// TestSentences holds what is said of each form that a lock's key may have.
func TestSentences(t *testing.T) {
	all, servers := nodes(t, 1)
	s := servers[0]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Set("text", "token-a"))
	s.SetTTL("text", 5*time.Second)
	must(s.Set("endless", "1"))
	s.HSet("owners", "me", "3")
	s.SetTTL("owners", time.Second)
	s.HSet("service", "identifier", "token-b", "count", "2")
	s.SetTTL("service", time.Second)
	s.HSet("readers", "readers", "4")
	s.SetTTL("readers", time.Second)
	now := time.Now()
	s.SetTime(now)
	_, err := s.ZAdd("permits", float64(now.Add(9*time.Second).UnixMilli()), "token-c")
	must(err)
	_, err = s.ZAdd("permits", float64(now.Add(-time.Second).UnixMilli()), "token-d")
	must(err)
	s.SetTTL("permits", 9*time.Second)
	_, err = s.ZAdd("queue", 1, "w")
	must(err)
	must(s.Set("fence", "34"))
	_, err = s.Push("list", "x")
	must(err)
	s.SetTTL("list", time.Second)
	for _, c := range []struct {
		key     Key
		want    string
		endless bool
	}{
		{Key{Name: "text", Role: Lock}, "held by token-a, 5s", false},
		{Key{Name: "endless", Role: Lock}, "held by 1, NO TTL", true},
		{Key{Name: "owners", Role: Lock}, "held by me (hold count 3), 1s", false},
		{Key{Name: "service", Role: Lock}, "held by token-b (hold count 2), 1s", false},
		{Key{Name: "readers", Role: Readers}, "4 reading, 1s", false},
		{Key{Name: "permits", Role: Lock}, "permits out: 1 (token-c (9s)); over and not swept yet: 1", false},
		{Key{Name: "queue", Role: Queue}, "1 waiting, NO TTL", true},
		{Key{Name: "fence", Role: Fence}, "the last fencing token is 34", false},
		{Key{Name: "list", Role: Lock}, "a list, which holdfast does not know as a lock, 1s", false},
		{Key{Name: "absent", Role: Lock}, "free", false},
	} {
		found, err := Look(context.Background(), all[:1], []Key{c.key}, time.Second)
		must(err)
		if got := found[0].Sentence(func(s string) string { return s }); got != c.want {
			t.Errorf("%s: %q, want %q", c.key.Name, got, c.want)
		}
		if got := len(found[0].Endless()) > 0; got != c.endless {
			t.Errorf("%s: flagged for its TTL: %v, want %v", c.key.Name, got, c.endless)
		}
	}
}

// TestVotes holds how the votes of several nodes are counted, with one down.
func TestVotes(t *testing.T) {
	all, servers := nodes(t, 4) // five with the one that is down
	key := []Key{{Name: "k", Role: Lock}}
	say := func() string {
		t.Helper()
		found, err := Look(context.Background(), all, key, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if last := found[0].Nodes[4]; last.Error == "" {
			t.Error("a server that is down is not told")
		}
		return found[0].Sentence(func(s string) string { return s })
	}
	put := func(token string, ttl time.Duration, on ...int) {
		for _, i := range on {
			_ = servers[i].Set("k", token) // a server in memory does not refuse
			servers[i].SetTTL("k", ttl)
		}
	}
	if got := say(); got != "free" {
		t.Errorf("nobody: %q", got)
	}
	put("a", 9*time.Second, 0)
	if got := say(); got != "nobody has the 3 votes of a quorum: a has 1" {
		t.Errorf("a minority: %q", got)
	}
	put("a", 9*time.Second, 0, 1)
	if got := say(); got != "a has 2 of the 3 votes of a quorum, and 1 of 5 servers did not answer" {
		t.Errorf("what the silent one may decide: %q", got)
	}
	put("b", 9*time.Second, 2, 3)
	if got := say(); got != "a has 2 of the 3 votes of a quorum, and 1 of 5 servers did not answer" {
		t.Errorf("a split: %q", got)
	}
	put("b", 5*time.Second, 1)
	if got := say(); got != "held by b with 3 of 5 votes, a quorum for another 5s" {
		t.Errorf("a quorum: %q", got)
	}
	put("b", 2*time.Second, 0)
	if got := say(); got != "held by b with 4 of 5 votes, a quorum for another 5s" {
		t.Errorf("a vote to spare: %q", got)
	}
}

func TestNobodyAnswers(t *testing.T) {
	all, _ := nodes(t, 0)
	_, err := Look(context.Background(), all, []Key{{Name: "k", Role: Lock}, {Name: "l", Role: Lock}}, time.Second)
	if err == nil || !strings.Contains(err.Error(), "n1: ") {
		t.Errorf("a server that is down: %v", err)
	}
}

// TestTheReasonIsTold: a server that refuses says why.
func TestTheReasonIsTold(t *testing.T) {
	all, servers := nodes(t, 1)
	servers[0].RequireAuth("secret")
	if _, err := Look(context.Background(), all[:1], []Key{{Name: "k", Role: Lock}}, time.Second); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("a server that wants a password: %v", err)
	}
}
