package resource

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The kinds of store, as they begin the name of a place.
const (
	KindBuiltin  = "" // in this process
	KindSQLite   = "sqlite"
	KindPostgres = "postgres"
	KindRedis    = "redis"
)

// Place says where the protected resource of a run lives. The zero value is
// this process. Whatever form a place is printed or stored in, its password is
// not part of it: it travels in [Place.Password] only.
type Place struct {
	// shown is the place without its password, as one may write it again.
	shown    string
	kind     string
	password string
}

// ErrPlace says how a place is written. The text that was given is no part of
// any message: a URL that cannot be read may hold a password anywhere.
var ErrPlace = errors.New("write postgres://user:password@host:port/database, redis://host:port/0, sqlite or sqlite:FILE; " +
	"in a password, / ? # @ and : are written %2F %3F %23 %40 and %3A")

// parameters that may follow the ? of a URL. None holds a secret.
var parameters = map[string][]string{
	KindPostgres: {"sslmode", "sslrootcert", "sslcert", "sslkey", "host", "port", "connect_timeout", "application_name", "search_path", "target_session_attrs"},
}

// ParsePlace reads a place; the empty text is this process.
func ParsePlace(text string) (Place, error) {
	switch scheme, rest, _ := strings.Cut(text, ":"); {
	case text == "":
		return Place{}, nil
	case text == KindSQLite:
		return Place{shown: text, kind: KindSQLite}, nil
	case scheme == KindSQLite && rest != "" && !strings.ContainsRune(rest, 0):
		return Place{shown: text, kind: KindSQLite}, nil
	case scheme == KindPostgres || scheme == "postgresql":
		return parseURL(text, KindPostgres)
	case scheme == KindRedis || scheme == "rediss":
		return parseURL(text, KindRedis)
	}
	return Place{}, ErrPlace
}

func parseURL(text, kind string) (Place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || u.RawFragment != "" || strings.Contains(text, "#") {
		return Place{}, ErrPlace
	}
	name := strings.TrimPrefix(u.Path, "/")
	if strings.ContainsAny(name, "/@") || strings.ContainsAny(u.Host, "@/") {
		return Place{}, ErrPlace // a password with such a sign in it, cut in two
	}
	for key := range u.Query() {
		if !slices.Contains(parameters[kind], key) {
			return Place{}, ErrPlace
		}
	}
	if kind == KindRedis {
		if _, err := strconv.ParseUint(name, 10, 16); u.Host == "" || name != "" && err != nil {
			return Place{}, ErrPlace
		}
	}
	p := Place{kind: kind}
	if u.User != nil {
		p.password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
		if u.User.Username() == "" {
			u.User = nil
		}
	}
	p.shown = u.String()
	return p, nil
}

// String is the place without its password.
func (p Place) String() string { return p.shown }

// GoString is [Place.String]: %#v would show every field.
func (p Place) GoString() string { return "resource.Place(" + p.shown + ")" }

// Kind is one of the kinds of store.
func (p Place) Kind() string { return p.kind }

// Password is what must never be printed or stored.
func (p Place) Password() string { return p.password }

// WithPassword is the place with a password for it, unless it has one.
func (p Place) WithPassword(password string) Place {
	if p.password == "" && (p.kind == KindPostgres || p.kind == KindRedis) {
		p.password = password
	}
	return p
}

// MarshalText writes the place without its password.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.shown), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *Place) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePlace(string(b))
	return err
}

// url is the place with its password, for a driver.
func (p Place) url() string {
	u, err := url.Parse(p.shown)
	if err != nil {
		return p.shown // it was read once
	}
	if p.password != "" {
		u.User = url.UserPassword(u.User.Username(), p.password)
	}
	return u.String()
}

// failed is an error of a store at a place, in words that hold no password.
func (p Place) failed(what string, err error) error {
	return &storeError{place: p, what: what, err: err}
}

// storeError names the place, and what was tried there.
type storeError struct {
	place Place
	what  string
	err   error
}

func (e *storeError) Error() string {
	text := e.err.Error()
	for _, secret := range []string{e.place.password, url.QueryEscape(e.place.password), url.PathEscape(e.place.password)} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	var lines []string // PostgreSQL's driver tells a refusal once with and once without TLS
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return ErrStore.Error() + ": " + e.place.shown + ": " + e.what + ": " + strings.Join(lines, " ")
}

// Unwrap gives the cause, and that it is a store's.
func (e *storeError) Unwrap() []error { return []error{ErrStore, e.err} }
