package harness

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/impl"
)

// whole is a Redis Cluster as a lock gets it: go-redis's own client for it. A
// lock that makes its client from the address alone, or dials by itself, reaches
// the first node, which sends it elsewhere with MOVED for what it has not.
func (a *assignment) whole() impl.Node {
	n := a.node(a.Nodes[0])
	n.Name = "cluster"
	n.Connect = func(o *redis.Options) redis.UniversalClient { return a.clusterClient(o) }
	return n
}

// lookEvery is how old what a client knows of the slots may be. By default
// go-redis v9.23 looks once a minute, and besides only when a node has sent it
// elsewhere: a primary that is dead sends nobody anywhere, and a client that asks
// for keys of its slots alone hears of the election a minute late. A run would
// show that and nothing else.
const lookEvery = 500 * time.Millisecond

// clusterClient is told of all nodes, and dials those that the nodes name through
// this client's own proxies. What the lock has set it keeps.
func (a *assignment) clusterClient(o *redis.Options) *redis.ClusterClient {
	own := map[string]string{}
	var addrs []string
	for _, n := range a.Nodes {
		own[n.Known] = n.Addr
		addrs = append(addrs, n.Addr)
	}
	dial := o.Dialer
	if dial == nil {
		dialer := net.Dialer{Timeout: o.DialTimeout}
		dial = dialer.DialContext
	}
	c := &redis.ClusterOptions{
		Addrs: addrs, ClientName: o.ClientName,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if at, ok := own[addr]; ok {
				addr = at
			}
			return dial(ctx, network, addr)
		},
		OnConnect: o.OnConnect, Protocol: o.Protocol, Username: o.Username, Password: o.Password,
		// Redirects and retries are one count in this client.
		MaxRedirects: max(o.MaxRetries, 0), MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries, DialerRetryTimeout: o.DialerRetryTimeout,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout,
		MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		ClusterStateReloadInterval: lookEvery,
		DisableIdentity:            o.DisableIdentity, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
	if o.MaxRetries >= 0 {
		return redis.NewClusterClient(c)
	}
	once := &sentOnce{}
	c.NewClient = func(o *redis.Options) *redis.Client {
		node := redis.NewClient(o)
		node.AddHook(once)
		return node
	}
	once.cluster = redis.NewClusterClient(c)
	return once.cluster
}

// sentOnce keeps a cluster client from sending a command again that may have been
// executed, for a lock that has turned retries off. Its count of redirects and of
// retries is one, and without redirects no client outlives a failover. So what is
// no answer of a server comes back as an error that it does not know:
//
//	0    SET NX is sent, executed, and its reply lost
//	0.1  sent again it would find its own key, and the lock be told "no"
//
// Since such a client learns nothing from the error, it is told to look where
// the slots are now.
type sentOnce struct{ cluster *redis.ClusterClient }

// outcomeLost is an error after which the command may have been executed. It does
// not unwrap: go-redis would find the cause and send again.
type outcomeLost struct{ text string }

func (e outcomeLost) Error() string { return "not sent again: " + e.text }

// DialHook implements [redis.Hook].
func (*sentOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (s *sentOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := s.final(ctx, next(ctx, cmd))
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (s *sentOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := s.final(ctx, next(ctx, cmds))
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				cmd.SetErr(s.final(ctx, cmd.Err()))
			}
		}
		return err
	}
}

// final is an error with which a command is over, unless a server has answered.
func (s *sentOnce) final(ctx context.Context, err error) error {
	var answer redis.Error
	switch {
	case err == nil, errors.As(err, &answer), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if s.cluster != nil {
		s.cluster.ReloadState(ctx)
	}
	return outcomeLost{text: err.Error()}
}
