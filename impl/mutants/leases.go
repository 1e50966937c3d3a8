package mutants

import (
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/reference"
	"github.com/holdfast-io/holdfast/impl/watchdog"
)

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
			About: "the end of the lease is read off the server's wall clock, which can be set: set ahead, the holder believes too long",
			New:   withReference(reference.Mistakes{ServersClock: true}),
		},
		{
			Name: "ttl-in-nanoseconds", TwinOf: "basic",
			About: "the TTL is sent in another unit: the key stays for centuries",
			New:   withBasic(basic.Mistakes{WrongUnit: true}),
		},
		{
			Name: "getset-scheme", TwinOf: "basic",
			About: "the expiry stands in the value, and an expired key is taken over by GETSET: a slow one overwrites a fast one's",
			New:   withBasic(basic.Mistakes{GetSet: true}),
		},
		{
			Name: "drift-added-to-until", TwinOf: "reference",
			About: "the allowance for drift is added to the validity that the holder is told",
			New:   withReference(reference.Mistakes{DriftAdded: true}),
		},
		{
			Name: "until-from-reply", TwinOf: "reference",
			About: "the validity counts from the reply: a slow reply makes it too long",
			New:   withReference(reference.Mistakes{UntilFromReply: true}),
		},
		{
			Name: "elapsed-in-other-unit", TwinOf: "reference",
			About: "the time that acquire took is measured in another unit: a third of it counts",
			New:   withReference(reference.Mistakes{ElapsedInOtherUnit: true}),
		},
		{
			Name: "until-from-first-try", TwinOf: "reference",
			About: "the validity counts from the first of many tries: after a long wait it is over at once",
			New:   newFirstTry,
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
		{
			Name: "renewal-never-started", TwinOf: "watchdog",
			About: "nothing renews: work that is longer than the TTL goes on without the lock",
			New:   withWatchdog(watchdog.Mistakes{NeverRenews: true}),
		},
		{
			Name: "renewal-in-wrong-unit", TwinOf: "watchdog",
			About: "a renewal asks for a thousand times too long: a holder that dies keeps the lock",
			New:   withWatchdog(watchdog.Mistakes{WrongUnit: true}),
		},
		{
			Name: "renewal-shrinks", TwinOf: "watchdog",
			About: "a renewal asks for half of what acquire asked for",
			New:   withWatchdog(watchdog.Mistakes{Shrinks: true}),
		},
		{
			Name: "renewal-not-restarted", TwinOf: "watchdog",
			About: "after a refused renewal the object renews no later lease",
			New:   withWatchdog(watchdog.Mistakes{NotRestartedAfterLoss: true}),
		},
		{
			Name: "renewal-dead-after-error", TwinOf: "reference",
			About: "after one failed renewal the object renews nothing any more, later leases included",
			New:   withReference(reference.Mistakes{RenewsNoMore: true}),
		},
		{
			Name: "renewal-without-owner", TwinOf: "watchdog",
			About: "the renewal of an acquire that failed is started all the same: its key is renewed for ever",
			New:   withWatchdog(watchdog.Mistakes{RenewsWithoutOwner: true}),
		},
		{
			Name: "renewal-outlives-release", TwinOf: "watchdog",
			About: "the renewal is stopped only when the release has worked: a lost key is renewed for ever",
			New:   withWatchdog(watchdog.Mistakes{StopsAfterRelease: true}),
		},
	}
}

// leases are mistakes about the end of one.
func leases() []Mutant {
	return []Mutant{
		{
			Name: "flag-never-expires", TwinOf: "reference",
			About: "the holder is told that it holds the lock until a renewal is refused, however long none gets through",
			New:   withReference(reference.Mistakes{FlagOnly: true}),
		},
		{
			Name: "renewed-after-loss", TwinOf: "reference",
			About: "the holder is told of a loss at the first error, and the renewal goes on: nobody has the lock, for ever",
			New:   withReference(reference.Mistakes{RenewsAfterLoss: true}),
		},
		{
			Name: "loss-waits-for-reader", TwinOf: "reference",
			About: "the loss notice waits for somebody to take it, and release waits for the notice",
			New:   withReference(reference.Mistakes{LossWaitsForReader: true}),
		},
	}
}
