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
)

// Resource is the protected resource: one versioned value that clients read
// and write under the lock. It records everything as it arrives.
//
// A plain resource applies every write. A guarded one remembers the highest
// fence it has seen, on reads too, and refuses what is older. Reads must
// count, or a late write slips in between another's read and write:
//
//	A(33) reads v0, pauses
//	B(34) reads v0                     the resource has seen 33 only
//	A(33) writes v1 over v0, applied   33 is not older than 33
//	B(34) writes v2 over v0, applied   A's write is lost
//
// A checked one looks at no fence: it refuses a write whose writer has not read
// the version that is there.
type Resource struct {
	guarded bool
	// Checked is set before the first request.
	Checked bool
	record  func(history.Event)

	mu      sync.Mutex
	version int64
	highest uint64
}

// NewResource makes a resource at version 0.
func NewResource(guarded bool, record func(history.Event)) *Resource {
	return &Resource{guarded: guarded, record: record}
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
// out.
func (r *Resource) Session(client string) func(line []byte) []byte {
	return func(line []byte) []byte {
		var req request
		if err := json.Unmarshal(line, &req); err != nil {
			return []byte(`{"refused":"no request"}`)
		}
		out, err := json.Marshal(r.serve(client, req))
		if err != nil {
			panic(err) // two plain fields
		}
		return out
	}
}

func (r *Resource) serve(client string, req request) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	ev := history.Resource{
		Client: client, Process: req.Process, Acq: req.Acq, F: req.F, Fence: req.Fence,
		Seen: req.Seen, Before: r.version,
	}
	switch {
	case r.guarded && req.Fence != nil && *req.Fence < r.highest:
		ev.Refused = fmt.Sprintf("fence %d is older than %d", *req.Fence, r.highest)
	case r.Checked && req.F == history.Write && req.Seen != r.version:
		ev.Refused = fmt.Sprintf("version %d was read and is not the newest, %d", req.Seen, r.version)
	default:
		if req.Fence != nil {
			r.highest = max(r.highest, *req.Fence)
		}
		ev.Applied = true
		if req.F == history.Write {
			r.version++
		}
	}
	ev.Version = r.version
	r.record(history.Event{Resource: &ev})
	return answer{Version: r.version, Refused: ev.Refused}
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
