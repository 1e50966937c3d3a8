package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// readItem reads the next thing that a monitoring connection carries: a line
// of MONITOR, or a message of a subscription as its strings. Both are empty for
// anything else.
func readItem(r *bufio.Reader) (line string, push []string, err error) {
	head, err := readLine(r)
	if err != nil {
		return "", nil, err
	}
	if head == "" {
		return "", nil, errors.New("an empty line where a reply should be")
	}
	switch head[0] {
	case '+':
		return head[1:], nil, nil
	case '-':
		return "", nil, fmt.Errorf("the server says %s", head[1:])
	case '>', '*', '%', '~':
		size, err := strconv.Atoi(head[1:])
		if err != nil {
			return "", nil, fmt.Errorf("length of %q: %w", head, err)
		}
		if head[0] == '%' {
			size *= 2
		}
		var parts []string
		for range size {
			line, inner, err := readItem(r)
			if err != nil {
				return "", nil, err
			}
			if inner == nil {
				parts = append(parts, line)
			}
		}
		if head[0] != '>' {
			return "", []string{}, nil
		}
		return "", parts, nil
	case '$', '=':
		size, err := strconv.Atoi(head[1:])
		if err != nil || size < 0 {
			return "", nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", nil, err
		}
		return string(text[:size]), nil, nil
	}
	return head[1:], nil, nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// command is one line of MONITOR.
type command struct {
	shown time.Time // on the node's wall clock, to the microsecond
	from  string    // the address, or "lua" for a command of a script
	args  []string
	name  string // args[0] in capitals
}

// parseMonitor reads a line such as
//
//	1700000000.123456 [0 127.0.0.1:5555] "SET" "lock:x" "a \"b\""
func parseMonitor(line string) (command, bool) {
	stamp, rest, ok := strings.Cut(line, " [")
	if !ok {
		return command{}, false
	}
	secs, micros, ok := strings.Cut(stamp, ".")
	s, err1 := strconv.ParseInt(secs, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return command{}, false
	}
	where, rest, ok := strings.Cut(rest, "] ")
	if !ok {
		return command{}, false
	}
	_, from, _ := strings.Cut(where, " ")
	c := command{shown: time.Unix(s, us*1000), from: from, args: unquoteAll(rest)}
	if len(c.args) == 0 {
		return command{}, false
	}
	c.name = strings.ToUpper(c.args[0])
	return c, true
}

// unquoteAll undoes the quoting of MONITOR's arguments.
func unquoteAll(text string) []string {
	var args []string
	var arg strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '"' && inside:
			args = append(args, arg.String())
			inside = false
		case ch == '"':
			arg.Reset()
			inside = true
		case !inside:
		case ch == '\\' && i+3 < len(text) && text[i+1] == 'x':
			if b, err := strconv.ParseUint(text[i+2:i+4], 16, 8); err == nil {
				arg.WriteByte(byte(b))
			}
			i += 3
		case ch == '\\' && i+1 < len(text):
			i++
			if at := strings.IndexByte("nrtab", text[i]); at >= 0 {
				arg.WriteByte("\n\r\t\a\b"[at])
			} else {
				arg.WriteByte(text[i])
			}
		default:
			arg.WriteByte(ch)
		}
	}
	return args
}
