package study

import "slices"

// The parties of the dispute.
const (
	kleppmann = "Kleppmann"
	antirez   = "antirez"
	docs      = "Redis documentation"
	ours      = "nobody; our conclusion"
)

// sources of the parties' words.
var sources = map[string]string{
	kleppmann: "https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html",
	antirez:   "http://antirez.com/news/101",
	docs:      "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
}

// Claim is one sentence of the dispute and what became of it here.
type Claim struct {
	// Name is short, and the heading.
	Name string
	By   string
	// Says is the claim in our words.
	Says string
	// Tests are what is played. The first one's first run is shown, unless
	// Picture names another.
	Tests   []Test
	Picture Picture
	// Untested says why nothing can be played here, or which part of the claim
	// cannot; with neither this nor tests a claim has no place on the page.
	Untested string
	// Shows is what the runs show, in one sentence or two.
	Shows string
	// Right is who was right, and under which assumption.
	Right string

	_ struct{} // named fields only
}

// on is a test of a lock in a scenario.
func on(scenario, lock string, asks Question, want Share) Test {
	return Test{Case: Case{Scenario: scenario, Lock: lock}, Asks: asks, Want: want}
}

// shown is the picture of a case, with the keys of some nodes.
func shown(scenario, lock string, nodes ...string) Picture {
	return Picture{Case: Case{Scenario: scenario, Lock: lock}, Nodes: nodes}
}

// redlockClaims are those of Kleppmann, of antirez and of the documentation, in
// the order of the dispute.
func redlockClaims() []Claim {
	return slices.Concat(
		kleppmannOnHolders(), kleppmannOnNodes(), kleppmannOnAcquiring(), antirezClaims(), docsOnGranting(), docsOnDetails(),
	)
}

func kleppmannOnHolders() []Claim {
	return []Claim{
		{
			Name: "A pause while holding the lock", By: kleppmann,
			Says: "A client that stands still for longer than its lease goes on as if it held the lock, beside the next holder. A last look at the clock does not help, because the pause can come between the look and the write.",
			Tests: []Test{
				on("kleppmann-gc-pause", "redlock", TwoHolders, Always),
				on("kleppmann-gc-pause", "redlock", LostUpdate, Always),
				on("kleppmann-gc-pause", "redlock-telling", LostUpdate, Always),
				on("kleppmann-gc-pause", "basic", LostUpdate, Always),
				on("kleppmann-gc-pause", "reference", LostUpdate, Always),
			},
			Shows: "The late write replaces another client's, with Redlock and with a lock on one node alike. The holder of `redlock-telling` and of `reference` did look at the end of its lease just before it wrote; the pause came after the look.",
			Right: "Kleppmann, for a resource that takes every write. antirez agrees, and adds that it is so with every lock that ends by itself: he is right too.",
		},
		{
			Name: "A write that is late", By: kleppmann,
			Says: "The holder does nothing wrong, but its write waits in the network until the lease has ended and others have written.",
			Tests: []Test{
				on("delayed-write", "redlock", LostUpdate, Always),
				on("delayed-write", "redlock", TwoHolders, Never),
				on("delayed-write", "reference", LostUpdate, Always),
			},
			Shows: "An update is lost although nobody ever held the lock beside somebody else. No lock can stop that; only the resource can.",
			Right: "Kleppmann, for a resource that takes every write.",
		},
		{
			Name: "Fencing tokens", By: kleppmann,
			Says: "Each grant comes with a number that only grows, and the resource refuses a write whose number is older than one it has seen. Redlock has no such number to give: its values are random, and counters on several nodes drift apart.",
			Tests: []Test{
				on("kleppmann-fencing", "basic+fence", TwoHolders, Always),
				on("kleppmann-fencing", "basic+fence", LostUpdate, Never),
				on("redlock-fence", "redlock+fence", FenceBack, Always),
			},
			Picture: shown("kleppmann-fencing", "basic+fence"),
			Shows:   "With tokens from one node, two clients believe that they hold the lock and no write is lost. Tokens made from the counters of Redlock's nodes go backwards, so that a resource would refuse the rightful holder and take the late one.",
			Right:   "Kleppmann, on both halves.",
		},
	}
}

func kleppmannOnNodes() []Claim {
	return []Claim{
		{
			Name: "A clock that jumps", By: kleppmann,
			Says: "Redlock needs its nodes' clocks. If the clock of one node of the majority jumps forward, the key there is over too early, and a second client finds a majority too.",
			Tests: []Test{
				on("kleppmann-clock-jump", "redlock", TwoHolders, Always),
				on("kleppmann-clock-jump", "basic", TwoHolders, Always),
				on("redlock-clock-slew", "redlock", TwoHolders, Never),
			},
			Picture: shown("kleppmann-clock-jump", "redlock", "n1", "n3", "n5"),
			Shows:   "One jump on one node of five is enough, if each client happens to reach only three nodes. A lock on a single Redis is no better. A clock that is put right slowly (500 millionths faster, as NTP does it) does no harm.",
			Right:   "Kleppmann, wherever clocks are stepped. antirez agrees that Redis should count by a clock that cannot be stepped, and the documentation says that it does not do so yet; antirez' advice to slew clocks and never to step them holds up.",
		},
		{
			Name: "A node that forgets", By: kleppmann,
			Says: "If a node of the majority crashes before the key is on its disk and is back at once, the next client finds a majority.",
			Tests: []Test{
				on("crash-restart-amnesia", "redlock", TwoHolders, Always),
				on("redlock-fsync-everysec", "redlock", TwoHolders, Always),
				on("crash-restart-amnesia", "basic", TwoHolders, Always),
			},
			Picture:  shown("crash-restart-amnesia", "redlock", "n1", "n3", "n5"),
			Untested: "Kleppmann adds that the remedy, a delayed restart, leans on a clock as well. In the runs the wait is kept by whoever starts the node; a wait that a wrong clock cuts short is this scenario again.",
			Shows:    "Two holders each time, also with the setting that writes to disk once a second, which is the usual one.",
			Right:    "Kleppmann, for a node without one of the remedies below. The documentation describes the same case.",
		},
	}
}

func kleppmannOnAcquiring() []Claim {
	return []Claim{
		{
			Name: "A pause while acquiring", By: kleppmann,
			Says: "The answers of the nodes wait in the client's sockets while the client stands still. When it reads them they are a lease old, and it believes them.",
			Tests: []Test{
				on("pause-during-acquire", "redlock", Harm, Never),
				on("pause-during-acquire", "redlock-without-elapsed-check", TwoHolders, Always),
				on("pause-during-acquire", "basic", TwoHolders, Always),
			},
			Picture: shown("pause-during-acquire", "redlock-without-elapsed-check"),
			Shows:   "Redlock as described looks at the time when all answers are in, and throws the old ones away. Without that look it believes them, and so does the common lock on one node, which has none.",
			Right:   "antirez, for Redlock as it is described. Kleppmann's story is true of an implementation that leaves the look out.",
		},
		{
			Name: "A suspended machine", By: ours,
			Says:     "If the whole machine is suspended while it acquires, and the clock that it measures with stands still meanwhile, then the look at the time sees nothing.",
			Untested: "No world of holdfast can stop a client's clock. What would happen is what happens without the look at the time (the claim above), since both see no time passing. That is a conclusion and no measurement.",
			Right:    "Not decided here.",
		},
		{
			Name: "A slow network", By: kleppmann,
			Says: "Slow answers do the same as the pause: whether they do depends on how long a client waits for a node.",
			Tests: []Test{
				on("redlock-slow-votes", "redlock-bare", Harm, Always),
				on("redlock-slow-votes", "redlock-without-elapsed-check", Harm, Never),
				on("redlock-slow-votes", "redlock-without-node-timeout", Harm, Never),
				on("redlock-slow-votes", "redlock", Harm, Never),
			},
			Picture: shown("redlock-slow-votes", "redlock-bare", "n1", "n3", "n5"),
			Shows:   "Either of two safeguards is enough: a short time-out for each node, or the look at the time when all answers are in. Without both, a client takes the lock on answers that are over.",
			Right:   "antirez, for Redlock as it is described: it has both. Kleppmann for an implementation that has neither.",
		},
		{
			Name: "It needs bounds on time", By: kleppmann,
			Says:     "Redlock is safe only where delays, pauses and the errors of clocks have bounds that are small against the lease. Such bounds are not to be had, so that a lock on which correctness depends needs another system, and tokens that the resource checks.",
			Untested: "It is the sum of the claims above. [The table below](#what-each-assumption-is-worth) takes it apart: one bound at a time, and what each keeps out.",
			Right:    "Kleppmann on what is needed, as the table shows. Whether the bounds are to be had is what they differ on, and no run can decide that.",
		},
	}
}

func antirezClaims() []Claim {
	return []Claim{
		{
			Name: "It is no worse than other locks", By: antirez,
			Says: "What happens after the votes are counted is a problem of every lock that ends by itself, and a lock that does not end by itself is of no use.",
			Tests: []Test{
				on("kleppmann-gc-pause", "basic", Harm, Always),
				on("kleppmann-gc-pause", "reentrant", Harm, Always),
				on("kleppmann-gc-pause", "watchdog", Harm, Always),
				on("kleppmann-gc-pause", "service", Harm, Always),
				on("kleppmann-gc-pause", "redlock", Harm, Always),
				on("kleppmann-gc-pause", "reference", Harm, Always),
			},
			Picture: shown("kleppmann-gc-pause", "watchdog"),
			Shows:   "All six locks lose an update under the same pause, also the two that renew themselves.",
			Right:   "antirez. Kleppmann's story is one of any lock with a lease, too; what they draw from it differs.",
		},
		{
			Name: "A random token and a check", By: antirez,
			Says: "Order is not needed. If the resource takes a write only when nothing has changed since the writer looked, then a random token does what a fencing token does.",
			Tests: []Test{
				on("check-and-set-pause", "redlock", TwoHolders, Always),
				on("check-and-set-pause", "redlock", LostUpdate, Never),
				on("check-and-set-late-write", "redlock", LostUpdate, Never),
				on("check-and-set-late-write", "basic", LostUpdate, Never),
			},
			Untested: "In the runs the check is on the version that the writer has read, which serves as the token. Two objections of his are arguments about designs and are not played: that work on several resources is often no transaction, and that the order of tokens need not be the order in which writes arrive.",
			Shows:    "The late write and the late holder's write are refused, with no token from the lock at all.",
			Right:    "antirez, for a resource that can compare and write in one step, and for writes that are computed from what was read. Such a resource keeps its data right without any lock; the lock then only saves work that would be thrown away.",
		},
		{
			Name: "The time is looked at before and after", By: antirez,
			Says: "The client takes the time before it asks and after the answers are in. A delay in between makes the lease shorter and never longer than the nodes' own.",
			Tests: []Test{
				on("pause-during-acquire", "redlock", Harm, Never),
				on("redlock-slow-votes", "redlock-without-node-timeout", Harm, Never),
				on("kleppmann-gc-pause", "redlock", Harm, Always),
			},
			Picture: shown("pause-during-acquire", "redlock"),
			Shows:   "Delays before the look are harmless, delays after it are not.",
			Right:   "antirez for delays before the look, Kleppmann for those after it. Both say so of the second kind; they differ on whether a lock may be blamed for it.",
		},
		{
			Name: "Clocks of about the same rate are enough", By: antirez,
			Says: "The clocks need not agree. It is enough that they run at about the same rate; his example is a difference of 10 percent.",
			Tests: []Test{
				on("redlock-clock-rate-10", "redlock", TwoHolders, Always),
				on("redlock-clock-rate-10", "redlock-telling", Harm, Never),
				on("redlock-clock-rate-50", "redlock-telling", TwoHolders, Always),
			},
			Picture: shown("redlock-clock-rate-10", "redlock", "n1", "n3", "n5"),
			Shows:   "A node that runs 10 percent fast breaks a lock whose holder uses all of its lease. It does not break `redlock-telling`, whose holder is told to stop a tenth of the lease early and does. A node that runs 50 percent fast breaks that too.",
			Right:   "antirez, if the lock takes the allowance off, the holder stops when it is told to, and no clock is further off than the allowance. redsync, a library, allows for 1 percent; and a holder that never looks gets nothing from any allowance.",
		},
		{
			Name: "A delayed restart, or a disk", By: antirez,
			Says: "A node that stays away for longer than any lease after a crash cannot have forgotten one that matters. To write every command to disk before the answer does the same.",
			Tests: []Test{
				on("delayed-restart", "redlock", Harm, Never),
				on("delayed-restart", "redlock", NoGrant, Always),
				on("redlock-fsync-always", "redlock", Harm, Never),
				on("redlock-fsync-always", "redlock", NoGrant, Never),
			},
			Picture:  shown("delayed-restart", "redlock", "n1", "n3", "n5"),
			Untested: "His figure of hundreds of thousands of locks a second without a disk is not tested, nor is what the disk costs: the simulator has no disk that takes time.",
			Shows:    "Both remedies work. The first has a price in the runs: where the other nodes are no majority for anybody, nobody gets the lock for a whole lease.",
			Right:    "antirez, as long as the wait after the crash is really kept.",
		},
	}
}

func docsOnGranting() []Claim {
	return []Claim{
		{
			Name: "At most one holder, and no deadlock", By: docs,
			Says: "At any moment one client can hold the lock, and it is always possible to get it in the end.",
			Tests: []Test{
				on("calm", "redlock", Harm, Never),
				on("calm", "redlock", NoGrant, Never),
				on("calm", "basic", Harm, Never),
			},
			Shows: "It holds while nothing breaks. What it takes to break it is all of this page.",
			Right: "The documentation, while nothing breaks.",
		},
		{
			Name: "It works while a majority of the nodes is up", By: docs,
			Says: "Clients get and release locks as long as most nodes are up, and a small time-out for each node keeps a dead one from holding them up.",
			Tests: []Test{
				on("partition-minority", "redlock", Harm, Never),
				on("partition-minority", "redlock", NoGrant, Never),
				on("partition-minority", "redlock-without-node-timeout", NoGrant, Always),
				on("majority-down", "redlock", Harm, Never),
				on("majority-down", "redlock", NoGrant, Always),
			},
			Picture: shown("partition-minority", "redlock"),
			Shows:   "With two of five nodes out of reach the lock goes on. With three it stops, and does not break. Without the time-out two dead nodes stop it as well.",
			Right:   "The documentation.",
		},
		{
			Name: "Partitions again and again", By: docs,
			Says: "A client that is cut off while it holds the lock keeps it from the others for the rest of the lease, and if that goes on they may wait for ever.",
			Tests: []Test{
				on("redlock-partitions", "redlock", Harm, Never),
				on("redlock-partitions", "redlock", NoGrant, Always),
			},
			Untested: "For ever cannot be played; the runs have four partitions in a row.",
			Shows:    "Each partition costs about one lease, and nothing is broken.",
			Right:    "The documentation, and it is the price of a lease that nobody but its holder can end.",
		},
		{
			Name: "Extending the lease", By: docs,
			Says: "A holder may have its lease extended by a majority of the nodes while it is still valid; the number of extensions should be bounded.",
			Tests: []Test{
				on("extend-too-late", "redsync", ExtendLate, Never),
				on("extend-too-late", "redsync+setnx-on-extend", ExtendLate, Always),
			},
			Picture:  shown("extend-too-late", "redsync+setnx-on-extend"),
			Untested: "holdfast's own Redlock has no extension, so that a library plays this. The bound is there for the others' patience and prevents no violation.",
			Shows:    "redsync refuses to extend a lease that has been another's meanwhile. With its option WithSetNXOnExtend it takes the lock anew and calls that an extension.",
			Right:    "The documentation: extend only what is still there.",
		},
	}
}

func docsOnDetails() []Claim {
	return []Claim{
		{
			Name: "Replication and failover", By: docs,
			Says: "A lock on one Redis with a replica is unsafe: the primary may die before the replica has heard of the lock.",
			Tests: []Test{
				on("failover-before-replication", "basic", TwoHolders, Always),
				on("failover-before-replication", "reference", TwoHolders, Always),
			},
			Picture: shown("failover-before-replication", "basic", "n1", "n2"),
			Shows:   "The promoted replica grants the lock a second time.",
			Right:   "The documentation.",
		},
		{
			Name: "Give back on all nodes", By: docs,
			Says: "A client that finds no majority releases on all nodes, also on those that it thinks did not grant.",
			Tests: []Test{
				on("redlock-lost-vote", "redlock", KeyLeft, Never),
				on("redlock-lost-vote", "redlock-release-only-yes", KeyLeft, Always),
			},
			Picture: shown("redlock-lost-vote", "redlock-release-only-yes", "n1", "n2"),
			Shows:   "A yes can get lost on its way. Whoever gives back only what it knows of leaves a key behind that blocks a node for a whole lease.",
			Right:   "The documentation.",
		},
		{
			Name: "How the nodes are asked", By: docs,
			Says:     "The nodes are asked all at once, and after a failure a client waits for a random time.",
			Untested: "holdfast's own Redlock asks one node after the other, as older versions of the text had it, and waits 210 and 220 ms. Neither changes whether it is safe; asked in turn, a dead node costs every acquire its time-out.",
			Right:    "Nobody disputes it.",
		},
	}
}
