package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/history"
)

// connected starts from what the node holds now: nothing at first, and after a
// restart whatever was left. Keys that are gone, or that name somebody else by
// now, were lost with the crash, or have expired meanwhile.
func (tr *tracer) connected(ctx context.Context) error {
	first := tr.connections == 0
	found := make(keyspace)
	names, err := tr.whoIsThere(ctx)
	if err != nil {
		return err
	}
	role, err := tr.askRole(ctx)
	if err != nil {
		return err
	}
	var before *past
	if !first {
		before = &past{mark: fmt.Sprintf("holdfast-begin-%s-%d", tr.node.name, tr.connections), keys: make(keyspace)}
		if err := tr.node.direct.Echo(ctx, before.mark).Err(); err != nil {
			return err
		}
		if found, err = tr.snapshot(ctx); err != nil {
			return err
		}
	}
	tr.mu.Lock()
	defer tr.unlock()
	now := time.Now().Add(tr.node.clock.offset())
	tr.names, tr.script, tr.past = names, nil, before
	tr.gone = nil
	clear(tr.events)
	for _, name := range sortedKeys(tr.keys) {
		if k := tr.keys[name]; !k.same(found[name]) {
			cmd := history.Lostkeys
			if k.expire != 0 && k.expire <= now.UnixMilli() {
				cmd = history.Expired
			}
			tr.emit(command{name: cmd, shown: now}, "", name, nil, "")
		}
	}
	tr.keys = found
	tr.turn(role, now)
	tr.connections++
	return nil
}

// same says whether a key still names the same owners. How often a hash counts
// them, and how far a counter has got, does not matter.
func (k *key) same(now *key) bool {
	switch {
	case now == nil || k.kind != now.kind:
		return false
	case k.kind == hash:
		before, _ := hashOwners(k.fields)
		after, _ := hashOwners(now.fields)
		return slices.Equal(slices.Sorted(slices.Values(before)), slices.Sorted(slices.Values(after)))
	case k.kind == sorted:
		return maps.EqualFunc(k.fields, now.fields, func(string, string) bool { return true })
	case k.kind == text:
		return k.value == now.value
	}
	return true
}

// snapshot asks for the lock keys of a node.
func (tr *tracer) snapshot(ctx context.Context) (keyspace, error) {
	direct := tr.node.direct
	all, err := direct.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	found := make(keyspace)
	for _, name := range all {
		if !tr.isLock(name) {
			continue
		}
		k, err := tr.ask(ctx, name)
		at, errExpire := direct.PExpireTime(ctx, name).Result()
		switch {
		case errors.Is(err, redis.Nil) || at == -2:
			continue // it expired while it was looked at
		case err != nil || errExpire != nil:
			return nil, errors.Join(err, errExpire)
		}
		k.expire = max(0, at.Milliseconds())
		found[name] = k
	}
	return found, nil
}

// ask reads one key without its expiry.
func (tr *tracer) ask(ctx context.Context, name string) (*key, error) {
	direct := tr.node.direct
	kindOf, err := direct.Type(ctx, name).Result()
	if err != nil {
		return nil, err
	}
	k := &key{kind: other}
	switch kindOf {
	case "none":
		return nil, redis.Nil
	case "string":
		k.kind = text
		if old := tr.keys[name]; old != nil && old.kind == counter {
			k.kind = counter
		}
		k.value, err = direct.Get(ctx, name).Result()
	case "hash":
		k.kind = hash
		k.fields, err = direct.HGetAll(ctx, name).Result()
	case "zset":
		k.kind, k.fields = sorted, make(map[string]string)
		var members []redis.Z
		members, err = direct.ZRangeWithScores(ctx, name, 0, -1).Result()
		for _, m := range members {
			k.fields[fmt.Sprint(m.Member)] = strconv.FormatFloat(m.Score, 'g', -1, 64)
		}
	}
	return k, err
}

// whoIsThere asks for the names of connections that were made before the trace
// was connected, as happens after a restart.
func (tr *tracer) whoIsThere(ctx context.Context) (map[string]string, error) {
	list, err := tr.node.direct.ClientList(ctx).Result()
	if err != nil {
		return nil, err
	}
	names := make(map[string]string)
	for line := range strings.Lines(list) {
		addr, name := "", ""
		for field := range strings.FieldsSeq(line) {
			if value, ok := strings.CutPrefix(field, "addr="); ok {
				addr = value
			} else if value, ok := strings.CutPrefix(field, "name="); ok {
				name = value
			}
		}
		if tr.isClient(name) {
			names[addr] = name
		}
	}
	return names, nil
}
