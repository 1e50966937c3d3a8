//go:build linux

package main

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/reports"
)

// launchInContainer starts the scenario breaking with its server in a container,
// and returns when a worker is stopped and the server frozen.
func launchInContainer(t *testing.T) *victim {
	t.Helper()
	needContainers(t)
	v := start(t, t.TempDir(), "run", write(t, "breaking.yaml", breaking), "--on", "container", "--lock", "basic", "--ttl", leases.String())
	v.world, v.patience = "container", time.Minute // the engine has others to serve
	// Should the test end before its command has tidied up. Others may sweep too,
	// and only what belongs to the dead is swept.
	t.Cleanup(func() {
		if _, err := container.Sweep(context.Background()); err != nil {
			t.Error(err)
		}
	})
	v.await("a stopped worker and a frozen server", func() bool {
		return len(v.stopped("worker")) == 1 && slices.ContainsFunc(v.things(), func(c container.Thing) bool { return c.State == "paused" })
	})
	return v
}

// things are the containers and networks of the command's processes.
func (v *victim) things() []container.Thing {
	v.t.Helper()
	all, err := container.Things(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	v.pids() // looks for new ones
	return slices.DeleteFunc(all, func(c container.Thing) bool { return v.known[c.Maker] == "" })
}

// leftNoThings looks for what the engine could still have of the command, and
// then for the rest.
func (v *victim) leftNoThings(pids []int) {
	v.t.Helper()
	if left := v.things(); len(left) != 0 {
		v.t.Errorf("left: %v", left)
	}
	v.leftNothing(pids, true)
}

// TestInterruptInContainers: a frozen server, a stopped client, and nothing is
// left of either when the command has ended.
func TestInterruptInContainers(t *testing.T) {
	t.Parallel()
	v := launchInContainer(t)
	pids := v.pids()
	v.signal(syscall.SIGINT)
	v.judged("interrupted: healing", "interrupted: 1 of 1 runs", "stored under runs")
	v.leftNoThings(pids)
}

// TestInterruptOfTheStartInContainers comes while six servers are being started,
// some of which the engine is just making.
func TestInterruptOfTheStartInContainers(t *testing.T) {
	needContainers(t)
	t.Parallel()
	v := start(t, t.TempDir(), "run", "cluster-failover", "--lock", "basic", "--on", "container")
	v.patience = time.Minute
	v.await("the container of a server", func() bool {
		return slices.ContainsFunc(v.things(), func(c container.Thing) bool { return c.Labels["holdfast.server"] == "n1" })
	})
	pids := v.pids()
	v.signal(syscall.SIGINT)
	if code := v.exit().ExitCode(); code != reports.ExitError {
		t.Errorf("exit code %d\n%s%s", code, v.said("stdout"), v.said("stderr"))
	}
	v.leftNoThings(pids)
}

// TestHarnessKilledInContainers: the kernel ends the clients, and the next run
// removes the containers.
func TestHarnessKilledInContainers(t *testing.T) {
	t.Parallel()
	v := launchInContainer(t)
	pids := v.pids()
	v.signal(syscall.SIGKILL)
	v.exit()
	v.leftNothing(nil, false)
	next := exec.Command(binary, "run", "calm", "--on", "container", "--lock", "basic", "--out", t.TempDir())
	next.Env = v.cmd.Env
	if out, err := next.CombinedOutput(); err != nil {
		t.Errorf("the next run: %v\n%s", err, out)
	}
	v.leftNoThings(pids)
}

// TestFailedStartInContainers: there is no such image, and nothing remains of
// the attempt.
func TestFailedStartInContainers(t *testing.T) {
	needContainers(t)
	t.Parallel()
	v := start(t, t.TempDir(), "run", "calm", "--lock", "basic", "--on", "container", "--image", "holdfast.invalid/redis:none")
	v.pids()
	code := v.exit().ExitCode()
	says := v.said("stdout") + v.said("stderr")
	if code != reports.ExitError || !strings.Contains(says, "image holdfast.invalid/redis:none is not here and cannot be pulled") {
		t.Errorf("exit code %d\n%s", code, says)
	}
	v.leftNoThings(nil)
}
