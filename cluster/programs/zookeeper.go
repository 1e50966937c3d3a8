package programs

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ZooKeeper is one server of a ZooKeeper ensemble.
type ZooKeeper struct {
	// ID is the server's number, from 1, and its place in Ensemble.
	ID int
	// Dir is the folder for its data, its configuration and myid.
	Dir string
	// ListenClient is the address, host:port, for clients.
	ListenClient string
	// Ensemble lists all servers in the order of their ids, as this one dials
	// them. Its own line is what it listens on, and what it tells others in an
	// election: a server with a higher number that is dialled by one with a
	// lower closes that connection and dials the address that it was told. So
	// the way back goes around a proxy that only the others' lines name.
	// Source: QuorumCnxManager.handleConnection.
	Ensemble []Member
	// Tick is ZooKeeper's basic unit; 200 ms if zero. A session's timeout lies
	// between 2 ticks, so 400 ms, and 40 s, the most that ZooKeeper's own
	// default of 2 s allows.
	Tick time.Duration

	_ struct{} // named fields only
}

// zookeeperJar is where Debian's libzookeeper-java puts it. Its manifest names
// the other jars it needs.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

// logJar writes the log to stderr.
const logJar = "/usr/share/java/slf4j-simple.jar"

// FindZooKeeper gives the paths of java and of the class path.
func FindZooKeeper() (java, classPath string, err error) {
	java, err = exec.LookPath("java")
	if err != nil {
		return "", "", fmt.Errorf("java for ZooKeeper: %w (%w)", ErrMissing, err)
	}
	if _, err := os.Stat(zookeeperJar); err != nil {
		return "", "", fmt.Errorf("ZooKeeper: %w (%w)", ErrMissing, err)
	}
	return java, zookeeperJar + ":" + logJar, nil
}

// Command describes the server. It fails with [ErrMissing] where there is no
// Java or no ZooKeeper, and for a number outside the ensemble.
func (z ZooKeeper) Command() (Command, error) {
	java, classPath, err := FindZooKeeper()
	if err != nil {
		return Command{}, err
	}
	if z.ID < 1 || z.ID > len(z.Ensemble) {
		return Command{}, fmt.Errorf("ZooKeeper %d is none of an ensemble of %d", z.ID, len(z.Ensemble))
	}
	config, err := z.config()
	if err != nil {
		return Command{}, err
	}
	path := filepath.Join(z.Dir, "zoo.cfg")
	return Command{
		Path: java,
		Args: []string{
			// A small machine that is up at once: the first compiler only, the
			// serial collector, and no shared file of counters in /tmp.
			"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-Xmx128m",
			"-Dzookeeper.admin.enableServer=false",
			"-Dzookeeper.jmx.log4j.disable=true",
			// In milliseconds. A server that has lost the others asks for them
			// less and less often, in the end once a minute, which suits a tick
			// of 2 s.
			"-Dzookeeper.fastleader.maxNotificationInterval=1000",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
			"-cp", classPath,
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", path,
		},
		WorkDir: z.Dir,
		Dirs:    []string{z.Dir},
		Files: []File{
			{Path: path, Text: config, Mode: 0o600},
			{Path: filepath.Join(z.Dir, "myid"), Text: fmt.Sprintln(z.ID), Mode: 0o600},
		},
		Stop:  syscall.SIGTERM,
		Ready: zookeeperReady,
	}, nil
}

// config is the text of zoo.cfg. Syncing is left on, as in production.
func (z ZooKeeper) config() (string, error) {
	host, port, err := net.SplitHostPort(z.ListenClient)
	if err != nil {
		return "", fmt.Errorf("ZooKeeper %d: address for clients: %w", z.ID, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tickTime=%s\n", milliseconds(z.Tick, 200*time.Millisecond))
	// In ticks. A server that is not in step after so many leaves the ensemble.
	fmt.Fprintf(&b, "initLimit=25\nsyncLimit=5\n")
	fmt.Fprintf(&b, "maxSessionTimeout=40000\n")
	fmt.Fprintf(&b, "dataDir=%s\n", z.Dir)
	fmt.Fprintf(&b, "clientPort=%s\nclientPortAddress=%s\n", port, host)
	fmt.Fprintf(&b, "4lw.commands.whitelist=srvr\n")
	fmt.Fprintf(&b, "maxClientCnxns=0\n") // unlimited: all clients come from one address
	// In KiB. 64 MiB are written ahead for each log otherwise.
	fmt.Fprintf(&b, "preAllocSize=1024\n")
	if len(z.Ensemble) == 1 {
		return b.String(), nil
	}
	for i, m := range z.Ensemble {
		_, election, err := net.SplitHostPort(m.Election)
		if err != nil {
			return "", fmt.Errorf("ZooKeeper %d: election address of %d: %w", z.ID, i+1, err)
		}
		fmt.Fprintf(&b, "server.%d=%s:%s\n", i+1, m.Peer, election)
	}
	return b.String(), nil
}

// zookeeperReady asks srvr, which names a mode only while the server serves.
func zookeeperReady(ctx context.Context, dial Dial) error {
	return talk(ctx, dial, func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "srvr"); err != nil {
			return err
		}
		answer, err := io.ReadAll(io.LimitReader(conn, 1<<12))
		if err != nil {
			return err
		}
		if !strings.Contains(string(answer), "\nMode: ") {
			return fmt.Errorf("ZooKeeper says %q", answer)
		}
		return nil
	})
}
