package catalogue

import (
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/fair"
	"github.com/holdfast-io/holdfast/impl/rwlock"
	"github.com/holdfast-io/holdfast/impl/semaphore"
)

// Advanced returns the locks that are more than a mutex, queue for one, or need more
// than one server.
func Advanced() []Entry {
	return []Entry{fairEntry(), rwEntry(), semaphoreEntry(), clientTimeEntry(), waitEntry()}
}

func fairEntry() Entry {
	return Entry{
		Name:      "fair",
		About:     "a queue of waiters by their time of arrival, polled; the first takes SET NX PX",
		New:       fair.New,
		KeyPrefix: "fair:",
		Fair:      true,
		Waits:     fair.WaitLimit,
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "high",
		},
		Unsafe: leaseUnsafe,
		Weaknesses: append(leaseWeaknesses(),
			"work longer than the TTL goes on without the lock (slow-work)",
			"a repeated grant waits for its own key to expire (partition-holder)",
			"a waiter that crashes at the head of the queue blocks everybody while others come (fair-queue-crashed-waiter)",
			"the order is that of the waiters' own clocks (no scenario yet)",
		),
	}
}

func rwEntry() Entry {
	return Entry{
		Name:      "rwlock",
		About:     "a count of readers with one TTL, and a key for the writer, who looks for readers last",
		New:       rwlock.New,
		Kind:      RW,
		KeyPrefix: "rwlock:",
		Promises: Promises{
			AtomicCheckAndSet: "for readers", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "writers'", GCPauseTolerance: "high",
		},
		Unsafe: "readers have no names: one whose lease has ended takes away another's count, and a writer enters",
		Weaknesses: append(leaseWeaknesses(),
			"a reader whose lease has ended takes away another's count (reader-outlives-lease)",
			"each new reader lengthens the count of those that crashed (no scenario yet)",
			"the writer looks for readers in a second step (no scenario yet)",
		),
	}
}

func semaphoreEntry() Entry {
	return Entry{
		Name:      "semaphore",
		About:     "two permits in a sorted set, each scored by its expiry on the server's clock",
		New:       semaphore.New,
		Kind:      Semaphore,
		Permits:   semaphore.DefaultPermits,
		KeyPrefix: "semaphore:",
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "high",
		},
		Unsafe: leaseUnsafe,
		Weaknesses: append(leaseWeaknesses(),
			"a repeated acquire finds its own permit and says no (no scenario yet)",
			"a permit that has ended and was not swept is released with a yes (no scenario yet)",
		),
	}
}

func clientTimeEntry() Entry {
	return variant(semaphoreEntry(), "semaphore+client-time", func(e *Entry) {
		e.About = "two permits in a sorted set, each scored by its expiry on its client's clock"
		e.New = semaphore.NewWithClientTime
		e.Unsafe = "a client whose clock is ahead of the others' sweeps permits that are alive"
		e.Weaknesses = append(e.Weaknesses,
			"a client whose clock is behind, or whose requests are late, has its permit swept early (permits)")
	})
}

func waitEntry() Entry {
	return variant(five()[0], "basic+wait", func(e *Entry) {
		e.About = "basic, with a WAIT for one replica after each grant, which is taken back without it"
		e.New = basic.NewWaiting
		e.Needs = []string{NeedReplicas}
		e.Weaknesses = append(e.Weaknesses, "the replica that is elected may not be the one that was waited for (sentinel-lagging-replica)")
	})
}
