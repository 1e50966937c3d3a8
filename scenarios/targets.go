package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/nemesis"
)

// cast is who is there when a step is played.
type cast struct {
	clients, nodes, witnesses int
	// plays are the topologies in which it is played.
	plays []cluster.Topology
	// timed steps start at a time, so that no client has called them.
	timed bool
}

// class says what a target may be: words, and the first letters of plain
// names. Package nemesis resolves the words; a test holds both together.
type class struct {
	words   []string
	letters string
}

// The classes of targets.
var (
	onlyNodeNames   = class{letters: "n"}
	onlyClientNames = class{letters: "c"}
	oneNode         = class{words: []string{"primary"}, letters: "n"}
	oneClient       = class{words: []string{"holder", "caller"}, letters: "c"}
	nodes           = class{words: []string{"nodes", "primary", "replicas", "minority", "majority"}, letters: "n"}
	servers         = class{words: append(slices.Clone(nodes.words), "sentinels"), letters: "ns"}
	parties         = class{letters: "ncs", words: []string{
		"holder", "caller", "others", "clients", "nodes", "primary", "replicas", "minority", "majority",
		"sentinels", cluster.Resource}}
)

// checkTarget checks a word or a plain name: c3 of two clients is a slip that
// would otherwise show only when the fault strikes.
func (d *decoder) checkTarget(path, name string, of class, c cast) {
	most := map[byte]int{'c': c.clients, 'n': c.nodes, 's': c.witnesses}
	if i, ok := numbered(name); ok && strings.IndexByte(of.letters, name[0]) >= 0 {
		if name[0] == 's' && c.witnesses == 0 {
			d.fail(path, "sentinels are in the topology sentinel only: add topologies: [sentinel]")
			return
		}
		if i < 1 || i > most[name[0]] {
			d.fail(path, "there is no %s here: the scenario has %s", name, span(name[0], most[name[0]]))
		}
		return
	}
	if !slices.Contains(of.words, name) {
		all := slices.DeleteFunc(slices.Clone(of.words), func(word string) bool { return word == "sentinels" && c.witnesses == 0 })
		for i := range of.letters {
			if n := most[of.letters[i]]; n > 0 {
				all = append(all, span(of.letters[i], n))
			}
		}
		d.fail(path, "%q is no target here%s", name, meant(name, all))
		return
	}
	switch {
	case name == "caller" && c.timed:
		d.fail(path, "a step that starts at a time has no caller")
	case name == "sentinels" && c.witnesses == 0:
		d.fail(path, "sentinels are in the topology sentinel only: add topologies: [sentinel]")
	case name == "replicas" && !c.replicates():
		d.fail(path, "replicas are in the topologies replicated, sentinel and cluster only: add topologies: [replicated]")
	}
}

// replicates says that a step is played only where nodes replicate.
func (c cast) replicates() bool {
	return !slices.ContainsFunc(c.plays, func(t cluster.Topology) bool { return !t.Replicates() && t != cluster.RedisCluster })
}

// sharded says that a step is played in a Redis Cluster only.
func (c cast) sharded() bool {
	return !slices.ContainsFunc(c.plays, func(t cluster.Topology) bool { return t != cluster.RedisCluster })
}

// checkFailover checks that there is somebody to fail over to, and how.
func (d *decoder) checkFailover(path string, f nemesis.Failover, c cast) {
	switch {
	case !c.replicates():
		d.fail(path, "a failover needs the topology replicated: add topologies: [replicated]")
	case d.has(path+"/mode") && f.Mode != "kill" && !c.sharded():
		d.fail(path+"/mode", "%s is of a Redis Cluster: add topologies: [cluster]", f.Mode)
	case d.has(path+"/alive") && f.Alive && c.sharded():
		d.fail(path+"/alive", "in a Redis Cluster write mode: force or takeover")
	}
}

// numbered reads the number of a plain name such as n3.
func numbered(name string) (int, bool) {
	if len(name) < 2 || strings.IndexByte("cns", name[0]) < 0 {
		return 0, false
	}
	i, err := strconv.Atoi(name[1:])
	return i, err == nil && name[1:] == strconv.Itoa(i)
}

// span of plain names: "n1 to n5".
func span(letter byte, most int) string {
	if most == 1 {
		return fmt.Sprintf("%c1", letter)
	}
	return fmt.Sprintf("%c1 to %c%d", letter, letter, most)
}

// checkFault checks a fault's parameters and targets.
func (d *decoder) checkFault(path string, f nemesis.Fault, c cast) {
	switch f := f.(type) {
	case nemesis.Pause:
		d.optional(path+"/client", f.Client, oneClient, c)
	case nemesis.Crash:
		d.optional(path+"/client", f.Client, oneClient, c)
	case nemesis.Stall:
		d.targets(path+"/node", f.Node, servers, c)
	case nemesis.Disconnect:
		d.targets(path+"/node", f.Node, servers, c)
	case nemesis.Cut:
		d.ends(path, f.From, f.To, c)
	case nemesis.Delay:
		d.ends(path, f.From, f.To, c)
		if !d.has(path + "/by") {
			d.fail(path, "how much slower? write by: and a length")
			return
		}
		d.positive(path+"/by", f.By)
	case nemesis.Partition:
		d.checkGroups(path+"/groups", f.Groups, c)
	case nemesis.LoseReply:
		d.checkCommand(path, command{client: f.Client, node: f.Node, name: f.Command, nth: f.Nth}, c)
	case nemesis.Strike:
		d.checkCommand(path, command{client: f.Client, node: f.Node, name: f.Command, nth: f.Nth}, c)
		d.checkDeed(path, f)
	case nemesis.Cancel:
		d.optional(path+"/client", f.Client, oneClient, c)
	case nemesis.Clock:
		d.targets(path+"/node", f.Node, nodes, c)
		d.checkClock(path, f)
	case nemesis.Kill:
		d.targets(path+"/node", f.Node, servers, c)
	case nemesis.Failover:
		d.optional(path+"/to", f.To, onlyNodeNames, c)
		d.checkFailover(path, f, c)
	case nemesis.Migrate:
		d.optional(path+"/to", f.To, onlyNodeNames, c)
		d.notNegative(path+"/pause", f.Pause)
		if !c.sharded() {
			d.fail(path, "only a Redis Cluster has slots to move: add topologies: [cluster]")
		}
		if f.To != "" && slices.Contains(c.plays, cluster.Sentinel) {
			d.fail(path+"/to", "in the topology sentinel nobody can say which node is elected: leave to out")
		}
	case nemesis.Flush:
		d.targets(path+"/node", f.Node, nodes, c)
	case nemesis.ErrorReply:
		d.targets(path+"/node", f.Node, nodes, c)
		if f.Reply == "" {
			d.fail(path, "which reply? write reply: and a text that begins with OOM, LOADING, BUSY, MISCONF or READONLY")
		}
	}
}

// optional targets have a default that the fault itself knows.
func (d *decoder) optional(path, name string, of class, c cast) {
	if d.has(path) {
		d.checkTarget(path, name, of, c)
	}
}

func (d *decoder) targets(path string, names []string, of class, c cast) {
	if d.has(path) && len(names) == 0 {
		d.fail(path, "name a target")
	}
	for i, name := range names {
		d.checkTarget(fmt.Sprintf("%s/%d", path, i), name, of, c)
	}
}

// ends checks the two ends of links.
func (d *decoder) ends(path string, from, to []string, c cast) {
	if len(from) == 0 || len(to) == 0 {
		d.fail(path, "between whom? write from and to")
	}
	d.targets(path+"/from", from, parties, c)
	d.targets(path+"/to", to, parties, c)
}

func (d *decoder) checkGroups(path string, groups [][]string, c cast) {
	if len(groups) < 2 {
		d.fail(path, "a partition has two groups or more")
	}
	for i, g := range groups {
		at := fmt.Sprintf("%s/%d", path, i)
		if len(g) == 0 {
			d.fail(at, "a group has a member or more")
		}
		for j, name := range g {
			d.checkTarget(fmt.Sprintf("%s/%d", at, j), name, parties, c)
		}
	}
}

// command names one command of one client on one node.
type command struct {
	client, node, name string
	nth                int
}

func (d *decoder) checkCommand(path string, f command, c cast) {
	d.optional(path+"/client", f.client, oneClient, c)
	d.optional(path+"/node", f.node, oneNode, c)
	if d.has(path+"/nth") && f.nth < 1 {
		d.fail(path+"/nth", "%d is not right here: the first is 1", f.nth)
	}
	if f.name != "" && !commandShape.MatchString(f.name) {
		d.fail(path+"/command", "%q is no command: write SET or EVAL", f.name)
	}
}

func (d *decoder) checkDeed(path string, f nemesis.Strike) {
	delays := f.Deed == cluster.DelayRequest || f.Deed == cluster.DelayReply
	switch {
	case f.Deed == "":
		d.fail(path, "what does it do? write deed: lose-request, lose-reply, delay-request or delay-reply")
	case delays && !d.has(path+"/by"):
		d.fail(path, "how late? write by: and a length")
	case delays:
		d.positive(path+"/by", f.By)
	case d.has(path + "/by"):
		d.fail(path+"/by", "what is lost is not late: by goes with a delay")
	}
}

func (d *decoder) checkClock(path string, f nemesis.Clock) {
	switch jumps, runs := d.has(path+"/jump"), d.has(path+"/rate"); {
	case jumps == runs:
		d.fail(path, "a clock either jumps or runs at a rate: write jump or rate")
	case jumps && f.Jump.TTLs == 0 && f.Jump.Fixed == 0:
		d.fail(path+"/jump", "a jump of 0 is none")
	case jumps && f.Jump.TTLs == 0 && max(f.Jump.Fixed, -f.Jump.Fixed) < time.Millisecond:
		d.fail(path+"/jump", "servers count in milliseconds: a jump of %v is none", f.Jump.Fixed)
	case runs && f.Rate == 1:
		d.fail(path+"/rate", "a rate of 1 is real time: write another number, such as 1.1 for ten percent fast")
	case runs && (f.Rate <= 0 || f.Rate > 1000):
		d.fail(path+"/rate", "%g is no rate: write a number above 0, such as 1.1 for ten percent fast", f.Rate)
	}
}
