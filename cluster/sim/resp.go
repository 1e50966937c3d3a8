package sim

import (
	"bytes"
	"errors"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// errProtocol is what Redis calls a request that is no array of bulk strings.
var errProtocol = errors.New("ERR Protocol error: expected '*' and '$'")

// maxBulk bounds one argument, as proto-max-bulk-len does.
const maxBulk = 512 << 20

// maxHeader bounds a line that holds a number.
const maxHeader = 64

// parseCommand takes one whole request off the front of b. It returns nil
// arguments and no error while the request is incomplete.
func parseCommand(b []byte) (args []string, rest []byte, err error) {
	n, rest, ok, err := header(b, '*')
	if err != nil || !ok {
		return nil, b, err
	}
	args = make([]string, 0, max(n, 0))
	for range n {
		size, after, ok, err := header(rest, '$')
		if err != nil || !ok {
			return nil, b, err
		}
		if size < 0 || size > maxBulk {
			return nil, b, errProtocol
		}
		if len(after) < size+2 {
			return nil, b, nil
		}
		args = append(args, string(after[:size]))
		rest = after[size+2:]
	}
	return args, rest, nil
}

// header reads "*3\r\n".
func header(b []byte, mark byte) (n int, rest []byte, ok bool, err error) {
	if len(b) == 0 {
		return 0, b, false, nil
	}
	if b[0] != mark {
		return 0, b, false, errProtocol
	}
	end := bytes.IndexByte(b, '\n')
	switch {
	case end > maxHeader || end < 0 && len(b) > maxHeader:
		return 0, b, false, errProtocol
	case end < 0:
		return 0, b, false, nil
	}
	n, err = strconv.Atoi(string(bytes.TrimSuffix(b[1:end], []byte("\r"))))
	if err != nil || n > 1<<20 {
		return 0, b, false, errProtocol
	}
	return n, b[end+1:], true, nil
}

// luaReply turns a RESP2 reply into the Lua value that redis.call returns,
// as the Redis documentation of Lua conversion lists them.
func luaReply(L *lua.LState, b []byte) (v lua.LValue, rest []byte) {
	end := bytes.IndexByte(b, '\n')
	if end < 1 {
		return lua.LFalse, nil
	}
	line, rest := string(bytes.TrimSuffix(b[1:end], []byte("\r"))), b[end+1:]
	switch b[0] {
	case '+':
		t := L.NewTable()
		t.RawSetString("ok", lua.LString(line))
		return t, rest
	case '-':
		t := L.NewTable()
		t.RawSetString("err", lua.LString(line))
		return t, rest
	case ':':
		n, _ := strconv.ParseInt(line, 10, 64) // a server writes digits
		return lua.LNumber(n), rest
	case '$':
		n, _ := strconv.Atoi(line)
		if n < 0 || len(rest) < n+2 {
			return lua.LFalse, rest
		}
		return lua.LString(rest[:n]), rest[n+2:]
	case '*':
		n, _ := strconv.Atoi(line)
		if n < 0 {
			return lua.LFalse, rest
		}
		t := L.CreateTable(n, 0)
		for i := 1; i <= n; i++ {
			var e lua.LValue
			e, rest = luaReply(L, rest)
			t.RawSetInt(i, e)
		}
		return t, rest
	}
	return lua.LFalse, rest
}
