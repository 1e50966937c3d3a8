package impl_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/impl"
)

var errDialled = errors.New("dialled")

func dialled(context.Context) (net.Conn, error) { return nil, errDialled }

func TestCheckDial(t *testing.T) {
	t.Parallel()
	n1, n2 := impl.Node{Name: "n1", Dial: dialled}, impl.Node{Name: "n2", Dial: dialled}
	for _, c := range []struct {
		name  string
		nodes []impl.Node
		ttl   time.Duration
		want  string
	}{
		{name: "well", nodes: []impl.Node{n1, n2}, ttl: time.Second},
		{name: "none", ttl: time.Second, want: "no nodes"},
		{name: "no dial", nodes: []impl.Node{n1, {Name: "n2"}}, ttl: time.Second, want: `node 1 ("n2") has no Dial`},
		{name: "twice", nodes: []impl.Node{n1, n1}, ttl: time.Second, want: "no name of its own"},
		{name: "nameless", nodes: []impl.Node{{Dial: dialled}}, ttl: time.Second, want: "no name of its own"},
		{name: "short", nodes: []impl.Node{n1}, ttl: 999 * time.Millisecond, want: "the least that the store can keep is 1s"},
	} {
		err := impl.Env{Client: "c1", Name: "job", Nodes: c.nodes, TTL: c.ttl}.CheckDial(time.Second)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestDialNode(t *testing.T) {
	t.Parallel()
	env := impl.Env{Nodes: []impl.Node{{Name: "n1", Dial: dialled}}}
	for _, address := range []string{"n1", "n1:2181"} {
		if _, err := env.DialNode(t.Context(), address); !errors.Is(err, errDialled) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := env.DialNode(t.Context(), "n10:2181"); err == nil || errors.Is(err, errDialled) {
		t.Errorf("a stranger: %v", err)
	}
}
