package process

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// owners names tokens by their first writer: "c1#2" is the second token that
// c1 wrote to any node. A token keeps its name for the whole run.
type owners struct {
	mu     sync.Mutex
	names  map[string]string
	counts map[string]int
	fresh  chan struct{} // closed when a token gets its name
}

func newOwners() *owners {
	return &owners{names: make(map[string]string), counts: make(map[string]int), fresh: make(chan struct{})}
}

// unknownWriter stands for a writer without a name.
const unknownWriter = "?"

// name gives a token's name and makes one where there is none. A write without
// a client is a replicated one, and the node that it comes from may not have
// been read yet: then name waits a little for the writer to turn up.
func (o *owners) name(ctx context.Context, token, client string) string {
	if token == "" {
		return ""
	}
	deadline := time.NewTimer(50 * time.Millisecond)
	defer deadline.Stop()
	for {
		o.mu.Lock()
		name, ok := o.names[token]
		if !ok && client != "" {
			name, ok = o.add(token, client), true
		}
		fresh := o.fresh
		o.mu.Unlock()
		if ok {
			return name
		}
		select {
		case <-fresh:
		case <-deadline.C:
			client = unknownWriter
		case <-ctx.Done():
			client = unknownWriter
		}
	}
}

// add names a token. The caller holds o.mu.
func (o *owners) add(token, client string) string {
	o.counts[client]++
	name := fmt.Sprintf("%s#%d", client, o.counts[client])
	o.names[token] = name
	close(o.fresh)
	o.fresh = make(chan struct{})
	return name
}

// of says who a key names, and what it counts, in the way of the simulator: a
// number has no owner; the members of a sorted set are its owners, joined with
// commas; for a hash see [hashOwners].
func (o *owners) of(ctx context.Context, k *key, client string, lock bool) (owner, value string) {
	if k == nil {
		return "", ""
	}
	switch k.kind {
	case text:
		if isNumber(k.value) && !lock {
			return "", k.value
		}
		return o.name(ctx, k.value, client), ""
	case counter:
		return "", k.value
	case hash:
		tokens, count := hashOwners(k.fields)
		return o.all(ctx, tokens, client), count
	case sorted:
		return o.all(ctx, slices.Collect(maps.Keys(k.fields)), client), ""
	}
	return "", ""
}

// all names several tokens.
func (o *owners) all(ctx context.Context, tokens []string, client string) string {
	var names []string
	for _, token := range slices.Sorted(slices.Values(tokens)) {
		names = append(names, o.name(ctx, token, client))
	}
	return strings.Join(names, ",")
}

// hashOwners says whom a hash names, and the one number in it. There are two
// ways to write an owner and a count: a field named after the owner that holds
// the count, and a field that holds the owner beside one that holds the count.
func hashOwners(fields map[string]string) (tokens []string, count string) {
	numbers := 0
	for _, v := range fields {
		if isNumber(v) {
			numbers++
			count = v
		} else {
			tokens = append(tokens, v)
		}
	}
	if len(tokens) == 0 {
		tokens = slices.Collect(maps.Keys(fields))
	}
	if numbers != 1 {
		count = ""
	}
	return tokens, count
}

// isNumber tells a fence or a count from a token.
func isNumber(value string) bool {
	_, err := strconv.ParseInt(value, 10, 64)
	return err == nil && len(value) < 20
}
