package main

import (
	"testing"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/reports"
)

// nodeDown lets acquires fail: each gives up long before the node is back.
const nodeDown = `name: node-down
about: The node is down for a TTL, and nobody waits so long for the lock.
topology: {default: single}
clients: 2
locks: [basic]
workload: {acquire-timeout: 0.2ttl}
length: 2ttl
nemesis:
  - when: {at: 0.3ttl}
    kill: {node: [n1], restart: lose}
    for: 1ttl
`

// TestLockEndsItsProcess: in both worlds a lock that panics or exits is a
// finding, and no failure of holdfast.
func TestLockEndsItsProcess(t *testing.T) {
	path := write(t, "node-down.yaml", nodeDown)
	for _, world := range []string{string(cluster.Sim), string(cluster.Process)} { // clients are processes in all other worlds too
		if world == string(cluster.Process) {
			needServers(t)
		}
		for _, c := range []struct{ lock, kind, says string }{
			{"unruly-exits", "exit", "cannot get the lock"},
			{"unruly-panics", "panic", "unruly.panics"},
			{"unruly-panics-in-background", "panic", "unruly.panics"},
		} {
			r := invoke(t, "run", path, "--lock", c.lock, "--on", world, "--out", "", "--format", "json")
			r.want(t, reports.ExitViolation, `"kind": "`+c.kind+`"`, c.says, `"name": "conduct"`)
		}
	}
}
