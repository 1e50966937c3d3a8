package sim

import (
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// dataHandler answers a command on keys.
type dataHandler func(n *node, peer *server.Peer, args []string)

// ownData finds the commands on keys that the node answers itself.
func ownData(name string) dataHandler {
	if f := expireHandler(name); f != nil {
		return f
	}
	return stringHandler(name)
}

// handler answers one command; nested says that a script calls it.
type handler func(n *node, peer *server.Peer, args []string, nested bool)

// own finds the commands that the node answers itself: scripts, because their
// Lua states are pooled; the hand-shake, because it names the server; time,
// because the node has a clock of its own.
func own(name string) handler {
	switch name {
	case "EVAL", "EVALSHA":
		return (*node).eval
	case "SCRIPT":
		return (*node).script
	case "HELLO":
		return (*node).hello
	case "CLIENT":
		return (*node).client
	case "TIME":
		return (*node).time
	case "PING":
		return (*node).ping
	}
	return nil
}

// notSimulated are commands that miniredis has and that would need goroutines
// or replies of their own accord. They say so instead of pretending.
var notSimulated = map[string]string{
	"WAIT": "replicas do not acknowledge yet", "MONITOR": "use the server trace",
	"SUBSCRIBE": "no push messages yet", "PSUBSCRIBE": "no push messages yet", "SSUBSCRIBE": "no push messages yet",
	"BLPOP": "no blocking reads yet", "BRPOP": "no blocking reads yet", "BLMOVE": "no blocking reads yet",
	"BRPOPLPUSH": "no blocking reads yet", "BZPOPMIN": "no blocking reads yet", "BZPOPMAX": "no blocking reads yet",
	"MULTI": "transactions are not simulated yet", "EXEC": "transactions are not simulated yet",
	"WATCH": "transactions are not simulated yet", "XREAD": "no blocking reads yet", "XREADGROUP": "no blocking reads yet",
}

// sweeps are commands that look at or change keys they do not name, or name in
// a place of their own.
var sweeps = map[string]bool{
	"KEYS": true, "SCAN": true, "DBSIZE": true, "RANDOMKEY": true, "FLUSHALL": true, "FLUSHDB": true, "SORT": true,
	"ZUNION": true, "ZINTER": true, "ZDIFF": true, "ZINTERCARD": true, "SINTERCARD": true, "LMPOP": true, "ZMPOP": true,
	"ZUNIONSTORE": true, "ZINTERSTORE": true, "ZDIFFSTORE": true,
}

// keysOf lists the keys that a request names.
func keysOf(name string, args []string) []string {
	if name == "EVAL" || name == "EVALSHA" {
		keys, _, problem := scriptArgs(args)
		if problem != "" {
			return nil
		}
		return keys
	}
	s := shapes[name]
	last := s.last
	if last < 0 {
		last += len(args)
	}
	if s.first == 0 || last < s.first || last >= len(args) {
		return nil
	}
	if s.step == 1 {
		return args[s.first : last+1]
	}
	var keys []string
	for i := s.first; i <= last; i += s.step {
		keys = append(keys, args[i])
	}
	return keys
}

// scriptArgs splits the arguments of EVAL into keys and the rest.
func scriptArgs(args []string) (keys, argv []string, problem string) {
	if len(args) < 3 {
		return nil, nil, wrongArity(args[0])
	}
	n, ok := integer(args[2])
	switch {
	case !ok:
		return nil, nil, errInteger
	case n > int64(len(args)-3):
		return nil, nil, "ERR Number of keys can't be greater than number of args"
	case n < 0:
		return nil, nil, "ERR Number of keys can't be negative"
	}
	return args[3 : 3+n], args[3+n:], ""
}

func (n *node) eval(peer *server.Peer, args []string, _ bool) {
	bySha := strings.EqualFold(args[0], "EVALSHA")
	if bySha && len(args[1]) != 40 {
		fail(peer, errNoScript)
		return
	}
	keys, argv, problem := scriptArgs(args)
	if problem == "" {
		problem = n.errReply
	}
	if problem != "" {
		fail(peer, problem)
		return
	}
	name := strings.ToLower(args[1])
	source := n.scripts[name]
	if !bySha {
		source, name = args[1], sha(args[1])
	} else if source == "" {
		fail(peer, errNoScript)
		return
	}
	p, err := compile(source, name)
	if err != nil {
		fail(peer, err.Error()+" script: "+name+", on @user_script:1.")
		return
	}
	n.scripts[name] = source
	n.runScript(peer, name, p, keys, argv)
}

const errNoScript = "NOSCRIPT No matching script. Please use EVAL."

// arities of subcommands, with both names. Those that are missing here and
// that Redis 7.0 has are not simulated.
var (
	scriptArity = map[string]int{"LOAD": 3, "EXISTS": -3, "FLUSH": -2, "KILL": 2}
	clientArity = map[string]int{"SETNAME": 3, "GETNAME": 2, "ID": 2}
)

// subcommand gives the subcommand's name, or what is wrong with it.
func subcommand(args []string, arities map[string]int, nested bool) (sub, problem string) {
	sub = strings.ToUpper(args[1])
	arity, ok := arities[sub]
	switch {
	case !ok:
		return "", "ERR unknown subcommand '" + cString(args[1]) + "'. Try " + strings.ToUpper(args[0]) + " HELP."
	case len(args) != arity && (arity > 0 || len(args) < -arity):
		return "", wrongArity(args[0] + "|" + args[1])
	case nested:
		return "", errNotInScript
	}
	return sub, ""
}

func (n *node) script(peer *server.Peer, args []string, nested bool) {
	sub, problem := subcommand(args, scriptArity, nested)
	switch {
	case problem != "":
		fail(peer, problem)
	case sub == "LOAD":
		name := sha(args[2])
		if _, err := compile(args[2], name); err != nil {
			fail(peer, err.Error())
			return
		}
		n.scripts[name] = args[2]
		peer.WriteBulk(name)
	case sub == "EXISTS":
		peer.WriteLen(len(args) - 2)
		for _, name := range args[2:] {
			_, ok := n.scripts[strings.ToLower(name)]
			peer.WriteInt(map[bool]int{true: 1}[ok])
		}
	case sub == "KILL":
		fail(peer, "NOTBUSY No scripts in execution right now.")
	case len(args) > 3 || len(args) == 3 && !strings.EqualFold(args[2], "SYNC") && !strings.EqualFold(args[2], "ASYNC"):
		fail(peer, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	default:
		n.scripts = map[string]string{}
		peer.WriteOK()
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
		v, ok := integer(args[1])
		if !ok {
			fail(peer, "ERR Protocol version is not an integer or out of range")
			return
		}
		if v != 2 && v != 3 {
			fail(peer, "NOPROTO unsupported protocol version")
			return
		}
		version = int(v)
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

func (n *node) client(peer *server.Peer, args []string, nested bool) {
	sub, problem := subcommand(args, clientArity, nested)
	switch {
	case problem != "": // CLIENT SETINFO and MAINT_NOTIFICATIONS are newer than 7.0
		fail(peer, problem)
	case sub == "SETNAME" && strings.ContainsFunc(args[2], func(r rune) bool { return r < '!' || r > '~' }):
		fail(peer, "ERR Client names cannot contain spaces, newlines or special characters.")
	case sub == "SETNAME":
		peer.ClientName = args[2]
		peer.WriteOK()
	case sub == "GETNAME":
		writeValue(peer, peer.ClientName, peer.ClientName != "")
	default:
		peer.WriteInt(1)
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
		fail(peer, wrongArity(args[0]))
	}
}
