package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/holdfast-io/holdfast/history"
)

// simulated is a correct lock on one node, with a client for every history
// event that a real run would have. Times are whole milliseconds.
type simulated struct {
	r      *rand.Rand
	events []history.Event
	holder string // alias on the key
	expiry int64  // of the key, in ms
}

type simulatedClient struct {
	name         string
	process, acq int
	alias        string
	stage        string
	at           int64
	outcome      history.Type
}

const ms = 1_000_000

// simulate lets three clients acquire, sometimes extend, stay inside for up to
// 1.6 TTL, and release. Each call reaches the node between its invoke and its
// reply, which may be slow or never come.
func simulate(r *rand.Rand) *history.History {
	s := &simulated{r: r}
	clients := []*simulatedClient{{name: "c1", process: 1}, {name: "c2", process: 2}, {name: "c3", process: 3}}
	processes, acqs := 3, 0
	for range 60 {
		c := slices.MinFunc(clients, func(a, b *simulatedClient) int { return cmp.Compare(a.at, b.at) })
		switch c.stage {
		case "":
			acqs++
			c.acq, c.alias = acqs, fmt.Sprintf("%s#%d", c.name, acqs)
			s.call(c, history.Acquire)
		case "held":
			next := history.Release
			if r.IntN(3) == 0 {
				next = history.Extend
			}
			s.call(c, next)
		case "acquire sent", "extend sent", "release sent":
			s.execute(c)
		default:
			s.reply(c)
			if c.outcome == history.Info {
				processes++
				c.process, c.stage = processes, ""
			}
		}
	}
	slices.SortStableFunc(s.events, func(a, b history.Event) int { return cmp.Compare(a.T, b.T) })
	return story(s.events...)
}

func (s *simulated) call(c *simulatedClient, f string) {
	s.op(c, f, history.Invoke)
	c.stage = f + " sent"
	c.at += 1 + s.r.Int64N(200)
}

// execute runs the call on the node.
func (s *simulated) execute(c *simulatedClient) {
	free := s.holder == "" || c.at >= s.expiry
	if free {
		s.holder = ""
	}
	c.outcome = history.Fail
	f := c.stage[:len(c.stage)-len(" sent")]
	switch {
	case f == history.Acquire && free:
		s.holder, s.expiry, c.outcome = c.alias, c.at+10_000, history.OK
	case f == history.Extend && s.holder == c.alias:
		s.expiry, c.outcome = c.at+10_000, history.OK
	case f == history.Release && s.holder == c.alias:
		s.holder, c.outcome = "", history.OK
	}
	pttl := int64(-2)
	if s.holder != "" {
		pttl = s.expiry - c.at
	}
	s.events = append(s.events, history.Event{T: c.at * ms, Server: &history.Server{Node: "n1", Client: c.name, Cmd: "EVALSHA",
		Key: "lock:a", Reply: "1", Owner: s.holder, PTTL: pttl}})
	if s.r.IntN(8) == 0 {
		c.outcome = history.Info
	}
	c.stage = f + " done"
	c.at += 1 + s.r.Int64N(200)
	if s.r.IntN(8) == 0 {
		c.at += s.r.Int64N(15_000)
	}
}

func (s *simulated) reply(c *simulatedClient) {
	f := c.stage[:len(c.stage)-len(" done")]
	s.op(c, f, c.outcome)
	c.at += 1 + s.r.Int64N(500)
	c.stage = ""
	if f == history.Acquire && c.outcome == history.OK || f == history.Extend {
		c.stage = "held"
		c.at += s.r.Int64N(16_000)
	}
}

func (s *simulated) op(c *simulatedClient, f string, typ history.Type) {
	s.events = append(s.events, history.Event{T: c.at * ms, Op: &history.Op{Process: c.process, Client: c.name, F: f, Type: typ, Lock: "a", Acq: c.acq}})
}
