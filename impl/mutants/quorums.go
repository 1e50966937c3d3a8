package mutants

import (
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/fair"
	"github.com/holdfast-io/holdfast/impl/redlock"
	"github.com/holdfast-io/holdfast/impl/rwlock"
	"github.com/holdfast-io/holdfast/impl/semaphore"
)

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
		{
			Name: "redlock-quorum-by-client", TwinOf: "redlock",
			About: "one client is configured with another quorum: its one vote is enough",
			New:   withRedlock(redlock.Mistakes{QuorumByClient: true}),
		},
		{
			Name: "redlock-waits-at-a-split", TwinOf: "redlock",
			About: "an equal split of an even number of nodes is neither yes nor no: acquire never returns",
			New:   withRedlock(redlock.Mistakes{WaitsAtASplit: true}),
		},
		{
			Name: "redlock-one-error-is-failure", TwinOf: "redlock",
			About: "one node's error fails the acquire although a majority said yes",
			New:   withRedlock(redlock.Mistakes{OneErrorIsFailure: true}),
		},
		{
			Name: "redlock-late-votes-kept", TwinOf: "redlock",
			About: "votes that came in too late are not given back: they stay for a TTL",
			New:   withRedlock(redlock.Mistakes{KeepsLateVotes: true}),
		},
		{
			Name: "redlock-elapsed-of-all-attempts", TwinOf: "redlock",
			About: "the time of earlier attempts is taken off too: fresh votes are called late",
			New:   withRedlock(redlock.Mistakes{ElapsedOfAllAttempts: true}),
		},
	}
}

// advanced are mistakes of locks that are more than a mutex, or queue for one.
func advanced() []Mutant {
	return []Mutant{
		{
			Name: "waiter-left-in-queue", TwinOf: "fair",
			About: "a waiter that gives up stays in the queue: the free lock waits for somebody who does not come",
			New:   withFair(fair.Options{StaysQueued: true}),
		},
		{
			Name: "readers-share-first-ttl", TwinOf: "rwlock",
			About: "the count of readers has the first reader's TTL: a writer enters beside a later one",
			New:   withRW(rwlock.Mistakes{FirstReadersTTL: true}),
		},
		{
			Name: "permits-by-client-clocks", TwinOf: "semaphore",
			About: "permits end by the clocks of the clients: one that is ahead sweeps those that are alive",
			New:   semaphore.NewWithClientTime,
		},
		{
			Name: "permits-without-names", TwinOf: "semaphore",
			About: "a release gives back the oldest permit, whoever has it: a late holder frees another's",
			New:   withSemaphore(semaphore.Options{NamelessRelease: true}),
		},
		{
			Name: "permits-reset", TwinOf: "semaphore",
			About: "a client that starts makes all permits anew, also those that others hold",
			New:   withSemaphore(semaphore.Options{ResetsAtStart: true}),
		},
		{
			Name: "one-permit-too-many", TwinOf: "semaphore",
			About: "the count is compared in the wrong direction: one more gets in than there are permits",
			New:   withSemaphore(semaphore.Options{OneTooMany: true}),
		},
		{
			Name: "reader-entry-stays", TwinOf: "rwlock",
			About: "a reader leaves an entry behind, and reads again beside a writer",
			New:   withRW(rwlock.Mistakes{EntryStays: true}),
		},
		{
			Name: "writer-does-not-look", TwinOf: "rwlock",
			About: "a writer does not look for readers",
			New:   withRW(rwlock.Mistakes{WriterDoesNotLook: true}),
		},
		{
			Name: "queues-twice", TwinOf: "fair",
			About: "after an error the waiter queues once more, behind its own first place, where nobody waits",
			New:   withFair(fair.Options{QueuesTwice: true}),
		},
		{
			Name: "waiter-forgotten", TwinOf: "fair",
			About: "a place in the queue is dropped after one TTL, and its waiter waits on",
			New:   withFair(fair.Options{ForgetsWaiters: true}),
		},
	}
}

func withFair(o fair.Options) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return fair.NewWith(env, o) }
}

func withRW(m rwlock.Mistakes) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return rwlock.NewWith(env, m) }
}

func withSemaphore(o semaphore.Options) impl.New {
	return func(env impl.Env) (impl.Lock, error) { return semaphore.NewWith(env, o) }
}
