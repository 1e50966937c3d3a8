package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParsePlace(t *testing.T) {
	for _, c := range []struct{ text, shown, kind, password string }{
		{"", "", KindBuiltin, ""},
		{"sqlite", "sqlite", KindSQLite, ""},
		{"sqlite:a b.db", "sqlite:a b.db", KindSQLite, ""},
		{"postgres://u:pw@h:5432/db?sslmode=disable", "postgres://u@h:5432/db?sslmode=disable", KindPostgres, "pw"},
		{"postgresql://u:p%2F%23%40w@h/db", "postgresql://u@h/db", KindPostgres, "p/#@w"},
		{"postgres://h/db", "postgres://h/db", KindPostgres, ""},
		{"redis://:pw@h:6379/3", "redis://h:6379/3", KindRedis, "pw"},
		{"rediss://u:pw@[::1]:6379", "rediss://u@[::1]:6379", KindRedis, "pw"},
	} {
		p, err := ParsePlace(c.text)
		if err != nil || p.String() != c.shown || p.Kind() != c.kind || p.Password() != c.password {
			t.Errorf("%q: %q, kind %q, password %q, %v", c.text, p, p.Kind(), p.Password(), err)
		}
	}
}

// TestAPlaceThatCannotBeReadIsNotRepeated: its password may stand anywhere.
func TestAPlaceThatCannotBeReadIsNotRepeated(t *testing.T) {
	for _, text := range []string{
		"mysql://u:s3cr3t@h/db", "postgres:u:s3cr3t", "sqlite:", "sqlite3:x", "postgres://u:s3/cr3t@h/db", "postgres://u:12#s3cr3t@h/db",
		"postgres://u:12/s3cr3t@h/db", "postgres://u:12?s3cr3t@h/db", "postgres://u@h/db?password=s3cr3t", "postgres://u:%zzs3cr3t@h/db",
		"redis://h:1/x", "redis://h:1/0?password=s3cr3t", "redis:///0",
	} {
		p, err := ParsePlace(text)
		if !errors.Is(err, ErrPlace) || strings.Contains(fmt.Sprint(p, err), "s3") {
			t.Errorf("%q: %q, %v", text, p, err)
		}
	}
}

// TestAPlaceKeepsItsPasswordToItself in whatever form it is printed or stored.
func TestAPlaceKeepsItsPasswordToItself(t *testing.T) {
	p := place(t, "postgres://u:s3cr3t@h/db")
	b, err := json.Marshal(map[string]any{"a": p, "b": &p})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(b), p.String(), fmt.Sprint(p), fmt.Sprintf("%+v %s %q", p, p, p), fmt.Sprintf("%#v", p)} {
		if strings.Contains(text, "s3cr3t") {
			t.Errorf("told: %s", text)
		}
	}
	var back struct{ A Place }
	if err := json.Unmarshal(b, &back); err != nil || back.A.String() != "postgres://u@h/db" {
		t.Errorf("%v, %v", back.A, err)
	}
	if got := back.A.WithPassword("s3cr3t"); got != p {
		t.Errorf("with its password it is %q", got)
	}
	if got := p.WithPassword("other").Password(); got != "s3cr3t" {
		t.Errorf("the password became %q", got)
	}
	if (Place{}).WithPassword("x") != (Place{}) {
		t.Error("this process has a password")
	}
}

// TestErrorsOfDriversHoldNoPassword, in any of its spellings, and one line is
// said once.
func TestErrorsOfDriversHoldNoPassword(t *testing.T) {
	p := place(t, "postgres://u:s3cr%2Ft%23@h/db")
	err := p.failed("connect", errors.New("bad s3cr/t#\nbad s3cr/t#\n as s3cr%2Ft%23"))
	if got := err.Error(); got != "the protected resource failed: postgres://u@h/db: connect: bad *** as ***" {
		t.Error(got)
	}
}
