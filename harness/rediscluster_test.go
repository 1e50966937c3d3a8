package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// said is an answer of a server.
type said string

func (r said) Error() string { return string(r) }
func (said) RedisError()     {}

func TestFinalErrors(t *testing.T) {
	s := &sentOnce{}
	for name, err := range map[string]error{"a cut connection": io.EOF, "a refused dial": &net.OpError{Op: "dial", Err: errors.New("refused")}} {
		if got := s.final(t.Context(), err); errors.Is(got, err) || got == nil {
			t.Errorf("%s comes back as %v, which go-redis knows and sends again", name, got)
		}
	}
	for _, err := range []error{nil, redis.Nil, said("MOVED 105 127.0.0.1:7001"), context.Canceled} {
		if got := s.final(t.Context(), err); !errors.Is(got, err) {
			t.Errorf("%v comes back as %v", err, got)
		}
	}
}

// TestRetriesThatAreOff: a command whose reply is lost reaches the server once,
// and as often as the client likes where the lock left that to it.
func TestRetriesThatAreOff(t *testing.T) {
	for _, c := range []struct {
		retries int
		most    int32
		least   int32
	}{{retries: -1, most: 1, least: 1}, {retries: 0, most: 9, least: 2}} {
		var sets atomic.Int32
		addr := deafServer(t, &sets)
		a := &assignment{Client: "c1", Nodes: []endpoint{{Name: "n1", Addr: addr, Known: addr}}}
		n := a.whole()
		o := n.Options()
		o.MaxRetries, o.ReadTimeout, o.DialerRetries = c.retries, 200*time.Millisecond, 1
		client := n.Client(o)
		err := client.Set(t.Context(), "k", "v", 0).Err()
		if err == nil || sets.Load() > c.most || sets.Load() < c.least {
			t.Errorf("with %d retries the server was sent %d commands: %v", c.retries, sets.Load(), err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// deafServer is a cluster of one node that closes the connection on every SET.
func deafServer(t *testing.T, sets *atomic.Int32) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // nothing depends on it
	go func() {                          // ends with the listener
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answerDeafly(c, ln.Addr().(*net.TCPAddr).Port, sets)
		}
	}()
	return ln.Addr().String()
}

// answerDeafly speaks as much of RESP as a client needs to find the node.
func answerDeafly(c net.Conn, port int, sets *atomic.Int32) {
	defer func() { _ = c.Close() }() // the client is told by that
	r := bufio.NewReader(c)
	for {
		head, err := r.ReadString('\n')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(head[1:]))
		if err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			_, errSize := r.ReadString('\n')
			word, errWord := r.ReadString('\n')
			if errors.Join(errSize, errWord) != nil {
				return
			}
			words[i] = strings.ToUpper(strings.TrimSpace(word))
		}
		answer := "+OK\r\n"
		switch {
		case words[0] == "SET":
			sets.Add(1)
			return
		case words[0] == "HELLO":
			answer = "-ERR unknown command\r\n"
		case words[0] == "CLUSTER" && words[1] == "SLOTS":
			answer = fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", port)
		case words[0] == "COMMAND":
			answer = "*0\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}
