package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

const startEngine = "start one, or run the command through scripts/with-docker.sh"

// engine is one connection to the engine, through which testcontainers makes
// containers too: by itself it opens one more for each, and leaves that of a
// container that does not start open.
type engine struct {
	client.APIClient
	provider *testcontainers.DockerProvider
}

// silence is called once: the logger is one for the process, and several runs
// connect at once.
var silence = sync.OnceFunc(func() { tclog.SetDefault(tclog.NewNoopLogger()) })

// connect finds the engine as testcontainers does: DOCKER_HOST, the current
// context of the docker command, or the usual sockets.
func connect(ctx context.Context) (*engine, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("servers in containers need Linux: elsewhere the engine runs in a machine of its own, whose networks cannot be reached")
	}
	// Both are settings of the whole process, and testcontainers offers no
	// other. Its helper container would have to be pulled and is replaced by our
	// labels; its log is a banner on stderr and a line for every step.
	if os.Getenv("TESTCONTAINERS_RYUK_DISABLED") == "" {
		if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
			return nil, fmt.Errorf("find a Docker engine: %w", err)
		}
	}
	silence()

	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	api, err := dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %s (%w)", startEngine, err)
	}
	return api, nil
}

// dial turns a panic of testcontainers, which it has where it finds no socket at
// all, into an error.
func dial(ctx context.Context) (api *engine, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(tclog.NewNoopLogger()))
	if err != nil {
		return nil, err
	}
	api = &engine{APIClient: provider.Client(), provider: provider}
	if _, err := api.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return api, nil
}

// isGone says that the engine no longer knows what it was asked about.
func isGone(err error) bool { return errdefs.IsNotFound(err) }

// reachable checks that the gateway of a network is an address of this machine.
func reachable(gateway netip.Addr) error {
	own, err := ownNetworks()
	if err != nil {
		return err
	}
	for _, n := range own {
		if n.Addr() == gateway {
			return nil
		}
	}
	return fmt.Errorf("the engine's networks are not on this machine (no interface has %s): servers in containers need "+
		"an engine that runs here as root, not in a virtual machine and not rootless", gateway)
}

// ownNetworks are this machine's addresses with their networks.
func ownNetworks() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	var out []netip.Prefix
	for _, a := range addrs {
		if n, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// subnets are 10.77.0.0/24 to 10.77.255.0/24 without those that are in use here.
// Every process begins at another one, so that two that start at the same time
// seldom ask for the same.
func subnets(own []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for i := range 256 {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(os.Getpid() + i), 0}), 24)
		free := true
		for _, n := range own {
			free = free && !n.Overlaps(subnet)
		}
		if free {
			out = append(out, subnet)
		}
	}
	return out
}

func gatewayOf(subnet netip.Prefix) netip.Addr { return subnet.Addr().Next() }
