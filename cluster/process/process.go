// Package process is the world of real servers and real processes on one
// machine: redis-server children on a loopback address of their own, one
// toxiproxy proxy for every pair of parties, libfaketime in front of every
// node's wall clock, and client processes that SIGSTOP really stops.
//
// It only breaks and records; what a client does is the business of the
// program that is started with [World.StartClient], and what a record means is
// the business of package checker.
//
// # What the server trace is worth
//
// Every node sends its commands (MONITOR) and its key space events over one
// connection, in the order in which it executed them. Whether a SET NX took
// effect, which commands of a script ran, when a key expired: all this is read
// from that stream and is exact. Approximate are:
//
//   - the time on the machine's clock: it is derived from the node's own time
//     stamp and the clock offset that was set, and falls back to the time of
//     arrival around clock changes;
//   - replies: MONITOR has none, so only those that follow from what happened
//     to the key are filled in;
//   - the first commands after a restart, which may be missed until the
//     connection is up again; the keys found then are the new starting point;
//   - in a Redis Cluster, the moment at which a replica has become the primary:
//     its role is looked at twenty times a second;
//   - the client: it is known from CLIENT SETNAME or HELLO SETNAME on its
//     connection, and empty for connections without.
//
// # What it cannot do
//
// A node restarted "as of the last fsync" cannot be had by killing a process,
// since the kernel keeps what was written. Clients cannot be paused between
// the sending of a command and the reading of its reply.
//
// World is in world.go, the proxies are in proxy.go and gate.go, the trace is
// in trace.go.
package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/programs"
	"github.com/holdfast-io/holdfast/history"
)

// Config says what world to start.
type Config struct {
	Topology cluster.Topology
	// Nodes and Clients are counts; both must be at least one, and a single
	// topology has exactly one node.
	Nodes   int
	Clients int
	// Witnesses is how many servers without data the topology has beside its
	// nodes: the sentinels.
	Witnesses int
	// Place is where the servers run; nil is this machine. The world closes it.
	Place Place
	// Existing are servers that run already, one for each node. The world does
	// nothing to them but lead clients there, and removes the keys that contain
	// KeyMark from them at its end.
	Existing []Existing
	KeyMark  string
	// Dir is the scratch folder. [World.Close] removes it with all it holds.
	// Empty means a new folder among the machine's temporary files.
	Dir string
	// LockNames select the keys to trace: those that contain it.
	LockNames []string
	// LockKeys are the locks' own keys, where they are known: what one holds is a
	// token, even if it is a number.
	LockKeys []string
	// OnServer is told the server trace; nil means that there is none. At is
	// in nanoseconds on the machine's CLOCK_MONOTONIC, and Clock is the node's
	// wall clock on the same scale, so that the two agree while the node's
	// clock is right. It is called from one goroutine per node. It may break
	// things, but must not wait for the trace, as Restart, Promote, SyncTrace,
	// EndTrace and Close do.
	OnServer func(ev history.Server, at int64)
	// MinReplicas and MaxLag are the nodes' min-replicas-to-write and
	// min-replicas-max-lag, the latter in seconds; 0 leaves both off.
	MinReplicas, MaxLag int
	// OnPromoted is told that the nodes have made another one their primary by
	// themselves: at is when, and told when the first of those that clients ask
	// led them there, both on the clock of OnServer. It may be nil.
	OnPromoted func(old, name string, at, told int64)
	// ResourceHandler gives a session of the protected resource for one
	// connection of a client: a function from a request line to a reply line,
	// both without the newline. A nil reply hangs up. A nil handler means that
	// there is no resource.
	ResourceHandler func(client string) func(line []byte) []byte
	// OnClientExit is told when a client process has ended, with the error of
	// [exec.Cmd.Wait], after its output has been copied. It may be nil.
	OnClientExit func(client string, err error)
	// Log may be nil.
	Log *slog.Logger
}

// world is the name of the world for messages.
func (c *Config) world() cluster.World {
	switch {
	case c.Place != nil:
		return c.Place.World()
	case c.Existing != nil:
		return cluster.External
	}
	return cluster.Process
}

func (c *Config) check() error {
	l, known := c.layout()
	switch {
	case !known:
		return fmt.Errorf("topology %q: %w", c.Topology, cluster.ErrUnsupported)
	case c.Nodes < 1 || c.Clients < 1:
		return fmt.Errorf("%d nodes and %d clients: at least one of each is needed", c.Nodes, c.Clients)
	case c.Topology == cluster.Single && c.Nodes != 1:
		return fmt.Errorf("topology single has one node, not %d", c.Nodes)
	case c.Topology == cluster.RedisCluster && c.Nodes < 6:
		return fmt.Errorf("topology cluster has three primaries with a replica each, which is six nodes or more and not %d", c.Nodes)
	case (l.witness == nil) != (c.Witnesses == 0):
		return fmt.Errorf("%d witnesses in topology %s", c.Witnesses, c.Topology)
	}
	if c.Existing != nil && len(c.Existing) != c.Nodes {
		return fmt.Errorf("%d servers for %d nodes", len(c.Existing), c.Nodes)
	}
	if l.elects && c.OnServer == nil {
		c.OnServer = func(history.Server, int64) {} // promotions are seen in the trace
	}
	if c.OnPromoted == nil {
		c.OnPromoted = func(string, string, int64, int64) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

const install = "apt-get install -y --no-install-recommends redis-server libfaketime"

// Available is nil when this machine has what the world needs. Otherwise the
// error names the command that installs it.
func Available() error {
	_, err := findTools()
	return err
}

// AvailableFor is nil when this machine has what the topology needs, and
// otherwise an error that names the command that installs it.
func AvailableFor(t cluster.Topology) error {
	if !t.Store() {
		return Available()
	}
	if runtime.GOOS != "linux" {
		return errors.New("the process world needs Linux")
	}
	var err error
	packages := ""
	switch t {
	case cluster.Etcd:
		_, err = programs.FindEtcd()
		packages = "etcd-server"
	case cluster.ZooKeeper:
		_, _, err = programs.FindZooKeeper()
		packages = "default-jre-headless libzookeeper-java"
	case cluster.Postgres:
		_, err = programs.FindPostgres()
		packages = "postgresql libfaketime"
		if _, _, missing := findFaketime(); err == nil && missing != nil {
			err = missing
		}
	}
	if err != nil {
		return fmt.Errorf("topology %s: %w: apt-get install -y --no-install-recommends %s, or scripts/install-test-tools.sh", t, err, packages)
	}
	return nil
}

// tools are the files of the machine that a node is started with.
type tools struct {
	server   string // redis-server
	faketime string // libfaketime.so.1
	libc     string // libc.so.6
}

func findTools() (tools, error) {
	if runtime.GOOS != "linux" {
		return tools{}, errors.New("the process world needs Linux")
	}
	faketime, libc, err := findFaketime()
	if err != nil {
		return tools{}, err
	}
	found := tools{faketime: faketime, libc: libc}
	if found.server, err = exec.LookPath("redis-server"); err != nil {
		return found, fmt.Errorf("redis-server is missing (%w): %s", err, install)
	}
	return found, nil
}

// findFaketime finds what moves a server's clock.
func findFaketime() (faketime, libc string, err error) {
	faketime = firstFile("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1",
		"/usr/lib64/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1")
	if faketime == "" {
		return "", "", fmt.Errorf("libfaketime.so.1 is missing: %s", install)
	}
	// The C library must be the one of the same architecture, which lies in
	// the folder of the same name.
	triplet := filepath.Base(filepath.Dir(filepath.Dir(faketime)))
	libc = firstFile("/lib/"+triplet+"/libc.so.6", "/lib/*/libc.so.6", "/lib64/libc.so.6", "/lib/libc.so.6")
	if libc == "" {
		return "", "", errors.New("libc.so.6 is missing: the process world needs a glibc system")
	}
	return faketime, libc, nil
}

func firstFile(patterns ...string) string {
	for _, pattern := range patterns {
		// The only error of Glob is a malformed pattern, and these are fixed.
		found, _ := filepath.Glob(pattern)
		for _, file := range found {
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}
	return ""
}
