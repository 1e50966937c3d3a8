package sim

import (
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// part draws a piece of a command: no, one or several arguments.
type part func(t *rapid.T) []string

func draw(t *rapid.T, from ...string) string { return rapid.SampledFrom(from).Draw(t, "arg") }

func one(from ...string) part {
	return func(t *rapid.T) []string { return []string{draw(t, from...)} }
}

// words are options, given as lines of arguments; each may come or not.
func words(from ...string) part {
	return func(t *rapid.T) []string {
		var out []string
		for range rapid.IntRange(0, 2).Draw(t, "options") {
			for _, w := range strings.Fields(draw(t, from...)) {
				switch w {
				case "TTL":
					w = ttl(t)[0]
				case "AT":
					w = instant(t)[0]
				}
				out = append(out, w)
			}
		}
		return out
	}
}

func many(p ...part) part {
	return func(t *rapid.T) []string {
		var out []string
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			for _, q := range p {
				out = append(out, q(t)...)
			}
		}
		return out
	}
}

// keyFor prefers keys of one type and now and then takes another's.
func keyFor(own ...string) part {
	return func(t *rapid.T) []string {
		if rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
			return []string{draw(t, "lock", "other", "fence", "hash", "zset", "")}
		}
		return []string{draw(t, own...)}
	}
}

// allKeys are all the keys that there can be.
var allKeys = []string{"lock", "other", "fence", "hash", "zset", "none", "", "k", "a"}

var (
	str    = keyFor("lock", "other", "fence")
	num    = keyFor("fence", "fence", "lock")
	hash   = keyFor("hash")
	zset   = keyFor("zset")
	anyKey = keyFor("lock", "other", "fence", "hash", "zset", "none")
	value  = one("token-1", "token-1", "token-2", "10", "-1", "", "\x00\r\n\xff", "9223372036854775807", "1.5", " 7", "+7", "007")
	number = one("1", "1", "2", "-1", "0", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "x", "1.5", "", " 1", "+1", "01", "-0")
	field  = one("token-1", "token-2", "count", "identifier", "")
	score  = one("0", "1", "2", "-1.5", "1e3", "inf", "-inf", "+inf", "nan", "x", "3.0", "1704067200123", "0.1", "1e20", "")
	bound  = one("-inf", "+inf", "0", "1", "(1", "(0", "2", "x", "(", "1704067200123", "1e3")
	index  = one("0", "-1", "1", "-2", "5", "-100", "x")
	ttl    = one("1", "2", "10", "10", "100", "100", "1000", "1499", "1500", "10000", "0", "-1", "-100", "x", "", "1.5", "9223372036854775807", "-9223372036854775808", "9223372036854775", "92233720368547758070", "+10", "010")
	// millis is for scripts, which mostly get sane figures.
	millis = one("1", "2", "10", "100", "1000", "10000", "0", "-1", "x")
)

// instant is a time around where the clocks are, in milliseconds.
func instant(t *rapid.T) []string {
	at := epoch.UnixMilli() + rapid.SampledFrom([]int64{-1000, -1, 0, 1, 10, 100, 101, 1000, 5000}).Draw(t, "at")
	return []string{strconv.FormatInt(at, 10)}
}

func seconds(t *rapid.T) []string {
	at := epoch.Unix() + rapid.SampledFrom([]int64{-1, 0, 1, 2, 10}).Draw(t, "at")
	return []string{strconv.FormatInt(at, 10)}
}

// command is a name and what follows it.
type command struct {
	name string
	args []part
}

var setWords = words("NX", "XX", "GET", "KEEPTTL", "PX TTL", "PX TTL", "EX TTL", "PXAT AT", "EXAT TTL", "px", "nx", "WHAT")
var expireWords = words("NX", "XX", "GT", "LT", "gt", "WHAT")

var commands = []command{
	{"SET", []part{str, value, setWords}}, {"SET", []part{str, value, setWords}}, {"set", []part{anyKey, value, setWords}},
	{"SET", []part{str, value, one("NX"), one("PX"), ttl}}, {"SET", []part{str, value, one("PX"), ttl}},
	{"SETNX", []part{anyKey, value}}, {"GET", []part{str}}, {"GET", []part{anyKey}}, {"GETSET", []part{str, value}},
	{"GETDEL", []part{str}}, {"GETEX", []part{str, words("PX TTL", "EX TTL", "PERSIST", "PXAT AT")}},
	{"SETEX", []part{str, ttl, value}}, {"PSETEX", []part{str, ttl, value}}, {"MGET", []part{many(anyKey)}},
	{"MSET", []part{many(str, value)}}, {"STRLEN", []part{str}}, {"APPEND", []part{str, value}},
	{"DEL", []part{many(anyKey)}}, {"UNLINK", []part{many(anyKey)}}, {"EXISTS", []part{many(anyKey)}}, {"TYPE", []part{anyKey}},
	{"PEXPIRE", []part{anyKey, ttl, expireWords}}, {"PEXPIRE", []part{anyKey, ttl}}, {"EXPIRE", []part{anyKey, ttl, expireWords}},
	{"PEXPIREAT", []part{anyKey, instant, expireWords}}, {"EXPIREAT", []part{anyKey, seconds}},
	{"PEXPIRETIME", []part{anyKey}}, {"EXPIRETIME", []part{anyKey}},
	{"PTTL", []part{anyKey}}, {"PTTL", []part{anyKey}}, {"TTL", []part{anyKey}}, {"PERSIST", []part{anyKey}},
	{"INCR", []part{num}}, {"DECR", []part{num}}, {"INCRBY", []part{num, number}}, {"DECRBY", []part{num, number}},
	{"HSET", []part{hash, many(field, value)}}, {"HSETNX", []part{hash, field, value}}, {"HGET", []part{hash, field}},
	{"HMGET", []part{hash, many(field)}}, {"HDEL", []part{hash, many(field)}}, {"HINCRBY", []part{hash, field, number}},
	{"HEXISTS", []part{hash, field}}, {"HLEN", []part{hash}}, {"HGETALL", []part{hash}}, {"HKEYS", []part{hash}}, {"HVALS", []part{hash}},
	{"ZADD", []part{zset, many(score, field)}}, {"ZADD", []part{zset, words("NX", "XX", "GT", "LT", "CH", "INCR"), score, field}},
	{"ZREM", []part{zset, many(field)}}, {"ZCARD", []part{zset}}, {"ZSCORE", []part{zset, field}}, {"ZRANK", []part{zset, field}},
	{"ZREVRANK", []part{zset, field}}, {"ZINCRBY", []part{zset, score, field}}, {"ZCOUNT", []part{zset, bound, bound}},
	{"ZRANGE", []part{zset, index, index, words("WITHSCORES", "REV")}}, {"ZREVRANGE", []part{zset, index, index, words("WITHSCORES")}},
	{"ZRANGE", []part{zset, bound, bound, one("BYSCORE"), words("WITHSCORES", "LIMIT 0 1", "LIMIT 1 -1")}},
	{"ZRANGEBYSCORE", []part{zset, bound, bound, words("WITHSCORES", "LIMIT 0 1", "LIMIT 1 -1", "LIMIT x 1")}},
	{"ZREMRANGEBYSCORE", []part{zset, bound, bound}}, {"ZREMRANGEBYRANK", []part{zset, index, index}},
	{"SCRIPT", []part{one("EXISTS"), one(sha("return 1"), "abc", sha("return 2"))}}, {"SCRIPT", []part{one("LOAD"), one("return 1", "return 2", "return (")}},
	{"SCRIPT", []part{words("FLUSH", "FLUSH SYNC", "FLUSH ASYNC", "FLUSH NOW", "EXISTS", "LOAD", "KILL", "WHAT")}},
	{"EVALSHA", []part{one(sha("return 1"), strings.ToUpper(sha("return 2")), "abc"), one("0", "1", "-1", "x"), words("k")}},
	{"EVAL", []part{one("return 1", "return ("), one("0", "1", "2", "-1", "x", "", "01"), words("k", "lock")}},
	{"PING", []part{words("hello")}}, {"ECHO", []part{value}}, {"TIME", nil}, {"HELLO", nil},
	{"HELLO", []part{one("1", "4", "x", "9223372036854775808")}}, {"FLUSHALL", nil}, {"SELECT", []part{one("0")}},
	{"CLIENT", []part{one("GETNAME", "SETNAME", "SETINFO", "MAINT_NOTIFICATIONS", "WHAT"), words("a", "LIB-NAME x")}},
}

// anyCommand draws a command, at times with too few or too many arguments.
func anyCommand(t *rapid.T) step {
	c := rapid.SampledFrom(commands).Draw(t, "command")
	args := []string{c.name}
	for _, p := range c.args {
		args = append(args, p(t)...)
	}
	switch rapid.IntRange(0, 29).Draw(t, "arity") {
	case 0:
		args = args[:rapid.IntRange(1, len(args)).Draw(t, "cut")]
	case 1:
		args = append(args, value(t)...)
	case 2:
		args[0] = draw(t, "NOSUCH", "Gett", "", "lock\r\nx", "OBJECTS")
	}
	return step{Args: args}
}

// scriptCall is a script and what it takes.
type scriptCall struct {
	source     string
	keys, argv []part
}

// scriptTable says what the scripts of the locks take, by path under impl.
var scriptTable = map[string]scriptCall{
	"basic/delete_if_mine.lua":     {keys: []part{str}, argv: []part{value}},
	"basic/grant_for_nothing.lua":  {keys: []part{str}, argv: []part{value}},
	"fair/delete_if_mine.lua":      {keys: []part{str}, argv: []part{value}},
	"fair/take_turn.lua":           {keys: []part{str, zset}, argv: []part{value, number, millis, millis}},
	"rwlock/acquire_read.lua":      {keys: []part{str, hash}, argv: []part{millis, one("0", "1")}},
	"rwlock/delete_if_mine.lua":    {keys: []part{str}, argv: []part{value}},
	"rwlock/release_read.lua":      {keys: []part{hash}},
	"semaphore/acquire.lua":        {keys: []part{zset}, argv: []part{value, number, millis, one("", "1700000000000", "12")}},
	"basic/grant_with_fence.lua":   {keys: []part{str, num}, argv: []part{value, millis}},
	"redlock/delete_if_mine.lua":   {keys: []part{str}, argv: []part{value}},
	"redlock/grant_with_fence.lua": {keys: []part{str, num}, argv: []part{value, millis}},
	"reentrant/grant.lua":          {keys: []part{hash}, argv: []part{field, millis}},
	"reentrant/release.lua":        {keys: []part{hash}, argv: []part{field, millis}},
	"reentrant/take_one_off.lua":   {keys: []part{hash}, argv: []part{field}},
	"reference/extend.lua":         {keys: []part{str}, argv: []part{value, millis}},
	"reference/grant.lua":          {keys: []part{str, num}, argv: []part{value, millis}},
	"reference/release.lua":        {keys: []part{str, num}, argv: []part{value, number}},
	"service/extend_if_mine.lua":   {keys: []part{hash}, argv: []part{field, millis}},
	"service/grant.lua":            {keys: []part{hash}, argv: []part{field, millis}},
	"service/grant_with_fence.lua": {keys: []part{hash, num}, argv: []part{field, millis}},
	"service/release.lua":          {keys: []part{hash}, argv: []part{field, millis}},
	"watchdog/delete_if_mine.lua":  {keys: []part{str}, argv: []part{value}},
	"watchdog/extend_if_mine.lua":  {keys: []part{str}, argv: []part{value, millis}},
}

// luaSamples are what the conversions between Lua and Redis and the library of
// scripts must agree on.
var luaSamples = []string{
	"return nil", "return true", "return false", "return 3.99", "return -3.99", "return 1e15", "return '3.99'", "return {}",
	"return {1,2,{3,'x',{4}},5.5}", "return {1,nil,3}", "return {err='MY error'}", "return {err='plain'}", "return {ok='FINE'}", "return {a=1}",
	"return {true,false,1}", "return 1,2", "return", "return KEYS", "return ARGV", "return #KEYS + #ARGV", "return {KEYS[1],ARGV[1],KEYS[9]}",
	"return redis.status_reply('GO')", "return redis.error_reply('NO way')", "return redis.error_reply('NO')", "return redis.error_reply('-NO way')",
	"return redis.error_reply('')", "return redis.status_reply('')", "return redis.error_reply()", "return redis.status_reply(1)",
	"return {double=3.5}", "return {map={a=1}}", "return {set={a=true}}", "return {'a','b',err='x'}",
	"error('boom')", "error({err='MY thing'})", "error('boom', 0)", "error()", "local x = nil\nreturn x.y", "return 1 + {}", "foo()", "foo = 1", "return foo",
	"\n\nerror('third line')", "\n\nreturn redis.call('get')", "local function f()\nreturn redis.call('incr', KEYS[1])\nend\nreturn f()",
	"return redis.call('get', KEYS[1])", "return redis.call('incr', KEYS[1])", "return redis.pcall('incr', KEYS[1])", "return redis.call('nosuch')",
	"return redis.pcall('nosuch', 1)", "return redis.call('set', KEYS[1])", "return redis.call()", "return redis.pcall()", "return redis.call(nil)",
	"return redis.call('get', {})", "return redis.call('set', KEYS[1], true)", "return redis.call('eval', 'return 1', 0)", "return redis.pcall('multi')",
	"return redis.call('set', KEYS[1], 10)", "return redis.call('set', KEYS[1], 10.5)", "return {redis.call('set', KEYS[1], 1e15), redis.call('get', KEYS[1])}",
	"redis.call('set', KEYS[1], 3.0) return redis.call('get', KEYS[1])", "redis.call('set', KEYS[1], 0.1) return redis.call('get', KEYS[1])",
	"redis.call('set', KEYS[1], 1e17) return redis.call('get', KEYS[1])", "redis.call('set', KEYS[1], 9007199254740993) return redis.call('get', KEYS[1])",
	"redis.call('set', KEYS[1], 1/3) return redis.call('get', KEYS[1])", "redis.call('set', KEYS[1], 1/0) return redis.call('get', KEYS[1])",
	"return type(redis.call('get', 'none'))", "return type(redis.call('set', KEYS[1], 'x'))", "return redis.call('set', KEYS[1], 'x')['ok']",
	"return type(redis.call('set', KEYS[1], 'x', 'nx'))", "return redis.pcall('incr', KEYS[1])['err']", "return type(redis.call('exists', KEYS[1]))",
	"return redis.call('hgetall', 'none')", "return redis.call('zrange', 'zset', 0, -1, 'withscores')", "return redis.call('zscore', 'zset', 'count')",
	"return redis.call('mget', KEYS[1], 'none', 'fence')", "return redis.call('time')", "return redis.call('pttl', KEYS[1])", "return redis.call('type', KEYS[1])",
	"redis.call('set', KEYS[1], 'x', 'px', 10) return redis.call('pttl', KEYS[1])", "redis.call('set', KEYS[1], 'x') redis.call('pexpire', KEYS[1], 0) return redis.call('get', KEYS[1])",
	"return redis.sha1hex('a')", "return redis.sha1hex()", "return cjson.encode({1,2,'x'})", "return cjson.decode('[1,2,\"x\"]')", "return cjson.decode('{\"a\":3}').a",
	"return tostring(10)", "return tostring(1e15)", "return tostring(0.1)", "return 10 .. ''", "return tostring(nil)", "return tonumber('0x10')", "return tonumber('x')",
	"return tonumber(' 7 ')", "return tonumber('')", "return math.floor(3.7)", "return string.format('%d %s %5.2f', 3, 'x', 1.5)", "return string.sub('hello', 2, -2)",
	"return table.concat({1,2,3}, ',')", "return {string.find('key:1', ':(%d)')}", "return #'\\0ab'", "return {unpack({1,2,3})}", "return string.rep('ab', 3)",
	"return next({}) == nil", "return select('#', 1, 2)", "local t = {} for i = 1, 3 do t[#t+1] = i end return t", "return pcall(redis.call, 'get') == false",
	"local ok, e = pcall(redis.call, 'incr', KEYS[1]) return {ok, type(e)}", "local ok, e = pcall(function() error('x') end) return e", "return type(redis)",
	"return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 100) and 1 or 0", "return not redis.call('get', KEYS[1])", "return redis.call('get', KEYS[1]) == ARGV[1]",
	"return tonumber(redis.call('get', KEYS[1]))", "return redis.call('hget', 'hash', 'count')", "return redis.log(redis.LOG_NOTICE, 'x')", "return redis.LOG_WARNING",
	"redis.replicate_commands() return 1", "return redis.REPL_ALL", "return redis.setresp(2)", "return redis.REDIS_VERSION", "return redis.nosuch", "KEYS[1] = 'x' return KEYS[1]",
	"return redis.call('script', 'exists', 'abc')", "return redis.call('client', 'getname')", "return redis.call('hello')", "return redis.call('ping')", "return redis.call('echo', 'x')",
	"return redis.call('get', '')", "return ('x'):upper()", "return -0", "return 2^53", "return 2^63", "return 0/0", "return 7 % -3", "return math.huge",
}

// steps draws a command, a script or a move of the clock.
func steps(scripts []scriptCall) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		switch n := rapid.IntRange(0, 19).Draw(t, "kind"); {
		case n < 3:
			move := rapid.SampledFrom([]time.Duration{0, 1, 1, 2, 9, 10, 11, 99, 100, 101, 500, 1000, 5000, -1, -10, -100, -5000}).Draw(t, "move")
			return step{Move: move * time.Millisecond}
		case n < 7:
			return aScript(t, rapid.SampledFrom(scripts).Draw(t, "script"))
		case n < 9:
			return aScript(t, scriptCall{source: draw(t, luaSamples...), keys: []part{str}, argv: []part{value}})
		}
		return anyCommand(t)
	})
}

func aScript(t *rapid.T, c scriptCall) step {
	args := []string{"EVAL", c.source}
	if rapid.IntRange(0, 3).Draw(t, "sha") == 0 {
		args = []string{"EVALSHA", sha(c.source)}
	}
	args = append(args, strconv.Itoa(len(c.keys)))
	for _, p := range append(append([]part{}, c.keys...), c.argv...) {
		args = append(args, p(t)...)
	}
	return step{Args: args}
}
