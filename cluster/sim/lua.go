package sim

import (
	"bufio"
	"bytes"
	"crypto/sha1" // the name of a script in Redis, no secret
	"encoding/hex"
	"fmt"
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
	sha  string
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
	redis := L.RegisterModule("redis", map[string]lua.LGFunction{
		"call":         func(L *lua.LState) int { return m.call(true) },
		"pcall":        func(L *lua.LState) int { return m.call(false) },
		"error_reply":  func(L *lua.LState) int { return m.reply("err") },
		"status_reply": func(L *lua.LState) int { return m.reply("ok") },
		"sha1hex": func(L *lua.LState) int {
			L.Push(lua.LString(sha(L.CheckString(1))))
			return 1
		},
		"log":                func(*lua.LState) int { return 0 },
		"replicate_commands": func(L *lua.LState) int { L.Push(lua.LTrue); return 1 },
		"set_repl":           func(*lua.LState) int { return 0 },
	})
	for i, level := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		L.SetField(redis, level, lua.LNumber(i))
	}
	for _, name := range []string{"print", "require", "module", "package", "dofile", "loadfile"} {
		m.globals.RawSetString(name, lua.LNil)
	}
	m.protect()
	return m
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
	m.node, m.sha = n, name
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
		peer.WriteError(scriptError(err, name))
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
func scriptError(err error, name string) string {
	if api, ok := err.(*lua.ApiError); ok {
		if t, ok := api.Object.(*lua.LTable); ok {
			if msg, ok := t.RawGetString("err").(lua.LString); ok {
				return fmt.Sprintf("%s script: %s, on @user_script:1.", msg, name)
			}
		}
		return fmt.Sprintf("ERR %s script: %s, on @user_script:1.", oneLine(api.Object.String()), name)
	}
	return fmt.Sprintf("ERR %s script: %s, on @user_script:1.", oneLine(err.Error()), name)
}

// call is redis.call, which raises errors, and redis.pcall, which returns
// them.
func (m *machine) call(raise bool) int {
	L := m.L
	args := make([]string, 0, 8)
	for i := 1; i <= L.GetTop(); i++ {
		switch a := L.Get(i).(type) {
		case lua.LNumber:
			args = append(args, a.String())
		case lua.LString:
			args = append(args, string(a))
		default:
			return m.result(m.errTable("ERR Lua redis lib command arguments must be strings or integers"), raise)
		}
	}
	if len(args) == 0 {
		return m.result(m.errTable("ERR Please specify at least one argument for this redis.call() call"), raise)
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
		m.L.Error(t, 0)
		return 0
	}
	m.L.Push(v)
	return 1
}

// reply is redis.error_reply and redis.status_reply.
func (m *machine) reply(field string) int {
	msg := m.L.CheckString(1)
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
		if s, ok := t.RawGetString("err").(lua.LString); ok {
			peer.WriteError(string(s))
			return
		}
		if s, ok := t.RawGetString("ok").(lua.LString); ok {
			peer.WriteInline(string(s))
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
	default:
		peer.WriteNull()
	}
}
