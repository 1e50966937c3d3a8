package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/process"
	"github.com/holdfast-io/holdfast/impl"
)

// watched is what a client knows of a primary that sentinels name: where the
// sentinels are, and which of its own proxies stands before each address that it
// is told. All addresses are those that the servers announce.
type watched struct {
	Master    string            `json:"master"`
	Sentinels []string          `json:"sentinels"`
	Routes    map[string]string `json:"routes"`
}

// askTimeout is how long one sentinel is waited for before the next is asked.
const askTimeout = time.Second

// watchedBy is nil where no sentinels watch.
func watchedBy(w *process.World, client string) *watched {
	witnesses := w.Witnesses()
	if w.Topology() != cluster.Sentinel {
		return nil
	}
	s := &watched{Master: process.MasterName, Routes: map[string]string{}}
	at := w.Endpoints(client)
	for addr, name := range w.Announced() {
		s.Routes[addr] = at[name]
		if slices.Contains(witnesses, name) {
			s.Sentinels = append(s.Sentinels, addr)
		}
	}
	slices.Sort(s.Sentinels)
	return s
}

// node is the primary as a lock gets it.
func (s *watched) node(name, client string) impl.Node {
	return impl.Node{
		Name: name,
		Options: func() *redis.Options {
			return &redis.Options{
				// A lock that asks for no failover client is led to the
				// primary of the moment at every dial. The address is never
				// dialed, and an IP literal, which nobody looks up.
				Addr: "127.0.0.1:0", ClientName: client, PoolSize: 10,
				Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dialPrimary(ctx) },
			}
		},
		Connect: func(o *redis.Options) redis.UniversalClient { return redis.NewFailoverClient(s.failover(o)) },
		Dial:    s.dialPrimary,
	}
}

// dial leads an announced address through the client's own proxy.
func (s *watched) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	own, ok := s.Routes[addr]
	if !ok {
		return nil, fmt.Errorf("dial %s: no server announces that address", addr)
	}
	return dialTCP(ctx, own)
}

// failover are options of a failover client with all that a lock's author may
// have set.
func (s *watched) failover(o *redis.Options) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: s.Master, SentinelAddrs: s.Sentinels, Dialer: s.dial,
		ClientName: o.ClientName, OnConnect: o.OnConnect, Protocol: o.Protocol, DB: o.DB,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries, DialerRetryTimeout: o.DialerRetryTimeout,
		DialerRetryBackoff: o.DialerRetryBackoff, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, ReadBufferSize: o.ReadBufferSize, WriteBufferSize: o.WriteBufferSize,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, MaxConcurrentDials: o.MaxConcurrentDials, PoolTimeout: o.PoolTimeout,
		MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
		PipelinePoolSize: o.PipelinePoolSize, PipelineReadBufferSize: o.PipelineReadBufferSize,
		PipelineWriteBufferSize: o.PipelineWriteBufferSize, AutoPipelineOptions: o.AutoPipelineOptions,
		DisableIdentity: o.DisableIdentity, IdentitySuffix: o.IdentitySuffix, PushNotificationProcessor: o.PushNotificationProcessor,
	}
}

// dialPrimary asks the sentinels, one after the other, and dials whom the first
// that answers calls the primary.
func (s *watched) dialPrimary(ctx context.Context) (net.Conn, error) {
	var errs []error
	for _, addr := range s.Sentinels {
		primary, err := s.ask(ctx, addr)
		if err == nil {
			return s.dial(ctx, "tcp", primary)
		}
		errs = append(errs, fmt.Errorf("sentinel %s: %w", addr, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (s *watched) ask(ctx context.Context, sentinel string) (string, error) {
	c := redis.NewSentinelClient(&redis.Options{
		Addr: sentinel, Dialer: s.dial, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, DisableIdentity: true,
		DialTimeout: askTimeout, ReadTimeout: askTimeout, WriteTimeout: askTimeout, ContextTimeoutEnabled: true,
	})
	addr, err := c.GetMasterAddrByName(ctx, s.Master).Result()
	if err = errors.Join(err, c.Close()); err != nil {
		return "", err
	}
	const hostAndPort = 2
	if len(addr) != hostAndPort {
		return "", fmt.Errorf("it answers %q", addr)
	}
	return net.JoinHostPort(addr[0], addr[1]), nil
}
