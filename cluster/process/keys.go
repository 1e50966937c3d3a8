package process

import (
	"strconv"
	"strings"
	"time"
)

// kind is what a key holds.
type kind int

const (
	text    kind = iota // a string that is written as it is: a token
	counter             // a string that is counted: a fence
	hash                // a hash whose fields are tokens
	sorted              // a sorted set whose members are tokens
	other
)

// key is what a node is known to hold.
type key struct {
	kind   kind
	value  string
	fields map[string]string // of a hash; members and scores of a sorted set
	expire int64             // Unix milliseconds on the node's clock; 0 for never
}

// pttl is what PTTL would say.
func (k *key) pttl(now time.Time) int64 {
	switch {
	case k == nil:
		return -2
	case k.expire == 0:
		return -1
	}
	return max(0, k.expire-now.UnixMilli())
}

// keyspace is what one node is known to hold, from its commands and the
// key space events that each of them caused.
type keyspace map[string]*key

// keysOf are the keys among a command's arguments. For scripts these are the
// declared ones.
func keysOf(c command) []string {
	switch c.name {
	case "DEL", "UNLINK", "EXISTS", "TOUCH", "MGET", "WATCH":
		return c.args[1:]
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO":
		if len(c.args) < 3 {
			return nil
		}
		n, err := strconv.Atoi(c.args[2])
		if err != nil || n < 0 || n > len(c.args)-3 {
			return nil
		}
		return c.args[3 : 3+n]
	case "PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "ECHO", "PING",
		"CLIENT", "HELLO", "AUTH", "SCRIPT", "CONFIG", "KEYS", "SCAN", "INFO", "SELECT":
		return nil
	}
	if len(c.args) < 2 {
		return nil
	}
	return c.args[1:2]
}

func isScript(name string) bool {
	return strings.HasPrefix(name, "EVAL") || strings.HasPrefix(name, "FCALL")
}

// apply takes a command and the events that it caused on its key, and gives
// the reply where it follows from them. A write without an event did nothing.
func (ks keyspace) apply(c command, events map[string][]string) (reply string) {
	if c.name == "DEL" || c.name == "UNLINK" {
		return ks.remove(c.args[1:], events)
	}
	if len(c.args) < 2 {
		return ""
	}
	name := c.args[1]
	happened := make(map[string]bool)
	for _, event := range events[name] {
		happened[event] = true
	}
	switch {
	case happened["set"]:
		reply = ks.set(c)
	case c.name == "SET":
		reply = "nil"
	case c.name == "SETNX":
		reply = "0"
	}
	for _, change := range []struct {
		events []string
		apply  func(*key, command) string
	}{
		{events: []string{"incrby", "decrby"}, apply: (*key).increment},
		{events: []string{"hset", "hincrby", "hdel"}, apply: (*key).changeHash},
		{events: []string{"zadd", "zincr", "zrem", "zremrangebyscore"}, apply: (*key).changeSorted},
		{events: []string{"expire"}, apply: (*key).setExpiry},
		{events: []string{"persist"}, apply: func(k *key, _ command) string { k.expire = 0; return "1" }},
	} {
		for _, event := range change.events {
			// A SET with a time to live causes an expire event of its own.
			if !happened[event] || happened["set"] {
				continue
			}
			reply = change.apply(ks.get(name), c)
		}
	}
	switch {
	case happened["del"]:
		delete(ks, name)
	case len(happened) > 0 && ks[name] == nil:
		ks[name] = &key{kind: other}
	case len(happened) == 0 && strings.HasSuffix(c.name, "EXPIRE"):
		reply = "0"
	}
	return reply
}

// get gives a key, and makes it where it is not known.
func (ks keyspace) get(name string) *key {
	if ks[name] == nil {
		ks[name] = &key{kind: other}
	}
	return ks[name]
}

func (ks keyspace) remove(names []string, events map[string][]string) string {
	removed := 0
	for _, name := range names {
		for _, event := range events[name] {
			if event == "del" {
				removed++
				delete(ks, name)
			}
		}
	}
	return strconv.Itoa(removed)
}

// set takes a string write that took effect.
func (ks keyspace) set(c command) (reply string) {
	k := &key{kind: text}
	old := ks[c.args[1]]
	ks[c.args[1]] = k
	switch c.name {
	case "SETEX", "PSETEX":
		if len(c.args) > 3 {
			k.value = c.args[3]
			k.expire = expiry(strings.TrimPrefix(strings.TrimSuffix(c.name, "SETEX")+"EX", "SET"), c.args[2], c.shown)
		}
		return "OK"
	case "SET", "SETNX", "GETSET":
		if len(c.args) > 2 {
			k.value = c.args[2]
		}
	default:
		k.kind = other // SETRANGE, APPEND and the like hold no token
		return ""
	}
	reply = "OK"
	for i := 3; i < len(c.args); i++ {
		switch option := strings.ToUpper(c.args[i]); option {
		case "EX", "PX", "EXAT", "PXAT":
			if i++; i < len(c.args) {
				k.expire = expiry(option, c.args[i], c.shown)
			}
		case "KEEPTTL":
			if old != nil {
				k.expire = old.expire
			}
		case "GET":
			reply = ""
		}
	}
	switch c.name {
	case "SETNX":
		reply = "1"
	case "GETSET":
		reply = ""
	}
	return reply
}

// expiry is the instant in Unix milliseconds that an option such as PX gives.
func expiry(option, value string, now time.Time) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0
	}
	switch option {
	case "EX":
		return now.UnixMilli() + n*1000
	case "PX":
		return now.UnixMilli() + n
	case "EXAT":
		return n * 1000
	}
	return n
}

func (k *key) setExpiry(c command) string {
	options := map[string]string{"EXPIRE": "EX", "PEXPIRE": "PX", "EXPIREAT": "EXAT", "PEXPIREAT": "PXAT"}
	switch option, known := options[c.name]; {
	case known && len(c.args) > 2:
		k.expire = expiry(option, c.args[2], c.shown)
		return "1"
	case c.name == "GETEX" && len(c.args) > 3:
		k.expire = expiry(strings.ToUpper(c.args[2]), c.args[3], c.shown)
	}
	return ""
}

// increment takes INCR and its kin. Where the number before is not known, the
// one after is not either.
func (k *key) increment(c command) string {
	by := int64(1)
	if len(c.args) > 2 {
		n, err := strconv.ParseInt(c.args[2], 10, 64)
		if err != nil {
			return ""
		}
		by = n
	}
	if strings.HasPrefix(c.name, "DECR") {
		by = -by
	}
	before, err := strconv.ParseInt(k.value, 10, 64)
	if k.kind == other && k.value == "" {
		before, err = 0, nil // it was not there
	}
	k.kind = counter
	if err != nil {
		k.value = ""
		return ""
	}
	k.value = strconv.FormatInt(before+by, 10)
	return k.value
}

func (k *key) changeHash(c command) string {
	if k.fields == nil {
		k.fields = make(map[string]string)
	}
	k.kind = hash
	switch c.name {
	case "HSET", "HMSET", "HSETNX":
		for i := 2; i+1 < len(c.args); i += 2 {
			k.fields[c.args[i]] = c.args[i+1]
		}
	case "HINCRBY":
		if len(c.args) > 3 {
			before, err1 := int64(0), error(nil)
			if had, there := k.fields[c.args[2]]; there {
				before, err1 = strconv.ParseInt(had, 10, 64) // a count may be below zero
			}
			by, err2 := strconv.ParseInt(c.args[3], 10, 64)
			if err1 == nil && err2 == nil {
				k.fields[c.args[2]] = strconv.FormatInt(before+by, 10)
				return k.fields[c.args[2]]
			}
			k.fields[c.args[2]] = ""
		}
	case "HDEL":
		for _, field := range c.args[2:] {
			delete(k.fields, field)
		}
	}
	return ""
}

func (k *key) changeSorted(c command) string {
	if k.fields == nil {
		k.fields = make(map[string]string)
	}
	k.kind = sorted
	switch c.name {
	case "ZADD":
		at := 2
		for at < len(c.args) && strings.Contains(" NX XX GT LT CH INCR ", " "+strings.ToUpper(c.args[at])+" ") {
			at++
		}
		for ; at+1 < len(c.args); at += 2 {
			k.fields[c.args[at+1]] = c.args[at]
		}
	case "ZREM":
		for _, member := range c.args[2:] {
			delete(k.fields, member)
		}
	case "ZREMRANGEBYSCORE":
		if len(c.args) < 4 {
			return ""
		}
		for member, score := range k.fields {
			if s, err := strconv.ParseFloat(score, 64); err == nil &&
				atLeast(s, c.args[2]) && atLeast(-s, negated(c.args[3])) {
				delete(k.fields, member)
			}
		}
	}
	return ""
}

// atLeast says whether a score is not below a bound of ZRANGEBYSCORE, such as
// 5, (5 or -inf.
func atLeast(score float64, bound string) bool {
	value, open := strings.CutPrefix(bound, "(")
	least, err := strconv.ParseFloat(value, 64)
	return err == nil && (score > least || score == least && !open)
}

func negated(bound string) string {
	value, open := strings.CutPrefix(bound, "(")
	if number, err := strconv.ParseFloat(value, 64); err == nil {
		value = strconv.FormatFloat(-number, 'g', -1, 64)
	}
	if open {
		return "(" + value
	}
	return value
}
