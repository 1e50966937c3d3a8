// Package container runs servers in containers, for worlds whose servers shall
// not be children of this process: every server has an address of its own on a
// network of its own, which is known before the server starts, and can be
// frozen, killed, and cut from the network.
//
// It is a place for servers and nothing more ([process.Place]): it knows no
// topology and no faults, and of Redis only what the executable is called. Clients and proxies stay in this process and reach a server at its
// address ([Place.Host]); a server reaches what listens in this process at
// [Place.Gateway], and is seen there under its own address. This needs an engine
// on this very machine: one in a virtual machine, or without root, has networks
// that cannot be reached from outside, and [Open] says so.
//
// # What is left behind
//
// Nothing, after [Place.Close]. A run that was killed leaves its containers
// running; they carry labels that name its process, and the next [Open] removes
// what belongs to processes that are gone. Testcontainers has a helper container
// for this, which must be pulled from a registry and is therefore not used.
//
// Place is here, its servers are in server.go, what is asked of the engine is in
// engine.go, of an image in image.go, and the removal of leftovers in sweep.go.
package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
)

// bound is the longest that a step of the engine may take. Each takes well under
// a second on an idle machine.
const bound = 30 * time.Second

// Config says where servers shall run.
type Config struct {
	// Image has the programs that are started. Empty means [DefaultImage]. An
	// image that is not here is pulled, unless it is the default one.
	Image string
	// Dir is a folder of this machine that every server sees under the same path.
	// It must exist. [Place.Close] leaves it alone.
	Dir string
}

// Place is a network of containers. Its methods may be called from several
// goroutines.
type Place struct {
	image  Image
	dir    string
	labels map[string]string
	api    *engine
	net    *testcontainers.DockerNetwork
	subnet netip.Prefix

	mu      sync.Mutex
	hosts   map[string]netip.Addr // by the name of the server
	servers []*Server
	closed  bool
}

var _ process.Place = (*Place)(nil)

// Open makes a network and removes what runs that are gone have left behind. An
// error says what to type where an engine or the image is missing.
func Open(ctx context.Context, c Config) (*Place, error) {
	if c.Image == "" {
		c.Image = DefaultImage
	}
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	p := &Place{image: Image{Ref: c.Image}, dir: c.Dir, labels: labelsOf(self()), api: api, hosts: map[string]netip.Addr{}}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Place) open(ctx context.Context) error {
	image, err := inspect(ctx, p.api, p.image.Ref)
	if err != nil {
		return err
	}
	p.image = image
	if _, err := sweep(ctx, p.api, self()); err != nil {
		return err
	}
	if err := p.makeNetwork(ctx); err != nil {
		return err
	}
	return reachable(p.gateway())
}

// makeNetwork takes the first free subnet among 256. Whether one is free is for
// the engine to say, which knows its other networks and is asked by others too;
// it does not look at this machine's own networks, so those are left out first.
func (p *Place) makeNetwork(ctx context.Context) error {
	own, err := ownNetworks()
	if err != nil {
		return err
	}
	for _, subnet := range subnets(own) {
		if err := ctx.Err(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound) // see Place.start
		n, err := tcnetwork.New(ctx, tcnetwork.WithLabels(p.labels), tcnetwork.WithIPAM(&network.IPAM{
			Config: []network.IPAMConfig{{Subnet: subnet, Gateway: gatewayOf(subnet)}},
		}))
		cancel()
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "overlap") {
			continue
		}
		if err != nil {
			return fmt.Errorf("make a network for containers: %w", err)
		}
		p.net, p.subnet = n, subnet
		return nil
	}
	return errors.New("make a network for containers: all 256 subnets of 10.77.0.0/16 are taken")
}

// World is [cluster.Container].
func (p *Place) World() cluster.World { return cluster.Container }

// Preload is empty where the image carries no libfaketime.
func (p *Place) Preload() string { return p.image.Preload }

// Image is what the servers are made of.
func (p *Place) Image() Image { return p.image }

// Caller knows a server by its address, which no other party has.
func (p *Place) Caller(conn net.Conn) string {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, addr := range p.hosts {
		if addr == from.Addr().Unmap() {
			return name
		}
	}
	return ""
}

// Host is the address at which a server of that name will listen, also after a
// restart. It is the same for every call, and "" when the 250 addresses of the
// network are given out.
func (p *Place) Host(name string) string {
	addr := p.host(name)
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}

func (p *Place) host(name string) netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, ok := p.hosts[name]; ok {
		return addr
	}
	at := len(p.hosts) + 2 // .1 is the gateway
	if at > 251 {
		return netip.Addr{}
	}
	b := p.subnet.Addr().As4()
	b[3] = byte(at)
	addr := netip.AddrFrom4(b)
	p.hosts[name] = addr
	return addr
}

// OwnAddresses is true: an address is that of a container.
func (p *Place) OwnAddresses() bool { return true }

// Gateway is this machine's address on the network: what listens there in this
// process is reached by the servers.
func (p *Place) Gateway() string { return p.gateway().String() }

func (p *Place) gateway() netip.Addr { return gatewayOf(p.subnet) }

// Close ends every server and removes the network. It takes its own time, since
// it must also work after an interrupt.
func (p *Place) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	servers := p.servers
	p.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			errs[i] = s.End(ctx)
			s.close()
		})
	}
	all.Wait()
	if p.net != nil {
		errs = append(errs, removeNetwork(ctx, p.api, p.net.ID))
	}
	return errors.Join(append(errs, p.api.Close())...)
}

// removeNetwork tries again while the engine still unhooks the last container.
func removeNetwork(ctx context.Context, api *engine, id string) error {
	for {
		_, err := api.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
		if err == nil || isGone(err) {
			return nil
		}
		if !strings.Contains(err.Error(), "active endpoints") || sleep(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("remove the network of the containers: %w", err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
