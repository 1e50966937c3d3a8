package sim

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// parseAll takes requests off the front until one is incomplete or wrong.
func parseAll(b []byte) (all [][]string, rest []byte, wrong bool) {
	for {
		args, after, err := parseCommand(b)
		if err != nil || args == nil {
			return all, b, err != nil
		}
		all, b = append(all, args), after
	}
}

// FuzzParseCommand: nothing panics, and it does not matter in which pieces
// the bytes come.
func FuzzParseCommand(f *testing.F) {
	for _, seed := range []string{
		"", "*1\r\n$4\r\nPING\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n", "*0\r\n", "*-1\r\n", "*1\r\n$-1\r\n", "*1\r\n$3\r\nab", "*1\r\n$3\r\nabc",
		"PING\r\n", "*x\r\n", "*1\n$1\na\r\n", "*1048577\r\n", "*1\r\n$536870913\r\n", "*1\r\n:1\r\n", "*99999999999999999999\r\n", "*1048576\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		all, rest, wrong := parseAll(b)
		if at < 0 || at > len(b) {
			return
		}
		head, left, early := parseAll(b[:at])
		if early {
			if !wrong {
				t.Fatalf("%q is wrong, %q is not", b[:at], b)
			}
			return
		}
		tail, after, late := parseAll(append(slices.Clone(left), b[at:]...))
		pieces := append(head, tail...)
		if fmt.Sprint(pieces) != fmt.Sprint(all) || !bytes.Equal(after, rest) || late != wrong {
			t.Fatalf("at once %q %q %v, in pieces %q %q %v", all, rest, wrong, pieces, after, late)
		}
	})
}

func TestLuaReply(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	for reply, want := range map[string]string{
		"+OK\r\n": "table ok=OK", "-ERR x\r\n": "table err=ERR x", ":-7\r\n": "number -7", "$2\r\nab\r\n": "string ab", "$0\r\n\r\n": "string ",
		"$-1\r\n": "boolean false", "*-1\r\n": "boolean false", "*2\r\n:1\r\n$-1\r\n": "table 1,false", "*0\r\n": "table ", "": "boolean false",
	} {
		v, rest := luaReply(L, []byte(reply))
		got := v.Type().String() + " "
		if table, ok := v.(*lua.LTable); ok {
			table.ForEach(func(k, v lua.LValue) {
				switch {
				case k.Type() == lua.LTString:
					got += k.String() + "=" + v.String()
				case k == lua.LNumber(1):
					got += v.String()
				default:
					got += "," + v.String()
				}
			})
		} else {
			got += v.String()
		}
		if got != want || len(rest) != 0 {
			t.Errorf("%q became %q and left %q, want %q", reply, got, rest, want)
		}
	}
}
