package catalogue_test

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/impl/internal/redistest"
)

// abilities are what a lease can really do.
func abilities(lease impl.Lease) []string {
	var found []string
	if _, ok := lease.(impl.Fencer); ok {
		found = append(found, catalogue.AbilityFence)
	}
	if _, ok := lease.(impl.Extender); ok {
		found = append(found, catalogue.AbilityExtend)
	}
	if _, ok := lease.(impl.ExtenderFor); ok {
		found = append(found, catalogue.AbilityExtendFor)
	}
	if _, ok := lease.(impl.Validity); ok {
		found = append(found, catalogue.AbilityUntil)
	}
	if _, ok := lease.(impl.LossNotifier); ok {
		found = append(found, catalogue.AbilityLost)
	}
	return found
}

// held says whether a majority of the nodes has the key. A lock that returns
// with the quorum does not wait for the others, nor do they get their keys.
func held(nodes []*redistest.Node, key string) bool {
	n := 0
	for _, node := range nodes {
		if node.Exists(key) {
			n++
		}
	}
	return n > len(nodes)/2
}

// The table is right about every lock's abilities and key, every lock can be
// taken and given back twice, leaves no key without TTL but its fence counter,
// and no goroutine.
func TestEntries(t *testing.T) {
	t.Parallel()
	for _, e := range catalogue.Everything() {
		if slices.Contains([]string{"ttl-zero", "key-is-data-key", "release-of-another-key"}, e.Name) {
			continue // their mistake is that they do not even work alone
		}
		if e.Store != "" {
			continue // on servers of its own: impl/baselines
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				count := 1
				if e.Quorum {
					count = 5
				}
				nodes := redistest.Start(t, count)
				// rueidis leaves a goroutine asleep after Close, for up to a second.
				defer time.Sleep(time.Second)
				lock, err := e.New(redistest.Env(10*time.Second, nodes...))
				if slices.Contains(e.Needs, catalogue.NeedClientTracking) {
					if err == nil {
						t.Error("it does without what it says it needs")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(e.Needs, catalogue.NeedReplicas) {
					if _, err := lock.Acquire(t.Context()); err == nil {
						t.Error("it does without what it says it needs")
					}
					_ = lock.(io.Closer).Close()
					return
				}
				for range 2 {
					lease, err := lock.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if got := abilities(lease); !slices.Equal(got, e.Abilities) {
						t.Errorf("abilities %v, the table says %v", got, e.Abilities)
					}
					if !held(nodes, e.KeyPrefix+"job") {
						t.Errorf("no key %sjob among %v", e.KeyPrefix, nodes[0].Keys())
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Errorf("release: %v", err)
					}
				}
				synctest.Wait()
				for _, key := range nodes[0].Keys() {
					// With fail fast a slow node's grant may come after the release.
					if !strings.Contains(key, "fence:") && e.Name != "redsync+failfast" {
						t.Errorf("key %s is left", key)
					}
				}
				if err := lock.(io.Closer).Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}

func TestNoLockTakesAWrongEnvironment(t *testing.T) {
	t.Parallel()
	for _, e := range catalogue.Everything() {
		lock, err := e.New(impl.Env{Name: "job", TTL: time.Second})
		if err == nil || !strings.Contains(err.Error(), "no nodes") {
			t.Errorf("%s: no nodes gives %v", e.Name, err)
		}
		if lock != nil {
			t.Errorf("%s: a lock comes with the error", e.Name)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range catalogue.All() {
		names = append(names, e.Name)
	}
	want := []string{
		"basic", "reentrant", "watchdog", "redlock", "service",
		"basic+fence", "service+fence", "redlock+fence", "reference",
	}
	if !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	if got := catalogue.Five(); !slices.Equal(got, want[:5]) {
		t.Errorf("five %v", got)
	}
	seen := map[string]bool{}
	for _, e := range catalogue.Everything() {
		if seen[e.Name] {
			t.Errorf("%s is there twice", e.Name)
		}
		seen[e.Name] = true
		got, ok := catalogue.Find(e.Name)
		if !ok || got.Name != e.Name || got.Mutant != e.Mutant {
			t.Errorf("Find(%q) = %+v, %v", e.Name, got, ok)
		}
		if e.About == "" || strings.HasSuffix(e.About, ".") || reflect.ValueOf(e.Promises).IsZero() {
			t.Errorf("%s: about %q, promises %+v", e.Name, e.About, e.Promises)
		}
		if _, ok := catalogue.Find(e.TwinOf); !ok && e.TwinOf != "" {
			t.Errorf("%s has the twin %q, which does not exist", e.Name, e.TwinOf)
		}
	}
	for _, e := range slices.Concat(catalogue.Advanced(), catalogue.ThirdParty(), catalogue.Baselines()) {
		if slices.Contains(names, e.Name) || e.Mutant {
			t.Errorf("%s does not belong to the mutexes of the scenarios", e.Name)
		}
	}
	if _, ok := catalogue.Find("lock"); ok {
		t.Error("found a lock that does not exist")
	}
}

// Every weakness names a scenario that the harness has. Those of the advanced
// locks may say that there is none yet.
func TestWeaknesses(t *testing.T) {
	t.Parallel()
	scenarios := []string{
		"calm", "slow-work", "kleppmann-gc-pause", "kleppmann-fencing", "redlock-fence", "pause-during-acquire",
		"delayed-write", "kleppmann-clock-jump", "crash-restart-amnesia", "delayed-restart",
		"failover-before-replication", "partition-holder", "partition-minority", "renewal-blip", "node-stall",
		"reader-outlives-lease", "permits", "permits-clock-jump", "reentry", "shared-lock-object", "fair-queue-crashed-waiter",
		"sentinel-lagging-replica",
	}
	for _, e := range catalogue.Everything() {
		if len(e.Weaknesses) == 0 {
			t.Errorf("%s has no weakness", e.Name)
		}
		for _, w := range e.Weaknesses {
			_, rest, _ := strings.Cut(w, " (")
			rest = strings.TrimSuffix(rest, ")")
			if rest == "no scenario yet" && slices.ContainsFunc(catalogue.Advanced(), sameAs(e)) {
				continue
			}
			if !slices.Contains(scenarios, rest) {
				t.Errorf("%s: %q names no scenario", e.Name, w)
			}
		}
	}
}

// sameAs finds a lock, or the lock of which a mutant is a twin.
func sameAs(e catalogue.Entry) func(catalogue.Entry) bool {
	return func(other catalogue.Entry) bool {
		return other.Name == e.Name || e.Mutant && other.Name == e.TwinOf
	}
}

// The kinds are those that the locks' own methods say, and a lock that is no
// mutex is not among the mutexes of the scenarios.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, e := range catalogue.Everything() {
		if slices.Contains(e.Needs, catalogue.NeedClientTracking) {
			continue // cannot be built here
		}
		if e.Store != "" {
			continue // TestBaselines
		}
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(time.Second) // see TestEntries
			lock, err := e.New(redistest.Env(10*time.Second, redistest.Start(t, 1)...))
			if err != nil {
				t.Fatal(err)
			}
			defer lock.(io.Closer).Close()
			if _, ok := lock.(impl.RWLock); ok != (e.Kind == catalogue.RW) {
				t.Errorf("%s: kind %v, reader/writer %v", e.Name, e.Kind, ok)
			}
			permits := 0
			several, ok := lock.(impl.Semaphore)
			if ok {
				permits = several.Permits()
			}
			if ok != (e.Kind == catalogue.Semaphore) || permits != e.Permits {
				t.Errorf("%s: kind %v, semaphore %v with %d permits, want %d", e.Name, e.Kind, ok, permits, e.Permits)
			}
		})
	}
	for _, e := range catalogue.All() {
		if e.Kind != catalogue.Mutex || len(e.Needs) > 0 {
			t.Errorf("%s: kind %v, needs %v", e.Name, e.Kind, e.Needs)
		}
	}
}

// The baselines are mutexes, each on a store that is named, and no other lock is
// on another store than Redis. What their leases can do is held against the
// table by impl/baselines, on real servers.
func TestBaselines(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range catalogue.Everything() {
		if e.Store == "" {
			continue
		}
		names = append(names, e.Name)
		if !slices.Contains([]string{catalogue.StoreEtcd, catalogue.StoreZooKeeper, catalogue.StorePostgres}, e.Store) {
			t.Errorf("%s is kept on %q", e.Name, e.Store)
		}
		if e.Kind != catalogue.Mutex || e.Quorum || e.Unsafe == "" {
			t.Errorf("%s: kind %v, quorum %v, unsafe %q", e.Name, e.Kind, e.Quorum, e.Unsafe)
		}
	}
	if want := []string{"etcd", "zookeeper", "postgres", "postgres-advisory"}; !slices.Equal(names, want) {
		t.Errorf("%v are kept elsewhere, want %v", names, want)
	}
}
