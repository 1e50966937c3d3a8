package baselines_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-io/holdfast/cluster/programs/programtest"
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/catalogue"
)

// ttl of all leases here, the least that is comfortable for etcd.
const ttl = 2 * time.Second

// baseline is a lock with what the tests need of it.
type baseline struct {
	name  string
	start func(testing.TB) []*programtest.Server
	// steal takes the lock away from its holder behind its back.
	steal func(t *testing.T, s *store)

	fence, expires bool
	// lostWithin is the bound of the loss notice after a silent cut; 0 for none.
	lostWithin time.Duration
	// order: the notice comes before the server may grant to another.
	order bool
}

func baselines() []baseline {
	one := func(t testing.TB) []*programtest.Server { return []*programtest.Server{programtest.Postgres(t)} }
	return []baseline{
		{
			name: "etcd", fence: true, expires: true, steal: stealEtcd,
			start: func(t testing.TB) []*programtest.Server { return programtest.Etcd(t, 3) },
			// The TTL from the last answer, and up to a second until the client looks.
			lostWithin: ttl + time.Second + slack,
		},
		{
			name: "zookeeper", fence: true, expires: true, steal: stealZooKeeper,
			start:      func(t testing.TB) []*programtest.Server { return programtest.ZooKeeper(t, 3) },
			lostWithin: ttl*5/6 + slack, order: true,
		},
		{name: "postgres", start: one, fence: true, expires: true, steal: stealRow},
		{
			name: "postgres-advisory", start: one, steal: stealAdvisory,
			// A pause and an unanswered question, a third of the TTL each.
			lostWithin: ttl*2/3 + slack, order: true,
		},
	}
}

// slack is for a busy machine.
const slack = 500 * time.Millisecond

// each runs a test on every baseline, on servers of its own.
func each(t *testing.T, test func(*testing.T, *store)) {
	t.Parallel()
	for _, b := range baselines() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, &store{baseline: b, servers: b.start(t)})
		})
	}
}

// store is a baseline whose servers run.
type store struct {
	baseline
	servers []*programtest.Server
}

// client builds one client's lock object and gives its link.
func (s *store) client(t *testing.T, name string) (impl.Lock, *link) {
	t.Helper()
	l := newLink()
	env := impl.Env{Client: name, Name: "job", TTL: ttl}
	for i, server := range s.servers {
		env.Nodes = append(env.Nodes, impl.Node{Name: fmt.Sprintf("n%d", i+1), Dial: l.dial(server)})
	}
	entry, ok := catalogue.Find(s.name)
	if !ok {
		t.Fatalf("there is no lock %s", s.name)
	}
	lock, err := entry.New(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.set(open)
		if err := lock.(io.Closer).Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
	})
	return lock, l
}

// acquire gets the lock within ten seconds.
func acquire(t *testing.T, lock impl.Lock) impl.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	lease, err := lock.Acquire(ctx)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return lease
}

// release gives the lock back within five seconds.
func release(t *testing.T, lease impl.Lease) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return lease.Release(ctx)
}

func stealEtcd(t *testing.T, s *store) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://n1"}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return s.servers[0].Dial(ctx)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Delete(t.Context(), "holdfast/job/", clientv3.WithPrefix())
	if err != nil || got.Deleted != 1 {
		t.Fatalf("steal: %v, %v", got, err)
	}
}

func stealZooKeeper(t *testing.T, s *store) {
	c, _, err := zk.Connect([]string{s.servers[0].Addr}, ttl, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	names, _, err := c.Children("/holdfast/job")
	if err != nil || len(names) != 1 {
		t.Fatalf("steal: %v, %v", names, err)
	}
	if err := c.Delete("/holdfast/job/"+names[0], -1); err != nil {
		t.Fatal(err)
	}
}

func stealRow(t *testing.T, s *store) {
	statement(t, s, "UPDATE holdfast_lock SET expires = clock_timestamp()")
}

func stealAdvisory(t *testing.T, s *store) {
	statement(t, s, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
}

func statement(t *testing.T, s *store, sql string) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.servers[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable", host, port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	done, err := c.Exec(t.Context(), sql)
	if err != nil || done.RowsAffected() != 1 {
		t.Fatalf("steal: %v, %v", done, err)
	}
}
