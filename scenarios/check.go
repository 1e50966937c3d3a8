package scenarios

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/nemesis"
)

// The shapes of names. They stand in the schema too.
var (
	nameShape    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	commandShape = regexp.MustCompile(`^([A-Za-z]+|\*)$`)
)

// check finds the mistakes that show only when all fields are known.
func (d *decoder) check(f *document) {
	switch {
	case f.Name == "":
		d.fail("/name", "a scenario has a name")
	case !nameShape.MatchString(f.Name):
		d.fail("/name", "%q is no name: write lower case words with hyphens, such as slow-work", f.Name)
	}
	if f.About == "" {
		d.fail("/about", "a scenario says in one sentence what it is about")
	}
	d.count("/clients", int64(f.Clients), 1, MaxClients)
	d.checkLocks(f.Locks)
	d.checkKnown(f)
	d.checkServers(f)
	d.positive("/length", f.Length)
	d.positive("/final/wait", f.Final.Wait)
	w := f.Workload
	for _, s := range []struct {
		key  string
		span nemesis.Span
	}{{"hold", w.Hold}, {"think", w.Think}, {"retry", w.Retry}, {"stagger", w.Stagger}} {
		d.notNegative("/workload/"+s.key, s.span)
	}
	d.positive("/workload/acquire-timeout", w.AcquireTimeout)
	d.positive("/workload/call-timeout", w.CallTimeout)
	d.positive("/workload/write-timeout", w.WriteTimeout)
	d.checkWorkload(f)
	for key, n := range map[string]int{
		"acquires-before": f.Coverage.AcquiresBefore, "acquires-during": f.Coverage.AcquiresDuring,
		"acquires-after": f.Coverage.AcquiresAfter,
	} {
		if n < 0 {
			d.fail("/coverage/"+key, "%d is not right here: write a number from 0 on", n)
		}
	}
	for i := range f.Nemesis {
		d.checkStep(fmt.Sprintf("/nemesis/%d", i), &f.Nemesis[i].Step, f)
	}
}

// mostLag is the largest min-replicas-max-lag, in seconds.
const mostLag = 60

// checkServers checks the settings of the nodes.
func (d *decoder) checkServers(f *document) {
	const at = "/servers"
	if d.has(at + "/min-replicas-to-write") {
		d.count(at+"/min-replicas-to-write", int64(f.Servers.MinReplicasToWrite), 0, MaxNodes-1)
		if !slices.ContainsFunc(f.topologies(), cluster.Topology.Replicates) {
			d.fail(at+"/min-replicas-to-write", "no lock of this scenario runs where nodes have replicas")
		}
	}
	if !d.has(at + "/min-replicas-max-lag") {
		if f.Servers.MinReplicasToWrite > 0 {
			f.Servers.MinReplicasMaxLag = 1
		}
		return
	}
	d.count(at+"/min-replicas-max-lag", int64(f.Servers.MinReplicasMaxLag), 1, mostLag)
	if f.Servers.MinReplicasToWrite == 0 {
		d.fail(at+"/min-replicas-max-lag", "this lag bounds nothing: write min-replicas-to-write too")
	}
}

// Bounds of a workload.
const (
	maxDepth   = 3
	maxThreads = 8
	maxNames   = 5
)

// checkWorkload checks who does what with how many locks.
func (d *decoder) checkWorkload(f *document) {
	w := f.Workload
	for key, n := range map[string]struct{ n, most int }{"depth": {w.Depth, maxDepth}, "threads": {w.Threads, maxThreads}} {
		if at := "/workload/" + key; d.has(at) {
			d.count(at, int64(n.n), 1, int64(n.most))
		}
	}
	if w.ReadShare < 0 || w.ReadShare > 1 {
		d.fail("/workload/read-share", "%v is no share: write a number from 0 to 1", w.ReadShare)
	}
	for key, names := range map[string][]string{"readers": w.Readers, "impatient": w.Impatient} {
		for i, name := range names {
			d.checkTarget(fmt.Sprintf("/workload/%s/%d", key, i), name, onlyClientNames, cast{clients: f.Clients})
		}
	}
	d.notNegative("/workload/patience", w.Patience)
	if len(w.Impatient) > 0 {
		d.positive("/workload/patience", w.Patience)
	}
	if at := "/workload/locks"; d.has(at) {
		d.checkNames(at, w.Locks)
	}
	if w.Order == Opposite && len(w.Locks) < 2 {
		d.fail("/workload/order", "one lock has no order: write locks: [orders, stock]")
	}
}

// checkNames checks the names of the locks of a run. Keys carry them, and are
// told apart by them.
func (d *decoder) checkNames(path string, names []string) {
	d.count(path, int64(len(names)), 1, maxNames)
	for i, name := range names {
		at := fmt.Sprintf("%s/%d", path, i)
		if !nameShape.MatchString(name) {
			d.fail(at, "%q is no name: write lower case words with hyphens, such as orders", name)
		}
		for _, other := range names[:i] {
			if strings.Contains(name, other) || strings.Contains(other, name) {
				d.fail(at, "%q and %q cannot be told apart in a key: write names that do not contain each other", other, name)
			}
		}
	}
}

func (d *decoder) checkLocks(locks []string) {
	if len(locks) == 0 {
		d.fail("/locks", "name a lock, or leave the key out for the five basic ones")
	}
	for i, lock := range locks {
		at := fmt.Sprintf("/locks/%d", i)
		switch {
		case lock == "" || lock == Default:
			d.fail(at, "%q is no lock", lock)
		case slices.Index(locks, lock) < i:
			d.fail(at, "%s stands here twice", lock)
		}
	}
}

// checkKnown checks that there are such locks: an expectation of a lock that is
// misspelt would be met by every run.
func (d *decoder) checkKnown(f *document) {
	known := func(path, lock string) {
		if d.locks != nil && lock != "" && lock != Default && !slices.Contains(d.locks, lock) {
			d.fail(path, "there is no lock %q%s", lock, meant(lock, d.locks))
		}
	}
	for i, lock := range f.Locks {
		known(fmt.Sprintf("/locks/%d", i), lock)
	}
	for _, lock := range slices.Sorted(maps.Keys(f.Topology)) {
		if d.has("/topology/" + lock) {
			known("/topology/"+lock, lock)
		}
	}
	for _, lock := range slices.Sorted(maps.Keys(f.Expect)) {
		if d.has("/expect/" + lock) {
			known("/expect/"+lock, lock)
		}
	}
}

// negative spans: a span has either part, and never both in a file.
func negative(s nemesis.Span) bool { return s.TTLs < 0 || s.Fixed < 0 }

func (d *decoder) notNegative(path string, s nemesis.Span) {
	if negative(s) {
		d.fail(path, "%v is negative: write a length from 0 on", s)
	}
}

func (d *decoder) positive(path string, s nemesis.Span) {
	if negative(s) || (s.TTLs == 0 && s.Fixed == 0) {
		d.fail(path, "%v is too short: write a length above 0", s)
	}
}

// checkStep checks one item of the nemesis list.
func (d *decoder) checkStep(path string, s *nemesis.Step, f *document) {
	plays := s.Topologies
	if d.has(path+"/topologies") && len(plays) == 0 {
		d.fail(path+"/topologies", "name a topology, or leave the key out for all")
	}
	if len(plays) == 0 {
		plays = f.topologies()
	}
	for i, t := range s.Topologies {
		if !slices.Contains(f.topologies(), t) {
			d.fail(fmt.Sprintf("%s/topologies/%d", path, i), "no lock of this scenario runs on %s", t)
		}
	}
	if d.has(path + "/for") {
		d.positive(path+"/for", s.For)
	}
	c := cast{clients: f.Clients, plays: plays, timed: !d.has(path+"/when/op") && !d.has(path+"/when/command")}
	for i, t := range plays {
		c.nodes = max(c.nodes, f.nodesOf(t))
		if i == 0 {
			c.witnesses = t.Witnesses()
		}
		c.witnesses = min(c.witnesses, t.Witnesses()) // a step hits what all have
	}
	d.checkTrigger(path+"/when", s.When, c)
	d.checkFault(path+"/"+s.Fault.Kind(), s.Fault, c)
}

// topologies that the scenario's locks run on.
func (f *document) topologies() []cluster.Topology {
	return slices.DeleteFunc(cluster.Topologies(), func(t cluster.Topology) bool {
		for _, of := range f.Topology {
			if of == t {
				return false
			}
		}
		return true
	})
}

func (f *document) nodesOf(t cluster.Topology) int {
	if n, ok := f.Nodes[t]; ok {
		return n
	}
	return defaultNodes()[t]
}

func (d *decoder) checkTrigger(path string, t nemesis.Trigger, c cast) {
	has := func(key string) bool { return d.has(path + "/" + key) }
	event := has("op") || has("command")
	switch {
	case has("op") && has("command"):
		d.fail(path+"/command", "a trigger waits for an op of a client or a command on a node, not for both")
		return
	case !event && !has("at"):
		d.fail(path, "when is that? write at, op or command")
		return
	}
	for key, needs := range map[string]bool{
		"at": !event, "type": has("op"), "node": has("command"), "client": event, "nth": event, "after": event,
	} {
		if has(key) && !needs {
			d.fail(path+"/"+key, "%s does not go with %s", key, anchorOf(has))
		}
	}
	if has("op") {
		d.checkOp(path, t, has("type"))
	}
	if has("command") && !commandShape.MatchString(t.Command) {
		d.fail(path+"/command", "%q is no command: write SET, EVAL or any", t.Command)
	}
	if has("node") {
		d.checkTarget(path+"/node", t.Node, onlyNodeNames, c)
	}
	if has("client") {
		d.checkTarget(path+"/client", t.Client, onlyClientNames, c)
	}
	if has("nth") && t.Nth < 1 {
		d.fail(path+"/nth", "%d is not right here: the first is 1", t.Nth)
	}
	d.notNegative(path+"/at", t.At)
	d.notNegative(path+"/after", t.After)
}

// anchorOf names the key that says what kind of trigger it is.
func anchorOf(has func(string) bool) string {
	for _, key := range []string{"op", "command"} {
		if has(key) {
			return key
		}
	}
	return "at"
}

func (d *decoder) checkOp(path string, t nemesis.Trigger, typed bool) {
	note := slices.Contains(notes, t.Op)
	switch {
	case !d.word(path+"/op", t.Op, append(slices.Clone(ops), notes...)):
	case note && t.Type != "note":
		d.fail(path+"/type", "%s is a note and has no type %s", t.Op, t.Type)
	case !note && !typed:
		d.fail(path, "which event of the %s? write type: invoke, ok, fail or info", t.Op)
	case !note && t.Type == "note":
		d.fail(path+"/type", "%s is an op and no note: write invoke, ok, fail or info", t.Op)
	}
}
