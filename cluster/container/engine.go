package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

const (
	startEngine = "start one, or run the command through scripts/with-docker.sh"
	makeImage   = "make image, or name another one with --image"
)

// Available is nil when an engine answers and the image is here or can be had.
// Otherwise the error says what to type. Empty means [DefaultImage].
func Available(ctx context.Context, image string) error {
	if image == "" {
		image = DefaultImage
	}
	api, err := connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(ensureImage(ctx, api, image), api.Close())
}

// engine is one connection to the engine, through which testcontainers makes
// containers too: by itself it opens one more for each, and leaves that of a
// container that does not start open.
type engine struct {
	client.APIClient
	provider *testcontainers.DockerProvider
}

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
	tclog.SetDefault(tclog.NewNoopLogger())

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

// ensureImage pulls an image that is not here. Our own is in no registry.
func ensureImage(ctx context.Context, api *engine, image string) error {
	_, err := api.ImageInspect(ctx, image)
	switch {
	case err == nil:
		return nil
	case !errdefs.IsNotFound(err):
		return fmt.Errorf("image %s: %w", image, err)
	case image == DefaultImage:
		return fmt.Errorf("image %s is not here: %s", image, makeImage)
	}
	pull, err := api.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return fmt.Errorf("image %s is not here and cannot be pulled: %s (%w)", image, makeImage, err)
	}
	_, err = io.Copy(io.Discard, pull) // the pull goes on as long as its report is read
	if err := errors.Join(err, pull.Close()); err != nil {
		return fmt.Errorf("pull image %s: %w", image, err)
	}
	if _, err := api.ImageInspect(ctx, image); err != nil {
		return fmt.Errorf("image %s is not here and cannot be pulled: %s (%w)", image, makeImage, err)
	}
	return nil
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

// The folders in which distributions and images keep libfaketime.
var faketimes = []string{
	"/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
	"/usr/lib/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1",
	"/usr/local/lib/faketime/libfaketime.so.1",
}

// libcs are the C libraries that a preload must name after libfaketime.
var libcs = []string{
	"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/libc.so.6",
}

// ErrNoFaketime says that an image carries no libfaketime, or no glibc for it.
// Clocks cannot jump there.
var ErrNoFaketime = errors.New("the image carries no libfaketime with a glibc: clocks of its servers cannot be set")

// Faketime is the value of LD_PRELOAD with which a server of the image shows a
// clock that can be set, or [ErrNoFaketime]. Both libraries are named: with
// libfaketime alone, servers with jemalloc hang at their start.
func (p *Place) Faketime(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	// A container that is never started shows the files of its image, and takes
	// no address.
	probe := &Server{place: p, name: "faketime"}
	_, err := probe.create(ctx, Program{Name: "faketime", Path: "none"}, p.gateway())
	if err != nil {
		return "", errors.Join(fmt.Errorf("look for libfaketime in %s: %w", p.image, err), probe.remove())
	}
	faketime, err1 := p.first(ctx, probe.id, faketimes)
	libc, err2 := p.first(ctx, probe.id, libcs)
	if err := errors.Join(err1, err2, probe.remove()); err != nil {
		return "", err
	}
	if faketime == "" || libc == "" {
		return "", ErrNoFaketime
	}
	return faketime + ":" + libc, nil
}

// first is the first of some files that a container has, or "".
func (p *Place) first(ctx context.Context, id string, files []string) (string, error) {
	for _, file := range files {
		_, err := p.api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: file})
		switch {
		case err == nil:
			return file, nil
		case !isGone(err):
			return "", fmt.Errorf("look for %s in %s: %w", file, p.image, err)
		}
	}
	return "", nil
}
