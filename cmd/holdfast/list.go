package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/cluster/sim"
	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/impl/catalogue"
	"github.com/holdfast-io/holdfast/nemesis"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
)

// inventory is what holdfast list prints.
type inventory struct {
	Scenarios []listedScenario `json:"scenarios,omitempty"`
	Locks     []listedLock     `json:"locks,omitempty"`
	Faults    []listedFault    `json:"faults,omitempty"`
	Checks    []listedCheck    `json:"checks,omitempty"`
	Worlds    []listedWorld    `json:"worlds,omitempty"`
}

type listedScenario struct {
	Name   string   `json:"name"`
	About  string   `json:"about"`
	Source string   `json:"source,omitempty"`
	Locks  []string `json:"locks"`
}

type listedLock struct {
	Name       string   `json:"name"`
	About      string   `json:"about"`
	Store      string   `json:"store,omitempty"` // none for Redis
	Abilities  []string `json:"abilities"`
	Mutant     bool     `json:"mutant"`
	TwinOf     string   `json:"twin_of,omitempty"`
	Weaknesses []string `json:"weaknesses,omitempty"`
}

type listedFault struct {
	Name   string   `json:"name"`
	Worlds []string `json:"worlds"`
}

type listedCheck struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

type listedWorld struct {
	Name       string             `json:"name"`
	Available  bool               `json:"available"`
	Reason     string             `json:"reason,omitempty"`
	Abilities  []cluster.Ability  `json:"abilities"`
	Topologies []cluster.Topology `json:"topologies"`
}

// parts are the words after holdfast list.
var parts = []string{"scenarios", "locks", "faults", "checks", "worlds"}

func newList(io streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [scenarios|locks|faults|checks|worlds]",
		Short: "Say what there is: scenarios, locks, faults, checks, worlds",
		Example: `  holdfast list
  holdfast list scenarios
  holdfast list --json`,
		ValidArgs: parts,
		Args: func(_ *cobra.Command, args []string) error {
			for _, a := range args {
				if !slices.Contains(parts, a) {
					return unknownWord("list of", a, parts, "holdfast list --help")
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			inv, err := takeInventory(cmd.Context(), args)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(io.out)
				enc.SetIndent("", "  ")
				return enc.Encode(inv)
			}
			return inv.print(io)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func takeInventory(ctx context.Context, args []string) (inventory, error) {
	want := func(part string) bool { return len(args) == 0 || slices.Contains(args, part) }
	var inv inventory
	if want("scenarios") {
		for _, name := range scenarios.Names() {
			s, err := scenarios.Load(name)
			if err != nil {
				return inv, err
			}
			inv.Scenarios = append(inv.Scenarios, listedScenario{Name: name, About: s.About, Source: s.Source, Locks: s.Locks})
		}
	}
	if want("locks") {
		for _, e := range catalogue.Everything() {
			inv.Locks = append(inv.Locks, listedLock{
				Name: e.Name, About: e.About, Store: e.Store, Abilities: append([]string{}, e.Abilities...),
				Mutant: e.Mutant, TwinOf: e.TwinOf, Weaknesses: e.Weaknesses,
			})
		}
	}
	worlds := listWorlds(ctx)
	if want("faults") {
		inv.Faults = listFaults(worlds)
	}
	if want("checks") {
		for _, c := range checker.All() {
			inv.Checks = append(inv.Checks, listedCheck{Name: c.Name, About: c.About})
		}
	}
	if want("worlds") {
		inv.Worlds = worlds
	}
	return inv, nil
}

func listWorlds(ctx context.Context) []listedWorld {
	real := listedWorld{Name: string(cluster.Process), Available: true, Topologies: process.Topologies()}
	for _, t := range append([]cluster.Topology{cluster.Replicated}, process.Topologies()...) { // replicated has most
		for _, a := range process.Abilities(t) {
			if !slices.Contains(real.Abilities, a) {
				real.Abilities = append(real.Abilities, a)
			}
		}
	}
	if err := process.Available(); err != nil {
		real.Available, real.Reason = false, err.Error()
	}
	boxed := listedWorld{
		Name: string(cluster.Container), Available: true, Topologies: harness.ContainerTopologies(),
		Abilities: process.Abilities(cluster.Replicated),
	}
	if err := container.Available(ctx, ""); err != nil {
		boxed.Available, boxed.Reason = false, reports.FirstLine(err.Error())
	}
	return []listedWorld{
		{Name: string(cluster.Sim), Available: true, Abilities: sim.Abilities(), Topologies: sim.Topologies()},
		real, boxed,
	}
}

func listFaults(worlds []listedWorld) []listedFault {
	var out []listedFault
	for _, f := range nemesis.Kinds() {
		lf := listedFault{Name: f.Kind()}
		for _, w := range worlds {
			if !slices.ContainsFunc(f.Needs(), func(a cluster.Ability) bool { return !slices.Contains(w.Abilities, a) }) {
				lf.Worlds = append(lf.Worlds, w.Name)
			}
		}
		out = append(out, lf)
	}
	return out
}

// print writes the inventory for people.
func (inv inventory) print(io streams) error {
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	title := func(s string) { fmt.Fprintf(w, "%s\n", s) }
	row := func(name, about string) { fmt.Fprintf(w, "  %s\t%s\n", name, about) }
	if len(inv.Scenarios) > 0 {
		title("SCENARIOS  holdfast run NAME")
		for _, s := range inv.Scenarios {
			row(s.Name, s.About)
		}
	}
	if len(inv.Locks) > 0 {
		title("LOCKS  --lock NAME")
		for _, l := range inv.Locks {
			about := l.About
			if l.Mutant {
				about = fmt.Sprintf("mutant of %s: %s", l.TwinOf, l.About)
			}
			row(l.Name, about)
		}
	}
	if len(inv.Faults) > 0 {
		title("FAULTS  a scenario's nemesis")
		for _, f := range inv.Faults {
			row(f.Name, "in "+strings.Join(f.Worlds, ", "))
		}
	}
	if len(inv.Checks) > 0 {
		title("CHECKS  a scenario's expect")
		for _, c := range inv.Checks {
			row(c.Name, c.About)
		}
	}
	if len(inv.Worlds) > 0 {
		title("WORLDS  --on NAME")
		for _, wd := range inv.Worlds {
			state := "ready"
			if !wd.Available {
				state = "not here: " + wd.Reason
			}
			var topologies []string
			for _, t := range wd.Topologies {
				topologies = append(topologies, string(t))
			}
			row(wd.Name, state+"; topologies "+strings.Join(topologies, ", "))
		}
	}
	return w.Flush()
}
