// Package programs says how the servers of the other stores are started: etcd,
// ZooKeeper and PostgreSQL. A description names the program, its arguments and
// environment, the files to write first, the user to run as, and how to ask
// over TCP whether the server is ready.
//
// It starts nothing. Who starts, pauses and kills a server is a world's own
// affair, and worlds differ in it.
package programs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
)

// ErrMissing says that a program is not installed here.
var ErrMissing = errors.New("not installed")

// Command is one server to start.
type Command struct {
	// Path of the program, and its arguments without the program's own name.
	Path string
	Args []string
	// Env is what is added to the environment, as "NAME=value".
	Env []string
	// WorkDir is where to start it.
	WorkDir string
	// Dirs to make first, mode 0700. They and the files belong to User.
	Dirs []string
	// Files to write after that.
	Files []File
	// Before is a program to run to its end before this one, as the same user;
	// nil for none.
	Before *Command
	// User to run as where the caller is root and the program refuses to run
	// as root; empty keeps the caller.
	User string
	// Stop is the signal for an orderly end. SIGKILL is a crash to each of them.
	Stop os.Signal
	// Ready makes one try over a fresh connection to the port for clients. Nil
	// says that the server answers clients; in a cluster, that it has a leader.
	Ready func(ctx context.Context, dial Dial) error

	_ struct{} // named fields only
}

// Dial opens a connection to the server's port for clients.
type Dial func(ctx context.Context) (net.Conn, error)

// File is one file to write.
type File struct {
	Path string
	Text string
	Mode fs.FileMode
}

// Member is one server of a cluster as the others dial it.
type Member struct {
	// Name as in [Etcd.Name]; ZooKeeper's members are numbered by their place
	// in the list, from 1.
	Name string
	// Peer is the address, host:port, for what the servers say to each other.
	// ZooKeeper calls it the quorum port.
	Peer string
	// Election is ZooKeeper's second port; empty for etcd.
	Election string
}

// talk opens a connection, and closes it when f is done with it. What f reads
// and writes is bounded by the context's deadline.
func talk(ctx context.Context, dial Dial, f func(net.Conn) error) error {
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(at); err != nil {
			return err
		}
	}
	return f(conn)
}
