package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
)

// Server is a program in a container. Its methods may be called from several
// goroutines. It is a [process.Server] that has a network of its own.
type Server struct {
	place *Place
	name  string
	id    string // of the container
	addr  netip.Addr
	out   tail

	attached client.HijackedResponse
	copied   chan struct{} // closed when all output has been read

	cancel context.CancelFunc // gives up waiting for the end
	done   chan struct{}      // closed when the container is gone
	err    error              // valid once done is closed
}

// Start runs a program, and is not interrupted when ctx ends meanwhile. The container goes away with its end, and the address is
// free again once [Server.Done] is closed. A program that ends at once is no
// error of Start.
//
// A program that is called redis-server is the image's own, whatever its name
// and folder are there.
func (p *Place) Start(ctx context.Context, prog process.Program) (process.Server, error) {
	s, err := p.start(ctx, prog)
	if err != nil {
		return nil, fmt.Errorf("start %s in a container: %w", prog.Server, err)
	}
	return s, nil
}

func (p *Place) start(ctx context.Context, prog process.Program) (*Server, error) {
	if prog.User != "" {
		return nil, fmt.Errorf("as user %s: %w", prog.User, cluster.ErrUnsupported) // the image has users of its own
	}
	if prog.Path == servers[0] {
		prog.Path = p.image.Server
	}
	if prog.Dir != "" {
		if err := os.MkdirAll(prog.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	s := &Server{
		place: p, name: prog.Server, addr: p.host(prog.Server), out: tail{max: 64 << 10},
		copied: make(chan struct{}), done: make(chan struct{}),
	}
	if !s.addr.IsValid() {
		return nil, errors.New("the network has no address left")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// What the engine has been asked for it makes, whether or not anybody waits
	// for the answer, and only the answer says what there is to remove.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	c, err := s.create(ctx, prog, s.addr)
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	// A program that ends at once takes its container along, so who waits and
	// who listens must be there before it starts.
	if err := s.follow(ctx); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if err := p.adopt(s); err != nil {
		return nil, errors.Join(err, s.remove(), s.close())
	}
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, s.remove(), s.close())
	}
	return s, nil
}

// create makes the container and does not start it. The id is set whenever there
// is something to remove.
func (s *Server) create(ctx context.Context, prog process.Program, addr netip.Addr) (testcontainers.Container, error) {
	req := testcontainers.GenericContainerRequest{ContainerRequest: testcontainers.ContainerRequest{Image: s.place.image.ID}}
	for _, option := range s.place.options(prog, addr) {
		if err := option.Customize(&req); err != nil {
			return nil, err
		}
	}
	c, err := s.place.api.provider.CreateContainer(ctx, req.ContainerRequest)
	if c != nil {
		s.id = c.GetContainerID()
	}
	return c, err
}

// adopt makes the place the owner of a server.
func (p *Place) adopt(s *Server) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the place is closed")
	}
	p.servers = append(p.servers, s)
	return nil
}

// options describe the container. It runs as this process's user, so that its
// files in the folder can be removed again, and publishes no port: servers are
// reached at their address, and an unprotected one must not be reached by the
// neighbours of this machine.
func (p *Place) options(prog process.Program, addr netip.Addr) []testcontainers.ContainerCustomizer {
	env := make(map[string]string, len(prog.Env))
	for _, e := range prog.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	labels := map[string]string{labelServer: prog.Server}
	for name, value := range p.labels {
		labels[name] = value
	}
	var host *container.HostConfig
	return []testcontainers.ContainerCustomizer{
		testcontainers.WithEntrypoint(prog.Path),
		testcontainers.WithCmd(prog.Args...),
		testcontainers.WithEnv(env),
		testcontainers.WithLabels(labels),
		tcnetwork.WithNetworkName([]string{prog.Server}, p.net.Name),
		testcontainers.WithConfigModifier(func(c *container.Config) {
			c.Hostname, c.WorkingDir = prog.Server, prog.Dir
			c.User = strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
			c.AttachStdout, c.AttachStderr = true, true
		}),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			host = h
			h.AutoRemove = true
			h.NetworkMode = container.NetworkMode(p.net.Name)
			h.LogConfig = container.LogConfig{Type: "none"} // we read the output as it comes
			if p.dir != "" {
				h.Binds = []string{p.dir + ":" + p.dir}
			}
		}),
		testcontainers.WithEndpointSettingsModifier(func(settings map[string]*network.EndpointSettings) {
			for _, s := range settings {
				s.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: addr}
			}
		}),
		// Testcontainers publishes every port that an image exposes, whatever the
		// modifiers above say; its own hook has run when this one does.
		testcontainers.WithAdditionalLifecycleHooks(testcontainers.ContainerLifecycleHooks{
			PreCreates: []testcontainers.ContainerRequestHook{func(context.Context, testcontainers.ContainerRequest) error {
				host.PortBindings = nil
				return nil
			}},
		}),
	}
}

// follow reads the output and waits for the end. Both goroutines are the
// server's, and close waits for them.
func (s *Server) follow(ctx context.Context) error {
	attached, err := s.place.api.ContainerAttach(ctx, s.id, client.ContainerAttachOptions{
		Stream: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return fmt.Errorf("read the output: %w", err)
	}
	s.attached = attached.HijackedResponse
	go func() {
		defer close(s.copied)
		// An error is the end of the output as well: the connection ends with the
		// container or is closed by us.
		_, _ = stdcopy.StdCopy(&s.out, &s.out, s.attached.Reader)
	}()
	life, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	wait := s.place.api.ContainerWait(life, s.id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	go func() {
		defer close(s.done)
		select {
		case r := <-wait.Result:
			s.err = exitError(s.name, r)
		case err := <-wait.Error:
			s.err = fmt.Errorf("wait for %s: %w", s.name, err)
		}
	}()
	return nil
}

// exitError is nil for a program that ended with 0.
func exitError(name string, r container.WaitResponse) error {
	switch {
	case r.Error != nil && r.Error.Message != "":
		return fmt.Errorf("%s: %s", name, r.Error.Message)
	case r.StatusCode > 128:
		return fmt.Errorf("%s ended by signal %d", name, r.StatusCode-128)
	case r.StatusCode != 0:
		return fmt.Errorf("%s ended with exit status %d", name, r.StatusCode)
	}
	return nil
}

// Done is closed when the container is gone.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says how the program ended: nil before that, and for exit status 0.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Log is the last 64 kB of what the program has written to its two outputs.
func (s *Server) Log() string { return s.out.String() }

// Stop freezes every thread of the server, as SIGSTOP would: connections stay,
// the kernel accepts new ones, nobody answers.
func (s *Server) Stop(ctx context.Context) error {
	_, err := s.place.api.ContainerPause(ctx, s.id, client.ContainerPauseOptions{})
	return s.wrap("freeze", err)
}

// Resume lets a frozen server go on.
func (s *Server) Resume(ctx context.Context) error {
	_, err := s.place.api.ContainerUnpause(ctx, s.id, client.ContainerUnpauseOptions{})
	return s.wrap("resume", err)
}

// End kills the server, frozen or not, and waits until its container is gone. A
// server that has ended already is fine.
func (s *Server) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	_, err := s.place.api.ContainerKill(ctx, s.id, client.ContainerKillOptions{Signal: "SIGKILL"})
	if err != nil && !isGone(err) && !errdefs.IsConflict(err) { // a conflict: it is not running
		return s.wrap("kill", err)
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return s.wrap("wait for the end of", ctx.Err())
	}
}

// Disconnect takes the server off the network: what is sent to it and by it is
// lost, and neither side is told.
func (s *Server) Disconnect(ctx context.Context) error {
	_, err := s.place.api.NetworkDisconnect(ctx, s.place.net.ID, client.NetworkDisconnectOptions{Container: s.id})
	return s.wrap("disconnect", err)
}

// Connect puts the server back on the network, at the same address.
func (s *Server) Connect(ctx context.Context) error {
	_, err := s.place.api.NetworkConnect(ctx, s.place.net.ID, client.NetworkConnectOptions{
		Container: s.id,
		EndpointConfig: &network.EndpointSettings{
			IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: s.addr}, Aliases: []string{s.name},
		},
	})
	return s.wrap("connect", err)
}

func (s *Server) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s at %s: %w", what, s.name, s.addr, err)
}

// remove takes away a container that was made but not started.
func (s *Server) remove() error {
	if s.id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	_, err := s.place.api.ContainerRemove(ctx, s.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !isGone(err) {
		return s.wrap("remove", err)
	}
	return nil
}

// close waits for the goroutines of the server, whose container is gone.
func (s *Server) close() error {
	s.cancel()
	<-s.done
	s.attached.Close()
	<-s.copied
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	max  int
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - t.max; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
