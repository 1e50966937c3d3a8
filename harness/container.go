package harness

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/cluster"
	"github.com/holdfast-io/holdfast/cluster/container"
	"github.com/holdfast-io/holdfast/cluster/process"
)

// ContainerTopologies are those of the process world that Redis servers form:
// an image has no others.
func ContainerTopologies() []cluster.Topology {
	redis := []cluster.Topology{
		cluster.Single, cluster.Replicated, cluster.Independent, cluster.Sentinel, cluster.RedisCluster,
	}
	return slices.DeleteFunc(process.Topologies(), func(t cluster.Topology) bool { return !slices.Contains(redis, t) })
}

// missingInContainers says what servers of an image cannot do for the run.
func (c Config) missingInContainers(image container.Image) string {
	can := process.Abilities(c.Topology)
	if image.Preload != "" {
		return c.missing(ContainerTopologies(), can)
	}
	why := c.missing(ContainerTopologies(), process.WithoutClocks(can))
	if c.missing(ContainerTopologies(), can) == "" && why != "" {
		why += ": " + image.NoFaketime()
	}
	return why
}

// place is where the servers of a real world run; nil leaves it to the world.
func (c Config) place(ctx context.Context) (process.Place, error) {
	if c.World != cluster.Container {
		return nil, nil //nolint:nilnil // nil is this machine
	}
	return container.Open(ctx, container.Config{Image: c.Image, Dir: c.Dir})
}

// addVersions adds what the servers of a world are to the versions of a run.
func addVersions(ctx context.Context, out map[string]string, world *process.World, place process.Place) error {
	if p, ok := place.(*container.Place); ok {
		image := p.Image()
		out["image"] = image.Ref + "@" + image.ID
	}
	server, err := world.Version(ctx)
	if err != nil {
		return err
	}
	if name, version, other := strings.Cut(server, " "); other {
		out[name] = version
	} else if server != "" {
		out["redis"] = server
	}
	return nil
}
