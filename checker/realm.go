package checker

// In a Redis Cluster every key has a node of its own that counts, since slots
// fail over and move by themselves. The functions of this file say for which
// keys the same node counts.

// sharded says whether the nodes are a Redis Cluster and the lock is kept in it,
// rather than on its nodes one by one.
func (f *Facts) sharded() bool {
	return f.History.Header.Topology == "cluster" && f.quorum() == 1
}

// oneCounts says whether of all nodes one counts at a time: the primary.
func (f *Facts) oneCounts() bool {
	return f.History.Header.Replicates() || f.sharded()
}

// realm is what changes its primary as a whole: all keys of a replicated
// topology, which have no name, or one key of a Redis Cluster.
func (f *Facts) realm(key string) string {
	if f.sharded() {
		return key
	}
	return ""
}

// succession is when a node ceased to be the one that counts in a realm.
type succession struct {
	place // the node, and the realm in place of the key
	t     int64
}

// succeeded is when a node of a Redis Cluster ceased to serve a key, after a
// moment.
func (f *Facts) succeeded(p place, since int64) (int64, bool) {
	for _, s := range f.successions {
		if s.place == p && s.t >= since {
			return s.t, true
		}
	}
	return 0, false
}
