package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/resource"
)

// passwordVariable has the password of the protected resource's server where
// the place does not tell it: a command line can be seen by everybody on the
// machine, and a run that is played again has stored none.
const passwordVariable = "HOLDFAST_RESOURCE_PASSWORD"

// resourceFlag is --resource, of all verbs that choose runs.
type resourceFlag struct {
	text  string
	place resource.Place
}

func (r *resourceFlag) add(f *pflag.FlagSet) {
	f.StringVar(&r.text, "resource", "", "where the protected resource lives: postgres://user@host/db, redis://host:port/0, sqlite or "+
		"sqlite:FILE (default: in holdfast itself); a password may come from "+passwordVariable)
}

// parse reads the flag. What was written is not repeated: it may hold a
// password.
func (r *resourceFlag) parse(try string) error {
	p, err := resource.ParsePlace(r.text)
	if err != nil {
		return usage(try, "--resource: %v", err)
	}
	r.place = withPassword(p)
	return nil
}

func withPassword(p resource.Place) resource.Place {
	return p.WithPassword(os.Getenv(passwordVariable))
}

// reach says before the first run whether the store can be used.
func (r *resourceFlag) reach(ctx context.Context) error {
	if err := reach(ctx, r.place); err != nil {
		return fmt.Errorf("--resource: %w", err)
	}
	return nil
}

// reach says whether a store can be used, and what to do if it cannot.
func reach(ctx context.Context, p resource.Place) error {
	if p.Kind() == resource.KindBuiltin {
		return nil
	}
	err := harness.CheckStore(ctx, p)
	if err == nil {
		return nil
	}
	what := "start the server, or correct host, port and database"
	switch {
	case p.Kind() == resource.KindSQLite:
		what = "name a file in a folder where you may write"
	case p.Password() == "":
		what += "; if it wants a password, set " + passwordVariable
	default:
		what += ", user and password"
	}
	return fmt.Errorf("%w\nTry: %s", err, what)
}
