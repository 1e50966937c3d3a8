package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/inspect"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/suite"
)

// inspection is what the command line asks for.
type inspection struct {
	name, lock, key string
	servers         []string
	timeout, every  time.Duration
	watch, tokens   bool
	format          string
}

func newInspect(io streams) *cobra.Command {
	var in inspection
	cmd := &cobra.Command{
		Use:   "inspect NAME --redis ADDR[,ADDR...]",
		Short: "Look at a lock on a live server: holder, TTL, queue, votes",
		Long: `Looks at the lock called NAME on servers that are in use, and only reads: who
holds it, what is left of the TTL, the hold count, how many wait, and with
several servers how the votes stand. Every form of key that a lock in the
catalogue uses for this name is tried; --lock tries those of one lock, and
--key one of your own. A key that should end and has no TTL is flagged, and the
exit code is then 10.

Whoever knows a token can release the lock, so only the beginning of each is
shown; --tokens shows them whole. A password belongs into the address
(redis://:PASSWORD@HOST:6379) or into the variable REDISCLI_AUTH.`,
		Example: `  holdfast inspect orders --redis 127.0.0.1:6379
  holdfast inspect orders --lock redlock --redis 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379
  holdfast inspect --key app:mutex:orders --redis rediss://:secret@redis.example:6380 --watch`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 0 && in.key == "" || len(args) == 1 && in.key != "" {
				return usage("holdfast inspect --help", "inspect wants the name of one lock, or --key")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				in.name = args[0]
			}
			return in.run(cmd.Context(), io.out)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&in.servers, "redis", nil, "servers, as host:port or redis:// address")
	f.StringVar(&in.lock, "lock", "", "a lock of the catalogue (default: all)")
	f.StringVar(&in.key, "key", "", "the whole key of a lock of your own")
	f.DurationVar(&in.timeout, "timeout", 2*time.Second, "for each look at one server")
	f.BoolVar(&in.watch, "watch", false, "look again and again until Ctrl-C")
	f.DurationVar(&in.every, "interval", time.Second, "between two looks of --watch")
	f.BoolVar(&in.tokens, "tokens", false, "show whole tokens")
	f.StringVar(&in.format, "format", "text", "text or json")
	complete(cmd, "format", func() []string { return []string{"text", "json"} })
	complete(cmd, "lock", suite.LockNames)
	return cmd
}

func (in *inspection) run(ctx context.Context, out io.Writer) error {
	if len(in.servers) == 0 {
		return usage("holdfast inspect "+shellWord(in.name)+" --redis 127.0.0.1:6379", "inspect wants --redis with the address of a server")
	}
	if in.format != "text" && in.format != "json" {
		return unknownWord("format", in.format, []string{"text", "json"}, "holdfast inspect --help")
	}
	if in.timeout <= 0 || in.every <= 0 {
		return usage("", "--timeout and --interval must be longer than nothing")
	}
	keys, err := in.keys()
	if err != nil {
		return err
	}
	redis.SetLogger(silent{}) // a server that is down is told once, in the answer
	nodes, err := in.connect()
	if err != nil {
		return err
	}
	defer func() {
		for _, n := range nodes {
			_ = n.Client.Close() // only read from
		}
	}()
	for {
		findings, err := inspect.Look(ctx, nodes, keys, in.timeout)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how one leaves
		}
		if err != nil && !in.watch {
			return err
		}
		flagged := in.print(out, findings, err)
		if !in.watch {
			if flagged {
				return exitError(reports.ExitViolation)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(in.every):
		}
	}
}

// silent is a logger for go-redis that says nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func (in *inspection) keys() ([]inspect.Key, error) {
	if in.key != "" {
		return []inspect.Key{{Name: in.key, Role: inspect.Lock}}, nil
	}
	known := catalogue.KnownKeys(in.name)
	if in.lock != "" {
		e, err := campaign.FindLock(in.lock)
		if err != nil {
			return nil, usage("holdfast list locks", "%v", err)
		}
		known = e.Keys(in.name)
	}
	keys := make([]inspect.Key, 0, len(known))
	for _, k := range known {
		keys = append(keys, inspect.Key{Name: k.Name, Role: string(k.Role), Lock: k.Lock})
	}
	return keys, nil
}

func (in *inspection) connect() ([]inspect.Node, error) {
	var nodes []inspect.Node
	seen := map[string]bool{}
	for _, address := range in.servers {
		o := &redis.Options{Addr: address}
		if strings.Contains(address, "://") {
			var err error
			if o, err = redis.ParseURL(address); err != nil {
				return nil, usage("", "--redis: an address such as 127.0.0.1:6379 or redis://:PASSWORD@HOST:6379/0 is wanted") // the text of err may show a password
			}
		} else if !strings.Contains(address, ":") {
			o.Addr += ":6379"
		}
		if seen[o.Addr] {
			return nil, usage("", "--redis: %s is named twice, and would have two votes", o.Addr)
		}
		seen[o.Addr] = true
		if o.Password == "" {
			o.Password = os.Getenv("REDISCLI_AUTH")
		}
		o.MaxRetries, o.DialerRetries, o.PoolSize = -1, 1, 1
		o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled = in.timeout, in.timeout, true
		nodes = append(nodes, inspect.Node{Name: o.Addr, Client: redis.NewClient(o)})
	}
	return nodes, nil
}

// print shows one look, and says whether something was flagged.
func (in *inspection) print(out io.Writer, findings []inspect.Finding, failed error) (flagged bool) {
	var shown []inspect.Finding
	for _, f := range findings {
		flagged = flagged || len(f.Endless()) > 0
		if f.There() || in.lock != "" || in.key != "" {
			shown = append(shown, in.hide(f))
		}
	}
	at := time.Now().Format("15:04:05.000")
	if in.format == "json" {
		doc := struct {
			At       string            `json:"at"`
			Error    string            `json:"error,omitempty"`
			Findings []inspect.Finding `json:"findings"`
		}{At: time.Now().Format(time.RFC3339Nano), Findings: shown}
		if failed != nil {
			doc.Error = failed.Error()
		}
		_ = json.NewEncoder(out).Encode(doc) // a broken pipe ends the program by its signal
		return flagged
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if failed != nil {
		fmt.Fprintf(w, "%s\t%s\n", at, reports.Printable(failed.Error()))
	}
	if len(shown) == 0 && failed == nil {
		fmt.Fprintf(w, "%s\tnobody holds %s, in any form of key that holdfast knows\n", at, reports.Printable(in.name))
	}
	for _, f := range shown {
		in.printOne(w, at, f)
	}
	_ = w.Flush()
	return flagged
}

func (in *inspection) printOne(w io.Writer, at string, f inspect.Finding) {
	fmt.Fprintf(w, "%s\t%s\t%s\n", at, reports.Printable(f.Key), reports.Printable(f.Sentence(func(s string) string { return s })))
	if nodes := f.Endless(); len(nodes) > 0 {
		fmt.Fprintf(w, "\t\t! NO TTL on %s: %s\n", strings.Join(nodes, ", "), f.Danger())
	}
	if len(f.Nodes) == 1 {
		return
	}
	for _, s := range f.Nodes {
		what := "nobody"
		var tokens []string
		for _, m := range s.Members {
			tokens = append(tokens, reports.Printable(m.Token))
		}
		switch {
		case s.Error != "":
			what = "unreachable: " + reports.Printable(s.Error)
		case len(tokens) > 0:
			what = strings.Join(tokens, ", ") + ", " + inspect.TTL(s.PTTL)
		case s.PTTL != inspect.Absent:
			what = s.Type + ", " + inspect.TTL(s.PTTL)
		}
		fmt.Fprintf(w, "\t  %s\t%s\n", s.Node, what)
	}
}

// hide shortens tokens, unless they are asked for.
func (in *inspection) hide(f inspect.Finding) inspect.Finding {
	if in.tokens || f.Role == inspect.Fence || f.Role == inspect.Readers {
		return f
	}
	f.Nodes = slices.Clone(f.Nodes)
	for i := range f.Nodes {
		f.Nodes[i].Members = slices.Clone(f.Nodes[i].Members)
		for j := range f.Nodes[i].Members {
			f.Nodes[i].Members[j].Token = shortToken(f.Nodes[i].Members[j].Token)
		}
	}
	f.Votes = slices.Clone(f.Votes)
	for i := range f.Votes {
		f.Votes[i].Token = shortToken(f.Votes[i].Token)
	}
	return f
}

// shownOfToken is how much of a token is shown: enough to tell two apart.
const shownOfToken = 8

func shortToken(s string) string {
	if r := []rune(s); len(r) > shownOfToken+3 {
		return string(r[:shownOfToken]) + "..."
	}
	return s
}
