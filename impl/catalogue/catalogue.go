// Package catalogue is the one table of all locks that holdfast knows: what
// they are called, how they are built, what they can do, and what their authors
// promise. A lock that is not in it does not exist for the command line.
package catalogue

import (
	"slices"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/basic"
	"github.com/holdfast-io/holdfast/impl/mutants"
	"github.com/holdfast-io/holdfast/impl/redlock"
	"github.com/holdfast-io/holdfast/impl/reentrant"
	"github.com/holdfast-io/holdfast/impl/reference"
	"github.com/holdfast-io/holdfast/impl/service"
	"github.com/holdfast-io/holdfast/impl/unruly"
	"github.com/holdfast-io/holdfast/impl/watchdog"
)

// The abilities that a lease may have, as [Entry.Abilities] names them.
const (
	AbilityFence  = "fence"  // impl.Fencer
	AbilityExtend = "extend" // impl.Extender
	// AbilityExtendFor is impl.ExtenderFor.
	AbilityExtendFor = "extend-for"
	AbilityUntil     = "until" // impl.Validity
	AbilityLost      = "lost"  // impl.LossNotifier
)

// Kind says what a lock grants, and so which workloads and checks it is for.
type Kind string

// The kinds of lock. The zero value is a mutex.
const (
	Mutex     Kind = ""          // one holder
	RW        Kind = "rw"        // readers, or one writer: impl.RWLock
	Semaphore Kind = "semaphore" // as many holders as it has permits: impl.Semaphore
)

// String is the kind's word.
func (k Kind) String() string {
	if k == Mutex {
		return "mutex"
	}
	return string(k)
}

// NeedClientTracking in [Entry.Needs]: a server that has CLIENT TRACKING and
// sends invalidations unasked.
const NeedClientTracking = "client-tracking"

// NeedReplicas in [Entry.Needs]: a primary that knows what its replicas have.
const NeedReplicas = "replica-acks"

// Entry is one lock.
type Entry struct {
	Name  string
	About string // one sentence without a full stop
	New   impl.New

	// Store is what the lock is kept on: Redis if empty, otherwise one of the
	// constants in baselines.go.
	Store string

	// Kind is a mutex unless it says otherwise.
	Kind Kind

	// Permits of a semaphore, 0 for every other lock.
	Permits int
	// Needs names what a world must have for the lock to run at all. A world
	// without it answers "unknown", with the need as the reason.
	Needs []string

	// KeyPrefix comes before the lock's name in its key. Fence counters have
	// keys of their own, with no TTL and another prefix.
	KeyPrefix string

	// Abilities of its leases: a subset of the constants above.
	Abilities []string

	// Promises are its author's, not what was measured.
	Promises Promises

	// Drift is the share of the TTL that the lock takes off its guarantee, to
	// allow for clocks that run at different rates.
	Drift float64

	// Waits is for how long Acquire promises to wait for a holder to leave; 0
	// where it promises nothing.
	Waits time.Duration

	// SilentRelease: the release has no answer to give, so that a nil error of
	// the adapter means nothing.
	SilentRelease bool

	// Quorum: the lock wants several independent nodes, not one.
	Quorum bool

	// Retries, Tokens: the lock heeds those of its environment.
	Retries, Tokens bool

	// Fair: the lock promises to grant in the order of arrival.
	Fair bool

	// Unsafe says in one sentence why the lock is known to break although it
	// has no mistake of a mutant; empty if it is not.
	Unsafe string

	// Mutant: the lock has one mistake, on purpose; TwinOf is the lock
	// without it.
	Mutant bool
	TwinOf string

	// Weaknesses are the known ones, each with the name of a scenario that
	// shows it in brackets.
	Weaknesses []string
}

// Promises are an author's answers, each a word or two.
type Promises struct {
	AtomicCheckAndSet    string
	Reentrant            string
	RenewsItself         string
	SurvivesNodeLoss     string
	NeverDeletesAnothers string
	GCPauseTolerance     string
}

// All returns every lock that is meant to be one: the five, their variants
// with a fence, and the reference.
func All() []Entry {
	return append(append(five(), fenced()...), referenceEntry())
}

// Five returns the names of the five locks that the harness was made for.
func Five() []string {
	var names []string
	for _, e := range five() {
		names = append(names, e.Name)
	}
	return names
}

// Mutants returns the locks with one mistake each. They share all but the
// mistake with their twins.
func Mutants() []Entry {
	twins := append(All(), Advanced()...)
	var entries []Entry
	for _, m := range mutants.All() {
		at := slices.IndexFunc(twins, func(e Entry) bool { return e.Name == m.TwinOf })
		e := twins[at] // a test holds that every twin exists
		e.Name, e.About, e.New, e.Mutant, e.TwinOf = m.Name, m.About, m.New, true, m.TwinOf
		e.Unsafe = m.About
		entries = append(entries, e)
	}
	return entries
}

// Everything returns every lock there is: [All], [Advanced], [ThirdParty],
// [Variants], [Baselines] and [Mutants].
func Everything() []Entry {
	return slices.Concat(All(), Advanced(), ThirdParty(), Variants(), Baselines(), Mutants())
}

// Unruly returns the locks that panic, exit, spin or never come back. No list has
// them: they are there to show what the harness makes of that.
func Unruly() []Entry {
	twin := five()[0] // basic
	var entries []Entry
	for _, u := range unruly.All() {
		e := twin
		e.Name, e.About, e.New, e.TwinOf, e.Unsafe = "unruly-"+u.Name, u.About, u.New, twin.Name, u.About
		entries = append(entries, e)
	}
	return entries
}

// Find returns the lock of that name, whichever group it is in.
func Find(name string) (Entry, bool) {
	for _, e := range slices.Concat(Everything(), Unruly()) {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// leaseWeaknesses are those of every lock on one node that tells its holder
// nothing about the end of the lease.
func leaseWeaknesses() []string {
	return []string{
		"a holder that is paused past the TTL goes on beside the next one (kleppmann-gc-pause)",
		"a late write reaches the resource after the next holder's (delayed-write)",
		"acquire does not measure its own duration (pause-during-acquire)",
		"a node that restarts without its data frees a held lock (crash-restart-amnesia)",
		"a promoted replica may not have the lock (failover-before-replication)",
		"a node whose clock jumps frees a held lock early (kleppmann-clock-jump)",
	}
}

// renewalWeaknesses are those of the renewer that gives up.
func renewalWeaknesses() []string {
	return []string{
		"the renewal gives up at the first error though the lease has time left (renewal-blip)",
		"a node that stalls for one renewal ends them all (node-stall)",
		"the holder is not told that its lease is gone (partition-holder)",
	}
}

const leaseUnsafe = "no lock with a TTL survives a pause of its holder, and this one does not tell when the lease ends"

func five() []Entry {
	return []Entry{
		{
			Name:      "basic",
			About:     "SET NX PX and a script that deletes the key if it is ours",
			New:       basic.New,
			KeyPrefix: "lock:",
			Promises: Promises{
				AtomicCheckAndSet: "with Lua", Reentrant: "no", RenewsItself: "no",
				SurvivesNodeLoss: "no", NeverDeletesAnothers: "with Lua", GCPauseTolerance: "high",
			},
			Unsafe: leaseUnsafe,
			Weaknesses: append(leaseWeaknesses(),
				"work longer than the TTL goes on without the lock (slow-work)",
				"a retried SET NX meets its own key and says no (partition-holder)",
			),
		},
		{
			Name:      "reentrant",
			About:     "a hash of owner to hold count, and a second count in the client",
			New:       reentrant.New,
			KeyPrefix: "reentrant_lock:",
			Promises: Promises{
				AtomicCheckAndSet: "yes", Reentrant: "yes", RenewsItself: "no",
				SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "high",
			},
			Unsafe: leaseUnsafe,
			Weaknesses: append(leaseWeaknesses(),
				"a re-acquire after the TTL says yes without asking (slow-work)",
				"the count in Redis falls below the real one (reentry)",
				"threads that share the object are let in together (shared-lock-object)",
			),
		},
		{
			Name:      "watchdog",
			About:     "SET NX PX, polled until it succeeds, renewed in the background",
			New:       watchdog.New,
			KeyPrefix: "watchdog_lock:",
			Waits:     watchdog.WaitLimit,
			Promises: Promises{
				AtomicCheckAndSet: "yes", Reentrant: "yes", RenewsItself: "yes",
				SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "medium",
			},
			Unsafe:     leaseUnsafe,
			Weaknesses: append(leaseWeaknesses(), renewalWeaknesses()...),
		},
		{
			Name:      "redlock",
			Retries:   true,
			About:     "the votes of a majority of independent nodes, before the TTL is over",
			New:       redlock.New,
			KeyPrefix: "redlock:",
			Quorum:    true,
			Promises: Promises{
				AtomicCheckAndSet: "on many nodes", Reentrant: "no", RenewsItself: "no",
				SurvivesNodeLoss: "yes", NeverDeletesAnothers: "yes", GCPauseTolerance: "high",
			},
			Unsafe:     leaseUnsafe,
			Weaknesses: redlockWeaknesses(),
		},
		{
			Name:      "service",
			Retries:   true,
			About:     "a hash of owner and hold count, a few attempts, renewed in the background",
			New:       service.New,
			KeyPrefix: "lock_service:",
			Promises: Promises{
				AtomicCheckAndSet: "yes", Reentrant: "yes", RenewsItself: "yes",
				SurvivesNodeLoss: "optional", NeverDeletesAnothers: "yes", GCPauseTolerance: "medium",
			},
			Unsafe:     leaseUnsafe,
			Weaknesses: serviceWeaknesses(),
		},
	}
}

func serviceWeaknesses() []string {
	return append(append(leaseWeaknesses(), renewalWeaknesses()...),
		"the holder cannot re-enter: each acquire has a new identifier (reentry)",
	)
}

func redlockWeaknesses() []string {
	return []string{
		"a holder that is paused past the TTL goes on beside the next one (kleppmann-gc-pause)",
		"a late write reaches the resource after the next holder's (delayed-write)",
		"the validity that is left is not told to the holder, and allows for no drift (pause-during-acquire)",
		"a voter whose clock jumps frees its vote early (kleppmann-clock-jump)",
		"a voter that restarts without its data frees its vote (crash-restart-amnesia)",
		"one slow node eats the validity, since nodes are asked in turn (node-stall)",
		"a refused acquire deletes the vote of another thread that shares the object (shared-lock-object)",
	}
}

// fenced are the variants with a counter in the granting script.
func fenced() []Entry {
	entries := make([]Entry, 0, 3)
	for _, base := range five() {
		var build impl.New
		switch base.Name {
		case "basic":
			build = basic.NewFenced
		case "service":
			build = service.NewFenced
		case "redlock":
			build = redlock.NewFenced
			base.Weaknesses = append(base.Weaknesses,
				"the largest counter of a quorum is not monotonic (redlock-fence)")
		default:
			continue
		}
		base.New = build
		base.TwinOf = base.Name
		base.About += ", with a fence"
		base.Name += "+fence"
		base.Abilities = []string{AbilityFence}
		entries = append(entries, base)
	}
	// The two on one node first, the quorum last.
	slices.SortStableFunc(entries, func(a, b Entry) int {
		switch {
		case a.Quorum == b.Quorum:
			return 0
		case a.Quorum:
			return 1
		}
		return -1
	})
	return entries
}

func referenceEntry() Entry {
	return Entry{
		Name:      "reference",
		About:     "what a lock on one node should be, and the control for false alarms",
		New:       reference.New,
		KeyPrefix: "reference:",
		Abilities: []string{AbilityFence, AbilityExtend, AbilityUntil, AbilityLost},
		Drift:     reference.Drift,
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "yes",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "with a guarded resource",
		},
		Weaknesses: []string{
			"a late write is stopped by a guarded resource only (kleppmann-gc-pause)",
			"a node that restarts without its data frees a held lock (crash-restart-amnesia)",
			"a promoted replica may not have the lock (failover-before-replication)",
			"a node whose clock jumps frees a held lock early (kleppmann-clock-jump)",
		},
	}
}
