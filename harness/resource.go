package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/resource"
)

// Resource is the door to the protected resource: one versioned value that
// clients read and write under the lock. It records everything in the order in
// which the store behind it applied it: one call at a time goes through.
//
// A plain resource applies every write. A guarded one remembers the highest
// fence it has seen, on reads too, and refuses what is older; its store decides.
// Reads must count, or a late write slips in between another's read and write:
//
//	A(33) reads v0, pauses
//	B(34) reads v0                     the resource has seen 33 only
//	A(33) writes v1 over v0, applied   33 is not older than 33
//	B(34) writes v2 over v0, applied   A's write is lost
//
// A checked one looks at no fence: it refuses a write whose writer has not read
// the version that is there.
//
// After the first error of its store it is shut: it lets nothing through and
// answers nobody, so that what is recorded is all that was applied, but for the
// one call of which nobody knows.
type Resource struct {
	store  Store
	record func(history.Event)
	failed func(error)

	mu  sync.Mutex
	err error
}

// Store is where the value lives; see package resource.
type Store interface {
	// Do reads or writes. After an error it is not known whether it did.
	Do(ctx context.Context, c resource.Call) (resource.Outcome, error)
	// Version of what the value lives in, for the record; "" if it has none.
	Version() string
	// Close removes the value.
	Close(ctx context.Context) error
}

// NewResource makes the door to a store. Failed is told of the store's first
// error, and may be nil.
func NewResource(store Store, record func(history.Event), failed func(error)) *Resource {
	return &Resource{store: store, record: record, failed: failed}
}

// request and answer are the lines between a client and the resource.
type request struct {
	F       string  `json:"f"`
	Process int     `json:"process"`
	Acq     int     `json:"acq"`
	Fence   *uint64 `json:"fence,omitempty"`
	Seen    int64   `json:"seen"`
}

type answer struct {
	Version int64  `json:"version"`
	Refused string `json:"refused,omitempty"`
}

// Session serves one connection of a client: a request line in, an answer line
// out, or nil where there will be no answer.
func (r *Resource) Session(client string) func(line []byte) []byte {
	return func(line []byte) []byte {
		var req request
		if err := json.Unmarshal(line, &req); err != nil {
			return []byte(`{"refused":"no request"}`)
		}
		a, ok := r.serve(client, req)
		if !ok {
			return nil
		}
		out, err := json.Marshal(a)
		if err != nil {
			panic(err) // two plain fields
		}
		return out
	}
}

func (r *Resource) serve(client string, req request) (_ answer, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return answer{}, false
	}
	got, err := r.store.Do(context.Background(), resource.Call{Write: req.F == history.Write, Fence: req.Fence, Seen: req.Seen})
	if err != nil {
		r.err = err
		if r.failed != nil {
			r.failed(err)
		}
		return answer{}, false
	}
	ev := history.Resource{
		Client: client, Process: req.Process, Acq: req.Acq, F: req.F, Fence: req.Fence,
		Seen: req.Seen, Before: got.Before, Version: got.Version, Applied: got.Applied,
	}
	if !got.Applied {
		ev.Refused = refusal(req, got)
	}
	r.record(history.Event{Resource: &ev})
	return answer{Version: ev.Version, Refused: ev.Refused}, true
}

// refusal says why a call was not applied.
func refusal(req request, got resource.Outcome) string {
	if got.Unread {
		return fmt.Sprintf("version %d was read and is not the newest, %d", req.Seen, got.Version)
	}
	return fmt.Sprintf("fence %d is older than %d", *req.Fence, got.Highest)
}

// Err is the error that shut the door.
func (r *Resource) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// errRefused: the resource saw a newer fence.
var errRefused = errors.New("the resource refused the request")

// storage is a client's connection to the resource. It dials when it must.
type storage struct {
	dial func(ctx context.Context) (net.Conn, error)
	conn net.Conn
	rd   *bufio.Reader
}

// call sends a request and waits for the answer. After an error the
// connection is given up: what was sent may still arrive.
func (s *storage) call(ctx context.Context, timeout time.Duration, req request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := s.exchange(ctx, req)
	if err != nil {
		s.close()
		return answer{}, err
	}
	if a.Refused != "" {
		return a, fmt.Errorf("%w: %s", errRefused, a.Refused)
	}
	return a, nil
}

func (s *storage) exchange(ctx context.Context, req request) (a answer, err error) {
	if s.conn == nil {
		if s.conn, err = s.dial(ctx); err != nil {
			s.conn = nil
			return a, fmt.Errorf("dial the resource: %w", err)
		}
		s.rd = bufio.NewReader(s.conn)
	}
	line, err := json.Marshal(req)
	if err != nil {
		return a, err
	}
	deadline, _ := ctx.Deadline()
	if err := s.conn.SetDeadline(deadline); err != nil {
		return a, err
	}
	if _, err := s.conn.Write(append(line, '\n')); err != nil {
		return a, err
	}
	reply, err := s.rd.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(reply, &a)
}

func (s *storage) close() {
	if s.conn != nil {
		_ = s.conn.Close() // given up: its error tells nothing new
		s.conn = nil
	}
}
