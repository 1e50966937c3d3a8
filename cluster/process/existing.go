package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-io/holdfast/cluster"
)

// Existing is a server that runs already and is not ours: it is reached through
// proxies like any other, and nothing else is done to it.
type Existing struct {
	Addr               string // host:port
	Username, Password string
	DB                 int
	// TLS says that the server speaks TLS. What is said there cannot be read,
	// so that no single reply can be lost.
	TLS bool
}

// ParseServers reads redis://[user:password@]host:port[,host:port...][/db], with
// rediss:// for TLS. A missing port is 6379.
func ParseServers(address string) ([]Existing, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	if scheme != "redis" && scheme != "rediss" {
		return nil, fmt.Errorf("%q is no address of servers: write redis://host:port,host:port", redacted(address))
	}
	one := Existing{TLS: scheme == "rediss"}
	hosts, db, hasDB := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		name, password, _ := strings.Cut(hosts[:at], ":")
		var errs [2]error
		one.Username, errs[0] = url.PathUnescape(name)
		one.Password, errs[1] = url.PathUnescape(password)
		if err := errors.Join(errs[0], errs[1]); err != nil {
			return nil, errors.New("the user or the password in the address is not URL-encoded")
		}
		hosts = hosts[at+1:]
	}
	if hasDB && db != "" {
		var err error
		if one.DB, err = strconv.Atoi(db); err != nil || one.DB < 0 {
			return nil, fmt.Errorf("%q is no number of a database: write redis://host:port/0", db)
		}
	}
	var out []Existing
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "6379")
		}
		name, port, err := net.SplitHostPort(host)
		if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || name == "" || number == 0 {
			return nil, fmt.Errorf("%q is no host and port: write redis://host:port,host:port", host)
		}
		one.Addr = host
		for _, other := range out {
			if other.Addr == host {
				return nil, fmt.Errorf("%s is there twice: each server is one vote", host)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// redacted is an address without its password.
func redacted(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@')
	if !found || at < 0 {
		return address
	}
	name, _, _ := strings.Cut(rest[:at], ":")
	return scheme + "://" + name + ":PASSWORD" + rest[at:]
}

// Redacted is an address of servers as it may be shown and stored: with the
// word PASSWORD in the place of a password.
func Redacted(address string) string { return redacted(address) }

// Options connect to the server at an address, which may be a proxy's.
func (e Existing) Options(addr string) *redis.Options {
	o := &redis.Options{Addr: addr, Username: e.Username, Password: e.Password, DB: e.DB}
	if e.TLS {
		host, _, _ := net.SplitHostPort(e.Addr) // ParseServers has checked it
		o.TLSConfig = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	}
	return o
}

// own is a client of our own, past all proxies.
func (e Existing) own() *redis.Client {
	o := e.Options(e.Addr)
	o.PoolSize, o.MaxRetries, o.DialerRetries, o.DisableIdentity = 2, -1, 1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = 2*time.Second, 5*time.Second, 2*time.Second
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o)
}

// CheckServers says why servers that run already cannot be used: one that does
// not answer, a replica, a node of a cluster, or two addresses of one server,
// which would be two votes of one memory.
func CheckServers(ctx context.Context, servers []Existing) error {
	seen := map[string]string{} // address by run id
	for _, s := range servers {
		c := s.own()
		err := check(ctx, c, s.Addr, seen)
		if err := errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
	return nil
}

func check(ctx context.Context, c *redis.Client, addr string, seen map[string]string) error {
	if err := c.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("the server at %s does not answer: %w", addr, err)
	}
	info, err := c.Info(ctx).Result()
	if err != nil {
		return fmt.Errorf("the server at %s does not say what it is (INFO): %w", addr, err)
	}
	id := infoField(info, "run_id")
	switch other, twice := seen[id]; {
	case twice && id != "":
		return fmt.Errorf("%s and %s are one server: its memory would have two votes", other, addr)
	case infoField(info, "role") == "slave":
		return fmt.Errorf("the server at %s is a replica of %s:%s: name its primary",
			addr, infoField(info, "master_host"), infoField(info, "master_port"))
	case infoField(info, "cluster_enabled") == "1":
		return fmt.Errorf("the server at %s is a node of a Redis Cluster, which answers for some keys only: name servers that stand alone", addr)
	}
	seen[id] = addr
	return nil
}

// elsewhere is the place of servers that run already: it starts and stops
// nothing.
type elsewhere struct{ gateway string }

var _ Place = elsewhere{}

func (elsewhere) World() cluster.World   { return cluster.External }
func (elsewhere) Host(string) string     { return "" }    // each server has its own
func (elsewhere) OwnAddresses() bool     { return false } // we kill none
func (e elsewhere) Gateway() string      { return e.gateway }
func (elsewhere) Preload() string        { return "" }
func (elsewhere) Caller(net.Conn) string { return "" }
func (elsewhere) Close() error           { return nil }

// Start only says that the server is there.
func (elsewhere) Start(context.Context, Program) (Server, error) { return foreignServer{}, nil }

// foreignServer is somebody else's.
type foreignServer struct{}

func (foreignServer) Stop(context.Context) error   { return cluster.ErrUnsupported }
func (foreignServer) Resume(context.Context) error { return cluster.ErrUnsupported }
func (foreignServer) End(context.Context) error    { return nil } // it goes on
func (foreignServer) Done() <-chan struct{}        { return nil }
func (foreignServer) Err() error                   { return nil }

// existingServer is the software of a node that is not ours.
type existingServer struct{}

var _ software = existingServer{}

func (existingServer) ports() []string { return []string{redisPort} }

func (existingServer) program(_ context.Context, n *node) (Program, error) {
	return Program{Server: n.name}, nil
}

// probe trusts [CheckServers] to have told more than a connection could.
func (existingServer) probe(n *node) error {
	c, err := net.DialTimeout("tcp", n.addr, waitBound)
	if err != nil {
		return err
	}
	return c.Close()
}

func (existingServer) started(context.Context, *node) error { return nil }

func (existingServer) can(a cluster.Ability) bool {
	return a == cluster.CanLoseReply || a == cluster.CanTrack
}

// ExistingAbilities are those of a world whose servers are not ours.
func ExistingAbilities() []cluster.Ability {
	return []cluster.Ability{
		cluster.CanPauseClient, cluster.CanCrashClient, cluster.CanCut, cluster.CanDisconnect, cluster.CanDelay,
		cluster.CanLoseReply, cluster.CanTrack,
	}
}

// ExistingTopologies are those that servers can be without any doing of ours.
func ExistingTopologies() []cluster.Topology {
	return []cluster.Topology{cluster.Single, cluster.Independent}
}

// removeKeys deletes every key that contains the world's mark from the servers
// that are not ours.
func (w *World) removeKeys(ctx context.Context) error {
	if w.cfg.KeyMark == "" {
		return nil
	}
	var errs []error
	for _, s := range w.cfg.Existing {
		c := s.own()
		errs = append(errs, removeMarked(ctx, c, w.cfg.KeyMark), c.Close())
	}
	return errors.Join(errs...)
}

func removeMarked(ctx context.Context, c *redis.Client, mark string) error {
	found := c.Scan(ctx, 0, "*"+mark+"*", 1000).Iterator()
	for found.Next(ctx) {
		if err := c.Del(ctx, found.Val()).Err(); err != nil {
			return fmt.Errorf("remove the key %q from %s: %w", found.Val(), c.Options().Addr, err)
		}
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("look for keys to remove on %s: %w", c.Options().Addr, err)
	}
	return nil
}
