package harness

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/resource"
)

func fence(n uint64) *uint64 { return &n }

// bench is a resource with what it recorded.
type bench struct {
	*Resource
	seen []history.Resource
}

func newBench(rule resource.Rule) *bench {
	b := &bench{}
	b.Resource = NewResource(resource.NewBuiltin(rule), func(ev history.Event) { b.seen = append(b.seen, *ev.Resource) }, nil)
	return b
}

func (b *bench) ask(t *testing.T, client string, req request) answer {
	t.Helper()
	line, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(b.Session(client)(line), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPlainResource takes every write, whatever its writer has read.
func TestPlainResource(t *testing.T) {
	b := newBench(resource.Plain)
	b.ask(t, "c1", request{F: history.Read, Fence: fence(2)})
	b.ask(t, "c2", request{F: history.Write, Fence: fence(2)})
	if a := b.ask(t, "c1", request{F: history.Write, Fence: fence(1), Process: 4, Acq: 9}); a.Version != 2 || a.Refused != "" {
		t.Errorf("the late write: %+v", a)
	}
	last := b.seen[2]
	if !last.Applied || last.Before != 1 || last.Version != 2 || last.Seen != 0 || last.Client != "c1" || last.Process != 4 || last.Acq != 9 {
		t.Errorf("recorded as %+v", last)
	}
	if got := string(b.Session("c1")([]byte("what?"))); got != `{"refused":"no request"}` || len(b.seen) != 3 {
		t.Errorf("a line that is no request: %s", got)
	}
}

// TestGuardedResource plays the timeline in the resource's comment: reads
// count, so that the write of A comes too late.
func TestGuardedResource(t *testing.T) {
	b := newBench(resource.Guarded)
	b.ask(t, "a", request{F: history.Read, Fence: fence(33)})
	b.ask(t, "b", request{F: history.Read, Fence: fence(34)})
	if a := b.ask(t, "a", request{F: history.Write, Fence: fence(33)}); a.Refused != "fence 33 is older than 34" || a.Version != 0 {
		t.Errorf("the older write: %+v", a)
	}
	if late := b.seen[2]; late.Applied || late.Refused == "" || late.Version != 0 {
		t.Errorf("recorded as %+v", late)
	}
	if a := b.ask(t, "b", request{F: history.Write, Fence: fence(34)}); a.Refused != "" || a.Version != 1 {
		t.Errorf("the newest write: %+v", a)
	}
	if a := b.ask(t, "b", request{F: history.Write, Fence: fence(34)}); a.Refused != "" {
		t.Errorf("a fence is good for several writes: %+v", a)
	}
	if a := b.ask(t, "c", request{F: history.Write}); a.Refused != "" {
		t.Errorf("a lock without fences cannot be refused: %+v", a)
	}
}

// TestCheckedResource refuses a write over what its writer has not read, and
// looks at no fence.
func TestCheckedResource(t *testing.T) {
	b := newBench(resource.Checked)
	if a := b.ask(t, "b", request{F: history.Write, Fence: fence(34)}); a.Refused != "" || a.Version != 1 {
		t.Errorf("the first write: %+v", a)
	}
	if a := b.ask(t, "a", request{F: history.Write, Fence: fence(35)}); a.Refused != "version 0 was read and is not the newest, 1" || a.Version != 1 {
		t.Errorf("a write over an unread version: %+v", a)
	}
	if late := b.seen[1]; late.Applied || late.Refused == "" || late.Before != 1 {
		t.Errorf("recorded as %+v", late)
	}
	if a := b.ask(t, "a", request{F: history.Write, Seen: 1, Fence: fence(33)}); a.Refused != "" || a.Version != 2 {
		t.Errorf("an older fence over the newest version: %+v", a)
	}
	if a := b.ask(t, "a", request{F: history.Read}); a.Refused != "" {
		t.Errorf("a read: %+v", a)
	}
}

// TestStorageGivesUpTheConnection: after a timeout the connection is closed,
// what was sent arrives all the same, and the next call dials anew: its answer
// cannot be that of the call before.
func TestStorageGivesUpTheConnection(t *testing.T) {
	b := newBench(resource.Plain)
	slow := make(chan struct{})
	dials := 0
	arrived := make(chan struct{})
	s := storage{dial: func(context.Context) (net.Conn, error) {
		dials++
		ours, theirs := net.Pipe()
		first := dials == 1
		go func() { // ends with its connection
			defer theirs.Close()
			line := make([]byte, 256)
			n, err := theirs.Read(line)
			if err != nil {
				return
			}
			if first {
				<-slow
				b.Session("c1")(line[:n])
				close(arrived)
				return
			}
			_, _ = theirs.Write(append(b.Session("c1")(line[:n]), '\n'))
		}()
		return ours, nil
	}}
	_, err := s.call(context.Background(), 20*time.Millisecond, request{F: history.Write})
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() || s.conn != nil {
		t.Fatalf("want a timeout and no connection, got %v and %v", err, s.conn)
	}
	close(slow)
	<-arrived
	a, err := s.call(context.Background(), 5*time.Second, request{F: history.Read})
	if err != nil || a.Version != 1 || dials != 2 {
		t.Errorf("the late write is not there: version %d, %d dials, %v", a.Version, dials, err)
	}
	s.close()
}

func TestStorageErrors(t *testing.T) {
	s := storage{dial: func(context.Context) (net.Conn, error) { return nil, io.ErrClosedPipe }}
	if _, err := s.call(context.Background(), time.Second, request{}); !errors.Is(err, io.ErrClosedPipe) || s.conn != nil {
		t.Errorf("a failed dial: %v", err)
	}
	s.close() // without a connection it is nothing
	s.dial = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Read(make([]byte, 256))
			_, _ = theirs.Write([]byte(`{"version":4,"refused":"fence 1 is older than 2"}` + "\n"))
		}()
		return ours, nil
	}
	if a, err := s.call(context.Background(), time.Second, request{F: history.Write}); !errors.Is(err, errRefused) || a.Version != 4 {
		t.Errorf("a refusal: %+v, %v", a, err)
	}
}
