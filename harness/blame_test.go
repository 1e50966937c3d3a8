package harness

import "testing"

func TestLockIsToBlame(t *testing.T) {
	stack := func(lines ...string) string {
		out := "panic: oh no\n\ngoroutine 7 [running, synctest bubble 1]:\n"
		for _, l := range lines {
			out += l + "(0x1, 0x2)\n\t/src/file.go:1 +0x1\n"
		}
		return out + "\ngoroutine 8 [select]:\ngithub.com/holdfast-io/holdfast/impl/basic.(*Lock).Acquire(0x1)\n"
	}
	const (
		lock    = "github.com/holdfast-io/holdfast/impl/thirdparty/redsync.(*Lock).Acquire"
		client  = "github.com/holdfast-io/holdfast/harness.(*Client).round"
		network = "github.com/holdfast-io/holdfast/cluster/sim.(*conn).Write"
		goredis = "github.com/redis/go-redis/v9.(*Client).Process"
		server  = "github.com/alicebob/miniredis/v2/server.(*Server).servePeer"
		std     = "sync.(*Mutex).Unlock"
	)
	for name, c := range map[string]struct {
		stack string
		want  bool
	}{
		"lock":                   {stack(std, lock, client), true},
		"library below the lock": {stack(goredis, lock, client), true},
		"harness":                {stack(std, client), false},
		"network below the lock": {stack(network, goredis, lock, client), false},
		"library's own":          {stack(std, goredis), true},
		"library over harness":   {stack(goredis, client), false},
		"server":                 {stack(std, server), false},
		"made by the lock":       {stack("created by " + lock), true},
		"runtime alone":          {stack(std), false},
		"command line":           {stack("main.explore", lock), false},
		"no stack":               {"exit status 3", false},
	} {
		if got := LockIsToBlame(c.stack); got != c.want {
			t.Errorf("%s: %v\n%s", name, got, c.stack)
		}
	}
}
