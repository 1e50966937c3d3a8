// Package history is the record of one run: what clients called and were told,
// what was broken and healed, what the servers did, and what arrived at the
// protected resource. It is the only thing that passes from running to
// judging, so a stored history can be judged again with nothing running.
//
// It knows nothing about locks, worlds or checks. The recorder and the codec
// live here; see package checker for the reading side.
package history

import (
	"bytes"
	"time"
)

// Schema names the format of a history file.
const Schema = "holdfast/history/v1"

// Header is the first line of a history file: everything a checker must know
// that the events do not say.
type Header struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	Lock     string `json:"lock"`
	// Resource is "plain", "guarded" or "checked".
	Resource string `json:"resource"`
	// ResourceStore is where the resource lived, without any password; empty
	// is the harness itself.
	ResourceStore string `json:"resource_store,omitempty"`
	World         string `json:"world"`
	Topology      string `json:"topology"`
	Nodes         int    `json:"nodes"`
	// Quorum is how many nodes have to carry a token; 0 means a majority of
	// independent nodes, and one node otherwise. A lock that knows of one node
	// only needs one of five.
	Quorum int `json:"quorum,omitempty"`
	// Given are the nodes of a lock that needs a quorum, as they stood to each
	// other before the run. Empty where nobody has asked them.
	Given []Given `json:"given,omitempty"`
	// Moved and Asked are how often nodes of a Redis Cluster have sent clients
	// to another node, for good and for one command.
	Moved   int    `json:"moved,omitempty"`
	Asked   int    `json:"asked,omitempty"`
	Clients int    `json:"clients"`
	Seed    uint64 `json:"seed"`
	// TTL of every lease, in nanoseconds.
	TTL time.Duration `json:"ttl_ns"`
	// Drift is the share of the TTL that the lock itself takes off its
	// guarantee for clock drift: 0.01 is one percent.
	Drift float64 `json:"drift,omitempty"`
	// Kind is what the lock grants: "" for a mutex, "rw" for readers or one
	// writer, "semaphore" for as many holders as it has Permits.
	Kind    string `json:"kind,omitempty"`
	Permits int    `json:"permits,omitempty"`
	// Reentrant: the lock promises that a thread which holds it may take it
	// again. It is told only in runs that try it.
	Reentrant bool `json:"reentrant,omitempty"`
	// Waits is for how long the lock promises to wait for a holder to leave; 0
	// where it promises nothing.
	Waits time.Duration `json:"waits_ns,omitempty"`
	// SilentRelease: the lock's release has no answer to give.
	SilentRelease bool `json:"silent_release,omitempty"`
	// Abilities of the lock's leases: fence, extend, until, lost; and fair, where
	// the lock promises to grant in the order of arrival.
	Abilities []string `json:"abilities"`
	// LivenessBound: after everything has healed, a free lock with a live
	// waiter must be granted within it.
	LivenessBound time.Duration `json:"liveness_bound_ns"`
	// MinReplicas is the nodes' min-replicas-to-write, and MaxLag their
	// min-replicas-max-lag in seconds.
	MinReplicas int `json:"min_replicas,omitempty"`
	MaxLag      int `json:"max_lag_s,omitempty"`
	// Coverage is what the run must have exercised to prove anything.
	Coverage Coverage          `json:"coverage"`
	Versions map[string]string `json:"versions,omitempty"`
}

// Given is a node that a lock was given as one of several, and what it said of
// itself.
type Given struct {
	Node string `json:"node"`
	// Copies is the node that it replicates; empty for a primary.
	Copies string `json:"copies,omitempty"`
	// Cluster is the same for all nodes of one Redis Cluster; empty for a node
	// of none.
	Cluster string `json:"cluster,omitempty"`
}

// Replicates says whether one node has the say and the others follow it.
func (h *Header) Replicates() bool { return h.Topology == "replicated" || h.Topology == "sentinel" }

// Has says whether the lock's leases have an ability.
func (h *Header) Has(ability string) bool {
	for _, a := range h.Abilities {
		if a == ability {
			return true
		}
	}
	return false
}

// The kinds of lock, as [Header.Kind] names them. A mutex has no word.
const (
	KindRW        = "rw"
	KindSemaphore = "semaphore"
)

// Coverage are lower bounds below which a run proves nothing.
type Coverage struct {
	// AcquiresBefore, AcquiresDuring and AcquiresAfter count successful
	// acquires before the first fault starts, while one is active, and after
	// the last one has healed. In a run without faults all count as before.
	AcquiresBefore int `json:"acquires_before,omitempty"`
	AcquiresDuring int `json:"acquires_during,omitempty"`
	AcquiresAfter  int `json:"acquires_after,omitempty"`
	// Contention: at least one acquire must have been refused or have waited
	// while another client held the lock.
	Contention bool `json:"contention,omitempty"`
	// FaultOverlapsOp: a fault must have been active during a client's op or
	// hold.
	FaultOverlapsOp bool `json:"fault_overlaps_op,omitempty"`
	// Outlived: a holder must have stayed in its critical section for longer
	// than the TTL.
	Outlived bool `json:"outlived,omitempty"`
	// Redirects: nodes of a Redis Cluster must have sent clients elsewhere, by
	// MOVED and by ASK.
	Redirects bool `json:"redirects,omitempty"`
}

// Event is one line after the header. Exactly one of the four parts is set.
type Event struct {
	// T is nanoseconds since the start of the run on its monotonic clock
	// (virtual time in the simulator).
	T        int64     `json:"t"`
	Op       *Op       `json:"op,omitempty"`
	Nemesis  *Nemesis  `json:"nemesis,omitempty"`
	Server   *Server   `json:"server,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// Type of a client op event, in the field's words.
type Type string

// The types. A note stands alone: something a client noticed or did that is
// not a call, such as a loss notice.
const (
	Invoke Type = "invoke"
	OK     Type = "ok"   // it happened
	Fail   Type = "fail" // it did not happen
	Info   Type = "info" // it may have happened, or may still
	Note   Type = "note"
)

// The client ops and notes.
const (
	Acquire = "acquire"
	Release = "release"
	Extend  = "extend"
	Read    = "read"  // read of the protected resource
	Write   = "write" // write to the protected resource

	// Notes.
	Lost    = "lost"    // the holder saw the loss notice: its belief ends
	Check   = "check"   // the holder asked whether its lease is still valid; Until is the answer
	Abandon = "abandon" // the holder saw that its validity was over and went without writing
	Renewal = "renewal" // the holder was told, when it asked, that its renewal has failed; Code and Error say why
	Worked  = "worked"  // the holder finished its work and is about to check and write
	Crash   = "crash"   // the client died
	Phase   = "phase"   // the run entered the phase named in Error
)

// The modes of an acquire of a lock for readers and writers.
const (
	Reading = "read"
	Writing = "write"
)

// Final is the phase in which everything has healed and liveness is due.
const Final = "final"

// Op is one event of a client.
type Op struct {
	// Process is one sequential thread of ops. It is retired after an info.
	Process int `json:"process"`
	// Client is the OS process or its simulated twin that runs the thread.
	Client string `json:"client"`
	F      string `json:"f"`
	Type   Type   `json:"type"`
	Lock   string `json:"lock,omitempty"`
	// Thread numbers the threads of a client, which share its lock objects. The
	// first is 0. Unlike the process it stays when an outcome was unknown.
	Thread int `json:"thread,omitempty"`
	// Mode of an acquire of a lock for readers and writers.
	Mode string `json:"mode,omitempty"`
	// Acq numbers acquisitions from 1; the number is given at the invoke of
	// the acquire and stands on everything done under it.
	Acq int `json:"acq,omitempty"`
	// Fence is the token of the acquisition, where the lock has one.
	Fence *uint64 `json:"fence,omitempty"`
	// Until is the validity end told to the holder, in nanoseconds since the
	// start of the run.
	Until *int64 `json:"until,omitempty"`
	// Deadline of a call stands on its invoke: the moment by which its caller
	// wants it to return, in nanoseconds since the start of the run.
	Deadline *int64 `json:"deadline,omitempty"`
	// Version: on read ok, the version read; on write invoke, the version
	// that the writer had read; on write ok, the version written.
	Version *int64 `json:"version,omitempty"`
	// Code is the class of the error, Error its text.
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// Nemesis is a fault that starts or ends.
type Nemesis struct {
	// ID pairs a start with its end.
	ID int `json:"id"`
	// Fault is the kind: pause, cut, partition, clock, ...
	Fault string `json:"fault"`
	// Phase is "start" or "stop". A fault that is over at once, such as a
	// clock jump, has a start only until it is healed.
	Phase string `json:"phase"`
	// On names the nodes, clients or links that it hits.
	On []string `json:"on,omitempty"`
	// What says it in words: "2 TTL forward".
	What string `json:"what,omitempty"`
	// Why is the trigger that fired.
	Why   string `json:"why,omitempty"`
	Error string `json:"error,omitempty"`
}

// Phases of a nemesis event.
const (
	Start = "start"
	Stop  = "stop"
	// Never stands once for a fault whose trigger did not fire.
	Never = "never"
)

// Promotion is the fault of a promotion that nobody but the nodes themselves
// decided on. It stands at the moment of the promotion, names the old primary and
// the new one, and is over at once.
const Promotion = "promotion"

// Server is one command that a node executed on a lock's key, or an expiry.
type Server struct {
	Node string `json:"node"`
	// Clock is the node's own wall clock in nanoseconds, counted from the
	// wall-clock time at which the run started.
	Clock int64 `json:"clock"`
	// Client that sent it; empty for expiries, replication and the harness.
	Client string `json:"client,omitempty"`
	// Cmd is the command in capitals, with EVAL and EVALSHA for scripts; or
	// one of the pseudo commands below.
	Cmd string `json:"cmd"`
	Key string `json:"key"`
	// Reply in short: OK, nil, an integer, or the error.
	Reply string `json:"reply,omitempty"`
	// Owner is who the key names after the command: an alias that stands for
	// one token everywhere in the history, such as "c1#2" for the second
	// token that client c1 wrote. Empty when the key is absent.
	Owner string `json:"owner,omitempty"`
	// PTTL after the command in milliseconds; -1 without expiry, -2 absent.
	PTTL int64 `json:"pttl"`
	// Fences and other counters have no owner; Value is what they hold.
	Value string `json:"value,omitempty"`
}

// Pseudo commands of the server trace.
const (
	Expired  = "expired"  // the key's time was up
	Lostkeys = "lost"     // the key vanished with a crash, a flush or a promotion
	Promoted = "promoted" // the node became the primary; one event per key it has
	Left     = "left"     // the key was still there when the run ended
	Moved    = "moved"    // the key came to the node with its slot, from another primary
)

// Resource is a read or a write as it arrived at the protected resource.
type Resource struct {
	Client  string  `json:"client"`
	Process int     `json:"process"`
	Acq     int     `json:"acq"`
	F       string  `json:"f"`
	Fence   *uint64 `json:"fence,omitempty"`
	// Seen is the version that the writer had read.
	Seen int64 `json:"seen"`
	// Version of the resource after the event.
	Version int64 `json:"version"`
	// Before is the version before a write.
	Before  int64 `json:"before"`
	Applied bool  `json:"applied"`
	// Refused says why a write was not applied.
	Refused string `json:"refused,omitempty"`
}

// History is a whole run in memory.
type History struct {
	Header Header
	Events []Event
}

// String gives the event as its JSON line, for messages.
func (e Event) String() string {
	b, err := encodeLine(e)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSuffix(b, []byte("\n")))
}
