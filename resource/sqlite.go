package resource

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strconv"
	"strings"

	_ "github.com/ncruces/go-sqlite3/driver" // SQLite as Go code: no C compiler is needed
)

// The statements of SQLite. The guarded one decides by itself: where the fence
// is too old it changes no row, and returns none. Fences are texts of twenty
// digits, whose order is that of the numbers.
const (
	sqliteMake = `CREATE TABLE IF NOT EXISTS holdfast_resource (
	id text PRIMARY KEY, version integer NOT NULL, highest text NOT NULL)`
	sqliteAdd   = `INSERT INTO holdfast_resource (id, version, highest) VALUES (?1, 0, ?2)`
	sqlitePlain = `UPDATE holdfast_resource SET version = version + ?2
WHERE id = ?1 RETURNING version`
	sqliteGuarded = `UPDATE holdfast_resource SET version = version + ?2, highest = ?3
WHERE id = ?1 AND highest <= ?3 RETURNING version`
	sqliteChecked = `UPDATE holdfast_resource SET version = version + ?2
WHERE id = ?1 AND version = ?3 RETURNING version`
	sqliteLook   = `SELECT version, highest FROM holdfast_resource WHERE id = ?1`
	sqliteRemove = `DELETE FROM holdfast_resource WHERE id = ?1`
	sqliteEmpty  = `SELECT NOT EXISTS (SELECT 1 FROM holdfast_resource)`
	sqliteDrop   = `DROP TABLE holdfast_resource`
)

// SQLite is a row in an SQLite database, in memory or in a file.
type SQLite struct {
	place   Place
	id      string
	rule    Rule
	db      *sql.DB
	version string
}

// OpenSQLite makes the row of a run. Without a file the database is in memory
// and ends with the store.
func OpenSQLite(ctx context.Context, p Place, rule Rule) (*SQLite, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	return openSQLite(ctx, p, rule, id, true)
}

// openSQLite opens a store on a row, which it makes where it is new.
func openSQLite(ctx context.Context, p Place, rule Rule, id string, fresh bool) (*SQLite, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	name := ":memory:"
	if file := p.file(); file != "" {
		// Other runs may write to the same file: wait for them.
		name = "file:" + (&url.URL{Path: file}).EscapedPath() + "?_pragma=busy_timeout(8000)&_txlock=immediate"
	}
	db, err := sql.Open("sqlite3", name)
	if err != nil {
		return nil, p.failed("open the database", err)
	}
	db.SetMaxOpenConns(1) // a database in memory is that of its connection
	s := &SQLite{place: p, id: id, rule: rule, db: db}
	if err := s.prepare(ctx, fresh); err != nil {
		return nil, errors.Join(p.failed("make the row of the run", err), db.Close())
	}
	return s, nil
}

func (s *SQLite) prepare(ctx context.Context, fresh bool) error {
	if err := s.db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&s.version); err != nil || !fresh {
		return err
	}
	// One transaction: another run that ends meanwhile drops an empty table.
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, sqliteMake); err == nil {
		_, err = tx.ExecContext(ctx, sqliteAdd, s.id, digits(0))
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// file is the path behind sqlite:, or empty.
func (p Place) file() string {
	_, file, _ := strings.Cut(p.shown, ":")
	return file
}

// Do reads or writes, in one statement.
func (s *SQLite) Do(ctx context.Context, c Call) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	step := stepOf(c)
	var row *sql.Row
	switch {
	case s.rule.fenced(c):
		row = s.db.QueryRowContext(ctx, sqliteGuarded, s.id, step, digits(*c.Fence))
	case s.rule.compared(c):
		row = s.db.QueryRowContext(ctx, sqliteChecked, s.id, step, c.Seen)
	default:
		row = s.db.QueryRowContext(ctx, sqlitePlain, s.id, step)
	}
	var version int64
	switch err := row.Scan(&version); {
	case err == nil:
		return Outcome{Applied: true, Before: version - step, Version: version}, nil
	case !errors.Is(err, sql.ErrNoRows):
		return Outcome{}, s.place.failed("update the row", err)
	}
	return s.refused(ctx, c)
}

// refused looks for what the message of a refusal needs.
func (s *SQLite) refused(ctx context.Context, c Call) (Outcome, error) {
	var version int64
	var highest string
	if err := s.db.QueryRowContext(ctx, sqliteLook, s.id).Scan(&version, &highest); err != nil {
		return Outcome{}, s.place.failed("the row of the run is gone", err)
	}
	return refusal(s.place, s.rule, c, version, highest)
}

// Version of SQLite.
func (s *SQLite) Version() string { return s.version }

// Close removes the row, and the table where no other run has one.
func (s *SQLite) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := s.remove(ctx); err != nil {
		return errors.Join(s.place.failed("remove the row "+s.id, err), s.db.Close())
	}
	if err := s.db.Close(); err != nil {
		return s.place.failed("close the database", err)
	}
	return nil
}

func (s *SQLite) remove(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	empty := false
	if _, err = tx.ExecContext(ctx, sqliteRemove, s.id); err == nil {
		err = tx.QueryRowContext(ctx, sqliteEmpty).Scan(&empty)
	}
	if err == nil && empty {
		_, err = tx.ExecContext(ctx, sqliteDrop)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// stepOf is what a call adds to the version.
func stepOf(c Call) int64 {
	if c.Write {
		return 1
	}
	return 0
}

// refusal is the outcome of a call that changed no row.
func refusal(p Place, r Rule, c Call, version int64, highest string) (Outcome, error) {
	n, err := strconv.ParseUint(highest, 10, 64)
	reason := r.fenced(c) && n > *c.Fence || r.compared(c) && version != c.Seen
	if err == nil && !reason {
		err = errors.New("it took no call that it had no reason to refuse")
	}
	if err != nil {
		return Outcome{}, p.failed("the store answered what makes no sense", err)
	}
	return Outcome{Before: version, Version: version, Highest: n, Unread: r.compared(c)}, nil
}
