package impl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Code names an error class. It is part of an error's text, so that users can
// search for it.
type Code string

// The error codes a lock can return. [Classify] says which of them are
// definite.
const (
	CodeNotObtained   Code = "LOCK_TIMEOUT"
	CodeNotHeld       Code = "UNLOCK_FAILED"
	CodeUnreachable   Code = "REDIS_CONNECTION"
	CodeUnknown       Code = "UNKNOWN_OUTCOME"
	CodeQuorum        Code = "QUORUM_NOT_REACHED"
	CodeClockDrift    Code = "CLOCK_DRIFT"
	CodeRenewalFailed Code = "WATCHDOG_RENEWAL_FAILED"
	CodeScript        Code = "LUA_SCRIPT"
	CodeOOM           Code = "OOM"
	CodeUnclassified  Code = "UNCLASSIFIED"
)

// Sentinels for errors.Is. Every lock wraps one of them.
var (
	// ErrNotObtained: somebody else holds the lock; this call changed nothing
	// that lasts. Definite.
	ErrNotObtained = &Error{Code: CodeNotObtained, Detail: "the lock is held by somebody else"}
	// ErrNotHeld: release or extend of a lease that is gone. Definite.
	ErrNotHeld = &Error{Code: CodeNotHeld, Detail: "this acquisition does not hold the lock"}
	// ErrUnreachable: the lock knows that no request left. Definite.
	ErrUnreachable = &Error{Code: CodeUnreachable, Detail: "the node cannot be reached"}
	// ErrUnknownOutcome: the request may or may not have taken effect.
	ErrUnknownOutcome = &Error{Code: CodeUnknown, Detail: "the request may have taken effect"}
	// ErrQuorum: fewer votes than the quorum, and the partial votes were
	// given back as far as the nodes could be reached. Definite.
	ErrQuorum = &Error{Code: CodeQuorum, Detail: "too few nodes voted yes"}
	// ErrValidityUsedUp: the votes were there but took longer than the TTL.
	// Definite: the lock gave the votes back.
	ErrValidityUsedUp = &Error{Code: CodeClockDrift, Detail: "the validity was used up before acquire returned"}
	// ErrRenewalFailed: a renewal in the background was refused, or failed, and
	// there will be no other. [SelfRenewing] tells it.
	ErrRenewalFailed = &Error{Code: CodeRenewalFailed, Detail: "the lease was not lengthened"}
	// ErrScript: the server could not run a script. Definite: a script that
	// fails to load or parse changes nothing.
	ErrScript = &Error{Code: CodeScript, Detail: "a script failed on the server"}
	// ErrOOM: the server refuses writes for lack of memory. Definite.
	ErrOOM = &Error{Code: CodeOOM, Detail: "the server refuses writes"}
)

// Error is a lock's error: what is known, on which node and key.
type Error struct {
	Code   Code
	Detail string
	Op     string // acquire, release, extend, renew
	Node   string
	Key    string
	Err    error // the cause, if any
}

// Error gives the code, the place and the cause in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Op != "" {
		fmt.Fprintf(&b, ": %s", e.Op)
	}
	if e.Key != "" {
		fmt.Fprintf(&b, " %s", e.Key)
	}
	if e.Node != "" {
		fmt.Fprintf(&b, " on %s", e.Node)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes every error with the same code match its sentinel.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// With returns a copy of a sentinel with place and cause filled in.
func (e *Error) With(op, node, key string, cause error) *Error {
	c := *e
	c.Op, c.Node, c.Key, c.Err = op, node, key, cause
	return &c
}

// Class is what the harness may conclude from an error.
type Class struct {
	Code Code
	// Definite: the operation did not take effect. Otherwise it may have, and
	// the history records it as info.
	Definite bool
}

// table is the one place that says which errors are definite. Workloads never
// decide alone.
var table = map[Code]bool{
	CodeNotObtained:   true,
	CodeNotHeld:       true,
	CodeUnreachable:   true,
	CodeQuorum:        true,
	CodeClockDrift:    true,
	CodeScript:        true,
	CodeOOM:           true,
	CodeRenewalFailed: false,
	CodeUnknown:       false,
	CodeUnclassified:  false,
}

// Classify maps any error to its class. An error that no lock typed is
// unclassified and indefinite: that is always sound.
func Classify(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return Class{Code: e.Code, Definite: table[e.Code]}
	}
	return Class{Code: CodeUnclassified, Definite: false}
}

// FromRedis types an error that go-redis returned. An error reply is definite,
// since the server said no, with one exception: a reply that go-redis retries
// on by itself (LOADING, READONLY, ...) ends a series of up to four requests,
// and an earlier one may have been applied:
//
//	t=0    SET NX is applied, the node dies before it replies
//	t=10ms go-redis dials again: the node is back and answers LOADING
//	t=1s   the last retry is answered LOADING too: the caller sees an error
//	       reply, and the key is there
//
// The same can precede any other error reply, but only when a cut connection
// and that error fall into one call. A lock that must be exact turns the
// retries off and counts for itself, as impl/reference does.
//
// Everything else (time-outs, cut connections, refused dials, a cancelled
// context) is an unknown outcome for the same reason: a refused dial may be
// the second try after a first request whose reply was lost. A nil error stays
// nil.
func FromRedis(op, node, key string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ErrUnknownOutcome.With(op, node, key, err)
	}
	var reply redis.Error
	if !errors.As(err, &reply) || errors.Is(err, redis.Nil) {
		return ErrUnknownOutcome.With(op, node, key, err)
	}
	msg := strings.TrimPrefix(reply.Error(), "ERR ")
	for _, prefix := range retriedReplies {
		if strings.HasPrefix(msg, prefix) {
			return ErrUnknownOutcome.With(op, node, key, err)
		}
	}
	if strings.HasPrefix(msg, "OOM") {
		return ErrOOM.With(op, node, key, err)
	}
	return ErrScript.With(op, node, key, err)
}

// retriedReplies are the error replies after which go-redis v9 sends the
// command again. Source: shouldRetry in its error.go; MOVED and ASK are followed
// by its client for a Redis Cluster, in the same count.
var retriedReplies = []string{
	"MOVED", "ASK",
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "max number of clients",
}
