package process

import (
	"net"
	"os"
	"testing"
)

func TestCallerIsFoundByItsSocket(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, ln.Close()) }()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	must(t, err)
	defer func() { must(t, dialed.Close()) }()
	accepted, err := ln.Accept()
	must(t, err)
	defer func() { must(t, accepted.Close()) }()
	if got := callerAmong(accepted, map[string]int{"me": os.Getpid(), "init": 1}); got != "me" {
		t.Errorf("the caller is %q", got)
	}
	if got := callerAmong(accepted, map[string]int{"init": 1}); got != "" {
		t.Errorf("a process without that socket is taken for the caller: %q", got)
	}
}
