package campaign

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// rows are failures of real libraries, unmodified, that users have reported or
// that were reproduced, and what an exploration calls them. A long run finds
// each with everything that explore tries; a short one tries the faults that
// matter, at every moment.
var rows = []struct {
	what, lock         string
	check, kind, cause string
	// faults that the short run tries; for a pair, the kinds of both.
	faults []string
	pairs  int
}{
	{what: "redsync's SetNX on extend takes the lock anew and says that it was extended", lock: "redsync+setnx-on-extend",
		check: "continuity", kind: "gap", cause: "client pause at extend invoke", faults: []string{"client pause at extend invoke"}},
	{what: "a bare quorum of redsync loses a node's data", lock: "redsync",
		check: "exclusion", kind: "broken", cause: "cut off from a minority and node restart without data",
		faults: []string{"cut off from a minority at acquire invoke", "node restart without data at acquire ok"}, pairs: 100},
	{what: "redislock's Obtain does not measure itself", lock: "redislock",
		check: "exclusion", kind: "overrun", cause: "slow reply at EVAL in acquire", faults: []string{"slow reply at EVAL in acquire"}},
	{what: "nor does its Refresh", lock: "redislock",
		check: "exclusion", kind: "overrun", cause: "slow reply at EVAL in extend", faults: []string{"slow reply at EVAL in extend"}},
	{what: "redislock's Refresh for less than a millisecond deletes the key", lock: "redislock",
		check: "exclusion", kind: "broken", cause: "an extend by 500µs"},
	{what: "or for less than nothing", lock: "redislock", check: "exclusion", kind: "broken", cause: "an extend by -5s"},
	{what: "redislock grants to a token that is the beginning of the holder's", lock: "redislock+worker-tokens",
		check: "exclusion", kind: "broken", cause: "nothing broken"},
	{what: "go-redis sends SETNX again and is refused by its own key", lock: "setnx",
		check: "liveness", kind: "no-grant", cause: "connection cut after SET in acquire", faults: []string{"connection cut after SET in acquire"}},
	{what: "the SETNX recipe takes a TTL of 0 for none", lock: "setnx", check: "ttl", kind: "no-ttl", cause: "a TTL of 0s"},
	{what: "rueidislock sends its script again and is refused by its own key", lock: "rueidislock+nocache",
		check: "liveness", kind: "no-grant", cause: "connection cut after EVAL in acquire", faults: []string{"connection cut after EVAL in acquire"}},
	{what: "redislock's Obtain leaves its key when its context ends", lock: "redislock",
		check: "orphans", kind: "orphan", cause: "slow reply at EVAL in acquire", faults: []string{"slow reply at EVAL in acquire"}},
	{what: "redsync gives back what it took on the context whose end was the failure", lock: "redsync",
		check: "orphans", kind: "orphan", cause: "stall of the other nodes at SET in acquire",
		faults: []string{"stall of the other nodes at SET in acquire"}},
	{what: "a delete of an earlier try of redsync takes away what a later one was granted", lock: "redsync-single",
		check: "exclusion", kind: "broken", cause: "slow request at EVAL in acquire", faults: []string{"slow request at EVAL in acquire"}},
}

// TestExploreFindsWhatUsersReported: each row by its lock's name alone.
func TestExploreFindsWhatUsersReported(t *testing.T) {
	sweeping(t)
	long := os.Getenv("HOLDFAST_LONG") != ""
	found := map[string]*Findings{} // one exploration serves all rows of a lock
	for _, row := range rows {
		t.Run(strings.ReplaceAll(row.what, " ", "-"), func(t *testing.T) {
			if testing.Short() && row.pairs > 0 {
				t.Skip("pairs of faults on three nodes")
			}
			name := row.lock
			e := Exploration{Lock: row.lock, Params: odd(row.lock), keep: rowFaults(row.lock)}
			if row.pairs > 0 {
				name += " twice"
				e.Depth, e.MostPairs, e.Params, e.keep = 2, row.pairs, false, causes(row.faults...)
			}
			if long {
				e.keep, e.Params = nil, true
				if row.pairs > 0 {
					e.MostPairs = 4000
				}
			}
			if found[name] == nil {
				found[name] = explored(t, e)
			}
			f := found[name]
			g, ok := f.has(row.check, row.kind, row.cause)
			if !ok || g.Excused {
				t.Errorf("not found: %s %s after %s in\n%s", row.check, row.kind, row.cause, titles(f))
				return
			}
			t.Logf("%d runs in %.1f s: %s", f.Played, f.Seconds, g.Summary)
		})
	}
}

// odd says that a row of the lock has an odd parameter as its cause.
func odd(lock string) bool {
	for _, row := range rows {
		if row.lock == lock && (strings.HasPrefix(row.cause, "a TTL") || strings.HasPrefix(row.cause, "an extend")) {
			return true
		}
	}
	return false
}

// rowFaults keeps all faults of a lock's rows with one fault.
func rowFaults(lock string) func(plan) bool {
	var words []string
	for _, row := range rows {
		if row.lock == lock && row.pairs == 0 {
			words = append(words, row.faults...)
		}
	}
	keep := causes(words...)
	return func(p plan) bool { return slices.ContainsFunc(p.blows, func(blow) bool { return keep(p) }) }
}
