package sim

import (
	"bufio"
	"bytes"
	"crypto/sha1" // the name of a script in Redis, no secret
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	luajson "github.com/alicebob/miniredis/v2/gopher-json"
	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// A Lua state costs about 40 microseconds to prepare and a script about two to
// run, so states are kept and scripts are compiled once. A script leaves
// nothing behind in its state: globals are protected, as in Redis, and KEYS
// and ARGV are set anew.
var (
	luaStates sync.Pool // of *machine
	protos    sync.Map  // sha1 -> *lua.FunctionProto
)

// machine is one prepared Lua state.
type machine struct {
	L       *lua.LState
	scripts map[string]*lua.LFunction
	globals *lua.LTable
	// of the script that runs now
	node *node
	peer *server.Peer
	buf  *bytes.Buffer
	line string // of the last error that has no place of its own
}

func newMachine() *machine {
	m := &machine{L: lua.NewState(lua.Options{SkipOpenLibs: true}), scripts: map[string]*lua.LFunction{}, buf: &bytes.Buffer{}}
	m.peer = server.NewPeer(bufio.NewWriter(m.buf))
	L := m.L
	for _, lib := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath},
	} {
		L.Push(L.NewFunction(lib.open))
		L.Push(lua.LString(lib.name))
		L.Call(1, 0)
	}
	luajson.Preload(L)
	if err := L.DoString(`cjson = require("json")`); err != nil {
		panic(err) // our own three words
	}
	m.globals = L.Get(lua.GlobalsIndex).(*lua.LTable)
	m.library()
	for _, name := range []string{"print", "require", "module", "package", "dofile", "loadfile"} {
		m.globals.RawSetString(name, lua.LNil)
	}
	m.protect()
	return m
}

// library is the table redis and what Redis changes in Lua's own.
func (m *machine) library() {
	L := m.L
	redis := L.RegisterModule("redis", map[string]lua.LGFunction{
		"call":         func(L *lua.LState) int { return m.call(true) },
		"pcall":        func(L *lua.LState) int { return m.call(false) },
		"error_reply":  func(L *lua.LState) int { return m.reply("err") },
		"status_reply": func(L *lua.LState) int { return m.reply("ok") },
		"sha1hex": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				return m.raise("ERR wrong number of arguments")
			}
			L.Push(lua.LString(sha(lua.LVAsString(L.Get(1)))))
			return 1
		},
		"log":                func(*lua.LState) int { return 0 },
		"setresp":            func(*lua.LState) int { return 0 },
		"set_repl":           func(*lua.LState) int { return 0 },
		"replicate_commands": func(L *lua.LState) int { L.Push(lua.LTrue); return 1 },
	})
	for i, level := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		L.SetField(redis, level, lua.LNumber(i))
	}
	for name, v := range map[string]int{"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3, "REDIS_VERSION_NUM": 0x07000f} {
		L.SetField(redis, name, lua.LNumber(v))
	}
	L.SetField(redis, "REDIS_VERSION", lua.LString(redisVersion))
	inner := L.GetGlobal("pcall").(*lua.LFunction).GFunction
	L.SetGlobal("pcall", L.NewFunction(func(L *lua.LState) int { return pcall(L, inner) }))
	L.SetGlobal("error", L.NewFunction(m.error))
	tostring := L.GetGlobal("tostring").(*lua.LFunction).GFunction
	L.SetGlobal("tostring", L.NewFunction(func(L *lua.LState) int {
		if v, ok := L.Get(1).(lua.LNumber); ok {
			L.Push(lua.LString(formatG(float64(v), 14)))
			return 1
		}
		return tostring(L)
	}))
}

// pcall gives the text of an error reply and not its table, as in Redis.
func pcall(L *lua.LState, inner lua.LGFunction) int {
	n := inner(L)
	if n == 2 && L.Get(-2) == lua.LFalse {
		if t, ok := L.Get(-1).(*lua.LTable); ok {
			if msg, ok := t.RawGetString("err").(lua.LString); ok {
				L.Pop(1)
				L.Push(msg)
			}
		}
	}
	return n
}

// error is Lua's, and it notes the line: Redis adds it to the reply.
func (m *machine) error(L *lua.LState) int {
	m.line = m.here()
	v := L.Get(1)
	switch v := v.(type) {
	case lua.LString:
		if level := L.OptInt(2, 1); level > 0 {
			v = lua.LString(L.Where(level)+" ") + v
		}
		L.Error(v, 0)
	case *lua.LTable:
		v.RawSetString("line", lua.LString(m.line))
		L.Error(v, 0)
	}
	L.Error(v, 0)
	return 0
}

// here is the line of the script that runs.
func (m *machine) here() string {
	line, _ := lineOf(m.L.Where(1))
	return line
}

// lineOf finds the line in "user_script:3: something".
func lineOf(s string) (string, bool) {
	after, ok := strings.CutPrefix(s, "user_script:")
	line, _, found := strings.Cut(after, ":")
	return line, ok && found
}

// raise is an error of the script that names its line.
func (m *machine) raise(msg string) int { return m.result(m.errTable(msg), true) }

// formatG writes a number as C's printf does with %.<digits>g.
func formatG(v float64, digits int) string {
	switch {
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case math.IsNaN(v):
		return "nan"
	}
	return fmt.Sprintf("%.*g", digits, v)
}

// protect refuses globals, as Redis does: a forgotten local is an error.
func (m *machine) protect() {
	meta := m.L.NewTable()
	meta.RawSetString("__newindex", m.L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Attempt to modify a readonly table")
		return 0
	}))
	meta.RawSetString("__index", m.L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", L.ToString(2))
		return 0
	}))
	m.L.SetMetatable(m.globals, meta)
}

func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// compile parses a script once per process.
func compile(script, sha string) (*lua.FunctionProto, error) {
	if p, ok := protos.Load(sha); ok {
		return p.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(script), "user_script")
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %s", oneLine(err.Error()))
	}
	p, err := lua.Compile(chunk, "user_script")
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %s", oneLine(err.Error()))
	}
	protos.Store(sha, p)
	return p, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// runScript executes a compiled script on a node and writes its reply.
func (n *node) runScript(peer *server.Peer, name string, p *lua.FunctionProto, keys, argv []string) {
	m, ok := luaStates.Get().(*machine)
	if !ok {
		m = newMachine()
	}
	defer luaStates.Put(m)
	m.node, m.line = n, "1"
	f, ok := m.scripts[name]
	if !ok {
		f = m.L.NewFunctionFromProto(p)
		m.scripts[name] = f
	}
	m.globals.RawSetString("KEYS", m.list(keys))
	m.globals.RawSetString("ARGV", m.list(argv))
	m.L.SetTop(0)
	m.L.Push(f)
	if err := m.L.PCall(0, 1, nil); err != nil {
		fail(peer, m.scriptError(err, name))
		return
	}
	v := m.L.Get(-1)
	m.L.SetTop(0)
	writeLua(peer, v)
}

func (m *machine) list(values []string) *lua.LTable {
	t := m.L.CreateTable(len(values), 0)
	for i, v := range values {
		t.RawSetInt(i+1, lua.LString(v))
	}
	return t
}

// scriptError words a failure in a script as Redis 7.0 does: an error reply of
// redis.call keeps its code, anything else is an ERR of the script.
func (m *machine) scriptError(err error, name string) string {
	msg, line := err.Error(), m.line
	var api *lua.ApiError
	if errors.As(err, &api) {
		msg = api.Object.String()
		if t, ok := api.Object.(*lua.LTable); ok {
			if reply, ok := t.RawGetString("err").(lua.LString); ok {
				if at, ok := t.RawGetString("line").(lua.LString); ok {
					line = string(at)
				}
				return fmt.Sprintf("%s script: %s, on @user_script:%s.", reply, name, line)
			}
		}
	}
	if at, ok := lineOf(msg); ok {
		line = at
	}
	return fmt.Sprintf("ERR %s script: %s, on @user_script:%s.", msg, name, line)
}

// call is redis.call, which raises errors, and redis.pcall, which returns
// them.
func (m *machine) call(raise bool) int {
	L := m.L
	args := make([]string, 0, 8)
	for i := 1; i <= L.GetTop(); i++ {
		switch a := L.Get(i).(type) {
		case lua.LNumber:
			args = append(args, formatG(float64(a), 17))
		case lua.LString:
			args = append(args, string(a))
		default:
			return m.result(m.errTable("ERR Lua redis lib command arguments must be strings or integers"), raise)
		}
	}
	if len(args) == 0 {
		return m.result(m.errTable("ERR Please specify at least one argument for this redis lib call"), raise)
	}
	m.buf.Reset()
	m.node.command(m.peer, args, true)
	m.peer.Flush()
	v, _ := luaReply(L, m.buf.Bytes())
	return m.result(v, raise)
}

func (m *machine) errTable(msg string) *lua.LTable {
	t := m.L.NewTable()
	t.RawSetString("err", lua.LString(msg))
	return t
}

func (m *machine) result(v lua.LValue, raise bool) int {
	if t, ok := v.(*lua.LTable); ok && raise && t.RawGetString("err") != lua.LNil {
		t.RawSetString("line", lua.LString(m.here()))
		m.L.Error(t, 0)
		return 0
	}
	m.L.Push(v)
	return 1
}

// reply is redis.error_reply and redis.status_reply.
func (m *machine) reply(field string) int {
	arg, ok := m.L.Get(1).(lua.LString)
	if !ok || m.L.GetTop() != 1 {
		return m.result(m.errTable("ERR wrong number or type of arguments"), false)
	}
	msg := string(arg)
	if field == "err" {
		msg = strings.TrimPrefix(msg, "-")
		if !strings.Contains(msg, " ") {
			msg = "ERR " + msg
		}
	}
	t := m.L.NewTable()
	t.RawSetString(field, lua.LString(msg))
	m.L.Push(t)
	return 1
}

// writeLua turns what a script returns into a reply.
func writeLua(peer *server.Peer, v lua.LValue) {
	switch t := v.(type) {
	case lua.LBool:
		if t {
			peer.WriteInt(1)
			return
		}
		peer.WriteNull()
	case lua.LNumber:
		peer.WriteInt(int(t)) // Redis cuts off the fraction
	case lua.LString:
		peer.WriteBulk(string(t))
	case *lua.LTable:
		writeTable(peer, t)
	default:
		peer.WriteNull()
	}
}

// writeTable looks for the fields that make a table something else than an
// array, in the order in which Redis does.
func writeTable(peer *server.Peer, t *lua.LTable) {
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		fail(peer, string(s))
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		peer.WriteRaw("+" + oneError(string(s)) + "\r\n")
		return
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		s := formatG(float64(f), 17)
		if peer.Resp3 {
			peer.WriteRaw("," + s + "\r\n")
			return
		}
		peer.WriteBulk(s)
		return
	}
	if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		n := 0
		m.ForEach(func(_, _ lua.LValue) { n++ })
		peer.WriteMapLen(n)
		m.ForEach(func(k, v lua.LValue) { writeLua(peer, k); writeLua(peer, v) })
		return
	}
	if set, ok := t.RawGetString("set").(*lua.LTable); ok {
		n := 0
		set.ForEach(func(_, _ lua.LValue) { n++ })
		peer.WriteSetLen(n)
		set.ForEach(func(k, _ lua.LValue) { writeLua(peer, k) })
		return
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil { // an array ends at its first nil
		n++
	}
	peer.WriteLen(n)
	for i := 1; i <= n; i++ {
		writeLua(peer, t.RawGetInt(i))
	}
}
