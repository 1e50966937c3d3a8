package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/cluster"
)

// clusterServer is a node of a Redis Cluster: a port for clients and one for
// the other nodes, the bus.
type clusterServer struct{ redisServer }

var _ software = clusterServer{}

const (
	busPort = "bus"

	// clusterFile is where a node keeps who it is and what it knows of the
	// others. Redis writes it.
	clusterFile = "nodes.conf"

	// nodeTimeout is how long a node must be silent before the others take it
	// for failed. An election is over about 1.2 s after that. Shorter ones have
	// nodes of a loaded machine voted out that only had to wait for a core.
	nodeTimeout = time.Second
)

func (clusterServer) ports() []string { return []string{redisPort, busPort} }

// program announces the junctions, so that every pair can be cut by itself. A
// replica stands for election however old its data are: by default it would not
// once its link has been down for ten node time-outs, and a lag would then cost
// the cluster its slots instead of what it is there to show.
func (clusterServer) program(_ context.Context, n *node) (Program, error) {
	host, port, err := n.w.announced(n.name, 0)
	if err != nil {
		return Program{}, err
	}
	_, bus, err := n.w.announced(n.name, 1)
	if err != nil {
		return Program{}, err
	}
	args := append(redisArgs(n),
		"--cluster-enabled", "yes", "--cluster-config-file", clusterFile,
		"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
		"--cluster-port", n.port(busPort), "--cluster-replica-validity-factor", "0",
		"--cluster-announce-ip", host, "--cluster-announce-port", port, "--cluster-announce-bus-port", bus,
		// The trace reads what is moved from one node to another.
		"--rdbcompression", "no",
	)
	if source := n.w.sourceOf(n.name); source != "" {
		args = append(args, "--bind-source-addr", source)
	}
	return Program{Server: n.name, Path: redisPath, Args: args, Dir: n.dir}, nil
}

// sourceOf is the address that a node dials from, where it has none by itself:
// one of its own, by which a junction knows it at once. To ask the kernel whose a connection
// is takes a look at all of the machine's, and the nodes of a cluster dial one
// that is dead ten times a second each. The world's own address is 127.77.x.y,
// and no other world has that x and y.
func (w *World) sourceOf(name string) string {
	if w.place.OwnAddresses() {
		return ""
	}
	i := slices.Index(w.servers(), name)
	_, rest, ok := strings.Cut(w.host, ".77.")
	if i < 0 || !ok {
		return ""
	}
	const first = 78
	return fmt.Sprintf("127.%d.%s", first+i, rest)
}

// bySource names the node that a connection comes from, by its address.
func (w *World) bySource(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil || !w.clustered() {
		return ""
	}
	for _, name := range w.servers() {
		if source := w.sourceOf(name); source == host && source != "" {
			return name
		}
	}
	return ""
}

// identity are the files that a node keeps that loses its data: without its
// name it would come back as a stranger whom nobody has asked in.
func (clusterServer) keeps() []string { return []string{clusterFile} }

// shardsOf is how many primaries a cluster of a number of nodes has. The others
// are replicas, dealt out in turn.
func shardsOf(nodes int) int { return nodes / 2 }

// bootCluster starts all nodes and makes a cluster of them: n1 to n3 share the
// slots, n4 copies n1, n5 copies n2 and n6 copies n3. It takes two seconds,
// which is how long a node takes for granted that it knows too little to serve.
func bootCluster(ctx context.Context, w *World) error {
	if err := w.startAll(ctx, w.nodeNames); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	shards := shardsOf(len(w.nodeNames))
	for i, name := range w.nodeNames {
		n := w.nodes[name]
		if i < shards {
			first, last := slotCount*i/shards, slotCount*(i+1)/shards-1
			if err := n.direct.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
				return fmt.Errorf("node %s: give it slots %d to %d: %w", name, first, last, err)
			}
		}
		if err := n.direct.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("node %s: set its epoch: %w", name, err)
		}
	}
	for i, name := range w.nodeNames {
		if err := w.meet(ctx, name, w.nodeNames[i+1:]); err != nil {
			return err
		}
	}
	for i, name := range w.nodeNames[shards:] {
		if err := w.nodes[name].replicate(ctx, w.nodes[w.nodeNames[i%shards]]); err != nil {
			return err
		}
	}
	return w.awaitCluster(ctx)
}

// meet introduces a node to others, so that it has not to wait until word of
// them gets around. To meet somebody twice does no harm.
func (w *World) meet(ctx context.Context, from string, others []string) error {
	for _, to := range others {
		if to == from {
			continue
		}
		host, port, err := w.announced(to, 0)
		if err != nil {
			return err
		}
		_, bus, err := w.announced(to, 1)
		if err != nil {
			return err
		}
		if err := w.nodes[from].direct.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
			return fmt.Errorf("node %s: meet %s: %w", from, to, err)
		}
	}
	return nil
}

// replicate makes a node copy another, once it has heard of it.
func (n *node) replicate(ctx context.Context, primary *node) error {
	id, err := primary.id(ctx)
	if err != nil {
		return err
	}
	for met := time.Now(); ; {
		err := n.direct.ClusterReplicate(ctx, id).Err()
		if err == nil {
			return nil
		}
		if time.Since(met) > 2*nodeTimeout { // see awaitCluster
			if err := n.w.meet(ctx, n.name, []string{primary.name}); err != nil {
				return err
			}
			met = time.Now()
		}
		if ctxErr := sleep(ctx, 10*time.Millisecond); ctxErr != nil {
			return fmt.Errorf("node %s: copy %s: %w (last: %w)", n.name, primary.name, ctxErr, err)
		}
	}
}

// id is the name that the cluster has for a node. It never changes.
func (n *node) id(ctx context.Context) (string, error) {
	id, err := n.direct.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return "", fmt.Errorf("node %s: its id: %w", n.name, err)
	}
	return id, nil
}

// awaitCluster waits until every node serves and knows who copies whom. An
// introduction is forgotten when it takes longer than the node time-out, as it
// may on a busy machine, and one of the two may know the other by then: it is
// made again.
func (w *World) awaitCluster(ctx context.Context) error {
	err := each(w.nodeNames, func(name string) error {
		n, met := w.nodes[name], time.Now()
		for {
			why := w.unready(ctx, n)
			if why == nil {
				return nil
			}
			if time.Since(met) > 2*nodeTimeout {
				if err := w.meet(ctx, name, w.nodeNames); err != nil {
					return err
				}
				met = time.Now()
			}
			if ctxErr := sleep(ctx, 10*time.Millisecond); ctxErr != nil {
				return fmt.Errorf("node %s is not part of the cluster: %w (last: %w): %s", name, ctxErr, why, n.logTail())
			}
		}
	})
	if err != nil {
		return err
	}
	return each(w.nodeNames[shardsOf(len(w.nodeNames)):], func(name string) error { return w.nodes[name].awaitLink(ctx) })
}

func (w *World) unready(ctx context.Context, n *node) error {
	info, err := n.direct.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if state := infoField(info, "cluster_state"); state != "ok" {
		return fmt.Errorf("its cluster state is %q", state)
	}
	members, err := n.members(ctx)
	if err != nil {
		return err
	}
	replicas := 0
	for _, m := range members {
		if m.copies != "" {
			replicas++
		}
	}
	if want := len(w.nodeNames) - shardsOf(len(w.nodeNames)); len(members) != len(w.nodeNames) || replicas != want {
		return fmt.Errorf("it knows %d nodes and %d replicas, of %d and %d", len(members), replicas, len(w.nodeNames), want)
	}
	return nil
}

// member is a node as one of them sees it.
type member struct {
	id      string
	myself  bool
	primary bool
	failed  bool
	copies  string // the id of the node that it copies
	epoch   int64
	slots   []span
}

// span of slots, from the first to the last.
type span struct{ first, last int }

func (m member) has(slot int) bool {
	return slices.ContainsFunc(m.slots, func(s span) bool { return s.first <= slot && slot <= s.last })
}

// members asks a node for all that it knows, itself included.
func (n *node) members(ctx context.Context) ([]member, error) {
	text, err := n.direct.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("node %s: who is in the cluster: %w", n.name, err)
	}
	return parseMembers(text)
}

// parseMembers reads lines such as
//
//	07c3... 127.0.0.1:30004@31004 myself,slave e7d1... 0 1426238317239 4 connected
//	67ed... 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922 [93->-292f...]
func parseMembers(text string) ([]member, error) {
	var all []member
	for line := range strings.Lines(text) {
		const idAt, flagsAt, copiesAt, epochAt, slotsAt = 0, 2, 3, 6, 8
		fields := strings.Fields(line)
		if len(fields) < slotsAt {
			return nil, fmt.Errorf("a line of CLUSTER NODES is not understood: %q", line)
		}
		flags := strings.Split(fields[flagsAt], ",")
		m := member{
			id: fields[idAt], myself: slices.Contains(flags, "myself"), primary: slices.Contains(flags, "master"),
			failed: slices.Contains(flags, "fail"),
		}
		if fields[copiesAt] != "-" {
			m.copies = fields[copiesAt]
		}
		var err error
		if m.epoch, err = strconv.ParseInt(fields[epochAt], 10, 64); err != nil {
			return nil, fmt.Errorf("epoch in %q: %w", line, err)
		}
		for _, f := range fields[slotsAt:] {
			if strings.HasPrefix(f, "[") {
				continue // on its way from or to another node
			}
			first, last, _ := strings.Cut(f, "-")
			if last == "" {
				last = first
			}
			a, errA := strconv.Atoi(first)
			b, errB := strconv.Atoi(last)
			if err := errors.Join(errA, errB); err != nil {
				return nil, fmt.Errorf("slots in %q: %w", line, err)
			}
			m.slots = append(m.slots, span{first: a, last: b})
		}
		all = append(all, m)
	}
	return all, nil
}

const slotCount = 16384

// slotOf is the slot of a key: the CRC16 (XMODEM) of what stands between its
// first braces, or of the whole key. Source: the Redis Cluster specification.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slotCount)
}

// clustered says whether the nodes are a Redis Cluster.
func (w *World) clustered() bool { return w.cfg.Topology == cluster.RedisCluster }
