package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/cluster"
)

// Direction of a fault on a pair: requests run from the first to the second.
type Direction string

// The directions.
const (
	Requests Direction = "requests"
	Replies  Direction = "replies"
	Both     Direction = "both" // the default
)

// links lists the directed links between two groups.
func (d Direction) links(from, to []string) ([]cluster.Link, error) {
	var out []cluster.Link
	for _, a := range from {
		for _, b := range to {
			if a == b {
				continue
			}
			l := cluster.Link{From: a, To: b}
			switch d {
			case Requests:
				out = append(out, l)
			case Replies:
				out = append(out, l.Back())
			case Both, "":
				out = append(out, l, l.Back())
			default:
				return nil, fmt.Errorf("direction %q: write requests, replies or both", d)
			}
		}
	}
	return out, nil
}

// Cut severs pairs in one or both directions. Dropped bytes vanish and the
// sender finds out by time-out; a reset tells both ends at once.
type Cut struct {
	From      []string        `yaml:"from"`
	To        []string        `yaml:"to"`
	Direction Direction       `yaml:"direction"`
	Mode      cluster.CutMode `yaml:"mode"` // drop (the default) or reset
}

// Kind implements [Fault].
func (Cut) Kind() string { return "cut" }

// Needs implements [Fault].
func (Cut) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanCut} }

// Inject implements [Fault].
func (f Cut) Inject(ctx context.Context, s Scene) (Effect, error) {
	from, err := s.resolve(f.From)
	if err != nil {
		return Effect{}, err
	}
	to, err := s.resolve(f.To)
	if err != nil {
		return Effect{}, err
	}
	links, err := f.Direction.links(from, to)
	if err != nil {
		return Effect{}, err
	}
	return cutAll(ctx, s, links, f.Mode)
}

// cutAll cuts every link or none.
func cutAll(ctx context.Context, s Scene, links []cluster.Link, mode cluster.CutMode) (Effect, error) {
	v, err := verbs[cluster.Linker](s)
	if err != nil {
		return Effect{}, err
	}
	if len(links) == 0 {
		return Effect{}, errors.New("nothing to cut: both ends are the same")
	}
	if mode == "" {
		mode = cluster.Drop
	}
	heal := func(ctx context.Context) error { return mendAll(ctx, v, links) }
	for i, l := range links {
		if err := v.Cut(ctx, l, mode); err != nil {
			return Effect{}, errors.Join(fmt.Errorf("cut %v: %w", l, err), mendAll(ctx, v, links[:i]))
		}
	}
	return Effect{On: names(links), What: fmt.Sprintf("%s %s", describe(links), past(mode)), Heal: heal}, nil
}

func mendAll(ctx context.Context, v cluster.Linker, links []cluster.Link) error {
	var errs []error
	for _, l := range links {
		if err := v.Mend(ctx, l); err != nil {
			errs = append(errs, fmt.Errorf("mend %v: %w", l, err))
		}
	}
	return errors.Join(errs...)
}

func past(m cluster.CutMode) string {
	if m == cluster.Reset {
		return "reset"
	}
	return "cut (bytes dropped)"
}

func names(links []cluster.Link) []string {
	var out []string
	for _, l := range links {
		out = append(out, l.String())
	}
	return out
}

// describe says which pairs are hit: "c1-n4, c1-n5" for both directions.
func describe(links []cluster.Link) string {
	var out []string
	for _, l := range links {
		switch {
		case !slices.Contains(links, l.Back()):
			out = append(out, l.String())
		case !slices.Contains(out, l.To+"-"+l.From):
			out = append(out, l.From+"-"+l.To)
		}
	}
	if len(out) > 6 {
		return strings.Join(out[:5], ", ") + fmt.Sprintf(" and %d more", len(out)-5)
	}
	return strings.Join(out, ", ")
}

// Partition splits clients and nodes into groups that do not hear each other.
// Whoever stands in no group keeps all its links.
type Partition struct {
	// Groups of names and target words.
	Groups [][]string `yaml:"groups"`
	// Asymmetric partitions cut requests only: the first group is heard by
	// nobody in the others but hears them.
	Asymmetric bool            `yaml:"asymmetric"`
	Mode       cluster.CutMode `yaml:"mode"`
}

// Kind implements [Fault].
func (Partition) Kind() string { return "partition" }

// Needs implements [Fault].
func (Partition) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanCut} }

// Inject implements [Fault].
func (f Partition) Inject(ctx context.Context, s Scene) (Effect, error) {
	groups := make([][]string, len(f.Groups))
	for i, g := range f.Groups {
		names, err := s.resolve(g)
		if err != nil {
			return Effect{}, err
		}
		groups[i] = names
	}
	// Clients have no links among themselves, so cutting them is nothing.
	clients := s.Cluster.Clients()
	links := slices.DeleteFunc(Grudge(groups, f.Asymmetric), func(l cluster.Link) bool {
		return slices.Contains(clients, l.From) && slices.Contains(clients, l.To)
	})
	if len(links) == 0 {
		return Effect{}, fmt.Errorf("a partition into %v cuts no link", groups)
	}
	return cutAll(ctx, s, links, f.Mode)
}

// Grudge is the pure heart of a partition: from groups to the links to cut. A
// name that stands in two groups is a bridge and keeps its links. The word is
// Jepsen's.
func Grudge(groups [][]string, asymmetric bool) []cluster.Link {
	together := func(a, b string) bool {
		return slices.ContainsFunc(groups, func(g []string) bool {
			return slices.Contains(g, a) && slices.Contains(g, b)
		})
	}
	var out []cluster.Link
	for i, g := range groups {
		for j, h := range groups {
			if i == j || (asymmetric && i != 0) {
				continue
			}
			for _, a := range g {
				for _, b := range h {
					l := cluster.Link{From: a, To: b}
					if a != b && !together(a, b) && !slices.Contains(out, l) {
						out = append(out, l)
					}
				}
			}
		}
	}
	return out
}

// Delay makes the links of pairs slower by a span. What was sent under it
// arrives late even when it has healed meanwhile, as a packet on its way does.
type Delay struct {
	From      []string  `yaml:"from"`
	To        []string  `yaml:"to"`
	Direction Direction `yaml:"direction"`
	By        Span      `yaml:"by"`
}

// Kind implements [Fault].
func (Delay) Kind() string { return "delay" }

// Needs implements [Fault].
func (Delay) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanDelay} }

// Inject implements [Fault].
func (f Delay) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, err := verbs[cluster.Linker](s)
	if err != nil {
		return Effect{}, err
	}
	from, err := s.resolve(f.From)
	if err != nil {
		return Effect{}, err
	}
	to, err := s.resolve(f.To)
	if err != nil {
		return Effect{}, err
	}
	links, err := f.Direction.links(from, to)
	if err != nil {
		return Effect{}, err
	}
	if len(links) == 0 {
		return Effect{}, errors.New("nothing to delay: both ends are the same")
	}
	heal := func(ctx context.Context) error {
		var errs []error
		for _, l := range links {
			errs = append(errs, v.Delay(ctx, l, 0))
		}
		return errors.Join(errs...)
	}
	for _, l := range links {
		if err := v.Delay(ctx, l, f.By.Of(s.TTL)); err != nil {
			return Effect{}, errors.Join(fmt.Errorf("delay %v: %w", l, err), heal(ctx))
		}
	}
	return Effect{On: names(links), What: fmt.Sprintf("%s slower by %s", describe(links), f.By.words()), Heal: heal}, nil
}

// LoseReply loses the reply of the nth matching command, counted from the
// injection on, and closes the connection: the command took effect, and its
// sender cannot know.
type LoseReply struct {
	Client  string `yaml:"client"` // the default is holder
	Node    string `yaml:"node"`
	Command string `yaml:"command"` // empty matches every command
	Nth     int    `yaml:"nth"`     // the default is 1
}

// Kind implements [Fault].
func (LoseReply) Kind() string { return "lose-reply" }

// Needs implements [Fault].
func (LoseReply) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanLoseReply} }

// Inject implements [Fault].
func (f LoseReply) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, client, err := onClient[cluster.Linker](s, f.Client, wordHolder)
	if err != nil {
		return Effect{}, err
	}
	node, err := s.one(f.Node, wordPrimary)
	if err != nil {
		return Effect{}, err
	}
	nth := max(f.Nth, 1)
	if err := v.LoseReply(ctx, client, node, strings.ToUpper(f.Command), nth); err != nil {
		return Effect{}, err
	}
	command := "command"
	if f.Command != "" {
		command = strings.ToUpper(f.Command)
	}
	return Effect{
		On:   []string{cluster.Link{From: node, To: client}.String()},
		What: fmt.Sprintf("%s loses the reply of %s number %d from %s", client, command, nth, node),
	}, nil
}

// Strike hits the nth matching command that a client sends to a node, counted
// from the injection on: it loses or delays its request or its reply. The
// catalogue of real failures says that most need no more than one such blow.
type Strike struct {
	Client  string       `yaml:"client"` // the default is holder
	Node    string       `yaml:"node"`
	Command string       `yaml:"command"` // empty matches every command
	Nth     int          `yaml:"nth"`     // the default is 1
	Deed    cluster.Deed `yaml:"deed"`
	By      Span         `yaml:"by"` // of a delay
}

// Kind implements [Fault].
func (Strike) Kind() string { return "strike" }

// Needs implements [Fault].
func (Strike) Needs() []cluster.Ability { return []cluster.Ability{cluster.CanStrike} }

// Inject implements [Fault].
func (f Strike) Inject(ctx context.Context, s Scene) (Effect, error) {
	v, client, err := onClient[cluster.Striker](s, f.Client, wordHolder)
	if err != nil {
		return Effect{}, err
	}
	node, err := s.one(f.Node, wordPrimary)
	if err != nil {
		return Effect{}, err
	}
	blow := cluster.Blow{
		Client: client, Node: node, Command: f.Command, Nth: max(f.Nth, 1), Deed: f.Deed, By: f.By.Of(s.TTL),
	}
	if err := v.Strike(ctx, blow); err != nil {
		return Effect{}, err
	}
	return Effect{On: []string{cluster.Link{From: client, To: node}.String()}, What: f.words(blow)}, nil
}

// words says what the blow does: "the reply of command 3 from c1 to n1 is lost".
func (f Strike) words(b cluster.Blow) string {
	command := "command"
	if b.Command != "" {
		command = strings.ToUpper(b.Command)
	}
	part, does := "request", "is lost"
	if b.Deed == cluster.LoseReply || b.Deed == cluster.DelayReply {
		part = "reply"
	}
	if b.Deed == cluster.DelayRequest || b.Deed == cluster.DelayReply {
		does = "comes " + f.By.words() + " late"
	}
	return fmt.Sprintf("the %s of %s %d from %s to %s %s", part, command, b.Nth, b.Client, b.Node, does)
}
