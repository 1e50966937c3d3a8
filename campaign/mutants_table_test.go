package campaign

import "time"

// caught says by which scenario and check each mutant is told from its twin.
// The rows are those of docs/mutants.md. A check with the word unknown means
// that it gives no answer where it gives one for the twin.
var caught = []catch{
	{mutant: "release-without-owner-check", rows: "K2 9", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "release-get-then-del", rows: "K2 9", scenario: "pause-inside-release", check: "exclusion broken"},
	{mutant: "release-by-expiry", rows: "K2 11", scenario: "slow-work", check: "ownership foreign-delete"},
	{mutant: "identifier-per-object", rows: "K2 13", scenario: "late-release", check: "ownership stale-release"},
	{mutant: "extend-as-set-nx", rows: "K3 15, 19", scenario: "stolen-and-left", check: "updates lost-update"},
	{mutant: "extend-as-bare-pexpire", rows: "K3 17", scenario: "stolen-before-renewal", check: "updates lost-update"},
	{mutant: "extend-as-set", rows: "K3 17", scenario: "kleppmann-gc-pause", check: "exclusion broken"},
	{mutant: "flag-never-expires", rows: "K1 5", scenario: "partition-holder", check: "exclusion overrun"},
	{mutant: "renewal-never-started", rows: "K1 7", scenario: "slow-work", check: "exclusion overrun"},
	{mutant: "enters-after-the-wait", rows: "K1 7, K18 139", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "redlock-quorum-by-client", rows: "K5 29", scenario: "redlock-fence", check: "exclusion broken"},
	{mutant: "redlock-waits-at-a-split", rows: "K5 31", scenario: "even-split", check: "deadline never-returned"},
	{mutant: "redlock-one-error-is-failure", rows: "K5 33", scenario: "partition-minority", check: "coverage unknown"},
	{mutant: "redlock-quorum-all", rows: "K5 33", scenario: "partition-minority", check: "coverage unknown"},
	{mutant: "redlock-late-votes-kept", rows: "K5 35", scenario: "late-votes-of-the-last-attempt", check: "answers no-but-kept"},
	{mutant: "redlock-elapsed-of-all-attempts", rows: "K6 41", scenario: "last-attempt", check: "answers no-but-valid", ttl: 400 * time.Millisecond},
	{mutant: "redlock-quorum-half", rows: "K5", scenario: "redlock-fence", check: "exclusion broken"},
	{mutant: "redlock-quorum-of-reachable", rows: "K5", scenario: "redlock-fence", check: "exclusion broken"},
	{mutant: "redlock-error-is-yes", rows: "K5", scenario: "partition-holder", check: "exclusion broken"},
	{mutant: "redlock-drift-added", rows: "K6 37", scenario: "votes-just-too-late", check: "exclusion overrun"},
	{mutant: "drift-added-to-until", rows: "K6 37", scenario: "calm", check: "validity too-late"},
	{mutant: "elapsed-in-other-unit", rows: "K6 39", scenario: "slow-reply", check: "validity too-late"},
	{mutant: "until-from-reply", rows: "K6 40", scenario: "slow-reply", check: "validity too-late"},
	{mutant: "until-from-first-try", rows: "K6 41", scenario: "slow-work", check: "validity over-at-grant"},
	{mutant: "redlock-without-elapsed-check", rows: "K6 45", scenario: "pause-during-acquire", check: "exclusion overrun"},
	{mutant: "validity-from-wall-clock", rows: "K6", scenario: "servers-clock-ahead", check: "validity too-late"},
	{mutant: "ttl-zero", rows: "K7 47, 49", scenario: "calm", check: "ttl gone"},
	{mutant: "ttl-in-whole-seconds", rows: "K7 49", scenario: "long-work", check: "exclusion broken", ttl: 1500 * time.Millisecond},
	{mutant: "renewal-in-wrong-unit", rows: "K7 51", scenario: "slow-work", check: "ttl too-long"},
	{mutant: "ttl-in-nanoseconds", rows: "K7 53", scenario: "calm", check: "ttl too-long"},
	{mutant: "getset-scheme", rows: "K7 57", scenario: "slow-work", check: "ownership foreign-overwrite"},
	{mutant: "renewal-shrinks", rows: "K7 59", scenario: "slow-work", check: "ttl shrinks"},
	{mutant: "no-ttl", rows: "K7", scenario: "partition-holder", check: "liveness no-ttl-key"},
	{mutant: "setnx-then-pexpire", rows: "K7", scenario: "crash-inside-acquire", check: "liveness no-ttl-key"},
	{mutant: "blind-retry", rows: "K8 61", scenario: "loading", check: "exclusion broken"},
	{mutant: "redlock-release-only-yes", rows: "K8 65", scenario: "vote-without-reply", check: "orphans orphan"},
	{mutant: "no-clean-up", rows: "K8 66", scenario: "cancelled-acquire", check: "orphans orphan"},
	{mutant: "queues-twice", rows: "K8 67", scenario: "waiter-with-errors", check: "liveness no-grant"},
	{mutant: "renewal-dead-after-error", rows: "K9 69", scenario: "one-refused-renewal", check: "renewal stopped"},
	{mutant: "renewal-stops-after-one-error", rows: "K9 71", scenario: "one-refused-renewal", check: "renewal stopped"},
	{mutant: "renewal-not-restarted", rows: "K9 75", scenario: "deleted-then-long-work", check: "renewal stopped"},
	{mutant: "renewal-interval-equal-to-ttl", rows: "K9", scenario: "slow-work", check: "exclusion overrun"},
	{mutant: "renewal-without-owner", rows: "K10 77", scenario: "cancelled-set", check: "orphans kept-alive"},
	{mutant: "renewal-never-stopped", rows: "K10 79", scenario: "idle", check: "load after-release"},
	{mutant: "renewal-not-joined", rows: "K10 79", scenario: "idle", check: "load after-release"},
	{mutant: "renewal-outlives-release", rows: "K10 81", scenario: "release-without-node", check: "orphans kept-alive"},
	{mutant: "renewed-after-loss", rows: "K10 83", scenario: "one-refused-renewal", check: "orphans kept-alive"},
	{mutant: "local-hold-stays", rows: "K11 89", scenario: "slow-work", check: "liveness no-grant"},
	{mutant: "count-in-client-only", rows: "K11", scenario: "slow-work", check: "lease never-there"},
	{mutant: "waiter-forgotten", rows: "K14 105", scenario: "long-queue", check: "order overtaken"},
	{mutant: "waiter-left-in-queue", rows: "K14 107", scenario: "impatient-waiters", check: "liveness no-grant"},
	{mutant: "gives-up-at-once", rows: "K14 109", scenario: "calm", check: "answers gave-up-early"},
	{mutant: "sleeps-through", rows: "K15 111, 117", scenario: "short-waits", check: "liveness no-grant"},
	{mutant: "loss-waits-for-reader", rows: "K15 113", scenario: "stolen-before-renewal", check: "deadline never-returned"},
	{mutant: "slots-leak", rows: "K15 115", scenario: "calm", check: "liveness no-grant"},
	{mutant: "cleanup-on-cancelled-context", rows: "K16 120", scenario: "cancelled-acquire", check: "orphans orphan"},
	{mutant: "redlock-cleanup-on-cancelled-context", rows: "K16 120", scenario: "cancelled-vote", check: "orphans orphan"},
	{mutant: "late-grant-kept", rows: "K16 125", scenario: "late-grant", check: "answers no-but-kept"},
	{mutant: "release-tries-once", rows: "K16 129", scenario: "lost-release", check: "orphans orphan"},
	{mutant: "fixed-identifier", rows: "K17 131", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "identifier-by-prefix", rows: "K17", scenario: "slow-work", check: "exclusion broken"},
	{mutant: "refused-extend-is-yes", rows: "K18 137", scenario: "stolen-before-renewal", check: "continuity owner-between"},
	{mutant: "refused-release-is-yes", rows: "K18 137", scenario: "slow-work", check: "answers yes-but-gone"},
	{mutant: "doubt-is-yes", rows: "K18 139", scenario: "node-refuses", check: "exclusion broken"},
	{mutant: "cancelled-wait-is-yes", rows: "K18 141", scenario: "cancelled-waiter", check: "exclusion broken"},
	{mutant: "fail-open", rows: "K18 143", scenario: "node-refuses", check: "exclusion broken"},
	{mutant: "error-is-not-obtained", rows: "K18 147", scenario: "cancelled-set", check: "answers no-but-kept"},
	{mutant: "release-judged-by-exists", rows: "K18 147", scenario: "hand-over", check: "answers no-but-deleted"},
	{mutant: "evalsha-without-fallback", rows: "K19 149", scenario: "script-flush", check: "orphans orphan"},
	{mutant: "release-of-another-key", rows: "K19 151", scenario: "calm", check: "orphans orphan"},
	{mutant: "key-is-data-key", rows: "K19 153", scenario: "calm", check: "ttl no-ttl"},
}

// catch is one line of that table. The TTL is the world's own if it is zero.
type catch struct {
	mutant, rows, scenario, check string
	ttl                           time.Duration
}

// notYet are the mutants whose mistake no check sees.
var notYet = map[string]string{
	"readers-share-first-ttl":  "a workload with readers",
	"permits-by-client-clocks": "a workload with permits",
	"non-counting-reentrance":  "a workload that enters twice",
}
