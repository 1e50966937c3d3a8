package catalogue

import (
	"github.com/holdfast-io/holdfast/impl/baselines/etcd"
	"github.com/holdfast-io/holdfast/impl/baselines/postgres"
	"github.com/holdfast-io/holdfast/impl/baselines/zookeeper"
)

// The stores that a lock may be kept on, as [Entry.Store] names them. Redis is
// the empty one. A world that has a store says so with an ability of that name.
const (
	StoreEtcd      = "etcd"
	StoreZooKeeper = "zookeeper"
	StorePostgres  = "postgres"
)

// Baselines returns what people run instead of a lock on Redis: the recipes of
// other stores, unmodified, on the stores' own clients.
func Baselines() []Entry {
	return []Entry{etcdEntry(), zookeeperEntry(), postgresEntry(), advisoryEntry()}
}

// A session is renewed in the background, and a lock that is taken within it may
// find it near its end: of the TTL after an acquire's invoke only the rest is
// promised. These are the shares that may be gone.
const (
	// etcdKeepAlive: the client renews a lease every third of its TTL, looks
	// every 500 ms whether it must, and a put renews nothing. That is 0.83 of
	// the least TTL of a second. Source: lease.go of etcd's client,
	// nextKeepAlive and retryConnWait.
	etcdKeepAlive = 0.85
	// zookeeperTouch: the request that takes the lock renews the session, but
	// the leader hears of it up to half a tick later.
	zookeeperTouch = 1.0 / 6
)

// pausedHolder are the weaknesses of every lock whose store takes it away from a
// silent holder.
func pausedHolder(guard string) []string {
	return []string{
		"a holder that is paused past the TTL goes on beside the next one (kleppmann-gc-pause)",
		"a late write reaches the resource after the next holder's, if it is not guarded by the " + guard + " (delayed-write)",
	}
}

func etcdEntry() Entry {
	return Entry{
		Name:      "etcd",
		Store:     StoreEtcd,
		About:     "the mutex of etcd's client v3.7.3 on three members, its revision as the fence, TTLs in whole seconds",
		New:       etcd.New,
		KeyPrefix: etcd.KeyPrefix,
		Drift:     etcdKeepAlive,
		Abilities: []string{AbilityFence, AbilityLost},
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "yes",
			SurvivesNodeLoss: "yes", NeverDeletesAnothers: "yes", GCPauseTolerance: "with a guarded resource",
		},
		Unsafe: libraryUnsafe,
		Weaknesses: append(pausedHolder("revision"),
			"the loss is told up to a second after the end of the lease (partition-holder)"),
	}
}

func zookeeperEntry() Entry {
	return Entry{
		Name:      "zookeeper",
		Store:     StoreZooKeeper,
		About:     "ZooKeeper's recipe of sequential ephemeral nodes on three servers, over go-zookeeper/zk v1.0.4, the czxid as the fence",
		New:       zookeeper.New,
		KeyPrefix: zookeeper.KeyPrefix,
		Drift:     zookeeperTouch,
		Abilities: []string{AbilityFence, AbilityLost},
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "yes",
			SurvivesNodeLoss: "yes", NeverDeletesAnothers: "yes", GCPauseTolerance: "with a guarded resource",
		},
		Unsafe: libraryUnsafe,
		Weaknesses: append(pausedHolder("czxid"),
			"a client that turns to a stalled server loses its session while it waits (node-stall)"),
	}
}

func postgresEntry() Entry {
	return Entry{
		Name:      "postgres",
		Store:     StorePostgres,
		About:     "a row with an expiry in a PostgreSQL table, taken by one conditional statement, a sequence as the fence",
		New:       postgres.New,
		Abilities: []string{AbilityFence, AbilityExtend},
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "no",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "with a guarded resource",
		},
		Unsafe: leaseUnsafe,
		Weaknesses: append(pausedHolder("fence"),
			"work longer than the TTL goes on without the lock (slow-work)",
			"a server whose clock jumps frees a held lock early (kleppmann-clock-jump)",
			"one server: while it stalls nobody gets the lock (node-stall)",
		),
	}
}

func advisoryEntry() Entry {
	return Entry{
		Name:      "postgres-advisory",
		Store:     StorePostgres,
		About:     "PostgreSQL's session-level advisory lock: the connection is the holder, no TTL and no fence",
		New:       postgres.NewAdvisory,
		Abilities: []string{AbilityLost},
		Promises: Promises{
			AtomicCheckAndSet: "yes", Reentrant: "no", RenewsItself: "has no TTL",
			SurvivesNodeLoss: "no", NeverDeletesAnothers: "yes", GCPauseTolerance: "high",
		},
		Unsafe: "a server that restarts frees a held lock, and the holder learns of it up to two thirds of a TTL later",
		Weaknesses: []string{
			"a server that restarts frees a held lock (crash-restart-amnesia)",
			"a holder that is cut off keeps the lock until the server's TCP gives up (partition-holder)",
			"a late write reaches the resource, and there is no fence to stop it (delayed-write)",
		},
	}
}
