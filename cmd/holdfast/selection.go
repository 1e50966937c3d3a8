package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/campaign"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/scenarios"
	"github.com/holdfast-io/holdfast/store"
	"github.com/holdfast-io/holdfast/suite"
)

// selection are the flags that say what to run; run and matrix share them.
type selection struct {
	locks    []string
	world    string
	image    string
	topology string
	seed     uint64
	seeds    int
	ttl      time.Duration
	out      string
	format   string
	quiet    bool
	pages    string
	resource resourceFlag
	// known takes all locks that a scenario is about where none is named.
	known bool
	// availability is shown after a matrix.
	availability bool
}

// Bounds that keep a slip of the finger from filling the memory or the day: a
// scenario lasts several TTLs, and a list of all runs is made first.
const (
	maxTTL  = suite.MostTTL
	maxRuns = suite.MaxRuns
)

// given refuses flags that were given and are empty: an empty variable in a
// script must not select something else than was meant.
func (s *selection) given(cmd *cobra.Command) error {
	for _, flag := range []string{"lock", "scenario", "on", "format", "image", "report", "resource"} {
		f := cmd.Flags().Lookup(flag)
		if f != nil && f.Changed && strings.Trim(f.Value.String(), "[],\" ") == "" {
			return usage(cmd.CommandPath()+" --help", "--%s is empty", flag)
		}
	}
	return nil
}

// unique drops words that were there before.
func unique(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func (s *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.locks, "lock", nil, "locks to run, separated by commas; all, libraries, baselines or mutants (default: the scenario's own)")
	f.StringVar(&s.world, "on", string(cluster.Sim), "world: sim (virtual time), process (real redis-server), container (the same in containers), or servers that run already: redis://host:port,host:port")
	f.StringVar(&s.image, "image", "", "image of the servers of --on container (default: "+container.DefaultImage+" if make image has built it, else "+container.PublicImage+")")
	f.StringVar(&s.topology, "topology", "", "topology instead of the scenario's own: single, replicated, independent, sentinel, cluster (locks on other stores have their own)")
	s.resource.add(f)
	f.Uint64Var(&s.seed, "seed", 1, "seed of the run, or of the first of --seeds")
	f.IntVar(&s.seeds, "seeds", 1, "how many seeds to run, counting up from --seed")
	f.DurationVar(&s.ttl, "ttl", 0, "TTL of the leases (default: 10s in sim; on real servers 1s, longer where an election must fit in, 2s for locks on other stores)")
	f.StringVar(&s.out, "out", "runs", `folder for the runs; "" stores nothing`)
	f.StringVar(&s.format, "format", "text", "text, json or markdown")
	f.StringVar(&s.pages, "report", "", "report.html of stored runs: always, failed (those not as expected) or never (default: always, and failed for more than 100 runs)")
	f.BoolVar(&s.quiet, "quiet", false, "no progress")
	complete(cmd, "lock", func() []string { return append(suite.LockNames(), suite.Groups()...) })
	complete(cmd, "on", worldNames)
	complete(cmd, "topology", topologyNames)
	complete(cmd, "format", formatNames)
	complete(cmd, "report", pageNames)
}

func complete(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag was defined a few lines above
	}
}

// servers is the address of servers that run already, if that is the world.
func (s *selection) servers() string {
	if strings.HasPrefix(s.world, "redis://") || strings.HasPrefix(s.world, "rediss://") {
		return s.world
	}
	return ""
}

func worldNames() []string { return append(gateWorlds(), string(cluster.Container)) }

// gateWorlds are those that a gate plays in.
func gateWorlds() []string { return []string{string(cluster.Sim), string(cluster.Process)} }

func topologyNames() []string {
	var names []string
	for _, t := range cluster.Topologies() {
		names = append(names, string(t))
	}
	return names
}

func pageNames() []string {
	return []string{string(campaign.PagesAlways), string(campaign.PagesFailed), string(campaign.PagesNever)}
}

// allPages is how many runs get an HTML report each without being asked for.
const allPages = 100

// pagesFor says which of so many runs get an HTML report.
func (s *selection) pagesFor(runs int) campaign.Pages {
	switch {
	case s.pages != "":
		return campaign.Pages(s.pages)
	case runs > allPages:
		return campaign.PagesFailed
	}
	return campaign.PagesAlways
}

func formatNames() []string { return []string{"text", "json", "markdown"} }

// validate checks the flags' words.
func (s *selection) validate(try string) error {
	if at := s.servers(); at != "" {
		if _, err := process.ParseServers(at); err != nil {
			return usage(try, "--on: %v", err)
		}
	} else if !slices.Contains(worldNames(), s.world) {
		return unknownWord("world", s.world, worldNames(), try)
	}
	if s.image != "" && s.world != string(cluster.Container) {
		return usage(try, "--image goes with --on container")
	}
	if s.topology != "" && !slices.Contains(topologyNames(), s.topology) {
		return unknownWord("topology", s.topology, topologyNames(), try)
	}
	if !slices.Contains(formatNames(), s.format) {
		return unknownWord("format", s.format, formatNames(), try)
	}
	if s.pages != "" && !slices.Contains(pageNames(), s.pages) {
		return unknownWord("choice of reports", s.pages, pageNames(), try)
	}
	if err := s.resource.parse(try); err != nil {
		return err
	}
	switch {
	case s.seeds < 1:
		return usage(try, "--seeds %d: at least one seed is needed", s.seeds)
	case s.ttl < 0:
		return usage(try, "--ttl %v: a TTL is positive, such as 10s", s.ttl)
	case s.ttl > 0 && s.ttl < suite.LeastTTL:
		return usage(try, "--ttl %v: at least %v, or the network's own latency decides the run", s.ttl, suite.LeastTTL)
	case s.ttl > maxTTL:
		return usage(try, "--ttl %v: at most %v", s.ttl, maxTTL)
	case s.seeds > maxRuns:
		return usage(try, "--seeds %d: at most %d at a time", s.seeds, maxRuns)
	case s.seed+uint64(s.seeds-1) < s.seed:
		return usage(try, "--seed %d --seeds %d: the last seed would be too large", s.seed, s.seeds)
	}
	return nil
}

// load finds a scenario, or explains what is wrong with its name or its file.
func load(name, try string) (*scenarios.Scenario, error) {
	s, err := campaign.LoadScenario(name)
	switch {
	case err == nil:
		return s, nil
	case isFolder(name) && !slices.Contains(scenarios.Names(), name):
		return nil, usage(try, "%s is a folder: a scenario is a built-in name or a YAML file", name)
	case isFile(name) && !strings.ContainsRune(name, '/') && !isYAML(name):
		return nil, usage("holdfast run ./"+name, "there is no scenario %q; a file is named with its folder", name)
	case slices.Contains(scenarios.Names(), name) || isFile(name):
		return nil, &usageError{msg: err.Error()}
	case isFile(name + ".yaml"):
		return nil, usage("holdfast run ./"+name+".yaml", "there is no scenario %q, but there is a file %s.yaml", name, name)
	case strings.Contains(name, "/") || isYAML(name):
		return nil, usage(try, "%v", err)
	case slices.Contains(suite.LockNames(), name):
		return nil, usage("holdfast run kleppmann-gc-pause --lock "+name, "%s is a lock; which scenario shall it play?", name)
	}
	return nil, unknownWord("scenario", name, scenarios.Names(), try)
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// chosen turns --lock into names.
func (s *selection) chosen(sc *scenarios.Scenario, try string) ([]string, error) {
	switch {
	case len(s.locks) == 0 && s.known:
		return suite.Known(sc), nil
	case len(s.locks) == 0:
		return sc.Locks, nil
	}
	return lockWords(s.locks, try)
}

// lockWords turns what stands behind --lock into names.
func lockWords(words []string, try string) ([]string, error) {
	var trimmed []string
	for _, w := range words {
		trimmed = append(trimmed, strings.TrimSpace(w))
	}
	names, wrong := suite.Locks(trimmed)
	if wrong != "" {
		return nil, unknownWord("lock", wrong, append(suite.LockNames(), suite.Groups()...), try)
	}
	return names, nil
}

// jobs lists the runs for one scenario.
func (s *selection) jobs(name string, locks []string) []store.Job {
	var out []store.Job
	one := store.Job{Scenario: name, World: s.world, Image: s.image, Topology: s.topology, TTL: s.ttl, Resource: s.resource.place}
	if at := s.servers(); at != "" {
		one.World, one.Servers, one.Address = string(cluster.External), process.Redacted(at), at
	}
	for _, lock := range locks {
		for i := range s.seeds {
			one.Lock, one.Seed = lock, s.seed+uint64(i)
			out = append(out, one)
		}
	}
	return out
}

// childCommand starts this program again to play jobs.
func childCommand() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, childVerb)
}
