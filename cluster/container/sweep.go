package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moby/moby/client"
)

// The labels of everything that a run makes. A pid alone would name another
// process after a while, and the same pid is another process in another machine
// or container that shares the engine.
const (
	labelRun    = "holdfast"         // the run's id, unique
	labelPid    = "holdfast.pid"     // of the process that made it
	labelBirth  = "holdfast.birth"   // when that process was started, in ticks since boot
	labelWhere  = "holdfast.machine" // the boot and the pid namespace in which the pid counts
	labelServer = "holdfast.server"  // the server's name; not on networks
)

// maker names one process for good.
type maker struct {
	pid   int
	birth string
	where string
}

// self is this process.
func self() maker {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty is a name too: it matches no other
	ns, _ := os.Readlink("/proc/self/ns/pid")
	return maker{pid: os.Getpid(), birth: birthOf(os.Getpid()), where: strings.TrimSpace(string(boot)) + " " + ns}
}

// birthOf is "" for a process that is not there, or that has ended and waits to be
// reaped, which can take for ever where the first process is no real init.
func birthOf(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The command name may hold spaces and brackets, so the last closing
	// bracket counts. The start time is field 22 of proc(5), the 20th after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

func labelsOf(p maker) map[string]string {
	return map[string]string{
		labelRun: strconv.Itoa(p.pid) + "-" + p.birth, labelPid: strconv.Itoa(p.pid),
		labelBirth: p.birth, labelWhere: p.where,
	}
}

// orphaned says that the process which made something is certainly gone. What
// was made in another boot or pid namespace is nobody's to judge here.
func orphaned(labels map[string]string, here maker) bool {
	pid, err := strconv.Atoi(labels[labelPid])
	if err != nil || labels[labelWhere] != here.where {
		return false
	}
	return birthOf(pid) != labels[labelBirth]
}

// Thing is a container or a network that a run has made.
type Thing struct {
	Kind string // "container" or "network"
	ID   string
	// Maker is the pid of the process that made it, 0 for none that is known.
	Maker int
	// State is the engine's word for how a container is: running, paused.
	State string
	// Labels are those of the run, and others.
	Labels map[string]string
}

func (t Thing) String() string {
	return fmt.Sprintf("%s %.12s of process %s (%s)", t.Kind, t.ID, t.Labels[labelPid], t.Labels[labelServer])
}

// Things lists what the runs of this engine have made and not removed, running
// or not: containers, then networks.
func Things(ctx context.Context) ([]Thing, error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	found, err := things(ctx, api)
	return found, errors.Join(err, api.Close())
}

func things(ctx context.Context, api *engine) ([]Thing, error) {
	ours := make(client.Filters).Add("label", labelRun)
	containers, err := api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, fmt.Errorf("list the containers of earlier runs: %w", err)
	}
	networks, err := api.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return nil, fmt.Errorf("list the networks of earlier runs: %w", err)
	}
	var out []Thing
	for _, c := range containers.Items {
		out = append(out, thing("container", c.ID, string(c.State), c.Labels))
	}
	for _, n := range networks.Items {
		out = append(out, thing("network", n.ID, "", n.Labels))
	}
	return out, nil
}

func thing(kind, id, state string, labels map[string]string) Thing {
	pid, _ := strconv.Atoi(labels[labelPid]) // 0 for what has no such label
	return Thing{Kind: kind, ID: id, Maker: pid, State: state, Labels: labels}
}

// Sweep removes the containers and networks of processes that are gone, and says
// which they were. [Open] does it too.
func Sweep(ctx context.Context) ([]Thing, error) {
	api, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	removed, err := sweep(ctx, api, self())
	return removed, errors.Join(err, api.Close())
}

func sweep(ctx context.Context, api *engine, here maker) ([]Thing, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*bound)
	defer cancel()
	all, err := things(ctx, api)
	if err != nil {
		return nil, err
	}
	var removed []Thing
	var errs []error
	for _, t := range all { // containers come first, which a network waits for
		if !orphaned(t.Labels, here) {
			continue
		}
		if err := t.remove(ctx, api); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", t, err))
			continue
		}
		removed = append(removed, t)
	}
	return removed, errors.Join(errs...)
}

func (t Thing) remove(ctx context.Context, api *engine) error {
	if t.Kind == "network" {
		return removeNetwork(ctx, api, t.ID)
	}
	_, err := api.ContainerRemove(ctx, t.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	// Two that sweep at once meet here: it is gone, or about to be.
	if err != nil && !isGone(err) && !strings.Contains(err.Error(), "already in progress") {
		return err
	}
	return nil
}
