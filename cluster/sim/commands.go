package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// own finds the commands that the node answers itself: scripts, because their
// Lua states are pooled; the hand-shake, because it names the server; time,
// because the node has a clock of its own.
func (n *node) own(name string) func(peer *server.Peer, args []string, nested bool) {
	switch name {
	case "EVAL", "EVALSHA":
		return n.eval
	case "SCRIPT":
		return n.script
	case "HELLO":
		return n.hello
	case "CLIENT":
		return n.client
	case "TIME":
		return n.time
	case "PING":
		return n.ping
	}
	return nil
}

// notSimulated are commands that would need goroutines or replies of their own
// accord. They say so instead of pretending.
var notSimulated = map[string]string{
	"WAIT": "replicas do not acknowledge yet", "MONITOR": "use the server trace",
	"SUBSCRIBE": "no push messages yet", "PSUBSCRIBE": "no push messages yet", "SSUBSCRIBE": "no push messages yet",
	"BLPOP": "no blocking reads yet", "BRPOP": "no blocking reads yet", "BLMOVE": "no blocking reads yet",
	"BRPOPLPUSH": "no blocking reads yet", "BZPOPMIN": "no blocking reads yet", "BZPOPMAX": "no blocking reads yet",
	"MULTI": "transactions are not simulated yet", "EXEC": "transactions are not simulated yet",
	"WATCH": "transactions are not simulated yet", "XREAD": "no blocking reads yet", "XREADGROUP": "no blocking reads yet",
}

// sweeps are commands that look at or change keys they do not name.
var sweeps = map[string]bool{
	"KEYS": true, "SCAN": true, "DBSIZE": true, "RANDOMKEY": true, "FLUSHALL": true, "FLUSHDB": true, "SORT": true,
}

// allKeys are commands whose every argument is a key.
var allKeys = map[string]bool{
	"DEL": true, "UNLINK": true, "EXISTS": true, "TOUCH": true, "MGET": true,
	"RENAME": true, "RENAMENX": true, "COPY": true, "SINTERSTORE": true, "SUNIONSTORE": true, "SDIFFSTORE": true,
}

// noKeys are commands without a key.
var noKeys = map[string]bool{
	"PING": true, "ECHO": true, "SELECT": true, "AUTH": true, "QUIT": true, "HELLO": true, "CLIENT": true,
	"INFO": true, "COMMAND": true, "SCRIPT": true, "TIME": true, "PUBLISH": true, "CONFIG": true, "MULTI": true,
	"EXEC": true, "DISCARD": true, "CLUSTER": true, "DEBUG": true, "FLUSHALL": true, "FLUSHDB": true,
	"KEYS": true, "SCAN": true, "DBSIZE": true, "RANDOMKEY": true, "SWAPDB": true, "UNWATCH": true, "RESET": true,
}

// keysOf lists the keys that a request names.
func keysOf(name string, args []string) []string {
	switch {
	case name == "EVAL" || name == "EVALSHA":
		keys, _, err := scriptArgs(args)
		if err != "" {
			return nil
		}
		return keys
	case noKeys[name] || len(args) < 2:
		return nil
	case name == "MSET" || name == "MSETNX":
		var keys []string
		for i := 1; i < len(args); i += 2 {
			keys = append(keys, args[i])
		}
		return keys
	case allKeys[name]:
		return args[1:]
	}
	return args[1:2]
}

// scriptArgs splits the arguments of EVAL into keys and the rest.
func scriptArgs(args []string) (keys, argv []string, problem string) {
	if len(args) < 3 {
		return nil, nil, fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(args[0]))
	}
	n, err := strconv.Atoi(args[2])
	switch {
	case err != nil:
		return nil, nil, "ERR value is not an integer or out of range"
	case n < 0:
		return nil, nil, "ERR Number of keys can't be negative"
	case n > len(args)-3:
		return nil, nil, "ERR Number of keys can't be greater than number of args"
	}
	return args[3 : 3+n], args[3+n:], ""
}

func (n *node) eval(peer *server.Peer, args []string, nested bool) {
	if nested {
		peer.WriteError("ERR This Redis command is not allowed from script")
		return
	}
	keys, argv, problem := scriptArgs(args)
	if problem != "" {
		peer.WriteError(problem)
		return
	}
	if n.errReply != "" {
		peer.WriteError(n.errReply)
		return
	}
	name := strings.ToLower(args[1])
	source := n.scripts[name]
	if strings.EqualFold(args[0], "EVAL") {
		source, name = args[1], sha(args[1])
	} else if source == "" {
		peer.WriteError("NOSCRIPT No matching script. Please use EVAL.")
		return
	}
	p, err := compile(source, name)
	if err != nil {
		peer.WriteError(err.Error() + " script: " + name)
		return
	}
	n.scripts[name] = source
	n.runScript(peer, name, p, keys, argv)
}

func (n *node) script(peer *server.Peer, args []string, nested bool) {
	sub := ""
	if len(args) > 1 {
		sub = strings.ToUpper(args[1])
	}
	switch {
	case nested:
		peer.WriteError("ERR This Redis command is not allowed from script")
	case sub == "LOAD" && len(args) == 3:
		name := sha(args[2])
		if _, err := compile(args[2], name); err != nil {
			peer.WriteError(err.Error())
			return
		}
		n.scripts[name] = args[2]
		peer.WriteBulk(name)
	case sub == "EXISTS" && len(args) > 2:
		peer.WriteLen(len(args) - 2)
		for _, name := range args[2:] {
			_, ok := n.scripts[strings.ToLower(name)]
			peer.WriteInt(map[bool]int{true: 1}[ok])
		}
	case sub == "FLUSH":
		n.scripts = map[string]string{}
		peer.WriteOK()
	default:
		peer.WriteError(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try SCRIPT HELP.", strings.Join(args[1:], " ")))
	}
}

// hello is the hand-shake of RESP3 clients, with the version that the
// differential test compares against.
func (n *node) hello(peer *server.Peer, args []string, _ bool) {
	version := 2
	if peer.Resp3 {
		version = 3
	}
	if len(args) > 1 {
		v, err := strconv.Atoi(args[1])
		if err != nil {
			peer.WriteError("ERR Protocol version is not an integer or out of range")
			return
		}
		if v != 2 && v != 3 {
			peer.WriteError("NOPROTO unsupported protocol version")
			return
		}
		version = v
	}
	for i := 2; i < len(args); i++ {
		if strings.EqualFold(args[i], "SETNAME") && i+1 < len(args) {
			peer.ClientName = args[i+1]
		}
	}
	role := "master"
	if n.replica {
		role = "replica"
	}
	peer.Resp3 = version == 3
	peer.WriteMapLen(7)
	for _, f := range [][2]string{{"server", "redis"}, {"version", redisVersion}} {
		peer.WriteBulk(f[0])
		peer.WriteBulk(f[1])
	}
	peer.WriteBulk("proto")
	peer.WriteInt(version)
	peer.WriteBulk("id")
	peer.WriteInt(1)
	peer.WriteBulk("mode")
	peer.WriteBulk("standalone")
	peer.WriteBulk("role")
	peer.WriteBulk(role)
	peer.WriteBulk("modules")
	peer.WriteLen(0)
}

// redisVersion is the Redis whose replies the node gives.
const redisVersion = "7.0.15"

func (n *node) client(peer *server.Peer, args []string, _ bool) {
	sub := ""
	if len(args) > 1 {
		sub = strings.ToUpper(args[1])
	}
	switch {
	case sub == "SETNAME" && len(args) == 3:
		peer.ClientName = args[2]
		peer.WriteOK()
	case sub == "GETNAME":
		if peer.ClientName == "" {
			peer.WriteNull()
			return
		}
		peer.WriteBulk(peer.ClientName)
	case sub == "ID":
		peer.WriteInt(1)
	default: // CLIENT SETINFO and MAINT_NOTIFICATIONS are newer than 7.0
		peer.WriteError(fmt.Sprintf("ERR unknown subcommand '%s'. Try CLIENT HELP.", strings.Join(args[1:2], "")))
	}
}

func (n *node) time(peer *server.Peer, _ []string, _ bool) {
	now := n.wall()
	peer.WriteLen(2)
	peer.WriteBulk(strconv.FormatInt(now.Unix(), 10))
	peer.WriteBulk(strconv.Itoa(now.Nanosecond() / 1000))
}

func (n *node) ping(peer *server.Peer, args []string, _ bool) {
	switch len(args) {
	case 1:
		peer.WriteInline("PONG")
	case 2:
		peer.WriteBulk(args[1])
	default:
		peer.WriteError("ERR wrong number of arguments for 'ping' command")
	}
}
