package resource

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The statements of PostgreSQL. The guarded one decides by itself: where the
// fence is too old it changes no row, and returns none. It takes the row's lock
// and looks at the condition again under it, so two that come at once are
// decided one after the other. A fence has 64 bits, and bigint has 63.
const (
	postgresThere = `SELECT to_regclass('holdfast_resource') IS NOT NULL`
	postgresMake  = `CREATE TABLE holdfast_resource (
	id text PRIMARY KEY, version bigint NOT NULL, highest numeric(20) NOT NULL)`
	postgresAdd   = `INSERT INTO holdfast_resource (id, version, highest) VALUES ($1, 0, 0)`
	postgresPlain = `UPDATE holdfast_resource SET version = version + $2
WHERE id = $1 RETURNING version`
	postgresGuarded = `UPDATE holdfast_resource SET version = version + $2, highest = $3::text::numeric
WHERE id = $1 AND highest <= $3::text::numeric RETURNING version`
	postgresChecked = `UPDATE holdfast_resource SET version = version + $2
WHERE id = $1 AND version = $3 RETURNING version`
	postgresLook   = `SELECT version, highest::text FROM holdfast_resource WHERE id = $1`
	postgresRemove = `DELETE FROM holdfast_resource WHERE id = $1`
	// Only a table of our own: one that somebody else made for us stays.
	postgresSpent = `SELECT NOT EXISTS (SELECT FROM holdfast_resource) AND pg_get_userbyid(relowner) = current_user
FROM pg_class WHERE oid = to_regclass('holdfast_resource')`
	postgresDrop = `DROP TABLE holdfast_resource`
	// Two runs that begin or end at once must not make and drop the table under
	// each other. The number is any that others are unlikely to use.
	postgresAlone = `SELECT pg_advisory_xact_lock(7237955014)`
)

// Postgres is a row in a PostgreSQL database.
type Postgres struct {
	place Place
	id    string
	rule  Rule
	conn  *pgx.Conn
}

// OpenPostgres connects and makes the row of a run.
func OpenPostgres(ctx context.Context, p Place, rule Rule) (*Postgres, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	s, err := dialPostgres(ctx, p, rule, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error { return s.add(ctx, tx) }); err != nil {
		return nil, errors.Join(p.failed("make the row of the run in the table holdfast_resource", err), s.conn.Close(ctx))
	}
	return s, nil
}

// dialPostgres opens a store on a row that is there.
func dialPostgres(ctx context.Context, p Place, rule Rule, id string) (*Postgres, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	cfg, err := pgx.ParseConfig(p.shown)
	if err != nil {
		return nil, p.failed("read the address", err)
	}
	if p.password != "" {
		cfg.Password = p.password
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "holdfast"
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, p.failed("connect", err)
	}
	return &Postgres{place: p, id: id, rule: rule, conn: conn}, nil
}

func (s *Postgres) add(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, postgresAlone); err != nil {
		return err
	}
	var there bool
	if err := tx.QueryRow(ctx, postgresThere).Scan(&there); err != nil {
		return err
	}
	if !there {
		if _, err := tx.Exec(ctx, postgresMake); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, postgresAdd, s.id)
	return err
}

// Do reads or writes, in one statement.
func (s *Postgres) Do(ctx context.Context, c Call) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	step := stepOf(c)
	var row pgx.Row
	switch {
	case s.rule.fenced(c):
		row = s.conn.QueryRow(ctx, postgresGuarded, s.id, step, fmt.Sprint(*c.Fence))
	case s.rule.compared(c):
		row = s.conn.QueryRow(ctx, postgresChecked, s.id, step, c.Seen)
	default:
		row = s.conn.QueryRow(ctx, postgresPlain, s.id, step)
	}
	var version int64
	switch err := row.Scan(&version); {
	case err == nil:
		return Outcome{Applied: true, Before: version - step, Version: version}, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return Outcome{}, s.place.failed("update the row", err)
	}
	// The decision has fallen. What its message needs is looked up.
	var highest string
	if err := s.conn.QueryRow(ctx, postgresLook, s.id).Scan(&version, &highest); err != nil {
		return Outcome{}, s.place.failed("the row of the run is gone", err)
	}
	return refusal(s.place, s.rule, c, version, highest)
}

// Version of the server.
func (s *Postgres) Version() string { return s.conn.PgConn().ParameterStatus("server_version") }

// Close removes the row, and the table where no other run has one.
func (s *Postgres) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, postgresAlone); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, postgresRemove, s.id); err != nil {
			return err
		}
		var spent bool
		if err := tx.QueryRow(ctx, postgresSpent).Scan(&spent); err != nil || !spent {
			return err
		}
		_, err := tx.Exec(ctx, postgresDrop)
		return err
	})
	if err != nil {
		err = s.place.failed("remove the row "+s.id+" of the table holdfast_resource", err)
	}
	return errors.Join(err, s.conn.Close(ctx))
}
