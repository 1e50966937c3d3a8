package resource

import (
	"context"
	"sync"
)

// Builtin is the store inside this process.
type Builtin struct {
	rule Rule

	mu      sync.Mutex
	version int64
	highest uint64
}

// NewBuiltin makes a store at version 0.
func NewBuiltin(r Rule) *Builtin { return &Builtin{rule: r} }

// Do reads or writes.
func (b *Builtin) Do(_ context.Context, c Call) (Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := Outcome{Before: b.version, Version: b.version}
	switch {
	case b.rule.compared(c) && c.Seen != b.version:
		out.Unread = true
		return out, nil
	case b.rule.fenced(c) && *c.Fence < b.highest:
		out.Highest = b.highest
		return out, nil
	case b.rule.fenced(c):
		b.highest = *c.Fence
	}
	out.Applied = true
	if c.Write {
		b.version++
	}
	out.Version = b.version
	return out, nil
}

// Version names the store in a history; the built-in one has no version of
// its own.
func (b *Builtin) Version() string { return "" }

// Close has nothing to remove.
func (b *Builtin) Close(context.Context) error { return nil }
