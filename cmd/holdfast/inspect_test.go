package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-io/holdfast/reports"
)

// TestInspect holds the exit codes, and that tokens are not shown unasked.
func TestInspect(t *testing.T) {
	s := miniredis.RunT(t)
	const token = "3f2a91c05d7e4b6f"
	if err := s.Set("lock:orders", token); err != nil {
		t.Fatal(err)
	}
	s.SetTTL("lock:orders", time.Minute)
	if err := s.Set("setnx:stuck", "1"); err != nil {
		t.Fatal(err)
	}
	closed := miniredis.RunT(t)
	down := closed.Addr()
	closed.Close()
	invoke(t, "inspect", "orders", "--redis", s.Addr()).want(t, reports.ExitExpected, "lock:orders", "held by 3f2a91c0..., 1m0s").lacks(t, token)
	invoke(t, "inspect", "orders", "--redis", "redis://"+s.Addr(), "--tokens").want(t, reports.ExitExpected, token)
	invoke(t, "inspect", "orders", "--redis", s.Addr(), "--lock", "redlock").want(t, reports.ExitExpected, "redlock:orders", "free").lacks(t, "lock:orders  held")
	invoke(t, "inspect", "stuck", "--redis", s.Addr()).want(t, reports.ExitViolation, "NO TTL", "nobody ever gets the lock")
	invoke(t, "inspect", "nobody", "--redis", s.Addr()).want(t, reports.ExitExpected, "nobody holds nobody")
	invoke(t, "inspect", "--key", "lock:orders", "--redis", s.Addr()+","+down).want(t, reports.ExitExpected, "has 1 of the 2 votes", "unreachable")
	invoke(t, "inspect", "orders", "--redis", down).want(t, reports.ExitError, "no server could be read")
	for _, wrong := range [][]string{{"orders"}, {"--redis", "x:1"}, {"a", "b", "--redis", "x:1"}, {"a", "--redis", "redis://:secret@%zz"},
		{"a", "--redis", "x:1", "--lock", "redlok"}, {"a", "--redis", "x:1", "--format", "xml"}, {"a", "--redis", "x:1", "--watch", "--interval", "0s"}} {
		invoke(t, append([]string{"inspect"}, wrong...)...).want(t, exitUsage).lacks(t, "secret")
	}
	var doc struct{ Findings []struct{ Key string } }
	r := invoke(t, "inspect", "orders", "--redis", s.Addr(), "--format", "json")
	if err := json.Unmarshal([]byte(r.out), &doc); err != nil || len(doc.Findings) != 1 || doc.Findings[0].Key != "lock:orders" {
		t.Errorf("%v in %s", err, r.out)
	}
}
