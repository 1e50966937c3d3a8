package process

import (
	"context"
	"net"

	"github.com/holdfast-io/holdfast/cluster"
)

// Place is where the servers of a world run: on this machine, which is the
// default, or in containers. Clients, proxies and the protected resource are
// always on this machine.
type Place interface {
	// World is the name of a world whose servers run here.
	World() cluster.World
	// Host is the IP address at which a server listens. It is known before the
	// server is started, and stays the same when it is started again.
	Host(server string) string
	// OwnAddresses says that a server's address is its own and goes away with it:
	// who dials it then gets no answer at all, where this machine would refuse.
	// Where servers have none they can dial from any loopback address.
	OwnAddresses() bool
	// Gateway is the IP address at which servers reach what listens in this
	// process.
	Gateway() string
	// Preload is what LD_PRELOAD must be for a server whose clock can be moved;
	// empty where libfaketime is not at hand.
	Preload() string
	// Start starts a program and returns once it runs, which may be before it
	// answers. A server that has ended may be started again.
	Start(ctx context.Context, p Program) (Server, error)
	// Caller names the server at the other end of a connection; empty where it
	// is none of this place's.
	Caller(conn net.Conn) string
	// Close ends all servers and removes what the place has made.
	Close() error
}

// Program is what a server runs.
type Program struct {
	// Server is the name of the party: n1, s2.
	Server string
	// Path of the executable: a name that is looked up, or a full path.
	Path string
	Args []string
	// Env is added to the environment: KEY=value.
	Env []string
	// Dir is the server's folder, the only one that it may write to. It is the
	// same inside of a container and outside.
	Dir string
	// User that the program runs as; empty for that of this process. It owns
	// Dir.
	User string
	// Output is a file that gets what the program writes; empty drops it.
	Output string
	// Forks says that its children leave its process group, so that whoever
	// signals the group has not reached them.
	Forks bool
}

// Server is a program that was started.
type Server interface {
	// Stop freezes it, as SIGSTOP does, and returns when it stands still.
	Stop(ctx context.Context) error
	// Resume lets it go on.
	Resume(ctx context.Context) error
	// End kills it, as SIGKILL does, and returns when it is gone. One that has
	// ended already is fine.
	End(ctx context.Context) error
	// Done is closed when it has ended; Err says how, and is valid from then
	// on.
	Done() <-chan struct{}
	Err() error
}

// over says whether a server has ended by itself.
func over(s Server) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
