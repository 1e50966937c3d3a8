package sim

import (
	"math"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// expireHandler finds the commands on times to live. They are the node's own:
// it alone knows the deadlines.
func expireHandler(name string) dataHandler {
	switch name {
	case "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT":
		return (*node).expireIn
	case "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME":
		return (*node).ttl
	case "PERSIST":
		return (*node).persist
	}
	return nil
}

// expireAt gives a key its deadline. A key is there up to and including its
// last millisecond; one whose time is up already goes at once.
func (n *node) expireAt(key string, deadline int64) {
	if deadline < n.wall().UnixMilli() {
		n.remove(key)
		return
	}
	n.deadlines[key] = deadline
}

func (n *node) expireIn(peer *server.Peer, args []string) {
	name := strings.ToUpper(args[0])
	nx, xx, gt, lt, problem := expireOptions(args[3:])
	if problem != "" {
		fail(peer, problem)
		return
	}
	at, ok := integer(args[2])
	if !ok {
		fail(peer, errInteger)
		return
	}
	now := n.wall().UnixMilli()
	base := now
	if strings.HasSuffix(name, "AT") {
		base = 0
	}
	inSeconds := name[0] == 'E'
	if inSeconds && (at > math.MaxInt64/1000 || at < math.MinInt64/1000) {
		fail(peer, "ERR invalid expire time in '"+strings.ToLower(name)+"' command")
		return
	}
	if inSeconds {
		at *= 1000
	}
	if at > math.MaxInt64-base {
		fail(peer, "ERR invalid expire time in '"+strings.ToLower(name)+"' command")
		return
	}
	at += base
	key := args[1]
	has, set := n.deadlines[key]
	switch {
	case !n.db.Exists(key), nx && set, xx && !set, gt && (!set || at <= has), lt && set && at >= has:
		peer.WriteInt(0)
		return
	case at <= now: // sooner than expiry itself, which waits for now > at
		n.remove(key)
	default:
		n.deadlines[key] = at
	}
	peer.WriteInt(1)
}

func expireOptions(words []string) (nx, xx, gt, lt bool, problem string) {
	for _, word := range words {
		switch strings.ToUpper(word) {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "GT":
			gt = true
		case "LT":
			lt = true
		default:
			return nx, xx, gt, lt, "ERR Unsupported option " + cString(word)
		}
	}
	switch {
	case nx && (xx || gt || lt):
		problem = "ERR NX and XX, GT or LT options at the same time are not compatible"
	case gt && lt:
		problem = "ERR GT and LT options at the same time are not compatible"
	}
	return nx, xx, gt, lt, problem
}

// ttl answers how long, or until when, a key lives.
func (n *node) ttl(peer *server.Peer, args []string) {
	name := strings.ToUpper(args[0])
	at, set := n.deadlines[args[1]]
	switch {
	case !n.db.Exists(args[1]):
		peer.WriteInt(-2)
		return
	case !set:
		peer.WriteInt(-1)
		return
	}
	if strings.HasSuffix(name, "TTL") {
		at = max(at-n.wall().UnixMilli(), 0)
	}
	if name[0] != 'P' {
		at = (at + 500) / 1000
	}
	peer.WriteInt(int(at))
}

func (n *node) persist(peer *server.Peer, args []string) {
	_, set := n.deadlines[args[1]]
	if !set {
		peer.WriteInt(0)
		return
	}
	delete(n.deadlines, args[1])
	peer.WriteInt(1)
}
