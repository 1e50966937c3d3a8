package scenarios

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/nemesis"
)

// document is a scenario as its file has it.
type document struct {
	Name     string           `yaml:"name"`
	About    string           `yaml:"about"`
	Source   string           `yaml:"source"`
	Topology topologyMap      `yaml:"topology"`
	Nodes    nodeCounts       `yaml:"nodes"`
	Servers  Servers          `yaml:"servers"`
	Clients  int              `yaml:"clients"`
	Locks    []string         `yaml:"locks"`
	Workload Workload         `yaml:"workload"`
	Length   nemesis.Span     `yaml:"length"`
	Nemesis  []step           `yaml:"nemesis"`
	Final    Final            `yaml:"final"`
	Expect   Expect           `yaml:"expect"`
	Coverage history.Coverage `yaml:"coverage"`
}

// defaults are what a file may leave out. They are documented at the fields.
func defaults() document {
	return document{
		Topology: topologyMap{Default: cluster.Single, quorumLock: cluster.Independent},
		Nodes:    nodeCounts{},
		Clients:  3,
		Locks:    slices.Clone(five),
		Workload: Workload{
			Kind:           Update,
			Patience:       nemesis.TTLs(0.2),
			Hold:           nemesis.TTLs(0.1),
			Think:          nemesis.TTLs(0.02),
			Retry:          nemesis.TTLs(0.05),
			Stagger:        nemesis.TTLs(0.1),
			AcquireTimeout: nemesis.TTLs(4),
			CallTimeout:    nemesis.TTLs(1),
			WriteTimeout:   nemesis.TTLs(4),
			Resource:       Plain,
		},
		Length: nemesis.TTLs(3),
		Final:  Final{Heal: true, Wait: nemesis.TTLs(2)},
		Expect: Expect{},
	}
}

// scenario makes the exported form of a document without mistakes.
func (f *document) scenario() *Scenario {
	s := &Scenario{
		Name: f.Name, About: f.About, Source: f.Source,
		Topology: f.Topology, Nodes: map[cluster.Topology]int{},
		Servers: f.Servers, Clients: f.Clients, Locks: f.Locks, Workload: f.Workload, Length: f.Length,
		Final: f.Final, Expect: f.Expect, Coverage: f.Coverage,
	}
	for t, n := range f.Nodes {
		s.Nodes[t] = n
	}
	for _, st := range f.Nemesis {
		s.Nemesis = append(s.Nemesis, st.Step)
	}
	return s
}

// topologyMap is one word for all locks, or a map from locks to words.
type topologyMap map[string]cluster.Topology

func (m *topologyMap) decodeYAML(d *decoder, path string, n ast.Node) {
	out := topologyMap{}
	if s, ok := text(n); ok {
		if d.word(path, s, wordsOf[typeOfTopology]) {
			*m = topologyMap{Default: cluster.Topology(s)}
		}
		return
	}
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	for _, p := range pairs {
		s, ok := text(p.value)
		if !ok {
			d.fail(path+"/"+p.key, "here belongs a topology, not %s", describe(p.value))
			continue
		}
		if d.word(path+"/"+p.key, s, wordsOf[typeOfTopology]) {
			out[p.key] = cluster.Topology(s)
		}
	}
	if _, ok := out[Default]; !ok {
		out[Default] = cluster.Single
	}
	*m = out
}

// nodeCounts is a map from topologies to numbers of nodes, or one number for
// those that may have several.
type nodeCounts map[cluster.Topology]int

// MaxNodes and MaxClients keep a slip of the finger from building a world that
// no machine runs. The simulator takes as many, and no more: it tells links apart
// by the last digits of a nanosecond.
const (
	MaxNodes   = 15
	MaxClients = 30
)

func (c *nodeCounts) decodeYAML(d *decoder, path string, n ast.Node) {
	out := nodeCounts{}
	if i, ok := integer(n); ok {
		if d.count(path, i, 2, MaxNodes) {
			out[cluster.Replicated], out[cluster.Independent] = int(i), int(i)
		}
		*c = out
		return
	}
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	for _, p := range pairs {
		at := path + "/" + p.key
		if !slices.Contains(wordsOf[typeOfTopology], p.key) {
			d.failAt(p.at, "there is no topology %q%s", p.key, meant(p.key, wordsOf[typeOfTopology]))
			continue
		}
		i, ok := integer(p.value)
		if !ok {
			d.fail(at, "here belongs a whole number, not %s", describe(p.value))
			continue
		}
		least, most := int64(1), int64(MaxNodes)
		switch cluster.Topology(p.key) {
		case cluster.Single, cluster.Postgres:
			most = 1
		case cluster.Replicated, cluster.Sentinel:
			least = 2 // a primary and something to fail over to
		case cluster.RedisCluster:
			least = 6 // three primaries, the least there can be, and a replica each
		}
		if d.count(at, i, least, most) {
			out[cluster.Topology(p.key)] = int(i)
		}
	}
	*c = out
}

// count checks a number against its bounds.
func (d *decoder) count(path string, i, least, most int64) bool {
	switch {
	case i >= least && i <= most:
		return true
	case least == most:
		d.fail(path, "%d is not right here: write %d", i, least)
	default:
		d.fail(path, "%d is not right here: write a number from %d to %d", i, least, most)
	}
	return false
}
