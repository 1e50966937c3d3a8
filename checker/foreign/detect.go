package foreign

import (
	"bytes"
	"strings"
)

// Detect guesses from the beginning of a file what wrote it, "" for none of the
// formats of this package.
func Detect(head []byte) Format {
	rest := head
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n,\ufeff")
		if !bytes.HasPrefix(rest, []byte(";")) {
			break
		}
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[i:]
		} else {
			rest = nil
		}
	}
	inList := bytes.HasPrefix(rest, []byte("[")) || bytes.HasPrefix(rest, []byte("("))
	if inList {
		rest = bytes.TrimLeft(rest[1:], " \t\r\n,")
	}
	if bytes.HasPrefix(rest, []byte("#")) {
		return Jepsen
	}
	if !bytes.HasPrefix(rest, []byte("{")) {
		if inList && len(rest) > 0 && rest[0] == ']' {
			return Jepsen // an empty one, whichever it is
		}
		return ""
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n,")
	switch {
	case bytes.HasPrefix(rest, []byte(":")):
		return Jepsen
	case !bytes.HasPrefix(rest, []byte(`"`)):
		return ""
	case inList:
		return Porcupine
	}
	key, _, _ := strings.Cut(string(rest[1:]), `"`)
	switch key {
	case "ClientId", "Input", "Output", "Call", "Return", "Metadata":
		return Porcupine
	}
	return ""
}
