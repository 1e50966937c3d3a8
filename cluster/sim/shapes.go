package sim

import "strings"

// shape is what a server asks of a command before it runs it.
type shape struct {
	arity             int // arguments with the name; negative: at least so many
	first, last, step int // where the keys are; a negative last counts from the end
	flags             flags
}

type flags uint8

const (
	write    flags = 1 << iota
	noscript       // no script may call it
)

// shapes are the commands of Redis 7.0.15, as its COMMAND tells them; a test
// compares them with a real server's. A command that is in here and that
// neither miniredis nor the node has says that it is not simulated.
var shapes = map[string]shape{
	"ACL":                  {-2, 0, 0, 0, 0},
	"APPEND":               {3, 1, 1, 1, write},
	"ASKING":               {1, 0, 0, 0, 0},
	"AUTH":                 {-2, 0, 0, 0, noscript},
	"BGREWRITEAOF":         {1, 0, 0, 0, noscript},
	"BGSAVE":               {-1, 0, 0, 0, noscript},
	"BITCOUNT":             {-2, 1, 1, 1, 0},
	"BITFIELD":             {-2, 1, 1, 1, write},
	"BITFIELD_RO":          {-2, 1, 1, 1, 0},
	"BITOP":                {-4, 2, -1, 1, write},
	"BITPOS":               {-3, 1, 1, 1, 0},
	"BLMOVE":               {6, 1, 2, 1, write | noscript},
	"BLMPOP":               {-5, 0, 0, 0, write},
	"BLPOP":                {-3, 1, -2, 1, write | noscript},
	"BRPOP":                {-3, 1, -2, 1, write | noscript},
	"BRPOPLPUSH":           {4, 1, 2, 1, write | noscript},
	"BZMPOP":               {-5, 0, 0, 0, write},
	"BZPOPMAX":             {-3, 1, -2, 1, write | noscript},
	"BZPOPMIN":             {-3, 1, -2, 1, write | noscript},
	"CLIENT":               {-2, 0, 0, 0, 0},
	"CLUSTER":              {-2, 0, 0, 0, 0},
	"COMMAND":              {-1, 0, 0, 0, 0},
	"CONFIG":               {-2, 0, 0, 0, 0},
	"COPY":                 {-3, 1, 2, 1, write},
	"DBSIZE":               {1, 0, 0, 0, 0},
	"DEBUG":                {-2, 0, 0, 0, noscript},
	"DECR":                 {2, 1, 1, 1, write},
	"DECRBY":               {3, 1, 1, 1, write},
	"DEL":                  {-2, 1, -1, 1, write},
	"DISCARD":              {1, 0, 0, 0, noscript},
	"DUMP":                 {2, 1, 1, 1, 0},
	"ECHO":                 {2, 0, 0, 0, 0},
	"EVAL":                 {-3, 0, 0, 0, noscript},
	"EVAL_RO":              {-3, 0, 0, 0, noscript},
	"EVALSHA":              {-3, 0, 0, 0, noscript},
	"EVALSHA_RO":           {-3, 0, 0, 0, noscript},
	"EXEC":                 {1, 0, 0, 0, noscript},
	"EXISTS":               {-2, 1, -1, 1, 0},
	"EXPIRE":               {-3, 1, 1, 1, write},
	"EXPIREAT":             {-3, 1, 1, 1, write},
	"EXPIRETIME":           {2, 1, 1, 1, 0},
	"FAILOVER":             {-1, 0, 0, 0, noscript},
	"FCALL":                {-3, 0, 0, 0, noscript},
	"FCALL_RO":             {-3, 0, 0, 0, noscript},
	"FLUSHALL":             {-1, 0, 0, 0, write},
	"FLUSHDB":              {-1, 0, 0, 0, write},
	"FUNCTION":             {-2, 0, 0, 0, 0},
	"GEOADD":               {-5, 1, 1, 1, write},
	"GEODIST":              {-4, 1, 1, 1, 0},
	"GEOHASH":              {-2, 1, 1, 1, 0},
	"GEOPOS":               {-2, 1, 1, 1, 0},
	"GEORADIUS":            {-6, 1, 1, 1, write},
	"GEORADIUS_RO":         {-6, 1, 1, 1, 0},
	"GEORADIUSBYMEMBER":    {-5, 1, 1, 1, write},
	"GEORADIUSBYMEMBER_RO": {-5, 1, 1, 1, 0},
	"GEOSEARCH":            {-7, 1, 1, 1, 0},
	"GEOSEARCHSTORE":       {-8, 1, 2, 1, write},
	"GET":                  {2, 1, 1, 1, 0},
	"GETBIT":               {3, 1, 1, 1, 0},
	"GETDEL":               {2, 1, 1, 1, write},
	"GETEX":                {-2, 1, 1, 1, write},
	"GETRANGE":             {4, 1, 1, 1, 0},
	"GETSET":               {3, 1, 1, 1, write},
	"HDEL":                 {-3, 1, 1, 1, write},
	"HELLO":                {-1, 0, 0, 0, noscript},
	"HEXISTS":              {3, 1, 1, 1, 0},
	"HGET":                 {3, 1, 1, 1, 0},
	"HGETALL":              {2, 1, 1, 1, 0},
	"HINCRBY":              {4, 1, 1, 1, write},
	"HINCRBYFLOAT":         {4, 1, 1, 1, write},
	"HKEYS":                {2, 1, 1, 1, 0},
	"HLEN":                 {2, 1, 1, 1, 0},
	"HMGET":                {-3, 1, 1, 1, 0},
	"HMSET":                {-4, 1, 1, 1, write},
	"HRANDFIELD":           {-2, 1, 1, 1, 0},
	"HSCAN":                {-3, 1, 1, 1, 0},
	"HSET":                 {-4, 1, 1, 1, write},
	"HSETNX":               {4, 1, 1, 1, write},
	"HSTRLEN":              {3, 1, 1, 1, 0},
	"HVALS":                {2, 1, 1, 1, 0},
	"INCR":                 {2, 1, 1, 1, write},
	"INCRBY":               {3, 1, 1, 1, write},
	"INCRBYFLOAT":          {3, 1, 1, 1, write},
	"INFO":                 {-1, 0, 0, 0, 0},
	"KEYS":                 {2, 0, 0, 0, 0},
	"LASTSAVE":             {1, 0, 0, 0, 0},
	"LATENCY":              {-2, 0, 0, 0, 0},
	"LCS":                  {-3, 1, 2, 1, 0},
	"LINDEX":               {3, 1, 1, 1, 0},
	"LINSERT":              {5, 1, 1, 1, write},
	"LLEN":                 {2, 1, 1, 1, 0},
	"LMOVE":                {5, 1, 2, 1, write},
	"LMPOP":                {-4, 0, 0, 0, write},
	"LOLWUT":               {-1, 0, 0, 0, 0},
	"LPOP":                 {-2, 1, 1, 1, write},
	"LPOS":                 {-3, 1, 1, 1, 0},
	"LPUSH":                {-3, 1, 1, 1, write},
	"LPUSHX":               {-3, 1, 1, 1, write},
	"LRANGE":               {4, 1, 1, 1, 0},
	"LREM":                 {4, 1, 1, 1, write},
	"LSET":                 {4, 1, 1, 1, write},
	"LTRIM":                {4, 1, 1, 1, write},
	"MEMORY":               {-2, 0, 0, 0, 0},
	"MGET":                 {-2, 1, -1, 1, 0},
	"MIGRATE":              {-6, 3, 3, 1, write},
	"MODULE":               {-2, 0, 0, 0, 0},
	"MONITOR":              {1, 0, 0, 0, noscript},
	"MOVE":                 {3, 1, 1, 1, write},
	"MSET":                 {-3, 1, -1, 2, write},
	"MSETNX":               {-3, 1, -1, 2, write},
	"MULTI":                {1, 0, 0, 0, noscript},
	"OBJECT":               {-2, 0, 0, 0, 0},
	"PERSIST":              {2, 1, 1, 1, write},
	"PEXPIRE":              {-3, 1, 1, 1, write},
	"PEXPIREAT":            {-3, 1, 1, 1, write},
	"PEXPIRETIME":          {2, 1, 1, 1, 0},
	"PFADD":                {-2, 1, 1, 1, write},
	"PFCOUNT":              {-2, 1, -1, 1, 0},
	"PFDEBUG":              {3, 2, 2, 1, write},
	"PFMERGE":              {-2, 1, -1, 1, write},
	"PFSELFTEST":           {1, 0, 0, 0, 0},
	"PING":                 {-1, 0, 0, 0, 0},
	"PSETEX":               {4, 1, 1, 1, write},
	"PSUBSCRIBE":           {-2, 0, 0, 0, noscript},
	"PSYNC":                {-3, 0, 0, 0, noscript},
	"PTTL":                 {2, 1, 1, 1, 0},
	"PUBLISH":              {3, 0, 0, 0, 0},
	"PUBSUB":               {-2, 0, 0, 0, 0},
	"PUNSUBSCRIBE":         {-1, 0, 0, 0, noscript},
	"QUIT":                 {-1, 0, 0, 0, noscript},
	"RANDOMKEY":            {1, 0, 0, 0, 0},
	"READONLY":             {1, 0, 0, 0, 0},
	"READWRITE":            {1, 0, 0, 0, 0},
	"RENAME":               {3, 1, 2, 1, write},
	"RENAMENX":             {3, 1, 2, 1, write},
	"REPLCONF":             {-1, 0, 0, 0, noscript},
	"REPLICAOF":            {3, 0, 0, 0, noscript},
	"RESET":                {1, 0, 0, 0, noscript},
	"RESTORE":              {-4, 1, 1, 1, write},
	"RESTORE-ASKING":       {-4, 1, 1, 1, write},
	"ROLE":                 {1, 0, 0, 0, noscript},
	"RPOP":                 {-2, 1, 1, 1, write},
	"RPOPLPUSH":            {3, 1, 2, 1, write},
	"RPUSH":                {-3, 1, 1, 1, write},
	"RPUSHX":               {-3, 1, 1, 1, write},
	"SADD":                 {-3, 1, 1, 1, write},
	"SAVE":                 {1, 0, 0, 0, noscript},
	"SCAN":                 {-2, 0, 0, 0, 0},
	"SCARD":                {2, 1, 1, 1, 0},
	"SCRIPT":               {-2, 0, 0, 0, 0},
	"SDIFF":                {-2, 1, -1, 1, 0},
	"SDIFFSTORE":           {-3, 1, -1, 1, write},
	"SELECT":               {2, 0, 0, 0, 0},
	"SET":                  {-3, 1, 1, 1, write},
	"SETBIT":               {4, 1, 1, 1, write},
	"SETEX":                {4, 1, 1, 1, write},
	"SETNX":                {3, 1, 1, 1, write},
	"SETRANGE":             {4, 1, 1, 1, write},
	"SHUTDOWN":             {-1, 0, 0, 0, noscript},
	"SINTER":               {-2, 1, -1, 1, 0},
	"SINTERCARD":           {-3, 0, 0, 0, 0},
	"SINTERSTORE":          {-3, 1, -1, 1, write},
	"SISMEMBER":            {3, 1, 1, 1, 0},
	"SLAVEOF":              {3, 0, 0, 0, noscript},
	"SLOWLOG":              {-2, 0, 0, 0, 0},
	"SMEMBERS":             {2, 1, 1, 1, 0},
	"SMISMEMBER":           {-3, 1, 1, 1, 0},
	"SMOVE":                {4, 1, 2, 1, write},
	"SORT":                 {-2, 1, 1, 1, write},
	"SORT_RO":              {-2, 1, 1, 1, 0},
	"SPOP":                 {-2, 1, 1, 1, write},
	"SPUBLISH":             {3, 1, 1, 1, 0},
	"SRANDMEMBER":          {-2, 1, 1, 1, 0},
	"SREM":                 {-3, 1, 1, 1, write},
	"SSCAN":                {-3, 1, 1, 1, 0},
	"SSUBSCRIBE":           {-2, 1, -1, 1, noscript},
	"STRLEN":               {2, 1, 1, 1, 0},
	"SUBSCRIBE":            {-2, 0, 0, 0, noscript},
	"SUBSTR":               {4, 1, 1, 1, 0},
	"SUNION":               {-2, 1, -1, 1, 0},
	"SUNIONSTORE":          {-3, 1, -1, 1, write},
	"SUNSUBSCRIBE":         {-1, 1, -1, 1, noscript},
	"SWAPDB":               {3, 0, 0, 0, write},
	"SYNC":                 {1, 0, 0, 0, noscript},
	"TIME":                 {1, 0, 0, 0, 0},
	"TOUCH":                {-2, 1, -1, 1, 0},
	"TTL":                  {2, 1, 1, 1, 0},
	"TYPE":                 {2, 1, 1, 1, 0},
	"UNLINK":               {-2, 1, -1, 1, write},
	"UNSUBSCRIBE":          {-1, 0, 0, 0, noscript},
	"UNWATCH":              {1, 0, 0, 0, noscript},
	"WAIT":                 {3, 0, 0, 0, noscript},
	"WATCH":                {-2, 1, -1, 1, noscript},
	"XACK":                 {-4, 1, 1, 1, write},
	"XADD":                 {-5, 1, 1, 1, write},
	"XAUTOCLAIM":           {-6, 1, 1, 1, write},
	"XCLAIM":               {-6, 1, 1, 1, write},
	"XDEL":                 {-3, 1, 1, 1, write},
	"XGROUP":               {-2, 0, 0, 0, 0},
	"XINFO":                {-2, 0, 0, 0, 0},
	"XLEN":                 {2, 1, 1, 1, 0},
	"XPENDING":             {-3, 1, 1, 1, 0},
	"XRANGE":               {-4, 1, 1, 1, 0},
	"XREAD":                {-4, 0, 0, 0, 0},
	"XREADGROUP":           {-7, 0, 0, 0, write},
	"XREVRANGE":            {-4, 1, 1, 1, 0},
	"XSETID":               {-3, 1, 1, 1, write},
	"XTRIM":                {-4, 1, 1, 1, write},
	"ZADD":                 {-4, 1, 1, 1, write},
	"ZCARD":                {2, 1, 1, 1, 0},
	"ZCOUNT":               {4, 1, 1, 1, 0},
	"ZDIFF":                {-3, 0, 0, 0, 0},
	"ZDIFFSTORE":           {-4, 1, 1, 1, write},
	"ZINCRBY":              {4, 1, 1, 1, write},
	"ZINTER":               {-3, 0, 0, 0, 0},
	"ZINTERCARD":           {-3, 0, 0, 0, 0},
	"ZINTERSTORE":          {-4, 1, 1, 1, write},
	"ZLEXCOUNT":            {4, 1, 1, 1, 0},
	"ZMPOP":                {-4, 0, 0, 0, write},
	"ZMSCORE":              {-3, 1, 1, 1, 0},
	"ZPOPMAX":              {-2, 1, 1, 1, write},
	"ZPOPMIN":              {-2, 1, 1, 1, write},
	"ZRANDMEMBER":          {-2, 1, 1, 1, 0},
	"ZRANGE":               {-4, 1, 1, 1, 0},
	"ZRANGEBYLEX":          {-4, 1, 1, 1, 0},
	"ZRANGEBYSCORE":        {-4, 1, 1, 1, 0},
	"ZRANGESTORE":          {-5, 1, 2, 1, write},
	"ZRANK":                {3, 1, 1, 1, 0},
	"ZREM":                 {-3, 1, 1, 1, write},
	"ZREMRANGEBYLEX":       {4, 1, 1, 1, write},
	"ZREMRANGEBYRANK":      {4, 1, 1, 1, write},
	"ZREMRANGEBYSCORE":     {4, 1, 1, 1, write},
	"ZREVRANGE":            {-4, 1, 1, 1, 0},
	"ZREVRANGEBYLEX":       {-4, 1, 1, 1, 0},
	"ZREVRANGEBYSCORE":     {-4, 1, 1, 1, 0},
	"ZREVRANK":             {3, 1, 1, 1, 0},
	"ZSCAN":                {-3, 1, 1, 1, 0},
	"ZSCORE":               {3, 1, 1, 1, 0},
	"ZUNION":               {-3, 0, 0, 0, 0},
	"ZUNIONSTORE":          {-4, 1, 1, 1, write},
}

// problem words what is wrong with a request before it runs. A server words it
// in one way to a client and in another to a script.
func (s shape) problem(known bool, args []string, nested bool) string {
	fits := len(args) == s.arity || s.arity < 0 && len(args) >= -s.arity
	switch {
	case known && fits && !(nested && s.flags&noscript != 0):
		return ""
	case !known && nested:
		return "ERR Unknown Redis command called from script"
	case !known:
		return unknownCommand(args)
	case !fits && nested:
		return "ERR Wrong number of args calling Redis command from script"
	case !fits:
		return wrongArity(args[0])
	}
	return errNotInScript
}

const errNotInScript = "ERR This Redis command is not allowed from script"

func wrongArity(name string) string {
	return "ERR wrong number of arguments for '" + strings.ToLower(name) + "' command"
}

// unknownCommand repeats the first 128 bytes or so of the arguments.
func unknownCommand(args []string) string {
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= 128 {
			break
		}
		b.WriteString("'" + cString(a[:min(len(a), 128-b.Len())]) + "' ")
	}
	return "ERR unknown command '" + cString(args[0][:min(len(args[0]), 128)]) + "', with args beginning with: " + b.String()
}

// cString ends where C ends a string.
func cString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// oneError keeps an error on its line.
func oneError(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
