// Package mutants has locks with one classic mistake each. Every mutant is one
// of the other locks (its twin) with the mistake switched on; the harness must
// tell it from its twin, by a named scenario and check.
//
// They are for the harness's own tests. Some twins have weaknesses of their
// own, and a mutant has those too.
package mutants

import (
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/fair"
	"github.com/holdfast-io/holdfast/impl/redlock"
	"github.com/holdfast-io/holdfast/impl/reentrant"
	"github.com/holdfast-io/holdfast/impl/reference"
	"github.com/holdfast-io/holdfast/impl/rwlock"
	"github.com/holdfast-io/holdfast/impl/semaphore"
	"github.com/holdfast-io/holdfast/impl/watchdog"
)

// Mutant is a lock with one mistake.
type Mutant struct {
	Name   string // as the catalogue knows it
	TwinOf string // the lock without the mistake
	About  string // the mistake, and what it leads to
	New    impl.New
}

// All is the table of mutants, in the order in which reports show them.
func All() []Mutant {
	var all []Mutant
	all = append(all, releases()...)
	all = append(all, ttls()...)
	all = append(all, identifiers()...)
	all = append(all, renewals()...)
	all = append(all, quorums()...)
	all = append(all, advanced()...)
	return all
}

func releases() []Mutant {
	return []Mutant{
		{
			Name: "release-without-owner-check", TwinOf: "basic",
			About: "release deletes the key whoever wrote it: a late holder lets a third one in beside the second",
			New:   withBasic(basic.Mistakes{ReleaseWithoutOwnerCheck: true}),
		},
		{
			Name: "release-get-then-del", TwinOf: "basic",
			About: "release compares and deletes in two commands: between them the key may become another's",
			New:   withBasic(basic.Mistakes{ReleaseGetThenDel: true}),
		},
		{
			Name: "evalsha-without-fallback", TwinOf: "basic",
			About: "release sends EVALSHA and never EVAL: after a restart or SCRIPT FLUSH every release fails",
			New:   withBasic(basic.Mistakes{NoEvalFallback: true}),
		},
		{
			Name: "non-counting-reentrance", TwinOf: "reentrant",
			About: "the holds are not counted: the inner release lets go of what the outer section still needs",
			New:   withReentrant(reentrant.Mistakes{DoesNotCount: true}),
		},
		{
			Name: "count-in-client-only", TwinOf: "reentrant",
			About: "the holds are counted in the client and taken off when Redis confirms: after a lost lease it always says yes",
			New:   withReentrant(reentrant.Mistakes{CountsInClientOnly: true}),
		},
		{
			Name: "cleanup-on-cancelled-context", TwinOf: "reference",
			About: "a failed acquire cleans up on the context whose end was the failure: the key stays for a TTL",
			New:   withReference(reference.Mistakes{CleanUpOnCallersContext: true}),
		},
	}
}

func ttls() []Mutant {
	return []Mutant{
		{
			Name: "no-ttl", TwinOf: "basic",
			About: "the key has no TTL: a holder that dies keeps the lock for ever",
			New:   withBasic(basic.Mistakes{NoTTL: true}),
		},
		{
			Name: "setnx-then-pexpire", TwinOf: "basic",
			About: "the TTL is set by a second command: a holder that dies in between keeps the lock for ever",
			New:   withBasic(basic.Mistakes{ExpireSeparately: true}),
		},
		{
			Name: "ttl-in-whole-seconds", TwinOf: "basic",
			About: "the TTL is cut to whole seconds, at least one: the key expires before, or long after, its time",
			New:   withBasic(basic.Mistakes{WholeSecondTTL: true}),
		},
		{
			Name: "ttl-zero", TwinOf: "basic",
			About: "the TTL comes out as 0: Redis deletes the key at once and says yes, to everybody",
			New:   withBasic(basic.Mistakes{ZeroTTL: true}),
		},
		{
			Name: "validity-from-wall-clock", TwinOf: "reference",
			About: "the lease is measured on a clock that can be set: set back, the holder believes too long",
			New:   withReference(reference.Mistakes{WallClock: true}),
		},
	}
}

func identifiers() []Mutant {
	return []Mutant{
		{
			Name: "fixed-identifier", TwinOf: "basic",
			About: "every client writes the same value: the owner check always says yes",
			New:   withBasic(basic.Mistakes{FixedIdentifier: true}),
		},
		{
			Name: "identifier-by-prefix", TwinOf: "basic",
			About: "the owner check compares a prefix that all clients share",
			New:   withBasic(basic.Mistakes{IdentifierByPrefix: true}),
		},
		{
			Name: "blind-retry", TwinOf: "basic",
			About: "after an error SET NX is sent again, and a key that is there by then is taken for its own",
			New:   withBasic(basic.Mistakes{BlindRetry: true}),
		},
	}
}

func renewals() []Mutant {
	return []Mutant{
		{
			Name: "renewal-interval-equal-to-ttl", TwinOf: "watchdog",
			About: "the renewal comes when the key has just expired",
			New:   withWatchdog(watchdog.Mistakes{IntervalIsTTL: true}),
		},
		{
			Name: "renewal-never-stopped", TwinOf: "watchdog",
			About: "release does not stop the renewer: it renews the next lease of the same object too",
			New:   withWatchdog(watchdog.Mistakes{NeverStops: true}),
		},
		{
			Name: "renewal-stops-after-one-error", TwinOf: "reference",
			About: "one failed renewal ends them all though the lease has time left",
			New:   withReference(reference.Mistakes{RenewalStopsAtFirstError: true}),
		},
		{
			Name: "renewal-not-joined", TwinOf: "reference",
			About: "release leaves the renewer running: it goes on sending for a lease that is over",
			New:   withReference(reference.Mistakes{RenewerNotJoined: true}),
		},
		{
			Name: "extend-as-set", TwinOf: "reference",
			About: "extend writes the key anew, over another holder's",
			New:   withReference(reference.Mistakes{ExtendBySet: true}),
		},
		{
			Name: "extend-as-bare-pexpire", TwinOf: "reference",
			About: "extend does not ask whose key it lengthens, and says yes for another's",
			New:   withReference(reference.Mistakes{ExtendByBarePExpire: true}),
		},
		{
			Name: "extend-as-set-nx", TwinOf: "reference",
			About: "extend makes a key that is gone again, although others may have had the lock in between",
			New:   withReference(reference.Mistakes{ExtendBySetNX: true}),
		},
	}
}

func quorums() []Mutant {
	return []Mutant{
		{
			Name: "redlock-without-elapsed-check", TwinOf: "redlock",
			About: "votes count however long they took to come in: the first may have expired",
			New:   withRedlock(redlock.Mistakes{NoElapsedCheck: true}),
		},
		{
			Name: "redlock-drift-added", TwinOf: "redlock",
			About: "the allowance for drift is added to the validity: votes count for up to 1.1 TTL",
			New:   withRedlock(redlock.Mistakes{DriftAdded: true}),
		},
		{
			Name: "redlock-quorum-half", TwinOf: "redlock",
			About: "N/2 votes are a quorum: two clients may have one each",
			New:   withRedlock(redlock.Mistakes{HalfIsEnough: true}),
		},
		{
			Name: "redlock-quorum-of-reachable", TwinOf: "redlock",
			About: "the quorum is counted among the nodes that answered: each side of a partition has one",
			New:   withRedlock(redlock.Mistakes{QuorumOfReachable: true}),
		},
		{
			Name: "redlock-quorum-all", TwinOf: "redlock",
			About: "every node has to vote yes: one dead node stops everybody",
			New:   withRedlock(redlock.Mistakes{QuorumIsAll: true}),
		},
		{
			Name: "redlock-error-is-yes", TwinOf: "redlock",
			About: "a node that failed counts as a vote: two clients that reach nobody both hold the lock",
			New:   withRedlock(redlock.Mistakes{ErrorIsYes: true}),
		},
		{
			Name: "redlock-release-only-yes", TwinOf: "redlock",
			About: "a failed attempt is given back only where the node said yes: a vote whose reply was lost stays",
			New:   withRedlock(redlock.Mistakes{ReleaseOnlyYes: true}),
		},
		{
			Name: "redlock-cleanup-on-cancelled-context", TwinOf: "redlock",
			About: "votes are given back on the context whose end was the failure: they stay for a TTL",
			New:   withRedlock(redlock.Mistakes{CleanUpOnCallersContext: true}),
		},
	}
}

// advanced are mistakes of locks that are more than a mutex, or queue for one.
func advanced() []Mutant {
	return []Mutant{
		{
			Name: "waiter-left-in-queue", TwinOf: "fair",
			About: "a waiter that gives up stays in the queue: the free lock waits for somebody who does not come",
			New: func(env impl.Env) (impl.Lock, error) {
				return fair.NewWith(env, fair.Options{StaysQueued: true})
			},
		},
		{
			Name: "readers-share-first-ttl", TwinOf: "rwlock",
			About: "the count of readers has the first reader's TTL: a writer enters beside a later one",
			New: func(env impl.Env) (impl.Lock, error) {
				return rwlock.NewWith(env, rwlock.Mistakes{FirstReadersTTL: true})
			},
		},
		{
			Name: "permits-by-client-clocks", TwinOf: "semaphore",
			About: "permits end by the clocks of the clients: one that is ahead sweeps those that are alive",
			New:   semaphore.NewWithClientTime,
		},
	}
}

func withBasic(m basic.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return basic.NewWith(env, m) }
}

func withReentrant(m reentrant.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return reentrant.NewWith(env, m) }
}

func withWatchdog(m watchdog.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return watchdog.NewWith(env, m) }
}

func withRedlock(m redlock.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return redlock.NewWith(env, m) }
}

func withReference(m reference.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return reference.NewWith(env, m) }
}
