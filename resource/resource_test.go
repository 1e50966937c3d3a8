package resource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-io/holdfast/internal/storetest"
)

// store is what all of them can do.
type store interface {
	Do(ctx context.Context, c Call) (Outcome, error)
	Version() string
	Close(ctx context.Context) error
}

const secret = storetest.Secret

func TestMain(m *testing.M) {
	code := m.Run()
	if err := storetest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// place parses what must be right.
func place(t *testing.T, text string) Place {
	t.Helper()
	p, err := ParsePlace(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// doors opens two doors onto one new value of a kind of store: the second is
// another connection, which knows nothing of what went through the first.
func doors(t *testing.T, kind string, rule Rule) (first, second store) {
	t.Helper()
	ctx := t.Context()
	closed := func(s store, err error) store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	switch kind {
	case "builtin":
		b := NewBuiltin(rule)
		return b, b
	case "sqlite":
		m := closed(OpenSQLite(ctx, place(t, "sqlite"), rule))
		return m, m
	case "sqlite-file":
		p := place(t, "sqlite:"+filepath.Join(t.TempDir(), "a file?.db"))
		a := closed(OpenSQLite(ctx, p, rule)).(*SQLite)
		b, err := openSQLite(ctx, p, rule, a.id, false)
		return a, closed(b, err)
	case "postgres":
		p := place(t, storetest.Postgres(t))
		a := closed(OpenPostgres(ctx, p, rule)).(*Postgres)
		b, err := dialPostgres(ctx, p, rule, a.id)
		return a, closed(b, err)
	case "redis":
		p := place(t, storetest.Redis(t))
		a := closed(OpenRedis(ctx, p, rule)).(*Redis)
		b, err := dialRedis(ctx, p, rule, a.id)
		return a, closed(b, err)
	}
	t.Fatalf("no store %s", kind)
	return nil, nil
}

var kinds = []string{"builtin", "sqlite", "sqlite-file", "postgres", "redis"}

func forEach(t *testing.T, rule Rule, test func(t *testing.T, first, second store)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			a, b := doors(t, kind, rule)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				// The second finds nothing to remove any more, which is fine.
				if err := a.Close(ctx); err != nil {
					t.Error(err)
				}
				if b != a {
					hangUp(ctx, b)
				}
			})
			test(t, a, b)
		})
	}
}

// hangUp closes a second door without removing anything.
func hangUp(ctx context.Context, s store) {
	switch s := s.(type) {
	case *SQLite:
		_ = s.db.Close()
	case *Postgres:
		_ = s.conn.Close(ctx)
	case *Redis:
		_ = s.client.Close()
	}
}

func token(n uint64) *uint64 { return &n }

// step is one call and what must come of it.
type step struct {
	second  bool // through the second door
	write   bool
	fence   *uint64
	applied bool
	version int64 // after it
	highest uint64
}

func play(t *testing.T, first, second store, steps []step) {
	t.Helper()
	for i, s := range steps {
		door := first
		if s.second {
			door = second
		}
		got, err := door.Do(t.Context(), Call{Write: s.write, Fence: s.fence})
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		before := s.version
		if s.write && s.applied {
			before--
		}
		if want := (Outcome{Applied: s.applied, Before: before, Version: s.version, Highest: s.highest}); got != want {
			t.Errorf("step %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestPlain takes everything, whatever its fence, through both doors.
func TestPlain(t *testing.T) {
	forEach(t, Plain, func(t *testing.T, a, b store) {
		play(t, a, b, []step{
			{fence: token(34), applied: true},
			{write: true, fence: token(34), applied: true, version: 1},
			{second: true, write: true, fence: token(33), applied: true, version: 2},
			{write: true, applied: true, version: 3},
			{second: true, applied: true, version: 3},
		})
		if _, builtin := a.(*Builtin); !builtin && a.Version() == "" {
			t.Error("the store does not tell its version")
		}
	})
}

// TestGuarded refuses what is older than the highest fence seen, on reads too,
// and whichever door it was seen through: the second door's stale fence is
// refused by the store, for nothing in front of it has seen the newer one.
func TestGuarded(t *testing.T) {
	forEach(t, Guarded, func(t *testing.T, a, b store) {
		play(t, a, b, []step{
			{fence: token(33), applied: true},
			{fence: token(34), applied: true}, // a read counts
			{second: true, write: true, fence: token(33), highest: 34},
			{second: true, fence: token(33), highest: 34},
			{write: true, fence: token(34), applied: true, version: 1},
			{second: true, write: true, fence: token(34), applied: true, version: 2}, // good for several writes
			{second: true, write: true, applied: true, version: 3},                   // no fence, no refusal
			{second: true, write: true, fence: token(35), applied: true, version: 4},
			{write: true, fence: token(34), version: 4, highest: 35},
			{applied: true, version: 4},
		})
	})
}

// TestFencesAreWholeNumbersOf64Bits: neighbours beyond what a double or a signed
// number holds are still two.
func TestFencesAreWholeNumbersOf64Bits(t *testing.T) {
	forEach(t, Guarded, func(t *testing.T, a, b store) {
		var steps []step
		for i, n := range []uint64{9, 10, 1<<53 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64} {
			steps = append(steps,
				step{write: true, fence: token(n), applied: true, version: int64(i + 1)},
				step{second: true, write: true, fence: token(n - 1), version: int64(i + 1), highest: n})
		}
		play(t, a, b, steps)
	})
}

// TestManyAtOnce: of writes with rising fences that race through two doors,
// none is applied after one with a higher fence, and none is lost.
func TestManyAtOnce(t *testing.T) {
	forEach(t, Guarded, func(t *testing.T, a, b store) {
		type applied struct {
			version int64
			fence   uint64
		}
		const each = 60
		var mu sync.Mutex
		var all []applied
		var group sync.WaitGroup
		for i, door := range []store{a, b} {
			group.Go(func() {
				for n := range uint64(each) {
					fence := n*2 + uint64(i) + 1
					got, err := door.Do(t.Context(), Call{Write: true, Fence: &fence})
					if err != nil {
						t.Error(err)
						return
					}
					if got.Applied {
						mu.Lock()
						all = append(all, applied{got.Version, fence})
						mu.Unlock()
					}
				}
			})
		}
		group.Wait()
		at := make(map[int64]uint64)
		for _, w := range all {
			if other, taken := at[w.version]; taken {
				t.Errorf("version %d is of fence %d and of fence %d", w.version, other, w.fence)
			}
			at[w.version] = w.fence
		}
		for v := int64(2); v <= int64(len(all)); v++ {
			if at[v] < at[v-1] {
				t.Errorf("fence %d was applied as version %d, after fence %d", at[v], v, at[v-1])
			}
		}
	})
}

// TestNothingIsLeft: after the last run there is no key, no row and no table.
func TestNothingIsLeft(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		p := place(t, storetest.Postgres(t))
		a, err := OpenPostgres(t.Context(), p, Guarded)
		if err != nil {
			t.Fatal(err)
		}
		b, err := OpenPostgres(t.Context(), p, Guarded)
		if err != nil {
			t.Fatal(err)
		}
		if a.id == b.id {
			t.Errorf("two runs have one row, %s", a.id)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Do(t.Context(), Call{Write: true}); err != nil {
			t.Errorf("the end of one run disturbs another: %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), storetest.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		var there bool
		if err := conn.QueryRow(t.Context(), postgresThere).Scan(&there); err != nil || there {
			t.Errorf("the table is still there: %v, %v", there, err)
		}
	})
	t.Run("redis", func(t *testing.T) {
		a, err := OpenRedis(t.Context(), place(t, storetest.Redis(t)), Guarded)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(a.id, "holdfast:") {
			t.Errorf("the key is %s", a.id)
		}
		look, err := dialRedis(t.Context(), place(t, storetest.Redis(t)), Guarded, a.id)
		if err != nil {
			t.Fatal(err)
		}
		defer look.client.Close()
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys, err := look.client.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
			t.Errorf("keys are left: %v, %v", keys, err)
		}
	})
	t.Run("sqlite-file", func(t *testing.T) {
		p := place(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
		a, err := OpenSQLite(t.Context(), p, Guarded)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := openSQLite(t.Context(), p, Guarded, a.id, false)
		if err != nil {
			t.Fatal(err)
		}
		defer again.db.Close()
		var tables int
		if err := again.db.QueryRow(`SELECT count(*) FROM sqlite_master`).Scan(&tables); err != nil || tables != 0 {
			t.Errorf("%d tables are left, %v", tables, err)
		}
	})
}

// TestAValueThatIsGoneIsAnError: somebody else emptied the store in the middle
// of a run. That is no refusal and no version 0.
func TestAValueThatIsGoneIsAnError(t *testing.T) {
	for _, rule := range []Rule{Plain, Guarded, Checked} {
		forEach(t, rule, func(t *testing.T, a, b store) {
			if _, builtin := a.(*Builtin); builtin {
				return // nobody else can reach it
			}
			var err error
			switch s := b.(type) {
			case *SQLite:
				_, err = s.db.Exec(sqliteRemove, s.id)
			case *Postgres:
				_, err = s.conn.Exec(t.Context(), postgresRemove, s.id)
			case *Redis:
				err = s.client.FlushDB(t.Context()).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.Do(t.Context(), Call{Write: true, Fence: token(1)}); !errors.Is(err, ErrStore) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestNobodyThere: the error names the place and the reason, and no password.
func TestNobodyThere(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	for text, open := range map[string]func(Place) error{
		"postgres://u:" + url.PathEscape(secret) + "@" + addr + "/db": func(p Place) error { _, err := OpenPostgres(t.Context(), p, Guarded); return err },
		"redis://u:" + url.PathEscape(secret) + "@" + addr + "/0":     func(p Place) error { _, err := OpenRedis(t.Context(), p, Guarded); return err },
		"sqlite:/no/such/folder/x.db":                                 func(p Place) error { _, err := OpenSQLite(t.Context(), p, Guarded); return err },
	} {
		err := open(place(t, text))
		if !errors.Is(err, ErrStore) {
			t.Errorf("%v", err)
			continue
		}
		hold(t, err.Error())
		if !strings.Contains(err.Error(), "refused") && !strings.Contains(err.Error(), "unable to open") {
			t.Errorf("no reason: %v", err)
		}
		if !strings.Contains(err.Error(), "://u@"+addr) && !strings.Contains(err.Error(), "/no/such/folder") {
			t.Errorf("no place: %v", err)
		}
	}
}

// TestAWrongPasswordIsNotTold, neither the given nor the right one.
func TestAWrongPasswordIsNotTold(t *testing.T) {
	wrong := func(text string) Place {
		p := place(t, text)
		p.password = "wr0ng" + secret
		return p
	}
	_, err := OpenPostgres(t.Context(), wrong(storetest.Postgres(t)), Guarded)
	if err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("PostgreSQL: %v", err)
	}
	hold(t, fmt.Sprint(err))
	_, err = OpenRedis(t.Context(), wrong(storetest.Redis(t)), Guarded)
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("Redis: %v", err)
	}
	hold(t, fmt.Sprint(err))
}

// hold fails when a text holds the secret in any form.
func hold(t *testing.T, text string) {
	t.Helper()
	for _, s := range []string{secret, url.PathEscape(secret), url.QueryEscape(secret), "s3cr3t"} {
		if strings.Contains(text, s) {
			t.Errorf("the password is told: %s", text)
		}
	}
}

// TestATableOfSomebodyElse serves a role that may make no table, and stays.
func TestATableOfSomebodyElse(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(postgresMake)
	defer exec(postgresDrop)
	exec(`CREATE ROLE guest LOGIN PASSWORD '` + secret + `'`)
	defer exec(`DROP OWNED BY guest; DROP ROLE guest`)
	exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_resource TO guest`)
	u, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("guest", secret)
	s, err := OpenPostgres(t.Context(), place(t, u.String()), Guarded)
	if err != nil {
		t.Fatal(err)
	}
	play(t, s, s, []step{{write: true, fence: token(2), applied: true, version: 1}, {write: true, fence: token(1), version: 1, highest: 2}})
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var rows int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM holdfast_resource`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left, or no table: %v", rows, err)
	}
}

// TestCheckedDecidesInTheStore: a write over a version that its writer has not
// read is refused through another door too, whatever its fence.
func TestCheckedDecidesInTheStore(t *testing.T) {
	forEach(t, Checked, func(t *testing.T, a, b store) {
		if got, err := a.Do(t.Context(), Call{Write: true, Fence: token(9)}); err != nil || !got.Applied || got.Version != 1 {
			t.Fatalf("the first write: %+v, %v", got, err)
		}
		if got, err := b.Do(t.Context(), Call{Write: true, Fence: token(10)}); err != nil || got.Applied || !got.Unread || got.Version != 1 {
			t.Errorf("over an unread version: %+v, %v", got, err)
		}
		if got, err := b.Do(t.Context(), Call{}); err != nil || !got.Applied || got.Version != 1 {
			t.Errorf("a read: %+v, %v", got, err)
		}
		if got, err := b.Do(t.Context(), Call{Write: true, Seen: 1, Fence: token(1)}); err != nil || !got.Applied || got.Before != 1 || got.Version != 2 {
			t.Errorf("an older fence over the newest version: %+v, %v", got, err)
		}
	})
}
