package sim

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// Replies that several commands give.
const (
	errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errInteger   = "ERR value is not an integer or out of range"
	errSyntax    = "ERR syntax error"
	errOverflow  = "ERR increment or decrement would overflow"
)

// fail answers with an error as it is; the peer's own way replaces bytes that
// are no UTF-8.
func fail(peer *server.Peer, msg string) { peer.WriteRaw("-" + oneError(msg) + "\r\n") }

// integer reads a number as Redis does: no plus, no spaces, no leading zeros.
func integer(s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && strconv.FormatInt(v, 10) == s
}

// stringHandler finds the commands on strings that the node answers itself:
// those that set an expiry, and those that miniredis reads more kindly than
// Redis does.
func stringHandler(name string) dataHandler {
	switch name {
	case "SET":
		return (*node).set
	case "SETEX", "PSETEX":
		return (*node).setEx
	case "GETEX":
		return (*node).getEx
	case "GETSET":
		return (*node).getSet
	case "GETDEL":
		return (*node).getDel
	case "MSET", "MSETNX":
		return (*node).mSet
	case "INCR", "DECR", "INCRBY", "DECRBY":
		return (*node).incr
	case "HINCRBY":
		return (*node).hIncrBy
	}
	return nil
}

// setOptions are the options of SET and GETEX.
type setOptions struct {
	nx, xx, get, keep, persist bool
	unit                       string // EX, PX, EXAT, PXAT or nothing
	expire                     string
}

// parseSetOptions says false for what Redis calls a syntax error. One unit may
// come twice, and the last one counts; two units may not come together.
func parseSetOptions(args []string, getEx bool) (o setOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		switch word := strings.ToUpper(args[i]); {
		case word == "NX" && !o.xx && !getEx:
			o.nx = true
		case word == "XX" && !o.nx && !getEx:
			o.xx = true
		case word == "GET" && !getEx:
			o.get = true
		case word == "KEEPTTL" && o.unit == "" && !getEx:
			o.keep = true
		case word == "PERSIST" && o.unit == "" && getEx:
			o.persist = true
		case (word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT") &&
			(o.unit == "" || o.unit == word) && !o.keep && !o.persist && i+1 < len(args):
			i++
			o.unit, o.expire = word, args[i]
		default:
			return o, false
		}
	}
	return o, true
}

// deadline turns an expiry into the wall clock's milliseconds, or into an
// error.
func (n *node) deadline(command, unit, expire string) (at int64, problem string) {
	at, ok := integer(expire)
	if !ok {
		return 0, errInteger
	}
	invalid := "ERR invalid expire time in '" + strings.ToLower(command) + "' command"
	if unit[0] == 'E' {
		if at > math.MaxInt64/1000 {
			return 0, invalid
		}
		at *= 1000
	}
	if at <= 0 {
		return 0, invalid
	}
	if len(unit) == 2 {
		at += n.wall().UnixMilli() // an overflow is negative, as in Redis
	}
	if at <= 0 {
		return 0, invalid
	}
	return at, ""
}

// store sets a string, with a deadline or, at zero, without. A key whose time
// is up already is not there for anybody.
func (n *node) store(key, value string, deadline int64) {
	if t := n.db.Type(key); t != "" && t != "string" {
		n.db.Del(key)
	}
	_ = n.db.Set(key, value) // cannot fail: the key is absent or a string
	delete(n.deadlines, key)
	if deadline != 0 {
		n.expireAt(key, deadline)
	}
}

// remove deletes a key.
func (n *node) remove(key string) {
	n.db.Del(key)
	delete(n.deadlines, key)
}

// load gets a string, and says false after it has answered with an error.
func (n *node) load(peer *server.Peer, key string) (value string, found, ok bool) {
	switch n.db.Type(key) {
	case "":
		return "", false, true
	case "string":
		value, _ = n.db.Get(key) // the type is checked
		return value, true, true
	}
	fail(peer, errWrongType)
	return "", false, false
}

func writeValue(peer *server.Peer, value string, found bool) {
	if !found {
		peer.WriteNull()
		return
	}
	peer.WriteBulk(value)
}

func (n *node) set(peer *server.Peer, args []string) {
	key, value := args[1], args[2]
	o, ok := parseSetOptions(args[3:], false)
	if !ok {
		fail(peer, errSyntax)
		return
	}
	deadline := int64(0)
	if o.unit != "" {
		var problem string
		if deadline, problem = n.deadline(args[0], o.unit, o.expire); problem != "" {
			fail(peer, problem)
			return
		}
	}
	if o.get {
		old, found, ok := n.load(peer, key)
		if !ok {
			return
		}
		writeValue(peer, old, found)
	}
	if o.nx || o.xx {
		if n.db.Exists(key) == o.nx {
			if !o.get {
				peer.WriteNull()
			}
			return
		}
	}
	if o.keep {
		deadline = n.deadlines[key]
	}
	n.store(key, value, deadline)
	if !o.get {
		peer.WriteOK()
	}
}

func (n *node) setEx(peer *server.Peer, args []string) {
	unit := "EX"
	if strings.EqualFold(args[0], "PSETEX") {
		unit = "PX"
	}
	deadline, problem := n.deadline(args[0], unit, args[2])
	if problem != "" {
		fail(peer, problem)
		return
	}
	n.store(args[1], args[3], deadline)
	peer.WriteOK()
}

func (n *node) getEx(peer *server.Peer, args []string) {
	o, ok := parseSetOptions(args[2:], true)
	if !ok {
		fail(peer, errSyntax)
		return
	}
	value, found, ok := n.load(peer, args[1])
	if !ok {
		return
	}
	if found && o.unit != "" {
		deadline, problem := n.deadline(args[0], o.unit, o.expire)
		if problem != "" {
			fail(peer, problem)
			return
		}
		n.expireAt(args[1], deadline)
	}
	if found && o.persist {
		delete(n.deadlines, args[1])
	}
	writeValue(peer, value, found)
}

func (n *node) getSet(peer *server.Peer, args []string) {
	old, found, ok := n.load(peer, args[1])
	if !ok {
		return
	}
	n.store(args[1], args[2], 0)
	writeValue(peer, old, found)
}

func (n *node) getDel(peer *server.Peer, args []string) {
	value, found, ok := n.load(peer, args[1])
	if !ok {
		return
	}
	n.remove(args[1])
	writeValue(peer, value, found)
}

func (n *node) mSet(peer *server.Peer, args []string) {
	unless := strings.EqualFold(args[0], "MSETNX")
	if len(args)%2 == 0 {
		fail(peer, wrongArity(args[0]))
		return
	}
	for i := 1; i < len(args); i += 2 {
		if unless && n.db.Exists(args[i]) {
			peer.WriteInt(0)
			return
		}
	}
	for i := 1; i < len(args); i += 2 {
		n.store(args[i], args[i+1], 0)
	}
	if unless {
		peer.WriteInt(1)
		return
	}
	peer.WriteOK()
}

func (n *node) incr(peer *server.Peer, args []string) {
	by := int64(1)
	if len(args) == 3 {
		var ok bool
		if by, ok = integer(args[2]); !ok {
			fail(peer, errInteger)
			return
		}
	}
	if c := args[0][0]; c == 'D' || c == 'd' {
		if by == math.MinInt64 {
			fail(peer, "ERR decrement would overflow")
			return
		}
		by = -by
	}
	value, found, ok := n.load(peer, args[1])
	if !ok {
		return
	}
	old, ok := int64(0), true
	if found {
		old, ok = integer(value)
	}
	if !ok {
		fail(peer, errInteger)
		return
	}
	sum, ok := add(old, by)
	if !ok {
		fail(peer, errOverflow)
		return
	}
	n.store(args[1], strconv.FormatInt(sum, 10), n.deadlines[args[1]])
	peer.WriteInt(int(sum))
}

func (n *node) hIncrBy(peer *server.Peer, args []string) {
	key, field := args[1], args[2]
	by, ok := integer(args[3])
	if !ok {
		fail(peer, errInteger)
		return
	}
	if t := n.db.Type(key); t != "" && t != "hash" {
		fail(peer, errWrongType)
		return
	}
	old := int64(0)
	value := n.db.HGet(key, field)
	if value != "" || n.hasField(key, field) {
		if old, ok = integer(value); !ok {
			fail(peer, "ERR hash value is not an integer")
			return
		}
	}
	sum, ok := add(old, by)
	if !ok {
		fail(peer, errOverflow)
		return
	}
	n.db.HSet(key, field, strconv.FormatInt(sum, 10))
	peer.WriteInt(int(sum))
}

func (n *node) hasField(key, field string) bool {
	fields, err := n.db.HKeys(key)
	return err == nil && slices.Contains(fields, field)
}

// add says false for an overflow.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}
