package process

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
)

// MasterName is what the sentinels call the set of one primary and its
// replicas.
const MasterName = "holdfast"

// How the sentinels are set: fast, since a lease has to outlive an election.
const (
	downAfter = 1000 * time.Millisecond
	// downApart is between the patience of one sentinel and that of the next:
	// those that miss the primary at one moment all stand for election, split
	// the vote, and try again four seconds later.
	downApart = 250 * time.Millisecond
	// patientDownAfter is for sentinels that ping every second.
	patientDownAfter = 1500 * time.Millisecond
	// bootDownAfter holds until everybody is there and the trace runs: nobody
	// is to be elected by then, however slow the machine is.
	bootDownAfter = startBound

	failoverTimeout = 2 * time.Second
	sentinelQuorum  = 2
)

// settled bounds the time in which the sentinels and the nodes become whole
// again once everything has been healed. A node that comes back as a second
// primary is turned within about two seconds, and then copies the data.
const settled = 20 * time.Second

// watchedServer is a Redis node that sentinels watch over. It keeps who it
// replicates in a file of its own, which it rewrites when the sentinels turn
// it, and comes back as what that file says.
type watchedServer struct{ redisServer }

var _ software = watchedServer{}

// nodeConfig and sentinelConfig are files in the folder of their server.
const (
	nodeConfig     = "redis.conf"
	sentinelConfig = "sentinel.conf"
)

// keeps are the files that stay when a node loses its data: who it replicates is
// no data.
func (watchedServer) keeps() []string { return []string{nodeConfig} }

func (watchedServer) program(_ context.Context, n *node) (Program, error) {
	file := filepath.Join(n.dir, nodeConfig)
	p := Program{
		Server: n.name, Path: redisPath, Dir: n.dir,
		Args: append(append([]string{file}, redisArgs(n)...), "--repl-diskless-sync-delay", "0"),
	}
	host, port, err := n.w.announced(n.name, 0)
	if err != nil {
		return Program{}, err
	}
	lines := []string{"replica-announce-ip " + host, "replica-announce-port " + port}
	if first := cluster.NodeName(1); n.name != first {
		host, port, err := n.w.announced(first, 0)
		if err != nil {
			return Program{}, err
		}
		lines = append(lines, "replicaof "+host+" "+port)
	}
	return p, writeOnce(file, lines)
}

// sentinelServer is a sentinel.
type sentinelServer struct{}

var _ software = sentinelServer{}

func (sentinelServer) ports() []string { return []string{"sentinel"} }

func (sentinelServer) keeps() []string { return []string{sentinelConfig} }

// program tells a sentinel at its first start of everybody there is: it would
// find out by itself, but only after a second or two.
func (sentinelServer) program(_ context.Context, n *node) (Program, error) {
	w := n.w
	host, port, err := w.announced(n.name, 0)
	if err != nil {
		return Program{}, err
	}
	lines := []string{
		"port " + n.port("sentinel"), "bind " + w.place.Host(n.name), "protected-mode no", "daemonize no",
		"dir " + n.dir, "logfile " + filepath.Join(n.dir, logFile), "pidfile " + filepath.Join(n.dir, pidFile),
		"sentinel announce-ip " + host, "sentinel announce-port " + port, "sentinel myid " + sentinelID(n),
	}
	watch := func(what, server string, more ...string) error {
		host, port, err := w.announced(server, 0)
		lines = append(lines, strings.Join(append([]string{"sentinel", what, MasterName, host, port}, more...), " "))
		return err
	}
	errs := []error{watch("monitor", cluster.NodeName(1), fmt.Sprint(sentinelQuorum))}
	lines = append(lines,
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, bootDownAfter.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s %d", MasterName, failoverTimeout.Milliseconds()),
		fmt.Sprintf("sentinel parallel-syncs %s %d", MasterName, len(w.nodeNames)))
	for _, replica := range w.nodeNames[1:] {
		errs = append(errs, watch("known-replica", replica))
	}
	for _, other := range w.witnessNames {
		if other != n.name {
			errs = append(errs, watch("known-sentinel", other, sentinelID(w.nodes[other])))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Program{}, err
	}
	file := filepath.Join(n.dir, sentinelConfig)
	p := Program{Server: n.name, Path: redisPath, Args: []string{file, "--sentinel"}, Dir: n.dir}
	return p, writeOnce(file, lines)
}

// sentinelID is the identity of a sentinel: no two worlds share one.
func sentinelID(n *node) string {
	sum := sha1.Sum([]byte(n.addr + " " + n.name))
	return hex.EncodeToString(sum[:])
}

// writeOnce writes a configuration where there is none: later on it is the
// server's own.
func writeOnce(file string, lines []string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

func (sentinelServer) probe(n *node) error { return n.ping() }

// started makes the sentinel look more often than once a second, where this
// version lets itself be told. It must ping more often than downAfter: of a
// server that it has just come to know anew, as all are after an election, it
// counts the silence from that moment, and pings for the first time one period
// later. With a period of downAfter or more every election is followed by the
// next one, for nothing. A version that keeps its period gets more patience
// instead. It must not ping much more often either: in an election a replica
// counts only if its last INFO is younger than five ping periods. How often they
// ask each other stays at once a second: asked more often, all find at the same
// moment that they agree, each votes for itself, and the next try is four
// seconds away.
func (sentinelServer) started(ctx context.Context, n *node) error {
	if n.direct == nil {
		n.connect()
	}
	err := n.direct.Do(ctx, "SENTINEL", "DEBUG",
		"ping-period", "300", "info-period", "500", "publish-period", "200").Err()
	var refused redis.Error
	if !errors.As(err, &refused) {
		return err
	}
	n.w.cfg.Log.Debug("the sentinel keeps its own periods", "node", n.name, "err", err)
	n.patient = true
	return nil
}

// arm makes the sentinels as impatient as they are in a run.
func (w *World) arm(ctx context.Context) error {
	if !w.layout.elects {
		return nil
	}
	return each(w.witnessNames, func(name string) error {
		n, after := w.nodes[name], downAfter
		if n.patient {
			after = patientDownAfter
		}
		after += time.Duration(slices.Index(w.witnessNames, name)) * downApart
		err := n.direct.Do(ctx, "SENTINEL", "SET", MasterName, "down-after-milliseconds", after.Milliseconds()).Err()
		if err != nil {
			return fmt.Errorf("sentinel %s: %w", name, err)
		}
		return nil
	})
}

// can names what a sentinel is asked for beside being killed and stalled.
func (sentinelServer) can(a cluster.Ability) bool { return a == cluster.CanRestartKept }

// bootSentinel starts the primary and its replicas, and then the sentinels.
func bootSentinel(ctx context.Context, w *World) error {
	if err := bootReplicated(ctx, w); err != nil {
		return err
	}
	if err := w.startAll(ctx, w.witnessNames); err != nil {
		return err
	}
	return w.AwaitWhole(ctx)
}

// Elects says whether the nodes make another one the primary by themselves when
// the primary is gone. It implements [cluster.Elector].
func (w *World) Elects() bool { return w.layout.elects }

// AwaitWhole returns when every server serves its part again: one node that all
// sentinels call the primary, and all others in sync with it. Where nothing is
// elected there is nothing to wait for. It is for the time after all links and
// servers have been healed; an error says who is not there yet.
func (w *World) AwaitWhole(ctx context.Context) error {
	if !w.layout.elects {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	for {
		err := w.whole(ctx)
		if err == nil {
			return nil
		}
		if ctxErr := sleep(ctx, 20*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("the nodes and their sentinels are not whole again: %w (last: %w)", ctxErr, err)
		}
	}
}

// whole says what is missing at this moment.
func (w *World) whole(ctx context.Context) error {
	primary := ""
	for _, name := range w.witnessNames {
		found, err := w.askSentinel(ctx, name)
		if err != nil {
			return err
		}
		if primary != "" && found != primary {
			return fmt.Errorf("%s calls %s the primary, and others %s", name, found, primary)
		}
		primary = found
		if err := w.nodes[name].watchesAll(ctx, len(w.nodeNames)-1, len(w.witnessNames)-1); err != nil {
			return err
		}
	}
	if known := w.PrimaryNode(); primary != known {
		return fmt.Errorf("the sentinels call %s the primary, and its promotion has not been seen: that was %s", primary, known)
	}
	host, port, err := w.announced(primary, 0)
	if err != nil {
		return err
	}
	for _, name := range w.nodeNames {
		info, err := w.nodes[name].direct.Info(ctx, "replication").Result()
		switch {
		case err != nil:
			return fmt.Errorf("node %s: %w", name, err)
		case name == primary:
			if n := strings.Count(info, "state=online"); infoField(info, "role") != roleMaster || n != len(w.nodeNames)-1 {
				return fmt.Errorf("primary %s has %d replicas in sync", name, n)
			}
		case infoField(info, "master_link_status") != "up" || infoField(info, "master_port") != port || infoField(info, "master_host") != host:
			return fmt.Errorf("replica %s is not in sync with %s", name, primary)
		}
	}
	return nil
}

// askSentinel asks one sentinel which node is the primary.
func (w *World) askSentinel(ctx context.Context, name string) (string, error) {
	addr, err := w.nodes[name].direct.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
	if err != nil {
		return "", fmt.Errorf("sentinel %s: %w", name, err)
	}
	if len(addr) == 2 {
		for _, n := range w.nodeNames {
			if host, port, err := w.announced(n, 0); err == nil && host == addr[0] && port == addr[1] {
				return n, nil
			}
		}
	}
	return "", fmt.Errorf("sentinel %s: nobody has the address %s", name, strings.Join(addr, ":"))
}

// watchesAll says whether a sentinel sees the primary, its replicas and the
// other sentinels as well.
func (n *node) watchesAll(ctx context.Context, replicas, sentinels int) error {
	text, err := n.direct.Do(ctx, "INFO", "sentinel").Text()
	if err != nil {
		return fmt.Errorf("sentinel %s: %w", n.name, err)
	}
	if line := infoField(text, "master0"); !strings.Contains(line, "status=ok,") ||
		!strings.HasSuffix(line, fmt.Sprintf("slaves=%d,sentinels=%d", replicas, sentinels+1)) {
		return fmt.Errorf("sentinel %s sees %q", n.name, line)
	}
	list, err := n.direct.Do(ctx, "SENTINEL", "REPLICAS", MasterName).Slice()
	if err != nil {
		return fmt.Errorf("sentinel %s: %w", n.name, err)
	}
	for _, replica := range list {
		fields, _ := replica.(map[any]any) // RESP3
		if flags, status := fmt.Sprint(fields["flags"]), fmt.Sprint(fields["master-link-status"]); flags != "slave" || status != "ok" {
			return fmt.Errorf("sentinel %s sees the replica %v as %s, its link as %s", n.name, fields["name"], flags, status)
		}
	}
	return nil
}
