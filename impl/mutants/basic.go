package mutants

import (
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/reentrant"
	"github.com/holdfast-io/holdfast/impl/reference"
	"github.com/holdfast-io/holdfast/impl/watchdog"
)

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
			Name: "inner-hold-shortens", TwinOf: "reentrant",
			About: "an inner acquire sets its own, shorter TTL: the outer section loses the lock with it",
			New:   withReentrant(reentrant.Mistakes{InnerShortens: true}),
		},
		{
			Name: "inner-hold-stays", TwinOf: "reentrant",
			About: "inner holds are never taken off in the client: after a re-entry it always says yes",
			New:   withReentrant(reentrant.Mistakes{InnerCountStays: true}),
		},
		{
			Name: "cleanup-on-cancelled-context", TwinOf: "reference",
			About: "a failed acquire cleans up on the context whose end was the failure: the key stays for a TTL",
			New:   withReference(reference.Mistakes{CleanUpOnCallersContext: true}),
		},
		{
			Name: "release-by-expiry", TwinOf: "basic",
			About: "release deletes a key that expires no sooner than its own: a newer one always does",
			New:   withBasic(basic.Mistakes{ReleaseByExpiry: true}),
		},
		{
			Name: "release-of-another-key", TwinOf: "basic",
			About: "release leaves out the prefix under which the lock was taken: the key stays for a TTL",
			New:   withBasic(basic.Mistakes{ReleaseOfAnotherKey: true}),
		},
		{
			Name: "release-tries-once", TwinOf: "reference",
			About: "a release whose request was lost is not repeated: the key stays for a TTL",
			New:   withReference(reference.Mistakes{ReleaseTriesOnce: true}),
		},
		{
			Name: "local-hold-stays", TwinOf: "basic",
			About: "the client notes its hold and forgets to take the note back after a refused release: it never gets in again",
			New:   withBasic(basic.Mistakes{LocalHoldStays: true}),
		},
		{
			Name: "late-grant-kept", TwinOf: "reference",
			About: "a grant that came too late to be used is not given back: nobody has the lock, for a TTL",
			New:   withReference(reference.Mistakes{KeepsLateGrant: true}),
		},
		{
			Name: "no-clean-up", TwinOf: "reference",
			About: "an acquire that failed undoes nothing: its key may stay for a TTL",
			New:   withReference(reference.Mistakes{NoCleanUp: true}),
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
		{
			Name: "identifier-per-object", TwinOf: "reference",
			About: "all acquisitions of one object have one name: a late release of an old one deletes a new one",
			New:   withReference(reference.Mistakes{IdentifierPerObject: true}),
		},
	}
}

// answers are mistakes about what happened.
func answers() []Mutant {
	return []Mutant{
		{
			Name: "fail-open", TwinOf: "basic",
			About: "an error means that nobody holds the lock: with the node down everybody enters",
			New:   withBasic(basic.Mistakes{FailOpen: true}),
		},
		{
			Name: "error-is-not-obtained", TwinOf: "basic",
			About: "an error means that somebody holds the lock: what was set stays, and its owner does not know",
			New:   withBasic(basic.Mistakes{ErrorIsRefusal: true}),
		},
		{
			Name: "doubt-is-yes", TwinOf: "reference",
			About: "an acquire of which nobody knows whether it worked is taken for a yes",
			New:   withReference(reference.Mistakes{GrantsOnDoubt: true}),
		},
		{
			Name: "refused-release-is-yes", TwinOf: "basic",
			About: "the reply to a release is compared wrongly: it says yes although the lock was gone",
			New:   withBasic(basic.Mistakes{RefusedReleaseIsYes: true}),
		},
		{
			Name: "refused-extend-is-yes", TwinOf: "reference",
			About: "the reply to an extend is compared wrongly: it says yes although the lock was gone",
			New:   withReference(reference.Mistakes{RefusedExtendIsYes: true}),
		},
		{
			Name: "release-judged-by-exists", TwinOf: "basic",
			About: "release asks afterwards whether the key exists, and takes the next holder's for its own",
			New:   withBasic(basic.Mistakes{ReleaseJudgedByExistence: true}),
		},
		{
			Name: "enters-after-the-wait", TwinOf: "watchdog",
			About: "a waiter whose time is up goes on without the lock",
			New:   withWatchdog(watchdog.Mistakes{EntersAfterTheWait: true}),
		},
		{
			Name: "cancelled-wait-is-yes", TwinOf: "watchdog",
			About: "a waiter that was cancelled goes on without the lock",
			New:   withWatchdog(watchdog.Mistakes{CancelledWaitIsYes: true}),
		},
		{
			Name: "gives-up-at-once", TwinOf: "watchdog",
			About: "a waiter gives up at its first refusal although it has time left",
			New:   withWatchdog(watchdog.Mistakes{GivesUpAtOnce: true}),
		},
		{
			Name: "sleeps-through", TwinOf: "watchdog",
			About: "a waiter misses its wake-up and sleeps for a whole TTL beside a free lock",
			New:   withWatchdog(watchdog.Mistakes{SleepsThrough: true}),
		},
		{
			Name: "key-is-data-key", TwinOf: "basic",
			About: "the lock's key is also the application's: it always exists",
			New:   withBasic(basic.Mistakes{DataKey: true}),
		},
		{
			Name: "slots-leak", TwinOf: "basic",
			About: "each refused acquire keeps one of the client's ten slots: soon every call hangs",
			New:   withBasic(basic.Mistakes{LeaksSlots: true}),
		},
	}
}
