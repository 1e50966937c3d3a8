package impl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// reply is an error reply as go-redis types it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestFromRedis(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		err      error
		want     *impl.Error
		definite bool
	}{
		{"a refused dial may be a second try", &net.OpError{Op: "dial", Err: errors.New("refused")}, impl.ErrUnknownOutcome, false},
		{"cut connection", io.EOF, impl.ErrUnknownOutcome, false},
		{"deadline", fmt.Errorf("read: %w", context.DeadlineExceeded), impl.ErrUnknownOutcome, false},
		{"cancelled", context.Canceled, impl.ErrUnknownOutcome, false},
		{"nil reply is no error reply", redis.Nil, impl.ErrUnknownOutcome, false},
		{"script", reply("ERR Error running script"), impl.ErrScript, true},
		{"no such script", reply("NOSCRIPT No matching script"), impl.ErrScript, true},
		{"busy", reply("BUSY Redis is busy"), impl.ErrScript, true},
		{"wrapped reply", fmt.Errorf("hook: %w", reply("MISCONF no disk")), impl.ErrScript, true},
		{"out of memory", reply("OOM command not allowed"), impl.ErrOOM, true},
		{"a cluster's client has followed as often as it may", reply("MOVED 105 127.0.0.1:7001"), impl.ErrUnknownOutcome, false},
		{"a slot that moves ends a series of redirects", reply("ASK 105 127.0.0.1:7001"), impl.ErrUnknownOutcome, false},
		{"keys in two slots are refused for good", reply("CROSSSLOT Keys in request don't hash to the same slot"), impl.ErrScript, true},
		{"loading ends a series of retries", reply("LOADING dataset"), impl.ErrUnknownOutcome, false},
		{"readonly ends a series of retries", reply("READONLY replica"), impl.ErrUnknownOutcome, false},
		{"too many clients ends a series of retries", reply("ERR max number of clients reached"), impl.ErrUnknownOutcome, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := impl.FromRedis("acquire", "n1", "lock:job", tt.err)
			if !errors.Is(got, tt.want) {
				t.Fatalf("got %v, want %v", got, tt.want.Code)
			}
			if !errors.Is(got, tt.err) {
				t.Errorf("%v does not wrap its cause", got)
			}
			if class := impl.Classify(got); class.Definite != tt.definite || class.Code != tt.want.Code {
				t.Errorf("class %+v, want %v, definite %v", class, tt.want.Code, tt.definite)
			}
			for _, part := range []string{"acquire", "n1", "lock:job", string(tt.want.Code)} {
				if !strings.Contains(got.Error(), part) {
					t.Errorf("%q does not say %q", got, part)
				}
			}
		})
	}
	if err := impl.FromRedis("acquire", "n1", "k", nil); err != nil {
		t.Errorf("nil became %v", err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err      error
		code     impl.Code
		definite bool
	}{
		{errors.New("a library's own"), impl.CodeUnclassified, false},
		{fmt.Errorf("in a test: %w", impl.ErrNotObtained), impl.CodeNotObtained, true},
		{impl.ErrNotHeld, impl.CodeNotHeld, true},
		{impl.ErrUnreachable, impl.CodeUnreachable, true},
		{impl.ErrQuorum, impl.CodeQuorum, true},
		{impl.ErrValidityUsedUp, impl.CodeClockDrift, true},
		{impl.ErrScript, impl.CodeScript, true},
		{impl.ErrOOM, impl.CodeOOM, true},
		{impl.ErrUnknownOutcome, impl.CodeUnknown, false},
		{&impl.Error{Code: impl.CodeRenewalFailed}, impl.CodeRenewalFailed, false},
		// The outer one speaks: a quorum that was missed because of a time-out
		// is a definite no.
		{impl.ErrQuorum.With("acquire", "", "k", errors.Join(impl.ErrUnknownOutcome)), impl.CodeQuorum, true},
	}
	for _, tt := range tests {
		if got := impl.Classify(tt.err); got != (impl.Class{Code: tt.code, Definite: tt.definite}) {
			t.Errorf("Classify(%v) = %+v", tt.err, got)
		}
	}
}

func TestWithLeavesTheSentinelAlone(t *testing.T) {
	t.Parallel()
	_ = impl.ErrNotHeld.With("release", "n1", "k", io.EOF)
	if impl.ErrNotHeld.Op != "" || impl.ErrNotHeld.Err != nil {
		t.Errorf("the sentinel became %+v", impl.ErrNotHeld)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	options := func() *redis.Options { return &redis.Options{Addr: "10.0.0.1:6379"} }
	tests := []struct {
		name string
		env  impl.Env
		want string // part of the error, empty for none
	}{
		{"good", impl.Env{Name: "job", TTL: 1e6, Nodes: []impl.Node{{Options: options}}}, ""},
		{"no nodes", impl.Env{Name: "job", TTL: 1e9}, "no nodes"},
		{"no options", impl.Env{Name: "job", TTL: 1e9, Nodes: []impl.Node{{Name: "n1"}}}, "n1"},
		{"no TTL", impl.Env{Name: "job", Nodes: []impl.Node{{Options: options}}}, "TTL"},
		{"half a millisecond", impl.Env{Name: "job", TTL: 5e5, Nodes: []impl.Node{{Options: options}}}, "500µs"},
		{"negative", impl.Env{Name: "job", TTL: -1e9, Nodes: []impl.Node{{Options: options}}}, "-1s"},
	}
	for _, tt := range tests {
		err := tt.env.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestNewIdentifier(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := impl.NewIdentifier()
		if len(id) != 32 || seen[id] {
			t.Fatalf("identifier %q: 32 hex digits that do not repeat are wanted", id)
		}
		seen[id] = true
	}
}
