package process

import (
	"bytes"
	"strconv"
)

// requestScanner finds the command names in a stream of Redis requests: arrays
// of bulk strings, or inline commands.
type requestScanner struct {
	buf []byte
}

// feed takes the next bytes and gives the names of the commands that are
// complete with them.
func (r *requestScanner) feed(data []byte) []string {
	r.buf = append(r.buf, data...)
	var names []string
	for len(r.buf) > 0 {
		n := replyLen(r.buf)
		if n == 0 {
			return names
		}
		if n < 0 || r.buf[0] != '*' {
			// An inline command is a line that is no RESP value.
			end := bytes.IndexByte(r.buf, '\n')
			if end < 0 {
				return names
			}
			if words := bytes.Fields(r.buf[:end]); len(words) > 0 {
				names = append(names, string(words[0]))
			}
			r.buf = r.buf[end+1:]
			continue
		}
		names = append(names, firstBulk(r.buf[:n]))
		r.buf = r.buf[n:]
	}
	return names
}

// firstBulk is the first bulk string of an array that is complete.
func firstBulk(array []byte) string {
	_, rest, _ := bytes.Cut(array, []byte("\r\n"))
	_, rest, _ = bytes.Cut(rest, []byte("\r\n"))
	name, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return string(name)
}

// replyScanner counts the replies in a stream. Push messages of RESP3 are no
// replies; those of RESP2 (after SUBSCRIBE) cannot be told from replies and
// are counted.
type replyScanner struct {
	buf   []byte
	count int
}

// feed takes the next bytes and gives those of complete replies. With lose
// above zero it holds back the reply of that number and all that follows, and
// says that the stream is over.
func (r *replyScanner) feed(data []byte, lose int) (pass []byte, goOn bool) {
	r.buf = append(r.buf, data...)
	done := 0
	for done < len(r.buf) {
		n := replyLen(r.buf[done:])
		if n == 0 {
			break
		}
		if n < 0 {
			// Not RESP: nothing can be counted, and nothing is held back.
			done = len(r.buf)
			break
		}
		if r.buf[done] != '>' {
			if lose > 0 && r.count+1 >= lose {
				return r.buf[:done:done], false
			}
			r.count++
		}
		done += n
	}
	pass = r.buf[:done:done]
	r.buf = r.buf[done:]
	return pass, true
}

// replyLen is the length of the RESP value at the start of b: 0 when it is not
// complete yet, -1 when it is none.
func replyLen(b []byte) int {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		if len(b) > 0 && !bytes.ContainsRune([]byte("+-:_,#($=!*%~>|"), rune(b[0])) {
			return -1
		}
		return 0
	}
	if end == 0 {
		return -1
	}
	at := end + 2
	switch b[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return at
	case '$', '=', '!':
		size, err := strconv.Atoi(string(b[1:end]))
		switch {
		case err != nil:
			return -1
		case size < 0:
			return at
		case len(b) < at+size+2:
			return 0
		}
		return at + size + 2
	case '*', '%', '~', '>', '|':
		return aggregateLen(b, end)
	}
	return -1
}

func aggregateLen(b []byte, end int) int {
	at := end + 2
	size, err := strconv.Atoi(string(b[1:end]))
	if err != nil {
		return -1
	}
	if b[0] == '%' || b[0] == '|' {
		size *= 2
	}
	if b[0] == '|' {
		size++ // attributes stand before the value that they belong to
	}
	for range size {
		n := replyLen(b[at:])
		if n <= 0 {
			return n
		}
		at += n
	}
	return at
}
