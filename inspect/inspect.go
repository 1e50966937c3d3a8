// Package inspect looks at a lock on servers that are in use: who holds it, for
// how long, who waits, and on several nodes how the votes stand.
//
// It only reads, in one transaction for each key and node, and never more than
// a few members of a key, so that it can be pointed at production. It judges
// no history: what it sees is one moment, on each node another one.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a key is for; the words of the catalogue.
const (
	Lock    = "lock"
	Readers = "readers"
	Queue   = "queue"
	Fence   = "fence"
)

// Key is one to look at.
type Key struct {
	Name string
	Role string
	Lock string // whose it is; empty for one of the user's own
}

// Node is one server.
type Node struct {
	Name   string
	Client *redis.Client
}

// Times that PTTL gives, in milliseconds.
const (
	NoTTL  = -1
	Absent = -2
)

// most is how many members of a key are read.
const most = 10

// State is a key on one node.
type State struct {
	Node string `json:"node"`
	// Type as Redis names it: string, hash, zset, list; none for an absent key.
	Type string `json:"type"`
	// PTTL in milliseconds, or NoTTL or Absent.
	PTTL int64 `json:"pttl_ms"`
	// Length is how many fields or members there are.
	Length int64 `json:"length,omitempty"`
	// Members are the value of a string, or the first few fields or members.
	Members []Member `json:"members,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Member is a token with what stands beside it.
type Member struct {
	Token string `json:"token"`
	// Count of a hash's field: how often its owner is inside.
	Count int64 `json:"count,omitempty"`
	// Score of a sorted set's member; for a permit it is the expiry in Unix
	// milliseconds, and LeftMS is what is left of it on the node's clock.
	Score  float64 `json:"score,omitempty"`
	LeftMS *int64  `json:"left_ms,omitempty"`
}

// Finding is a key on all nodes.
type Finding struct {
	Key   string  `json:"key"`
	Role  string  `json:"role"`
	Lock  string  `json:"lock,omitempty"`
	Nodes []State `json:"nodes"`
	// Votes for each token of a lock's key, most votes first.
	Votes []Vote `json:"votes,omitempty"`
	// Quorum is how many votes a holder needs.
	Quorum int `json:"quorum"`
}

// Vote is a token and the nodes that carry it.
type Vote struct {
	Token string   `json:"token"`
	Nodes []string `json:"nodes"`
}

// Look reads all keys on all nodes. The error says that no node answered; a
// node that did not is told in its states.
func Look(ctx context.Context, nodes []Node, keys []Key, timeout time.Duration) ([]Finding, error) {
	states := make([][]State, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { states[i] = n.look(ctx, keys, timeout) })
	}
	all.Wait()
	var findings []Finding
	var errs []error
	answered := false
	for k, key := range keys {
		f := Finding{Key: key.Name, Role: key.Role, Lock: key.Lock, Quorum: len(nodes)/2 + 1}
		for i := range nodes {
			s := states[i][k]
			f.Nodes = append(f.Nodes, s)
			if s.Error == "" {
				answered = true
			} else if k == 0 {
				errs = append(errs, fmt.Errorf("%s: %s", s.Node, s.Error))
			}
		}
		f.Votes = votes(f)
		findings = append(findings, f)
	}
	if !answered {
		return nil, fmt.Errorf("no server could be read: %w", errors.Join(errs...))
	}
	return findings, nil
}

// look reads all keys on one node. After a first failure the node is not asked
// again.
func (n Node) look(ctx context.Context, keys []Key, timeout time.Duration) []State {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	states := make([]State, 0, len(keys))
	failed := ""
	for _, k := range keys {
		s := State{Node: n.Name, Type: "none", PTTL: Absent, Error: failed}
		if failed == "" {
			if err := n.read(ctx, k, &s); err != nil {
				failed = err.Error()
				s = State{Node: n.Name, Type: "none", PTTL: Absent, Error: failed}
			}
		}
		states = append(states, s)
	}
	return states
}

// read asks for everything that a key may be in one transaction, since its
// type is not known before and may change: a command for another type is
// answered with WRONGTYPE and does no harm.
func (n Node) read(ctx context.Context, k Key, s *State) error {
	var kind *redis.StatusCmd
	var ttl *redis.Cmd
	var text *redis.StringCmd
	var size, card, length *redis.IntCmd
	var fields *redis.ScanCmd
	var members *redis.ZSliceCmd
	var now *redis.TimeCmd
	_, err := n.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		kind, ttl, now = p.Type(ctx, k.Name), p.Do(ctx, "PTTL", k.Name), p.Time(ctx)
		text = p.GetRange(ctx, k.Name, 0, 255)
		size, fields = p.HLen(ctx, k.Name), p.HScan(ctx, k.Name, 0, "", most)
		card, members = p.ZCard(ctx, k.Name), p.ZRangeWithScores(ctx, k.Name, 0, most-1)
		length = p.LLen(ctx, k.Name)
		return nil
	})
	if err != nil && (kind.Err() != nil || ttl.Err() != nil) {
		return n.why(ctx, k, err)
	}
	s.Type = kind.Val()
	if s.PTTL, err = ttl.Int64(); err != nil {
		return err
	}
	switch s.Type {
	case "string":
		s.Length, s.Members = 1, []Member{{Token: text.Val()}}
	case "hash":
		s.Length = size.Val()
		found, _ := fields.Val()
		s.Members = owners(found[:min(len(found), 2*most)])
	case "zset":
		s.Length = card.Val()
		for _, z := range members.Val() {
			m := Member{Token: fmt.Sprint(z.Member), Score: z.Score}
			if k.Role == Lock {
				left := int64(z.Score) - now.Val().UnixMilli()
				m.LeftMS = &left
			}
			s.Members = append(s.Members, m)
		}
	case "list":
		s.Length = length.Val()
	}
	return nil
}

// why finds the reason behind a transaction that was thrown away: the server
// tells it of the command that it refused, and go-redis of the transaction.
func (n Node) why(ctx context.Context, k Key, err error) error {
	for _, c := range []redis.Cmder{n.Client.Do(ctx, "PTTL", k.Name), n.Client.Type(ctx, k.Name)} {
		if c.Err() != nil {
			return c.Err()
		}
	}
	return err
}

// owners reads a hash: fields that name owners and count how often each is
// inside, or one owner under "identifier" with its count under "count".
func owners(found []string) []Member {
	var all []Member
	values := map[string]string{}
	for i := 0; i+1 < len(found); i += 2 {
		values[found[i]] = found[i+1]
		count, _ := strconv.ParseInt(found[i+1], 10, 64) // a field that counts nothing counts as 0
		all = append(all, Member{Token: found[i], Count: count})
	}
	if id, ok := values["identifier"]; ok {
		count, _ := strconv.ParseInt(values["count"], 10, 64)
		return []Member{{Token: id, Count: count}}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Token < all[j].Token })
	return all
}

// votes counts who is named by how many nodes.
func votes(f Finding) []Vote {
	if f.Role != Lock {
		return nil
	}
	var all []Vote
	for _, s := range f.Nodes {
		for _, m := range s.Members {
			at := sort.Search(len(all), func(i int) bool { return all[i].Token >= m.Token })
			if at == len(all) || all[at].Token != m.Token {
				all = append(all[:at], append([]Vote{{Token: m.Token}}, all[at:]...)...)
			}
			all[at].Nodes = append(all[at].Nodes, s.Node)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return len(all[i].Nodes) > len(all[j].Nodes) })
	return all
}

// There says whether any node has the key.
func (f Finding) There() bool {
	for _, s := range f.Nodes {
		if s.PTTL != Absent {
			return true
		}
	}
	return false
}

// Endless lists the nodes on which a key that should end has no TTL. A fencing
// counter must not end.
func (f Finding) Endless() []string {
	var nodes []string
	for _, s := range f.Nodes {
		if s.PTTL == NoTTL && f.Role != Fence {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// Danger says what a key without a TTL leads to.
func (f Finding) Danger() string {
	if f.Role == Queue {
		return "a waiter that died stays in it for ever"
	}
	return "if its holder dies, nobody ever gets the lock"
}

// Sentence says in words what stands in a key.
func (f Finding) Sentence(token func(string) string) string {
	if !f.There() {
		return "free"
	}
	if len(f.Nodes) > 1 && f.Role == Lock {
		return f.tally(token)
	}
	for _, s := range f.Nodes {
		if s.PTTL != Absent {
			return f.one(s, token)
		}
	}
	return ""
}

// one says what stands on one node.
func (f Finding) one(s State, token func(string) string) string {
	var words []string
	switch {
	case f.Role == Fence && len(s.Members) == 1:
		return "the last fencing token is " + s.Members[0].Token
	case f.Role == Queue:
		return fmt.Sprintf("%d waiting, %s", s.Length, TTL(s.PTTL))
	case f.Role == Readers:
		n := int64(0)
		for _, m := range s.Members {
			n += m.Count
		}
		return fmt.Sprintf("%d reading, %s", n, TTL(s.PTTL))
	case s.Type == "zset":
		over := 0
		for _, m := range s.Members {
			if m.LeftMS != nil && *m.LeftMS < 0 {
				over++
				continue
			}
			words = append(words, fmt.Sprintf("%s (%s)", token(m.Token), TTL(*m.LeftMS)))
		}
		return fmt.Sprintf("permits out: %d (%s); over and not swept yet: %d", s.Length-int64(over), strings.Join(words, ", "), over)
	}
	for _, m := range s.Members {
		word := token(m.Token)
		if s.Type == "hash" {
			word += fmt.Sprintf(" (hold count %d)", m.Count)
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return fmt.Sprintf("a %s, which holdfast does not know as a lock, %s", s.Type, TTL(s.PTTL))
	}
	return fmt.Sprintf("held by %s, %s", strings.Join(words, ", "), TTL(s.PTTL))
}

// tally says how the votes stand.
func (f Finding) tally(token func(string) string) string {
	if len(f.Votes) == 0 {
		return "free"
	}
	first := f.Votes[0]
	if len(first.Nodes) >= f.Quorum {
		shortest := int64(-3)
		var left []int64
		for _, s := range f.Nodes {
			if len(s.Members) == 1 && s.Members[0].Token == first.Token {
				left = append(left, s.PTTL)
			}
		}
		// A holder keeps its quorum until the last but quorum-1 of its keys end.
		sort.Slice(left, func(i, j int) bool { return lasting(left[i]) > lasting(left[j]) })
		if len(left) >= f.Quorum {
			shortest = left[f.Quorum-1]
		}
		return fmt.Sprintf("held by %s with %d of %d votes, a quorum for another %s", token(first.Token), len(first.Nodes), len(f.Nodes), TTL(shortest))
	}
	var words []string
	for _, v := range f.Votes {
		words = append(words, fmt.Sprintf("%s has %d", token(v.Token), len(v.Nodes)))
	}
	silent := 0
	for _, s := range f.Nodes {
		if s.Error != "" {
			silent++
		}
	}
	if silent > 0 && len(first.Nodes)+silent >= f.Quorum {
		return fmt.Sprintf("%s has %d of the %d votes of a quorum, and %d of %d servers did not answer", token(first.Token), len(first.Nodes), f.Quorum, silent, len(f.Nodes))
	}
	return fmt.Sprintf("nobody has the %d votes of a quorum: %s", f.Quorum, strings.Join(words, ", "))
}

// lasting orders TTLs, none last.
func lasting(pttl int64) int64 {
	if pttl == NoTTL {
		return int64(1) << 62
	}
	return pttl
}

// TTL says a time that PTTL gave.
func TTL(pttl int64) string {
	switch {
	case pttl == NoTTL:
		return "NO TTL"
	case pttl == Absent:
		return "absent"
	case pttl < 0:
		return "over"
	}
	return (time.Duration(pttl) * time.Millisecond).String()
}
