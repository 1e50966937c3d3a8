package catalogue

import (
	"slices"

	"github.com/holdfast-io/holdfast/impl/thirdparty/redislock"
	"github.com/holdfast-io/holdfast/impl/thirdparty/redsync"
	"github.com/holdfast-io/holdfast/impl/thirdparty/rueidislock"
	"github.com/holdfast-io/holdfast/impl/thirdparty/setnx"
)

// ThirdParty returns the libraries that people use, unmodified, with the
// options that their documentation shows. Their abilities, promises and
// weaknesses are those of the library's own code.
func ThirdParty() []Entry {
	return slices.Concat(redsyncs(), redislocks(), rueidislocks(), recipes())
}

const libraryUnsafe = "no lock with a TTL survives a pause of its holder"

// variant is an entry with another name, another story and another way to be
// built.
func variant(of Entry, name string, change func(*Entry)) Entry {
	e := of
	e.TwinOf = of.Name
	e.Name = name
	e.Weaknesses = slices.Clone(of.Weaknesses)
	change(&e)
	return e
}

func redsyncs() []Entry {
	redlock := Entry{
		Name:      "redsync",
		Retries:   true,
		Tokens:    true,
		About:     "go-redsync/redsync v4.18.1 over go-redis, a pool for each of the independent nodes",
		New:       redsync.New,
		KeyPrefix: "redsync:",
		Abilities: []string{AbilityExtend, AbilityUntil},
		Drift:     redsync.Drift,
		Quorum:    true,
		Promises: Promises{
			AtomicCheckAndSet: "on many nodes", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "yes", NeverDeletesAnothers: "yes", GCPauseTolerance: "Until tells",
		},
		Unsafe: libraryUnsafe,
		Weaknesses: []string{
			"the end of the lease is told by Until, and only to a holder that asks (kleppmann-gc-pause)",
			"a late write reaches the resource after the next holder's (delayed-write)",
			"a voter whose clock jumps frees its vote early (kleppmann-clock-jump)",
			"a voter that restarts without its data frees its vote (crash-restart-amnesia)",
			"what a failed Lock has taken is given back on the caller's context (node-stall)",
		},
	}
	single := variant(redlock, "redsync-single", func(e *Entry) {
		e.About = "go-redsync/redsync v4.18.1 over go-redis on one node, as its README shows it"
		e.New, e.Quorum, e.TwinOf = redsync.NewSingle, false, ""
		e.Promises.AtomicCheckAndSet, e.Promises.SurvivesNodeLoss = "yes", "no"
		e.Weaknesses = append(e.Weaknesses[:2],
			"a node whose clock jumps frees a held lock early (kleppmann-clock-jump)",
			"a node that restarts without its data frees a held lock (crash-restart-amnesia)",
			"a promoted replica may not have the lock (failover-before-replication)",
		)
	})
	failFast := variant(redlock, "redsync+failfast", func(e *Entry) {
		e.About += ", WithFailFast"
		e.New = redsync.NewFailFast
		e.Weaknesses = append(e.Weaknesses,
			"the lock has a bare quorum of keys even when all nodes are well (crash-restart-amnesia)")
	})
	setNX := variant(redlock, "redsync+setnx-on-extend", func(e *Entry) {
		e.About += ", WithSetNXOnExtend"
		e.New = redsync.NewSetNXOnExtend
		e.Unsafe = "extend takes the lock anew after the end of the lease and says that it was extended"
		e.Weaknesses = append(e.Weaknesses,
			"an extend after the end says yes although others may have held the lock in between (slow-work)")
	})
	return []Entry{redlock, single, failFast, setNX}
}

func redislocks() []Entry {
	plain := Entry{
		Name:      "redislock",
		Tokens:    true,
		About:     "bsm/redislock v0.9.4 over go-redis without options, as its README shows it",
		New:       redislock.New,
		KeyPrefix: "redislock:",
		Abilities: []string{AbilityExtend, AbilityExtendFor},
		Promises: Promises{
			AtomicCheckAndSet: "with Lua", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "TTL asks",
		},
		Unsafe: leaseUnsafe,
		Weaknesses: append(leaseWeaknesses(),
			"work longer than the TTL goes on without the lock (slow-work)",
			"an Obtain whose reply was lost leaves its key (partition-holder)",
		),
	}
	retry := variant(plain, "redislock+retry", func(e *Entry) {
		e.About = "bsm/redislock v0.9.4 with the retry strategy of its example: every 100 ms, up to three times"
		e.New, e.Retries = redislock.NewRetrying, true
	})
	token := variant(plain, "redislock+token", func(e *Entry) {
		e.About = "bsm/redislock v0.9.4 with one token for all acquisitions of a client"
		e.New, e.Tokens = redislock.NewWithToken, false
		e.Promises.Reentrant = "with the token"
		e.Weaknesses = append(e.Weaknesses,
			"everyone who has the token is granted the lock, so two threads of a client both hold it (calm)")
	})
	workers := variant(plain, "redislock+worker-tokens", func(e *Entry) {
		e.About = "bsm/redislock v0.9.4 with the tokens worker-1, worker-11 and so on, one for each client"
		e.New, e.Tokens = redislock.NewWithWorkerTokens, false
		e.Unsafe = "whose token is the beginning of the holder's is granted the lock"
		e.Weaknesses = append(e.Weaknesses, "worker-1 is granted what worker-11 holds (calm)")
	})
	metadata := variant(plain, "redislock+metadata", func(e *Entry) {
		e.About = "bsm/redislock v0.9.4 with metadata behind the random token"
		e.New, e.Tokens = redislock.NewWithMetadata, false
	})
	return []Entry{plain, retry, token, workers, metadata}
}

func rueidislocks() []Entry {
	noloop := Entry{
		Name:      "rueidislock",
		About:     "rueidislock of rueidis v1.0.79 with the README's options: one key, NOLOOP tracking",
		New:       rueidislock.New,
		KeyPrefix: "rueidislock:0:",
		Abilities: []string{AbilityLost},
		Needs:     []string{NeedClientTracking},
		// Its cancel function returns nothing.
		SilentRelease: true,
		Promises: Promises{
			AtomicCheckAndSet: "with Lua", Reentrant: "no", RenewsItself: "yes",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "its context ends",
		},
		Unsafe: libraryUnsafe,
		Weaknesses: []string{
			"a holder that is paused past the TTL goes on beside the next one (kleppmann-gc-pause)",
			"a late write reaches the resource after the next holder's (delayed-write)",
			"keys end at a time of the client's wall clock (kleppmann-clock-jump)",
			"the notice of loss comes up to half a TTL after the key has ended (partition-holder)",
			"a node that restarts without its data frees a held lock (crash-restart-amnesia)",
			"a promoted replica may not have the lock (failover-before-replication)",
		},
	}
	loop := variant(noloop, "rueidislock+loop", func(e *Entry) {
		e.About = "rueidislock of rueidis v1.0.79, told of its own writes too, which is the library's default"
		e.New = rueidislock.NewWithLoop
	})
	nocache := variant(noloop, "rueidislock+nocache", func(e *Entry) {
		e.About = "rueidislock of rueidis v1.0.79 without client-side caching: waiters poll"
		e.New, e.Needs = rueidislock.NewWithoutCache, nil
		e.Weaknesses = append(e.Weaknesses,
			"a loss is noticed at the next renewal, half a TTL later (crash-restart-amnesia)")
	})
	return []Entry{noloop, loop, nocache}
}

func recipes() []Entry {
	return []Entry{{
		Name:      "setnx",
		About:     "the recipe of countless articles: go-redis's SetNX and a script that deletes if equal",
		New:       setnx.New,
		KeyPrefix: "setnx:",
		Promises: Promises{
			AtomicCheckAndSet: "with Lua", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "with Lua", GCPauseTolerance: "not mentioned",
		},
		Unsafe: leaseUnsafe,
		Weaknesses: append(leaseWeaknesses(),
			"work longer than the TTL goes on without the lock (slow-work)",
			"a retried SetNX meets its own key and says no (partition-holder)",
		),
	}}
}
