package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/resource"
	"github.com/holdfast-io/holdfast/scenarios"
)

// conversation is a worker in this process with the harness's ends of its
// pipes.
type conversation struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

// converse starts a worker against one node and a resource.
func converse(t *testing.T, change func(*assignment)) *conversation {
	t.Helper()
	door := NewResource(resource.NewBuiltin(resource.Plain), func(history.Event) {}, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() { // ends with the listener
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					_, _ = conn.Write(append(door.Session("c1")(lines.Bytes()), '\n'))
				}
			}()
		}
	}()
	a := assignment{
		Client: "c1", Clients: 1, Lock: "basic", TTL: time.Second,
		Workload: scenarios.Workload{
			Hold: nemesis.TTLs(0.01), Think: nemesis.TTLs(0.01), Retry: nemesis.TTLs(0.01),
			AcquireTimeout: nemesis.TTLs(1), CallTimeout: nemesis.TTLs(1), WriteTimeout: nemesis.TTLs(1),
		},
		Nodes: []endpoint{{Name: "n1", Addr: miniredis.RunT(t).Addr()}}, Resource: ln.Addr().String(),
		Await: moments{{}},
	}
	if change != nil {
		change(&a)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &conversation{t: t, in: inW, out: bufio.NewReader(outR), done: make(chan error, 1)}
	go func() {
		err := Work(context.Background(), inR, outW)
		_ = outW.Close()
		_ = inR.Close()
		c.done <- err
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	c.say(a)
	return c
}

// say sends a word as it is and anything else as JSON.
func (c *conversation) say(v any) {
	c.t.Helper()
	line, word := v.(string)
	if !word {
		b, err := json.Marshal(v)
		if err != nil {
			c.t.Fatal(err)
		}
		line = string(b)
	}
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// begin waits for ready and lets the worker begin.
func (c *conversation) begin() {
	c.t.Helper()
	if line, err := c.out.ReadString('\n'); err != nil || line != wordReady+"\n" {
		c.t.Fatalf("instead of ready it said %q, %v", line, err)
	}
	now := monotonic()
	c.say(beginning{Start: now, Clients: now})
}

// next reads one event.
func (c *conversation) next() history.Op {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	var ev history.Event
	if err := json.Unmarshal(line, &ev); err != nil || ev.Op == nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	return *ev.Op
}

// end waits for the worker's end.
func (c *conversation) end() error {
	c.t.Helper()
	go func() { _, _ = io.Copy(io.Discard, c.out) }()
	select {
	case err := <-c.done:
		return err
	case <-time.After(10 * time.Second):
		c.t.Fatal("the worker did not end")
		return nil
	}
}

// TestWorkerWaitsForEachAck: no event comes before the one before it was
// acknowledged, which is what a fault between two steps stands on.
func TestWorkerWaitsForEachAck(t *testing.T) {
	c := converse(t, nil)
	c.begin()
	want := []string{"acquire invoke", "acquire ok", "read invoke", "read ok", "worked note", "write invoke", "write ok", "release invoke"}
	for i, w := range want {
		op := c.next()
		if got := op.F + " " + string(op.Type); got != w {
			t.Fatalf("event %d: %s, want %s", i, got, w)
		}
		time.Sleep(5 * time.Millisecond)
		if n := c.out.Buffered(); n > 0 {
			t.Fatalf("after %s, %d more bytes came before the ack", w, n)
		}
		c.say(wordAck)
	}
	c.say(wordStop)
	if op := c.next(); op.F != history.Release || op.Type != history.OK {
		t.Fatalf("it was stopped in its round, and went on with %+v", op)
	}
	c.say(wordAck)
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// TestWorkerWaitsOnlyWhereFaultsMayStrike: after any other event it goes on
// without a word from the harness.
func TestWorkerWaitsOnlyWhereFaultsMayStrike(t *testing.T) {
	s := &scenarios.Scenario{Nemesis: nemesis.Plan{
		{When: nemesis.Trigger{Op: history.Write, Type: history.Invoke}, Fault: nemesis.Pause{}},
		{When: nemesis.Trigger{At: nemesis.TTLs(1)}, Fault: nemesis.Pause{}},
	}}
	c := converse(t, func(a *assignment) { a.Await = momentsOf(s.Nemesis) })
	c.begin()
	for range 2 {
		for _, want := range []string{"acquire invoke", "acquire ok", "read invoke", "read ok", "worked note", "write invoke"} {
			op := c.next()
			if got := op.F + " " + string(op.Type); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		time.Sleep(5 * time.Millisecond)
		if n := c.out.Buffered(); n > 0 {
			t.Fatalf("%d more bytes came before the ack", n)
		}
		c.say(wordAck)
		for range 3 {
			c.next() // write ok, release invoke, release ok
		}
	}
	c.say(wordStop)
	go func() { // the round under way still waits at its write
		for {
			if _, err := io.WriteString(c.in, wordAck+"\n"); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	_ = c.end()
}

// TestWorkerStartsOnTime: the wait counts from the instant that all share.
func TestWorkerStartsOnTime(t *testing.T) {
	const wait = 150 * time.Millisecond
	c := converse(t, func(a *assignment) { a.Wait = wait })
	c.begin()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var ev history.Event
	if err := json.Unmarshal(line, &ev); err != nil {
		t.Fatal(err)
	}
	if late := time.Duration(ev.T) - wait; late < 0 || late > time.Second {
		t.Errorf("the first event came at %v, want %v", time.Duration(ev.T), wait)
	}
}

// TestWorkerEndsWithItsHarness, in the middle of a round and before one.
func TestWorkerEndsWithItsHarness(t *testing.T) {
	c := converse(t, func(a *assignment) { a.Workload.Hold = nemesis.TTLs(3600) })
	c.begin()
	for range 4 {
		c.next()
		c.say(wordAck)
	}
	_ = c.in.Close()
	if err := c.end(); err != nil {
		t.Errorf("in its work: %v", err)
	}
	c = converse(t, func(a *assignment) { a.Wait = time.Hour })
	c.begin()
	_ = c.in.Close()
	if err := c.end(); err != nil {
		t.Errorf("before its first round: %v", err)
	}
	c = converse(t, nil)
	_ = c.in.Close()
	if err := c.end(); !errors.Is(err, io.EOF) {
		t.Errorf("before the beginning: %v", err)
	}
}

func TestWorkerRefusesNonsense(t *testing.T) {
	for name, c := range map[string]struct{ said, say string }{
		"nothing":       {"", "no assignment came in"},
		"no assignment": {"hello\n", "assignment"},
		"no such lock":  {`{"lock":"none"}` + "\n", `there is no lock "none"`},
		"no beginning":  {`{"lock":"basic"}` + "\nack\n", "beginning"},
	} {
		err := Work(context.Background(), strings.NewReader(c.said), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %q", name, err, c.say)
		}
	}
	for _, word := range []string{"akc", wordAck + "\n" + wordAck} {
		c := converse(t, nil)
		c.begin()
		c.next()
		c.say(word)
		go func() { // the round may go on
			for {
				if _, err := io.WriteString(c.in, wordAck+"\n"); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if err := c.end(); err == nil || !strings.Contains(err.Error(), "worker: the harness") {
			t.Errorf("after %q: %v", word, err)
		}
	}
}

func TestAssignmentRoundTrip(t *testing.T) {
	s, err := scenarios.Load("kleppmann-gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	before := assignment{
		Client: "c2", Index: 1, Clients: 3, Lock: "redlock", TTL: time.Second, Seed: 1 << 63,
		Workload: s.Workload, Nodes: []endpoint{{Name: "n1", Addr: "127.0.0.1:1"}}, Resource: "127.0.0.1:2", Wait: 100 * time.Millisecond,
	}
	b, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var after assignment
	if err := json.Unmarshal(b, &after); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("sent %+v, got %+v, %v", before, after, err)
	}
}
