package catalogue

import "strings"

// Role is what a key is for.
type Role string

// The roles of keys.
const (
	RoleLock    Role = "lock"    // who holds it: a token, a hash of owners, or a set of permits
	RoleReaders Role = "readers" // how many readers there are
	RoleQueue   Role = "queue"   // who waits, in order
	RoleFence   Role = "fence"   // the last fencing token
)

// Key is one key that a lock keeps on a node.
type Key struct {
	Name string
	Role Role
	Lock string // the lock's name in the catalogue
}

// companions are the prefixes of the keys that a lock keeps beside its own.
var companions = map[string][]Key{
	"fair":          {{Name: "fair_queue:", Role: RoleQueue}},
	"rwlock":        {{Name: "rwlock_readers:", Role: RoleReaders}},
	"basic+fence":   {{Name: "fence:", Role: RoleFence}},
	"service+fence": {{Name: "fence:", Role: RoleFence}},
	"redlock+fence": {{Name: "fence:", Role: RoleFence}},
	"reference":     {{Name: "reference_fence:", Role: RoleFence}},
}

// Keys lists what a lock keeps on its nodes under a name, its own key first.
func (e Entry) Keys(name string) []Key {
	keys := []Key{{Name: e.KeyPrefix + name, Role: RoleLock, Lock: e.Name}}
	for _, c := range companions[e.Name] {
		keys = append(keys, Key{Name: c.Name + name, Role: c.Role, Lock: e.Name})
	}
	return keys
}

// base is the lock of which another is a variant: basic for basic+fence.
func base(name string) string {
	name, _, _ = strings.Cut(name, "+")
	return name
}

// KnownKeys lists the keys of every lock that is meant to be one, each once,
// under the plainest lock that has it.
func KnownKeys(name string) []Key {
	var keys []Key
	seen := map[string]bool{}
	for _, e := range append(append(All(), Advanced()...), ThirdParty()...) {
		for _, k := range e.Keys(name) {
			if !seen[k.Name] {
				seen[k.Name] = true
				k.Lock = base(k.Lock)
				keys = append(keys, k)
			}
		}
	}
	return keys
}
